//! Every option of the agent in one table: it is parsed by it, and metadata, help and man page are printed from it.

pub use crate::options::yes_no::of_fence_agents as truth;

/// An option, whatever name it was given by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Opt {
    Action,
    Ip,
    IpPort,
    Username,
    Password,
    PasswordScript,
    PasswordFile,
    Plug,
    PlugSeparator,
    Separator,
    PortAsIp,
    RedfishUri,
    SystemsUri,
    SystemUuid,
    Auth,
    Method,
    MissingAsOff,
    Ssl,
    SslSecure,
    SslInsecure,
    SslCaFile,
    SslFingerprint,
    SslVerifyHostname,
    GnutlscliPath,
    Quiet,
    Verbose,
    VerboseLevel,
    DebugFile,
    Version,
    Help,
    Delay,
    DisableTimeout,
    LoginTimeout,
    ShellTimeout,
    PowerTimeout,
    PowerWait,
    StatusSleep,
    RetryOn,
    ActionTimeout,
}

/// What values an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    Text,
    /// Never shown, and taken byte by byte as it comes.
    Secret,
    Integer,
    Seconds,
    /// A switch: no value on the command line, a truth value on standard input.
    Flag,
    /// A truth value, on the command line too.
    Truth,
    Choice(&'static [&'static str]),
}

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    pub opt: Opt,
    /// The name on standard input and in the cluster's configuration; with dashes it is the long option.
    pub name: &'static str,
    /// The name that it had before; still taken.
    pub old: Option<&'static str>,
    pub short: Option<char>,
    pub kind: OptionKind,
    /// What the help shows for its value.
    pub value: &'static str,
    pub default: Option<&'static str>,
    pub required: bool,
    pub help: &'static str,
}

const fn row(opt: Opt, name: &'static str, kind: OptionKind, value: &'static str, help: &'static str) -> Row {
    Row { opt, name, old: None, short: None, kind, value, default: None, required: false, help }
}

impl Row {
    const fn old(mut self, name: &'static str) -> Self {
        self.old = Some(name);
        self
    }

    const fn short(mut self, letter: char) -> Self {
        self.short = Some(letter);
        self
    }

    const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }

    const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The long option, without its two dashes.
    pub fn long(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Whether it asks for a text to read, and is no parameter of a fence device.
    pub fn is_for_people(&self) -> bool {
        matches!(self.opt, Opt::Help | Opt::Version)
    }

    /// Whether the command line gives it a value.
    pub fn takes_value(&self) -> bool {
        self.kind != OptionKind::Flag
    }
}

