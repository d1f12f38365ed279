//! From options as text to a checked configuration; every fault is named, and what to type instead. Pure.

use std::path::PathBuf;
use std::time::Duration;

use super::input::{DYNAMIC, Given};
use super::options::{Kind, Opt, row_of, truth};
use crate::redfish::address::Address;
use crate::redfish::bmc::LoginMethod;
use crate::redfish::discovery::Pointer;
use crate::redfish::secret::Secret;
use crate::redfish::select::{self, Wanted};
use crate::redfish::tls::{self, Fingerprint};

/// What the agent is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    On,
    Off,
    Reboot,
    Status,
    Monitor,
    List,
    ListStatus,
    Diag,
    ValidateAll,
    Metadata,
    Manpage,
}

/// Every action by its name, with whether metadata declares it; in the order of the metadata.
pub const ACTIONS: &[(&str, Action, bool)] = &[
    ("on", Action::On, true),
    ("off", Action::Off, true),
    ("reboot", Action::Reboot, true),
    ("status", Action::Status, true),
    ("list", Action::List, true),
    ("list-status", Action::ListStatus, true),
    ("monitor", Action::Monitor, true),
    ("metadata", Action::Metadata, true),
    ("meta-data", Action::Metadata, false),
    ("manpage", Action::Manpage, true),
    ("validate-all", Action::ValidateAll, true),
    ("diag", Action::Diag, true),
];

impl Action {
    /// Reads an action's name; there is none by default, as a mistyped key must not power a machine off.
    pub fn parse(name: Option<&str>) -> Result<Self, String> {
        let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) else {
            return Err(format!("unsupported action: none was given; give action= (or -o) one of {}", action_names()));
        };
        let lower = name.to_ascii_lowercase();
        let found = ACTIONS.iter().find(|(known, _, _)| *known == lower);
        found.map(|(_, action, _)| *action).ok_or_else(|| {
            let shown: String = name.chars().filter(|character| !character.is_control()).take(40).collect();
            format!("unsupported action '{shown}'; give action= (or -o) one of {}", action_names())
        })
    }

    /// Whether it changes the power state, or means to.
    pub fn acts(self) -> bool {
        matches!(self, Self::On | Self::Off | Self::Reboot | Self::Diag)
    }
}

fn action_names() -> String {
    let names: Vec<&str> = ACTIONS.iter().filter(|(_, _, declared)| *declared).map(|(name, _, _)| *name).collect();
    names.join(", ")
}

/// How a reboot is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    OnOff,
    Cycle,
}

/// Where the password is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasswordSource {
    Given(Secret),
    File(PathBuf),
    Script(String),
}

/// Which certificates are trusted, before files are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustSource {
    System,
    CaFile(PathBuf),
    Pinned(Vec<Fingerprint>),
    Anyone,
}

/// How long everything may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    pub delay: Duration,
    /// The whole action, from its start.
    pub total: Duration,
    pub connect: Duration,
    pub answer: Duration,
    /// From an accepted reset to the state it should bring; `None` where only the whole action is limited.
    pub power: Option<Duration>,
    pub power_wait: Duration,
    pub status_sleep: Duration,
    pub retry_on: u32,
}

/// A complete, checked configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub action: Action,
    pub address: Address,
    pub username: String,
    pub password: PasswordSource,
    pub auth: LoginMethod,
    pub trust: TrustSource,
    pub check_name: bool,
    pub redfish_uri: String,
    /// The systems to act on, at least one.
    pub systems: Vec<Pointer>,
    /// The systems differ from action to action (`plug=dynamic`).
    pub dynamic: bool,
    pub method: Method,
    pub missing_as_off: bool,
    pub separator: String,
    pub timing: Timing,
}

/// What tells us who started us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Pacemaker's fencer: it kills us when its own time is up.
    pub under_fencer: bool,
}

/// What the fencer grants an action by default is 60 s, and 20 s for a monitor.
const ACTING: u64 = 50;
const ASKING_UNDER_FENCER: u64 = 15;
const ASKING_BY_HAND: u64 = 30;
/// What an action needs beside waiting for the power: finding the system, two confirmations, a session.
const OVERHEAD: u64 = 15;
/// What must remain of an action after its delay.
const AFTER_DELAY: u64 = 30;
/// With the time-outs disabled, one request still does not get all of the action's time.
const UNLIMITED_CONNECT: u64 = 15;
const UNLIMITED_ANSWER: u64 = 30;
/// No time-out or delay needs to be longer than a day.
const LONGEST: u64 = 24 * 60 * 60;

