//! The table of the agent's options. The parser, the metadata, the help and the man page use it.

use crate::adapters::options::OptionKind::{self, Integer, OneOf, Seconds, Secret, Switch, Text, Truth};
use crate::adapters::options::OptionRow;
/// The parser of a truth value. It accepts the words that other fence agents accept.
pub use crate::adapters::options::yes_no::of_fence_agents as truth;
use crate::adapters::pacemaker::attributes::FENCE_WAIT;

/// The longest time-out or delay in seconds: one day.
const LONGEST: i64 = 24 * 60 * 60;

/// An option of the agent. An option with two names, such as `ip` and `ipaddr`, has one variant.
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
    RaceWith,
    RacePreferred,
    RaceDelay,
    WaitAttribute,
}

const fn row(name: &'static str, kind: OptionKind, value: &'static str, help: &'static str) -> OptionRow {
    OptionRow::new(name, kind, help).value(value)
}

/// The rows of all options. The index of a row is the value of its [`Opt`] as a number.
pub const OPTIONS: &[(Opt, OptionRow)] = &[
    (Opt::Action, row("action", Text, "action", "Fencing action: on, off, reboot, status, monitor, list, list-status, diag, validate-all, metadata or manpage")
        .letter('o').required()),
    (Opt::Ip, row("ip", Text, "ip", "IP address or hostname of fencing device, optionally with :port; IPv6 with or without brackets")
        .old("ipaddr").letter('a')),
    (Opt::IpPort, row("ipport", Integer(1, 65535), "port", "TCP/UDP port to use for connection with device")
        .letter('u').default("443")),
    (Opt::Username, row("username", Text, "name", "Login name").old("login").letter('l').required()),
    (Opt::Password, row("password", Secret, "password", "Login password or passphrase").old("passwd").letter('p')),
    (Opt::PasswordScript, row("password_script", Text, "script", "Script to run to retrieve password: an absolute path and arguments separated by blanks. It is run without a shell, and its first line of output is the password")
        .old("passwd_script").letter('S')),
    (Opt::PasswordFile, row("password_file", Text, "file", "File with the password in its first line. While the password changes, the second line has the new one: the agent tries it if the BMC refuses the first, and tries it first from then on")),
    (Opt::Plug, row("plug", Text, "id", "System behind the BMC, by its Id, name, UUID, serial number or URI; not needed if the BMC has only one. A node name from the fencer is ignored if it fits no system. With 'dynamic', pcmk_host_map names the system of each action. With port_as_ip: IP address or hostname of fencing device")
        .old("port").letter('n')),
    (Opt::PlugSeparator, row("plug_separator", Text, "char", "Separator for plug parameter when specifying more than 1 plug")
        .default(",")),
    (Opt::Separator, row("separator", Text, "char", "Separator for CSV created by 'list' operation")
        .letter('C').default(",")),
    (Opt::PortAsIp, row("port_as_ip", Switch, "", "Make \"port/plug\" to be an alias to IP address")),
    (Opt::RedfishUri, row("redfish_uri", Text, "uri", "Base or starting Redfish URI")
        .old("redfish-uri").default("/redfish/v1")),
    (Opt::SystemsUri, row("systems_uri", Text, "uri", "Redfish Systems resource URI, i.e. /redfish/v1/Systems/System.Embedded.1")
        .old("systems-uri")),
    (Opt::SystemUuid, row("system_uuid", Text, "uuid", "UUID that the system must have; on the node, dmidecode -s system-uuid prints it. Every action, monitor included, refuses a machine with another UUID. Without it, no UUID is checked")),
    (Opt::Auth, row("auth", OneOf(&["auto", "basic", "session"]), "how", "How to log in. basic: basic authentication; session: a Redfish session, which is deleted at the end; auto: basic, and a session if the BMC refuses basic")
        .default("auto")),
    (Opt::Method, row("method", OneOf(&["onoff", "cycle"]), "method", "Method to fence. onoff: power off, prove that the system is off, and power on; cycle: send one PowerCycle, and prove that the system was reset")
        .letter('m').default("onoff")),
    (Opt::MissingAsOff, row("missing_as_off", Switch, "", "Missing port returns OFF instead of failure")),
    (Opt::Ssl, row("ssl", Switch, "", "Use SSL connection with verifying certificate; TLS is always used")
        .letter('z').default("1")),
    (Opt::SslSecure, row("ssl_secure", Switch, "", "Use SSL connection with verifying certificate; the default")),
    (Opt::SslInsecure, row("ssl_insecure", Switch, "", "Use SSL connection without verifying certificate")),
    (Opt::SslCaFile, row("ssl_ca_file", Text, "file", "PEM file with the certificate authorities to trust, or with the BMC's own self-signed certificate. Without it, the system's authorities are trusted")),
    (Opt::SslFingerprint, row("ssl_fingerprint", Text, "sha256", "SHA-256 fingerprint of the BMC's certificate, or several separated by commas. With it, the issuer, name and dates of the certificate are not checked")),
    (Opt::SslVerifyHostname, row("ssl_verify_hostname", Truth, "true/false", "Whether the certificate must be for the name or address in ip")
        .default("1")),
    (Opt::GnutlscliPath, row("gnutlscli_path", Text, "path", "Path to gnutls-cli binary; accepted for compatibility, and not used")),
    (Opt::Quiet, row("quiet", Switch, "", "Disable logging to stderr. Does not affect --verbose or --debug-file or logging to syslog.")
        .letter('q')),
    (Opt::Verbose, row("verbose", Switch, "", "Verbose mode: log to stderr what the agent does. Multiple -v flags can be stacked on the command line (e.g., -vvv).")
        .letter('v')),
    (Opt::VerboseLevel, row("verbose_level", Integer(i64::MIN, i64::MAX), "level", "Level of debugging detail in output. Defaults to the number of --verbose flags specified on the command line, or to 1 if verbose=1 in a stonith device configuration (i.e., on stdin).")),
    (Opt::DebugFile, row("debug_file", Text, "debugfile", "Write debug information to given file, without passwords")
        .old("debug").letter('D')),
    (Opt::Version, row("version", Switch, "", "Display version information and exit").letter('V').for_people()),
    (Opt::Help, row("help", Switch, "", "Display help and exit").letter('h').for_people()),
    (Opt::Delay, row("delay", Seconds(0, LONGEST), "seconds", "Wait X seconds before fencing is started (off and reboot)")
        .default("0")),
    (Opt::DisableTimeout, row("disable_timeout", Truth, "true/false", "Disable power_timeout, login_timeout and shell_timeout (true/false) (default: true when run from Pacemaker 2.0+); action_timeout stays")),
    (Opt::LoginTimeout, row("login_timeout", Seconds(0, LONGEST), "seconds", "Wait X seconds for a connection and its TLS handshake; 0: no time-out of its own")
        .default("10")),
    (Opt::ShellTimeout, row("shell_timeout", Seconds(0, LONGEST), "seconds", "Wait X seconds for the answer to one request; 0: no time-out of its own")
        .default("20")),
    (Opt::PowerTimeout, row("power_timeout", Seconds(0, LONGEST), "seconds", "Test X seconds for status change after ON/OFF")
        .default("20")),
    (Opt::PowerWait, row("power_wait", Seconds(0, LONGEST), "seconds", "Wait X seconds after issuing ON/OFF")
        .default("0")),
    (Opt::StatusSleep, row("stonith_status_sleep", Seconds(0, LONGEST), "seconds", "Sleep at most X seconds between status calls during a STONITH action")
        .default("1")),
    (Opt::RetryOn, row("retry_on", Integer(0, 100), "attempts", "Count of attempts to retry power on").default("1")),
    (Opt::ActionTimeout, row("action_timeout", Seconds(1, LONGEST), "seconds", "End each action after X seconds (default: 55 for on, off, reboot and diag, or more if delay and power_timeout need more; for the others 15 under the fencer, 30 by hand). If you raise it, also raise pcmk_off_timeout, pcmk_reboot_timeout and pcmk_monitor_timeout")),
    (Opt::RaceWith, row("race_with", Text, "ip[:port][,key=value...]", "BMC of the node that this device runs on. With it, off and reboot first open a session on both BMCs and read both lists of sessions, so that of two nodes that fence each other only one resets the other, without pcmk_delay_base. Keys: systems_uri (the system of this node there, which must be on), fingerprint, ca_file, username, password_file. A missing key has the value that is used for ip. Without race_with, the agent does not race")),
    (Opt::RacePreferred, row("race_preferred", Text, "node", "With race_with: name of the node that wins if both nodes fence each other; the same in both devices")),
    (Opt::RaceDelay, row("race_delay", Seconds(3, 60), "seconds", "With race_with: seconds that the node that is not preferred waits if it sees the other node's session, or if a BMC shows no sessions")
        .default("10")),
    (Opt::WaitAttribute, row("wait_attribute", Text, "name", "Node attribute of the node that this device runs on, with the seconds that off and reboot wait under the fencer while the target is on. podman-etcd sets etcd_fence_wait while its etcd holds no vote, so that a learner does not fence its voter. With none, the agent never waits")
        .default(FENCE_WAIT)),
];