pub const OPTIONS: &[Row] = &[
    row(Opt::Action, "action", OptionKind::Text, "action", "Fencing action: on, off, reboot, status, monitor, list, list-status, diag, validate-all, metadata or manpage")
        .short('o')
        .required(),
    row(Opt::Ip, "ip", OptionKind::Text, "ip", "IP address or hostname of fencing device, optionally with :port; IPv6 with or without brackets")
        .old("ipaddr")
        .short('a'),
    row(Opt::IpPort, "ipport", OptionKind::Integer, "port", "TCP/UDP port to use for connection with device").short('u').default("443"),
    row(Opt::Username, "username", OptionKind::Text, "name", "Login name").old("login").short('l').required(),
    row(Opt::Password, "password", OptionKind::Secret, "password", "Login password or passphrase").old("passwd").short('p'),
    row(Opt::PasswordScript, "password_script", OptionKind::Text, "script", "Script to run to retrieve password: an absolute path and arguments separated by blanks, run without a shell; its first line of output is the password")
        .old("passwd_script")
        .short('S'),
    row(Opt::PasswordFile, "password_file", OptionKind::Text, "file", "File whose first line is the password"),
    row(Opt::Plug, "plug", OptionKind::Text, "id", "Which system behind the BMC: its Id, name, UUID, serial number or URI; not needed where there is one. The fencer's node name is ignored where it fits no system. 'dynamic' lets pcmk_host_map name the system of each action. With port_as_ip: IP address or hostname of fencing device")
        .old("port")
        .short('n'),
    row(Opt::PlugSeparator, "plug_separator", OptionKind::Text, "char", "Separator for plug parameter when specifying more than 1 plug").default(","),
    row(Opt::Separator, "separator", OptionKind::Text, "char", "Separator for CSV created by 'list' operation").short('C').default(","),
    row(Opt::PortAsIp, "port_as_ip", OptionKind::Flag, "", "Make \"port/plug\" to be an alias to IP address"),
    row(Opt::RedfishUri, "redfish_uri", OptionKind::Text, "uri", "Base or starting Redfish URI").old("redfish-uri").default("/redfish/v1"),
    row(Opt::SystemsUri, "systems_uri", OptionKind::Text, "uri", "Redfish Systems resource URI, i.e. /redfish/v1/Systems/System.Embedded.1")
        .old("systems-uri"),
    row(Opt::SystemUuid, "system_uuid", OptionKind::Text, "uuid", "UUID that the system must have (on the node: dmidecode -s system-uuid); every action refuses another machine, and monitor finds it out"),
    row(Opt::Auth, "auth", OptionKind::Choice(&["auto", "basic", "session"]), "how", "How to log in: basic authentication, a Redfish session that is deleted again, or auto: basic, and a session where basic is refused")
        .default("auto"),
    row(Opt::Method, "method", OptionKind::Choice(&["onoff", "cycle"]), "method", "Method to fence: onoff powers off, proves it and powers on; cycle sends one PowerCycle and proves that the system was reset")
        .short('m')
        .default("onoff"),
    row(Opt::MissingAsOff, "missing_as_off", OptionKind::Flag, "", "Missing port returns OFF instead of failure"),
    row(Opt::Ssl, "ssl", OptionKind::Flag, "", "Use SSL connection with verifying certificate; TLS is always used").short('z').default("1"),
    row(Opt::SslSecure, "ssl_secure", OptionKind::Flag, "", "Use SSL connection with verifying certificate; the default"),
    row(Opt::SslInsecure, "ssl_insecure", OptionKind::Flag, "", "Use SSL connection without verifying certificate"),
    row(Opt::SslCaFile, "ssl_ca_file", OptionKind::Text, "file", "PEM file with the certificate authorities to trust instead of the system's, or with the BMC's own self-signed certificate"),
    row(Opt::SslFingerprint, "ssl_fingerprint", OptionKind::Text, "sha256", "SHA-256 fingerprint of the BMC's certificate (several separated by commas); then its issuer, name and dates do not matter"),
    row(Opt::SslVerifyHostname, "ssl_verify_hostname", OptionKind::Truth, "true/false", "Whether the certificate must be for the name or address in ip").default("1"),
    row(Opt::GnutlscliPath, "gnutlscli_path", OptionKind::Text, "path", "Path to gnutls-cli binary; not used, taken for compatibility"),
    row(Opt::Quiet, "quiet", OptionKind::Flag, "", "Disable logging to stderr. Does not affect --verbose or --debug-file or logging to syslog.").short('q'),
    row(Opt::Verbose, "verbose", OptionKind::Flag, "", "Verbose mode: tell on stderr what is done. Multiple -v flags can be stacked on the command line (e.g., -vvv).").short('v'),
    row(Opt::VerboseLevel, "verbose_level", OptionKind::Integer, "level", "Level of debugging detail in output. Defaults to the number of --verbose flags specified on the command line, or to 1 if verbose=1 in a stonith device configuration (i.e., on stdin)."),
    row(Opt::DebugFile, "debug_file", OptionKind::Text, "debugfile", "Write debug information to given file; it holds no passwords").old("debug").short('D'),
    row(Opt::Version, "version", OptionKind::Flag, "", "Display version information and exit").short('V'),
    row(Opt::Help, "help", OptionKind::Flag, "", "Display help and exit").short('h'),
    row(Opt::Delay, "delay", OptionKind::Seconds, "seconds", "Wait X seconds before fencing is started (off and reboot)").default("0"),
    row(Opt::DisableTimeout, "disable_timeout", OptionKind::Truth, "true/false", "Disable power_timeout, login_timeout and shell_timeout (true/false) (default: true when run from Pacemaker 2.0+); action_timeout stays"),
    row(Opt::LoginTimeout, "login_timeout", OptionKind::Seconds, "seconds", "Wait X seconds for a connection and its TLS handshake").default("10"),
    row(Opt::ShellTimeout, "shell_timeout", OptionKind::Seconds, "seconds", "Wait X seconds for the answer to one request").default("20"),
    row(Opt::PowerTimeout, "power_timeout", OptionKind::Seconds, "seconds", "Test X seconds for status change after ON/OFF").default("20"),
    row(Opt::PowerWait, "power_wait", OptionKind::Seconds, "seconds", "Wait X seconds after issuing ON/OFF").default("0"),
    row(Opt::StatusSleep, "stonith_status_sleep", OptionKind::Seconds, "seconds", "Sleep at most X seconds between status calls during a STONITH action").default("1"),
    row(Opt::RetryOn, "retry_on", OptionKind::Integer, "attempts", "Count of attempts to retry power on").default("1"),
    row(Opt::ActionTimeout, "action_timeout", OptionKind::Seconds, "seconds", "End every action by itself after X seconds (default: 50 for on, off, reboot and diag, or as long as delay and power_timeout need; 15 for the others, by hand 30). Raise it together with pcmk_off_timeout and its kind"),
];