impl Config {
    /// Checks everything that was given for `action`.
    pub fn read(action: Action, given: &Given, environment: Environment) -> Result<Self, Vec<String>> {
        let mut reader = Reader { given, faults: given.faults.clone() };
        let config = reader.config(action, environment);
        match config {
            Some(config) if reader.faults.is_empty() => Ok(config),
            _ => Err(reader.faults),
        }
    }
}

struct Reader<'a> {
    given: &'a Given,
    faults: Vec<String>,
}

impl Reader<'_> {
    fn config(&mut self, action: Action, environment: Environment) -> Option<Config> {
        let port_as_ip = self.flag(Opt::PortAsIp);
        let address = self.address(port_as_ip);
        let username = self.required(Opt::Username);
        let password = self.password();
        let (systems, dynamic) = self.systems(port_as_ip);
        let trust = self.trust();
        let auth = match self.choice(Opt::Auth).as_str() {
            "basic" => LoginMethod::Basic,
            "session" => LoginMethod::Session,
            _ => LoginMethod::Auto,
        };
        let method = if self.choice(Opt::Method) == "cycle" { Method::Cycle } else { Method::OnOff };
        let timing = self.timing(action, environment);
        Some(Config {
            action,
            auth,
            check_name: self.truth(Opt::SslVerifyHostname),
            redfish_uri: self.text_or_default(Opt::RedfishUri),
            dynamic,
            method,
            missing_as_off: self.flag(Opt::MissingAsOff),
            separator: self.text_or_default(Opt::Separator),
            timing,
            address: address?,
            username: username?,
            password: password?,
            systems,
            trust: trust?,
        })
    }

    fn address(&mut self, port_as_ip: bool) -> Option<Address> {
        let port = self.number(Opt::IpPort, 1, 65535).and_then(|port| u16::try_from(port).ok()).unwrap_or(443);
        let opt = if port_as_ip && self.text(Opt::Plug).is_some() { Opt::Plug } else { Opt::Ip };
        let text = self.text(opt).or_else(|| {
            self.faults.push("ip is missing: give ip= (or -a) the BMC's host name or address".to_owned());
            None
        })?;
        Address::parse(&text, port).map_err(|fault| self.faults.push(fault)).ok()
    }

    fn password(&mut self) -> Option<PasswordSource> {
        if let Some(script) = self.text(Opt::PasswordScript) {
            if !script.starts_with('/') {
                self.faults.push("password_script must be an absolute path: it is run without a shell".to_owned());
            }
            return Some(PasswordSource::Script(script));
        }
        if let Some(file) = self.text(Opt::PasswordFile) {
            return Some(PasswordSource::File(PathBuf::from(file)));
        }
        let password = self.given.values.get(&Opt::Password).map(|value| Secret::new(value.bytes()));
        if let Some(password) = password.filter(|password| !password.is_empty()) {
            Some(PasswordSource::Given(password))
        } else {
            self.faults.push("password is missing: give password, password_file or password_script".to_owned());
            None
        }
    }

    fn systems(&mut self, port_as_ip: bool) -> (Vec<Pointer>, bool) {
        let uuid = self.text(Opt::SystemUuid);
        if let Some(uuid) = uuid.as_deref().filter(|uuid| !select::is_uuid(uuid)) {
            self.faults.push(format!(
                "system_uuid={uuid} is no UUID; on the node, 'dmidecode -s system-uuid' prints the right one"
            ));
        }
        let plug = if port_as_ip { None } else { self.text(Opt::Plug) };
        let dynamic = plug.as_deref() == Some(DYNAMIC);
        let separator = self.text_or_default(Opt::PlugSeparator);
        let wanted = wanted(plug.filter(|_| !dynamic), self.given.node.as_deref(), &separator);
        if uuid.is_some() && wanted.len() > 1 {
            self.faults.push(format!("system_uuid names one system, but plug names {}", wanted.len()));
        }
        let systems_uri = self.text(Opt::SystemsUri);
        let redfish_uri = self.text_or_default(Opt::RedfishUri);
        let confirm_missing = self.flag(Opt::MissingAsOff);
        let pointer = |wanted| Pointer {
            redfish_uri: redfish_uri.clone(),
            systems_uri: systems_uri.clone(),
            wanted,
            uuid: uuid.clone(),
            confirm_missing,
        };
        (wanted.into_iter().map(pointer).collect(), dynamic)
    }

    fn trust(&mut self) -> Option<TrustSource> {
        let insecure = self.flag(Opt::SslInsecure);
        let ca_file = self.text(Opt::SslCaFile);
        let fingerprint = self.text(Opt::SslFingerprint);
        if insecure && (ca_file.is_some() || fingerprint.is_some()) {
            self.faults.push(
                "ssl_insecure=1 trusts anybody, so ssl_ca_file and ssl_fingerprint would mean nothing: remove one of them"
                    .to_owned(),
            );
        }
        match (insecure, fingerprint, ca_file) {
            (true, _, _) => Some(TrustSource::Anyone),
            (_, Some(text), _) => match tls::parse_fingerprints(&text) {
                Ok(pins) => Some(TrustSource::Pinned(pins)),
                Err(fault) => {
                    self.faults.push(fault);
                    None
                }
            },
            (_, _, Some(file)) => Some(TrustSource::CaFile(PathBuf::from(file))),
            _ => Some(TrustSource::System),
        }
    }

    fn timing(&mut self, action: Action, environment: Environment) -> Timing {
        let disabled = match self.text(Opt::DisableTimeout) {
            Some(_) => self.truth(Opt::DisableTimeout),
            None => environment.under_fencer,
        };
        let [delay, power, power_wait] = [Opt::Delay, Opt::PowerTimeout, Opt::PowerWait].map(|opt| self.seconds(opt));
        let retry_on = self.number(Opt::RetryOn, 0, 100).and_then(|count| u32::try_from(count).ok()).unwrap_or(1);
        let [connect, answer] = [Opt::LoginTimeout, Opt::ShellTimeout].map(|opt| self.seconds(opt));
        // Zero has always meant "no limit" here.
        let limit = |wanted: u64, unlimited: u64| if disabled || wanted == 0 { unlimited } else { wanted };
        let power_limit = (!disabled && power > 0).then_some(power);
        let counted = power_limit.or_else(|| self.text(Opt::PowerTimeout).map(|_| power)).unwrap_or(0);
        let phases = match action {
            Action::Off | Action::Diag => 1,
            Action::On => u64::from(1 + retry_on),
            _ if disabled => 1,
            _ => u64::from(1 + retry_on.max(1)),
        };
        let acting = ACTING.max(delay + AFTER_DELAY).max(delay + phases * (power_wait + counted) + OVERHEAD);
        let asking = if environment.under_fencer { ASKING_UNDER_FENCER } else { ASKING_BY_HAND };
        let total = match self.text(Opt::ActionTimeout) {
            Some(_) => self.number(Opt::ActionTimeout, 1, LONGEST).unwrap_or(ACTING),
            None if action.acts() => acting,
            None => asking,
        };
        Timing {
            delay: Duration::from_secs(delay),
            total: Duration::from_secs(total),
            connect: Duration::from_secs(limit(connect, UNLIMITED_CONNECT)),
            answer: Duration::from_secs(limit(answer, UNLIMITED_ANSWER)),
            power: power_limit.map(Duration::from_secs),
            power_wait: Duration::from_secs(power_wait),
            status_sleep: Duration::from_secs(self.seconds(Opt::StatusSleep)),
            retry_on,
        }
    }

    /// A text, if it was given and is not empty.
    fn text(&mut self, opt: Opt) -> Option<String> {
        let value = self.given.values.get(&opt)?;
        if let Some(text) = value.text() {
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        } else {
            self.fault_once(format!("{} is not valid UTF-8", name(opt)));
            None
        }
    }

    fn text_or_default(&mut self, opt: Opt) -> String {
        self.text(opt).unwrap_or_else(|| default(opt).to_owned())
    }

    fn required(&mut self, opt: Opt) -> Option<String> {
        let text = self.text(opt);
        if text.is_none() {
            self.faults.push(format!("{0} is missing: give {0}=", name(opt)));
        }
        text
    }

    fn flag(&mut self, opt: Opt) -> bool {
        let Some(text) = self.given.values.get(&opt).map(|value| value.text().unwrap_or_default().to_owned()) else {
            return false;
        };
        truth(&text).unwrap_or_else(|| {
            self.fault_once(format!("{}={} is neither true nor false: give 1 or 0", name(opt), shown(&text)));
            false
        })
    }

    fn truth(&mut self, opt: Opt) -> bool {
        if self.given.values.contains_key(&opt) { self.flag(opt) } else { truth(default(opt)).unwrap_or(false) }
    }

    fn choice(&mut self, opt: Opt) -> String {
        let Some(Kind::Choice(choices)) = row_of(opt).map(|row| row.kind) else { return String::new() };
        let text = self.text_or_default(opt).to_ascii_lowercase();
        if !choices.contains(&text.as_str()) {
            self.faults.push(format!("{}={} is not one of {}", name(opt), shown(&text), choices.join(", ")));
        }
        text
    }

    fn seconds(&mut self, opt: Opt) -> u64 {
        self.number(opt, 0, LONGEST).unwrap_or(0)
    }

    fn number(&mut self, opt: Opt, least: u64, most: u64) -> Option<u64> {
        let text = self.text_or_default(opt);
        match text.parse::<u64>() {
            Ok(number) if (least..=most).contains(&number) => Some(number),
            _ => {
                self.fault_once(format!("{}={} is not a whole number from {least} to {most}", name(opt), shown(&text)));
                None
            }
        }
    }

    fn fault_once(&mut self, fault: String) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }
}

