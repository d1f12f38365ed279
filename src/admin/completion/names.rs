//! The names of nodes and fence devices in the completion scripts that clap writes. clap cannot call a program for the
//! words, so this file completes its scripts.

use std::fmt::Write as _;

use clap::{Arg, Command, ValueHint};

/// The hint that marks arguments which are names of nodes. No other argument uses this hint of clap.
const NODES: ValueHint = ValueHint::Hostname;
/// The hint that marks arguments which are names of fence devices. No other argument uses this hint of clap.
const DEVICES: ValueHint = ValueHint::Username;

/// Marks each argument that is the name of a node or a fence device.
pub(super) fn hinted(command: Command) -> Command {
    let command = command.mut_args(|argument| match kind(&argument) {
        Some("nodes") => argument.value_hint(NODES),
        Some(_) => argument.value_hint(DEVICES),
        None => argument,
    });
    command.mut_subcommands(hinted)
}

/// Returns the value of `--names` that makes `tandem completion` print the possible values of `argument`: `nodes` or `devices`.
/// Returns `None` if `argument` names neither a node nor a fence device.
fn kind(argument: &Arg) -> Option<&'static str> {
    let value = argument.get_value_names()?.first()?.as_str();
    match (value, argument.get_long()) {
        ("NODE" | "OLD", _) => Some("nodes"),
        ("DEVICE", _) | ("ID", Some("device")) => Some("devices"),
        _ => None,
    }
}

/// Collects all subcommands below `command` in `found`, each with its words after the program's name.
fn walk<'a>(command: &'a Command, words: &[&'a str], found: &mut Vec<(Vec<&'a str>, &'a Command)>) {
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        let words = [words, &[below.get_name()]].concat();
        walk(below, &words, found);
        found.push((words, below));
    }
}

/// Returns the [`kind`] of the first positional argument; `None` if that argument names neither a node nor a fence device.
fn positional(command: &Command) -> Option<&'static str> {
    command.get_positionals().next().and_then(kind)
}

const BASH_HELPER: &str = "\
_tandem_names() {
    tandem completion --names \"$1\" 2> /dev/null
}

";

/// Adds the completion of names to the script for bash. A word that begins with a hyphen is still completed as an option.
pub(super) fn in_bash(text: String, command: &Command) -> String {
    let mut all = Vec::new();
    walk(command, &[], &mut all);
    let filled = all.into_iter().fold(text, |text, (words, command)| {
        let begin = format!("\n        tandem__subcmd__{})\n", words.join("__subcmd__").replace('-', "__subcmd__"));
        let Some((head, rest)) = text.split_once(&begin) else { return text };
        // The next case is indented by eight columns, and the content of this one is deeper.
        let end = rest.find("\n        tandem__").unwrap_or(rest.len());
        let (block, tail) = rest.split_at(end);
        let mut block = block.to_owned();
        for (long, kind) in command.get_opts().filter_map(|option| Some((option.get_long()?, kind(option)?))) {
            let files =
                format!("                --{long})\n                    COMPREPLY=($(compgen -f \"${{cur}}\"))");
            let names = files.replace("compgen -f", &format!("compgen -W \"$(_tandem_names {kind})\" --"));
            block = block.replace(&files, &names);
        }
        if let Some(kind) = positional(command)
            && let Some((options, rest)) = block.split_once('\n')
        {
            block = format!(
                "{options}\n            if [[ ${{cur}} != -* ]] ; then\n                \
                 names=\"$(_tandem_names {kind})\"\n                opts=\"${{names:-$opts}}\"\n            fi\n{rest}"
            );
        }
        format!("{head}{begin}{block}{tail}")
    });
    BASH_HELPER.to_owned() + &filled.replacen("local i cur prev opts cmd", "local i cur prev opts cmd names", 1)
}

/// Adds the completion of names to the script for fish. Adds lines for positional arguments, which clap's script lacks.
pub(super) fn in_fish(text: &str, command: &Command) -> String {
    let names = |kind: &str| format!("(tandem completion --names {kind} 2> /dev/null)");
    let mut text =
        text.replace("(__fish_print_hostnames)", &names("nodes")).replace("(__fish_complete_users)", &names("devices"));
    let mut all = Vec::new();
    walk(command, &[], &mut all);
    for (words, command) in all {
        let Some(kind) = positional(command) else { continue };
        let condition = match words[..] {
            [word] => word.to_owned(),
            [word, below] => format!("{word}; and __fish_seen_subcommand_from {below}"),
            _ => continue,
        };
        let names = names(kind);
        let _ =
            writeln!(text, "complete -c tandem -n \"__fish_tandem_using_subcommand {condition}\" -f -a \"{names}\"");
    }
    text
}

const ZSH_HELPER: &str = "
(( $+functions[_tandem_nodes] )) ||
_tandem_nodes() {
    local -a names
    names=(${(f)\"$(tandem completion --names nodes 2> /dev/null)\"})
    compadd -a names
}

(( $+functions[_tandem_devices] )) ||
_tandem_devices() {
    local -a names
    names=(${(f)\"$(tandem completion --names devices 2> /dev/null)\"})
    compadd -a names
}
";

/// Adds the completion of names to the script for zsh.
pub(super) fn in_zsh(text: &str) -> String {
    let text = text.replace(":_hosts'", ":_tandem_nodes'").replace(":_users'", ":_tandem_devices'");
    let before = "\nautoload -U is-at-least\n";
    text.replacen(before, &[before, ZSH_HELPER].concat(), 1)
}
