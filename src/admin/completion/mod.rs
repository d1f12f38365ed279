//! `tandem completion`: prints the command line's completion script for a shell, for a machine without the package's
//! files.

mod names;

use clap::{Args, Command, ValueEnum};
use clap_complete::{Shell, generate};

use super::{command_line, say};
use crate::adapters::command::Programs;
use crate::adapters::pacemaker::names::{fence_devices, nodes};
use crate::operate::failure::Failure;

const HELP: &str = "\
The packages install these files. If only the binary was installed, have your shell read them when it starts:

  bash  source <(tandem completion bash)
  fish  tandem completion fish | source
  zsh   source <(tandem completion zsh)

The completions read the names of nodes and fence devices from the CIB.";

/// Prints the completions of tandem for a shell
#[derive(Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    /// Shell that reads the completions
    #[arg(value_name = "SHELL", value_enum, required_unless_present = "names")]
    shell: Option<OurShell>,
    /// Prints the names of this kind that the completions offer
    #[arg(long, value_enum, hide = true, conflicts_with = "shell")]
    names: Option<Names>,
}

/// A shell with completions that are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OurShell {
    Bash,
    Fish,
    Zsh,
}

/// What has names that only the cluster knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Names {
    Nodes,
    Devices,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(names) = arguments.names {
        let programs = Programs::default();
        let found = match names {
            Names::Nodes => nodes(&programs),
            Names::Devices => fence_devices(&programs),
        };
        return if found.is_empty() { Ok(()) } else { say(found.join("\n")) };
    }
    let shell = match arguments.shell {
        Some(OurShell::Bash) | None => Shell::Bash,
        Some(OurShell::Fish) => Shell::Fish,
        Some(OurShell::Zsh) => Shell::Zsh,
    };
    say(of_tandem(shell).trim_end())
}

/// Returns the completion script of `tandem` for `shell`.
pub(super) fn of_tandem(shell: Shell) -> String {
    let mut command = names::hinted(visible());
    let mut text = Vec::new();
    generate(shell, &mut command, "tandem", &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    match shell {
        Shell::Bash => names::in_bash(text, &command),
        Shell::Fish => names::in_fish(&text, &command),
        Shell::Zsh => names::in_zsh(&text),
        _ => text,
    }
}

/// Returns the definition of `tandem`'s command line, without the hidden subcommands.
pub(super) fn visible() -> Command {
    let all = command_line();
    let shown: Vec<Command> = all.get_subcommands().filter(|one| !one.is_hide_set()).cloned().collect();
    let about = all.get_about().cloned().unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let tandem = Command::new("tandem").version(version).about(about).disable_help_subcommand(true);
    tandem.subcommand_required(true).subcommands(shown)
}