/// The systems that `plug` means. What equals the node's name was put there by the fencer, not by an operator.
fn wanted(plug: Option<String>, node: Option<&str>, separator: &str) -> Vec<Wanted> {
    let Some(plug) = plug else {
        return vec![node.map_or(Wanted::Any, |node| Wanted::Node(node.to_owned()))];
    };
    if Some(plug.as_str()) == node {
        return vec![Wanted::Node(plug)];
    }
    let separator = if separator.is_empty() { "," } else { separator };
    let mut all: Vec<Wanted> = Vec::new();
    for one in plug.split(separator).map(str::trim).filter(|one| !one.is_empty()) {
        let one = Wanted::Named(one.to_owned());
        if !all.contains(&one) {
            all.push(one);
        }
    }
    if all.is_empty() { vec![Wanted::Any] } else { all }
}

fn name(opt: Opt) -> &'static str {
    row_of(opt).map_or("option", |row| row.name)
}

fn default(opt: Opt) -> &'static str {
    row_of(opt).and_then(|row| row.default).unwrap_or_default()
}

fn shown(text: &str) -> String {
    format!("'{}'", text.chars().filter(|character| !character.is_control()).take(40).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::super::input::from_lines;
    use super::*;

    const WHOLE: &str = "ip=bmc\nusername=admin\npassword=x\n";
    const BY_HAND: Environment = Environment { under_fencer: false };
    const FENCER: Environment = Environment { under_fencer: true };

    fn read(action: Action, more: &str, environment: Environment) -> Result<Config, Vec<String>> {
        Config::read(action, &from_lines(format!("{WHOLE}{more}").as_bytes()), environment)
    }

    fn config(more: &str) -> Config {
        read(Action::Off, more, BY_HAND).unwrap()
    }

    fn fault(more: &str) -> String {
        read(Action::Off, more, BY_HAND).unwrap_err().join("; ")
    }

    #[test]
    fn an_action_is_never_guessed() {
        assert!(Action::parse(None).is_err());
        assert!(Action::parse(Some("  ")).is_err());
        assert!(Action::parse(Some("bogus")).unwrap_err().contains("unsupported action 'bogus'"));
        assert_eq!(Action::parse(Some("OFF")), Ok(Action::Off));
        assert_eq!(Action::parse(Some("meta-data")), Ok(Action::Metadata));
    }

    #[test]
    fn verification_is_on_unless_it_is_switched_off() {
        for more in [
            "",
            "ssl_insecure=0\n",
            "ssl-insecure=no\n",
            "ssl_insecure=off\n",
            "ssl_insecure=False\n",
            "ssl_secure=1\n",
        ] {
            assert_eq!(config(more).trust, TrustSource::System, "{more}");
        }
        for more in ["ssl_insecure=1\n", "ssl_insecure=yes\n", "ssl_insecure=on\n", "ssl_insecure=TRUE\n"] {
            assert_eq!(config(more).trust, TrustSource::Anyone, "{more}");
        }
        assert!(fault("ssl_insecure=maybe\n").contains("ssl_insecure"));
        assert!(fault("ssl_insecure=\n").contains("ssl_insecure"));
        assert!(fault("ssl_insecure=1\nssl_ca_file=/x\n").contains("ssl_ca_file"));
        assert!(config("").check_name && !config("ssl_verify_hostname=0\n").check_name);
    }

    #[test]
    fn switches_that_are_off_are_off() {
        let on = config("port_as_ip=1\nplug=other\n");
        assert_eq!(on.address.host(), "other");
        let off = config("port_as_ip=0\nplug=other\n");
        assert_eq!(off.address.host(), "bmc");
        assert!(!config("missing_as_off=0\n").missing_as_off);
    }

    #[test]
    fn everything_that_is_missing_is_named_at_once() {
        let faults = Config::read(Action::Off, &from_lines(b""), BY_HAND).unwrap_err().join("; ");
        for name in ["ip", "username", "password"] {
            assert!(faults.contains(&format!("{name} is missing")), "{faults}");
        }
    }

    #[test]
    fn numbers_are_whole_and_in_range() {
        for more in [
            "delay=-1",
            "delay=3s",
            "delay=1.5",
            "delay=99999999999",
            "ipport=0",
            "ipport=70000",
            "retry_on=x",
            "power_timeout=ten",
            "action_timeout=0",
        ] {
            let option = more.split('=').next().unwrap();
            assert!(fault(&format!("{more}\n")).contains(option), "{more}");
        }
    }

    #[test]
    fn the_nodes_name_is_no_selection() {
        let wanted = |more: &str| -> Vec<Wanted> { config(more).systems.into_iter().map(|one| one.wanted).collect() };
        assert_eq!(wanted(""), [Wanted::Any]);
        assert_eq!(wanted("nodename=n1\n"), [Wanted::Node("n1".into())]);
        assert_eq!(wanted("nodename=n1\nport=n1\n"), [Wanted::Node("n1".into())]);
        assert_eq!(wanted("nodename=n1\nport=sysA\n"), [Wanted::Named("sysA".into())]);
        assert_eq!(wanted("plug=a,b,a\n"), [Wanted::Named("a".into()), Wanted::Named("b".into())]);
        assert_eq!(wanted("plug=a;b\nplug_separator=;\n").len(), 2);
        assert!(config("plug=dynamic\n").dynamic);
        let uuid = "system_uuid=11111111-2222-3333-4444-555555555555\n";
        assert!(fault(&format!("plug=a,b\n{uuid}")).contains("system_uuid"));
        assert!(fault("system_uuid=x\n").contains("dmidecode"));
    }

    #[test]
    fn an_action_ends_before_the_fencer_does() {
        let total = |action, more: &str, environment| read(action, more, environment).unwrap().timing.total.as_secs();
        assert_eq!(total(Action::Off, "", FENCER), 50);
        assert_eq!(total(Action::Reboot, "", FENCER), 50);
        assert_eq!(total(Action::Monitor, "", FENCER), 15);
        assert_eq!(total(Action::Status, "", BY_HAND), 30);
        assert_eq!(total(Action::Off, "delay=15\n", FENCER), 50);
        assert_eq!(total(Action::Off, "delay=40\n", FENCER), 70);
        assert_eq!(total(Action::Off, "power_timeout=120\n", FENCER), 135);
        assert_eq!(total(Action::Reboot, "power_timeout=60\nretry_on=2\n", BY_HAND), 195);
        assert_eq!(total(Action::Off, "action_timeout=5\n", BY_HAND), 5);
    }

    #[test]
    fn time_outs_are_disabled_under_the_fencer_only() {
        let power = |more: &str, environment| read(Action::Off, more, environment).unwrap().timing.power;
        assert_eq!(power("", FENCER), None);
        assert_eq!(power("disable_timeout=0\n", FENCER), Some(Duration::from_secs(20)));
        assert_eq!(power("", BY_HAND), Some(Duration::from_secs(20)));
        assert_eq!(power("disable_timeout=true\n", BY_HAND), None);
        assert_eq!(power("power_timeout=0\n", BY_HAND), None);
    }

    #[test]
    fn debug_output_has_no_password() {
        let config = Config::read(Action::Off, &from_lines(b"ip=b\nusername=u\npassword=hunter2\n"), BY_HAND).unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
