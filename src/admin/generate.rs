//! `tandem-generate`: writes the man pages and shell completions that the packages install, from the tables that parse
//! the options, and the DTD that the agent's meta-data names. `make install` runs it; no package holds it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, Parser};
use clap_complete::{Generator, Shell};
use clap_mangen::Man;
use roff::{Roff, bold, roman};

use super::completion::{of_tandem, visible};
use super::exit::{Exit, TABLE};
use crate::adapters::ocf::metadata;
use crate::os::output::complain;
use crate::{agent, fence, fencing_agent, watchdog};

/// Writes the man pages, shell completions and DTD that 'make install' installs
#[derive(Parser)]
#[command(name = "tandem-generate")]
struct Arguments {
    /// Directory to write below, as /usr/share
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// The shells with a completion script, each with the script's directory below `/usr/share`.
const COMPLETIONS: &[(Shell, &str)] = &[
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Fish, "fish/vendor_completions.d"),
    (Shell::Zsh, "zsh/site-functions"),
];

/// Runs `tandem-generate`. `args` begin with the program's name.
pub(super) fn run(args: impl IntoIterator<Item = OsString>) -> Exit {
    let arguments = match Arguments::try_parse_from(args) {
        Ok(arguments) => arguments,
        Err(answer) => {
            let _ = answer.print();
            return if answer.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    match write(&arguments.dir) {
        Ok(()) => Exit::Done,
        Err(error) => {
            complain(format_args!("tandem-generate: {}: {error}", arguments.dir.display()));
            Exit::Failed
        }
    }
}

/// Writes man pages, completion scripts and the DTD below the directory `share`.
fn write(share: &Path) -> std::io::Result<()> {
    let agent_page = agent::metadata::man_page();
    put(&share.join("man/man7/ocf_tandem_podman-etcd.7"), agent_page.as_bytes())?;
    let fence_page = fence::metadata::manpage();
    put(&share.join("man/man8/fence_redfish_rs.8"), fence_page.as_bytes())?;
    put(&share.join(metadata::DTD_PLACE), metadata::DTD.as_bytes())?;
    let mut own = visible();
    own.build();
    let codes = TABLE.map(|(code, meaning)| (code as u8, meaning));
    man_pages(&own, &codes, &share.join("man/man8"))?;
    for (mut daemon, codes) in
        [(watchdog::command_line(), watchdog::EXIT_CODES), (fencing_agent::command_line(), fencing_agent::EXIT_CODES)]
    {
        daemon.build();
        man_pages(&daemon, &codes, &share.join("man/man8"))?;
    }
    for (shell, place) in COMPLETIONS {
        let place = share.join(place);
        completion(*shell, of_tandem(*shell).as_bytes(), "tandem", &place)?;
        let mut text = Vec::new();
        clap_complete::generate(*shell, &mut fence::input::command(), "fence_redfish_rs", &mut text);
        completion(*shell, &text, "fence_redfish_rs", &place)?;
        for (mut daemon, name) in
            [(watchdog::command_line(), "watchdog-mux"), (fencing_agent::command_line(), "fencing-agent")]
        {
            text.clear();
            clap_complete::generate(*shell, &mut daemon, name, &mut text);
            completion(*shell, &text, name, &place)?;
        }
    }
    Ok(())
}

/// Writes a man page for `command`, and one for each of its subcommands, into `dir`.
fn man_pages(command: &Command, codes: &[(u8, &str)], dir: &Path) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let page = Man::new(command.clone()).title(name).section("8").manual("Tandem");
    let mut text = Vec::new();
    page.render(&mut text)?;
    // Without the string for apostrophes, which the page defines.
    text.extend_from_slice(exit_status(codes).to_roff().as_bytes());
    put(&dir.join(format!("{name}.8")), &text)?;
    command.get_subcommands().try_for_each(|subcommand| man_pages(subcommand, codes, dir))
}

/// Returns the man pages' section on exit codes. It is the same on each page of a program.
fn exit_status(codes: &[(u8, &str)]) -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in codes {
        section.control("TP", []).text([bold(code.to_string())]).text([roman(*meaning)]);
    }
    section
}

fn completion(shell: Shell, text: &[u8], name: &str, dir: &Path) -> std::io::Result<()> {
    let file = match shell {
        // bash loads a file with the command's own name.
        Shell::Bash => name.to_owned(),
        _ => shell.file_name(name),
    };
    put(&dir.join(file), text)
}

fn put(path: &Path, text: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    fs::write(path, text)
}
