//! The input of options: lines on standard input from the fencer, or arguments from a person. This module is pure.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use clap::{Arg, ArgAction, Command, value_parser};
use zeroize::Zeroizing;

use super::options::{OPTIONS, Opt, by_name, truth};
use crate::adapters::options::OptionKind;

/// The longest input in bytes. It is more than any configuration has.
pub const INPUT_LIMIT: usize = 256 * 1024;

/// The options that the caller has given, each with the last value that was given for it. It also has remarks about unknown
/// options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    pub values: BTreeMap<Opt, Value>,
    pub node: Option<String>,
    /// The number of `-v` options.
    pub verbosity: u32,
    pub remarks: Vec<String>,
    /// The faults of the input, each of which is an error for every action.
    pub faults: Vec<String>,
    /// The values of the option `plug`, by the name (`plug` or `port`) under which each was given.
    plugs: BTreeMap<&'static str, Value>,
}

/// The value of an option in bytes. Any value may be a password, so it is wiped when it is dropped, and its `Debug` output is not
/// readable.
#[derive(Clone, PartialEq, Eq)]
pub struct Value(Zeroizing<Vec<u8>>);

impl std::fmt::Debug for Value {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Value({} bytes)", self.0.len())
    }
}

impl Value {
    fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the value as text; `None` where it is not UTF-8.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

/// The value of the option `plug` for a device without a fixed system. With it, the program that starts an action names the
/// system.
pub const DYNAMIC: &str = "dynamic";
/// The actions that may be named as an argument without `-o`, because they change nothing.
const HARMLESS_WORDS: &[&str] = &["metadata", "meta-data", "manpage"];
/// The greatest number of remarks about unknown options that the agent stores. Without this limit an input could cause any
/// number.
const REMARKS: usize = 20;

impl Given {
    fn remark(&mut self, remark: String) {
        if self.remarks.len() < REMARKS {
            self.remarks.push(remark);
        }
    }

    /// Decides which of the given values is the plug. Pacemaker sends one value: the node's name, or the value for that name in
    /// `pcmk_host_map`. It sends this value under the name `port` or `plug`. If the operator's option has the other one of these
    /// names, both values arrive, in any order.
    fn settle_plug(&mut self) {
        let mut rivals: Vec<Value> = Vec::new();
        for value in self.plugs.values() {
            if !rivals.contains(value) {
                rivals.push(value.clone());
            }
        }
        let weaker = |value: &Value, rank: u8| match rank {
            0 => value.text() == Some(DYNAMIC),
            _ => value.text().is_some() && value.text() == self.node.as_deref(),
        };
        for rank in 0..2 {
            if rivals.iter().any(|value| !weaker(value, rank)) {
                rivals.retain(|value| !weaker(value, rank));
            }
        }
        if let [first, second, ..] = &rivals[..] {
            let shown = |value: &Value| shown(&String::from_utf8_lossy(value.bytes()));
            self.faults.push(format!(
                "port and plug contradict each other: '{}' and '{}'",
                shown(first),
                shown(second)
            ));
        }
        if let Some(plug) = rivals.into_iter().next() {
            self.values.insert(Opt::Plug, plug);
        }
    }

    /// Refuses an option such as `-h` together with an action. With `-h` the agent would only print a text and exit with 0, which
    /// means success to the fencer.
    fn refuse_text(&mut self) {
        if !self.values.contains_key(&Opt::Action) {
            return;
        }
        for (opt, row) in OPTIONS.iter().filter(|(_, row)| row.for_people) {
            let Some(value) = self.values.remove(opt) else { continue };
            let value = value.text().unwrap_or_default().trim();
            if truth(value) == Some(true) {
                self.faults.push(format!("{}={value} asks for text, not for fencing: remove it", row.name));
            }
        }
    }

    fn set(&mut self, opt: Opt, value: impl Into<Vec<u8>>) {
        self.values.insert(opt, Value::new(value));
    }
}

/// Keys that Pacemaker or older tools send, and that this agent ignores without a remark.
const SILENTLY_IGNORED: &[&str] = &["agent", "name", "domain"];

/// Reads lines `key=value`. Ignores blanks around a line, comments and empty lines. If several lines have the same key, the last
/// one counts.
///
/// A password is everything up to the end of its line. From any other value, blanks and quotes around it are removed.
pub fn from_lines(input: &[u8]) -> Given {
    let mut given = Given::default();
    for line in input.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line).trim_ascii_start();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let Some(at) = line.iter().position(|byte| *byte == b'=') else {
            given.remark("a line without '=' was ignored".to_owned());
            continue;
        };
        let (key, value) = (&line[..at], &line[at + 1..]);
        // A key that is not text is not shown, because it might be half of a password.
        let Ok(key) = std::str::from_utf8(key) else {
            given.remark("a line whose key is not text was ignored".to_owned());
            continue;
        };
        accept(&mut given, key, value);
    }
    given.settle_plug();
    given.refuse_text();
    given
}