/// A check at build time that each row of the table is at the index that its option has as a number.
const _: () = {
    assert!(OPTIONS.len() == Opt::WaitAttribute as usize + 1);
    let mut at = 0;
    while at < OPTIONS.len() {
        assert!(OPTIONS[at].0 as usize == at);
        at += 1;
    }
};

impl Opt {
    pub fn row(self) -> &'static OptionRow {
        &OPTIONS[self as usize].1
    }
}

/// Returns the row of every option, in the order of [`OPTIONS`].
pub fn rows() -> impl Iterator<Item = &'static OptionRow> {
    OPTIONS.iter().map(|(_, row)| row)
}

/// Finds an option by its name on standard input. Accepts its present name and its former one, with dashes or underscores.
pub fn by_name(name: &str) -> Option<&'static (Opt, OptionRow)> {
    let name = name.replace('-', "_");
    OPTIONS.iter().find(|(_, row)| row.name == name || row.old.is_some_and(|old| old.replace('-', "_") == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::options::standard::Standard;

    #[test]
    fn the_table_is_sound() {
        crate::adapters::options::tests::assert_sound(Standard::FenceAgent, rows());
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
            assert_eq!(by_name(name).map(|(opt, _)| *opt), Some(opt), "{name}");
        }
        assert!(by_name("nodename").is_none());
        assert!(by_name("action ").is_none(), "a key with a blank is another key");
    }
}
