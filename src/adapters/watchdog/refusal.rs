//! The reasons to refuse a watchdog device. Each contains the command or setting that resolves it.

use std::io;
use std::path::PathBuf;

/// A process that has the watchdog device open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) name: String,
    pub(crate) pid: i32,
}

/// The form in which the operator sets the device and the time-out: options or keys. An error text uses it to show what to type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// Options of the command line, such as those of `watchdog-mux`.
    Options,
    /// Keys of a TOML file, such as those of `fencing-agent`.
    Keys,
}

impl Words {
    fn device(self, path: &str) -> String {
        match self {
            Self::Options => format!("--device {path}"),
            Self::Keys => format!("device = \"{path}\""),
        }
    }

    fn timeout(self, seconds: u64) -> String {
        match self {
            Self::Options => format!("--timeout {seconds}s"),
            Self::Keys => format!("timeout = \"{seconds}s\""),
        }
    }

    fn any_timeout(self) -> &'static str {
        match self {
            Self::Options => "--timeout",
            Self::Keys => "timeout",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(
        "{0} is not there: 'modprobe softdog' loads a watchdog in software, \
         'echo softdog > /etc/modules-load.d/watchdog.conf' has it loaded at each boot"
    )]
    Missing(PathBuf),
    #[error("{0} is a regular file, which resets nothing: 'rm {0}', then 'modprobe softdog'")]
    RegularFile(PathBuf),
    #[error("{device} is {kind}, not a watchdog: type '{typed}'", typed = .words.device("/dev/watchdog"))]
    OtherKind { device: PathBuf, kind: &'static str, words: Words },
    #[error("{0} is no watchdog that the kernel lists: 'ls -l /sys/class/watchdog/'")]
    NotListed(PathBuf),
    #[error("{device} cannot be examined ({source}): 'ls -l {device}'")]
    Unreadable { device: PathBuf, source: io::Error },
    #[error(
        "{device} is busy: {name} (pid {pid}) has it open: {way_on}",
        name = .holder.name,
        pid = .holder.pid,
        way_on = way_on(.holder)
    )]
    Held { device: PathBuf, holder: Holder },
    #[error("{0} is busy: a process that cannot be seen here has it open: 'wdctl {0}'")]
    Busy(PathBuf),
    #[error("{device} cannot be opened ({source}): 'ls -l {device}'")]
    Open { device: PathBuf, source: io::Error },
    #[error(
        "{device} ({identity}) cannot be stopped once it runs: load its module with nowayout=0, as in 'modprobe softdog nowayout=0'"
    )]
    NoWayOut { device: PathBuf, identity: String },
    #[error("whether {device} can be stopped once it runs is not known ({file}: {why}): 'wdctl {device}'")]
    NoWayOutUnknown { device: PathBuf, file: PathBuf, why: String },
    #[error(
        "a time-out of {seconds} s is less than two intervals of feeding: type '{typed}' or more",
        typed = .words.timeout(*.least)
    )]
    ShortTimeout { seconds: u64, least: u64, words: Words },
    #[error("{device} took no time-out of {wanted} s, it has {taken} s: type '{typed}'", typed = .words.timeout(*.taken))]
    OtherTimeout { device: PathBuf, wanted: u64, taken: u64, words: Words },
    #[error(
        "{device} took no time-out of {wanted} s ({why}): type another '{typed}', 'wdctl {device}' shows its own",
        typed = .words.any_timeout()
    )]
    NoTimeout { device: PathBuf, wanted: u64, why: String, words: Words },
}

/// Returns the advice by which the operator releases the watchdog device from `holder`.
fn way_on(holder: &Holder) -> String {
    match holder.name.as_str() {
        "sbd" => "give sbd another device by SBD_WATCHDOG_DEV, or 'systemctl disable sbd' and reboot".to_owned(),
        "corosync" => "set 'watchdog_device: off' among the resources of /etc/corosync/corosync.conf".to_owned(),
        "systemd" => {
            "set 'RuntimeWatchdogSec=0' in /etc/systemd/system.conf, then 'systemctl daemon-reexec'".to_owned()
        }
        "watchdog" | "wd_keepalive" => format!("'systemctl disable --now {}'", holder.name),
        "watchdog-mux" => {
            "have fencing-agent use its socket: type 'device = \"/run/watchdog-mux.sock\"' under [watchdog]; \
             'watchdog-mux status' shows what it serves"
                .to_owned()
        }
        "fencing-agent" => {
            "'systemctl disable --now fencing-agent', or have it use the socket of watchdog-mux".to_owned()
        }
        _ => format!("'systemctl status {}' shows what it is", holder.pid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_holders_are_named_with_their_setting() {
        for (name, typed) in [
            ("sbd", "SBD_WATCHDOG_DEV"),
            ("corosync", "watchdog_device: off"),
            ("systemd", "RuntimeWatchdogSec=0"),
            ("watchdog-mux", "type 'device = \"/run/watchdog-mux.sock\"' under [watchdog]; 'watchdog-mux status'"),
            ("fencing-agent", "'systemctl disable --now fencing-agent'"),
            ("another", "'systemctl status 17'"),
        ] {
            let holder = Holder { name: name.to_owned(), pid: 17 };
            let text = Refusal::Held { device: "/dev/watchdog".into(), holder }.to_string();
            assert!(text.starts_with(&format!("/dev/watchdog is busy: {name} (pid 17) has it open: ")), "{text}");
            assert!(text.contains(typed), "{text}");
        }
    }
}