fn accept(given: &mut Given, key: &str, value: &[u8]) {
    match by_name(key) {
        Some((opt, row)) if row.kind == OptionKind::Secret => given.set(*opt, value),
        Some((Opt::Plug, row)) => {
            let name = if key == row.name { row.name } else { row.old.unwrap_or(row.name) };
            given.plugs.insert(name, Value::new(unquoted(value)));
        }
        Some((opt, _)) => given.set(*opt, unquoted(value)),
        None if key == "nodename" => given.node = Some(String::from_utf8_lossy(unquoted(value)).into_owned()),
        None if SILENTLY_IGNORED.contains(&key) => {}
        None => given.remark(format!("unknown option '{}' was ignored", shown(key))),
    }
}

fn unquoted(value: &[u8]) -> &[u8] {
    let value = value.trim_ascii();
    value.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(value)
}

fn shown(key: &str) -> String {
    key.chars().filter(|character| !character.is_control()).take(40).collect()
}

/// Reads arguments as getopt does: short and long options, and abbreviated long ones. If an option is given several times, the
/// last one counts.
///
/// Only this process' copy of a password among the arguments is wiped. Such a password is visible in the list of processes
/// anyway.
pub fn from_arguments(arguments: &[OsString]) -> Result<Given, String> {
    let matches = command().try_get_matches_from(arguments).map_err(|error| {
        // The first line has the error, and the others have advice on usage.
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        line.strip_prefix("error: ").unwrap_or(line).to_owned()
    })?;
    let mut given = Given::default();
    for (opt, row) in OPTIONS {
        if *opt == Opt::Verbose {
            given.verbosity = u32::from(matches.get_count(row.name));
            if given.verbosity > 0 {
                given.set(*opt, "1");
            }
        } else if let Some(value) = matches.get_one::<OsString>(row.name) {
            given.set(*opt, value.as_bytes());
        }
    }
    if let Some(node) = matches.get_one::<OsString>("nodename") {
        given.node = Some(node.to_string_lossy().into_owned());
    }
    for word in matches.get_many::<OsString>("extra").into_iter().flatten() {
        // Other agents accept these as their first word. An action that changes something is never read from a bare word.
        if !given.values.contains_key(&Opt::Action) && HARMLESS_WORDS.iter().any(|harmless| word == harmless) {
            given.set(Opt::Action, word.as_bytes());
        } else {
            given.remark("a word that is no option was ignored".to_owned());
        }
    }
    Ok(given)
}