/// The row of `opt`.
pub fn row_of(opt: Opt) -> Option<&'static Row> {
    OPTIONS.iter().find(|row| row.opt == opt)
}

/// The row for a name from standard input: the present or the old one, with dashes or underscores.
pub fn by_name(name: &str) -> Option<&'static Row> {
    let name = name.replace('-', "_");
    OPTIONS.iter().find(|row| row.name == name || row.old.is_some_and(|old| old.replace('-', "_") == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_means_two_options() {
        let mut names: Vec<String> = Vec::new();
        for row in OPTIONS {
            names.push(row.name.to_owned());
            names.extend(row.old.map(|old| old.replace('-', "_")).filter(|old| old != row.name));
        }
        let shorts: Vec<char> = OPTIONS.iter().filter_map(|row| row.short).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name}");
        }
        for (at, short) in shorts.iter().enumerate() {
            assert!(!shorts[..at].contains(short), "{short}");
        }
    }

    #[test]
    fn names_are_found_however_they_are_written() {
        for (name, opt) in [
            ("ip", Opt::Ip),
            ("ipaddr", Opt::Ip),
            ("systems-uri", Opt::SystemsUri),
            ("systems_uri", Opt::SystemsUri),
            ("ssl-insecure", Opt::SslInsecure),
            ("port", Opt::Plug),
            ("passwd_script", Opt::PasswordScript),
        ] {
            assert_eq!(by_name(name).map(|row| row.opt), Some(opt), "{name}");
        }
        assert!(by_name("nodename").is_none());
        assert!(by_name("action ").is_none(), "a key with a blank is another key");
    }

    #[test]
    fn every_default_is_a_value_of_its_kind() {
        for row in OPTIONS {
            let Some(default) = row.default else { continue };
            match row.kind {
                OptionKind::Integer | OptionKind::Seconds => assert!(default.parse::<u32>().is_ok(), "{}", row.name),
                OptionKind::Flag | OptionKind::Truth => assert!(truth(default).is_some(), "{}", row.name),
                OptionKind::Choice(choices) => assert!(choices.contains(&default), "{}", row.name),
                OptionKind::Text | OptionKind::Secret => {}
            }
        }
    }
}