/// Returns the definition of the command line. The agent parses its arguments with it, and the completions for shells are
/// generated from it.
pub(crate) fn command() -> Command {
    let mut command = Command::new("fence_redfish_rs")
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .infer_long_args(true)
        .args_override_self(true);
    for (opt, row) in OPTIONS {
        let mut argument = Arg::new(row.name).long(row.long_option()).alias(row.name).help(row.short);
        if let Some(old) = row.old {
            argument = argument.alias(old).alias(old.replace('_', "-"));
        }
        if let Some(letter) = row.letter {
            argument = argument.short(letter);
        }
        let parser = value_parser!(OsString);
        argument = match row.kind {
            OptionKind::Switch if *opt == Opt::Verbose => argument.action(ArgAction::Count),
            // A switch may have a value, but only after an equals sign.
            OptionKind::Switch => argument
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("1")
                .value_parser(parser)
                .action(ArgAction::Set),
            // A password may begin with a dash.
            _ => argument.num_args(1).allow_hyphen_values(true).value_parser(parser).action(ArgAction::Set),
        };
        command = command.arg(argument);
    }
    command
        .arg(Arg::new("nodename").long("nodename").num_args(1).value_parser(value_parser!(OsString)))
        .arg(Arg::new("extra").num_args(0..).value_parser(value_parser!(OsString)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> BTreeMap<Opt, String> {
        texts(&from_lines(text.as_bytes()))
    }

    fn texts(given: &Given) -> BTreeMap<Opt, String> {
        given.values.iter().map(|(opt, value)| (*opt, value.text().unwrap().to_owned())).collect()
    }

    fn arguments(words: &[&str]) -> Result<Given, String> {
        from_arguments(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn lines_in_any_order_and_with_any_alias_are_the_same() {
        let usual = lines("action=off\nip=bmc\nusername=admin\npassword=x\nplug=1\nsystems_uri=/s\n");
        let old = lines(
            "# from an old cluster\r\nport=1\r\n\r\n  systems-uri=/s\r\npasswd=x\r\nlogin=admin\r\nipaddr=bmc\r\naction=off",
        );
        assert_eq!(usual, old);
        assert_eq!(lines("ip=a\nipaddr=b\n")[&Opt::Ip], "b", "the last one wins");
        assert_eq!(lines("ip = a\n").get(&Opt::Ip), None, "a key has no blanks");
    }

    #[test]
    fn a_password_is_taken_as_it_stands() {
        for password in ["a=b#c", " leading", "trailing ", "\"quoted\"", "pä$$\\'\"", "-p", "#x"] {
            assert_eq!(lines(&format!("password={password}\n"))[&Opt::Password], password);
            assert_eq!(texts(&arguments(&["-p", password]).unwrap())[&Opt::Password], password);
        }
        let raw = from_lines(b"password=\xff\xfe\r\n");
        assert_eq!(raw.values[&Opt::Password].bytes(), b"\xff\xfe");
        assert_eq!(lines("ip=\"bmc\" \n")[&Opt::Ip], "bmc", "other values lose quotes and blanks");
    }

    #[test]
    fn the_unknown_is_ignored_with_a_remark() {
        let given = from_lines(b"nodename=node1\ncrm_thing=1\naction = status\noption=status\nnonsense\n");
        assert!(given.values.is_empty());
        assert_eq!(given.node.as_deref(), Some("node1"));
        assert_eq!(given.remarks.len(), 4, "{:?}", given.remarks);
    }

    #[test]
    fn the_plug_of_an_operator_beats_what_the_fencer_adds() {
        for (text, plug) in [
            ("plug=sysA\nport=node1\nnodename=node1\n", "sysA"),
            ("port=node1\nplug=sysA\nnodename=node1\n", "sysA"),
            ("port=sysA\nplug=node1\nnodename=node1\n", "sysA"),
            ("plug=dynamic\nport=sysA\nnodename=node1\n", "sysA"),
            ("port=sysA\nplug=dynamic\nnodename=node1\n", "sysA"),
            ("plug=dynamic\nport=node1\nnodename=node1\n", "node1"),
            ("port=node1\nnodename=node1\n", "node1"),
            ("plug=dynamic\n", "dynamic"),
            ("plug=a\nplug=b\n", "b"),
            ("plug=a\nport=a\n", "a"),
        ] {
            let given = from_lines(text.as_bytes());
            assert_eq!((texts(&given)[&Opt::Plug].as_str(), given.faults.len()), (plug, 0), "{text}");
        }
        assert_eq!(from_lines(b"plug=a\nport=b\nnodename=node1\n").faults.len(), 1);
    }

    #[test]
    fn arguments_are_read_as_getopt_would() {
        let long =
            arguments(&["--action", "off", "--ip=bmc", "--username", "u", "--ssl-insecure", "--plug", "1"]).unwrap();
        let short = arguments(&["-o", "off", "-abmc", "-l", "u", "--ssl_insecure", "-n", "1"]).unwrap();
        assert_eq!(texts(&long), texts(&short));
        assert_eq!(texts(&long)[&Opt::SslInsecure], "1");
        assert_eq!(texts(&arguments(&["--ssl-insecure=0"]).unwrap())[&Opt::SslInsecure], "0");
        assert_eq!(texts(&arguments(&["--user", "u"]).unwrap())[&Opt::Username], "u", "shortened");
        assert_eq!(texts(&arguments(&["-o", "on", "-o", "off"]).unwrap())[&Opt::Action], "off", "the last one wins");
        assert_eq!(arguments(&["-vvv"]).unwrap().verbosity, 3);
        assert_eq!(arguments(&["-o", "off", "stray"]).unwrap().remarks.len(), 1);
        assert_eq!(texts(&arguments(&["meta-data"]).unwrap())[&Opt::Action], "meta-data");
        assert_eq!(texts(&arguments(&["-o", "on", "metadata"]).unwrap())[&Opt::Action], "on");
        assert!(!texts(&arguments(&["off"]).unwrap()).contains_key(&Opt::Action), "nothing acts by a stray word");
    }

    #[test]
    fn what_cannot_be_read_is_said_in_one_line_without_its_value() {
        for words in [&["--pasword=hunter2"][..], &["-o"], &["--quuz"], &["--ip"]] {
            let said = arguments(words).unwrap_err();
            assert!(!said.contains('\n') && !said.contains("hunter2") && !said.is_empty(), "{said}");
        }
    }

    #[test]
    fn debug_output_shows_no_value() {
        assert!(!format!("{:?}", from_lines(b"password=hunter2")).contains("hunter2"));
    }
}
