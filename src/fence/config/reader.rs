//! The rules of each option. A fault does not stop the reader, so that it reports all faults at once.

use std::path::PathBuf;
use std::time::Duration;

use super::{Action, Config, Environment, Method, PasswordSource, Timing, TrustSource};
use crate::adapters::https::address::Address;
use crate::adapters::https::tls;
use crate::adapters::options::standard::Standard;
use crate::adapters::options::value::OptionValue;
use crate::adapters::redfish::discovery::Pointer;
use crate::adapters::redfish::select::Wanted;
use crate::adapters::redfish::service::LoginMethod;
use crate::fence::input::{DYNAMIC, Given};
use crate::fence::options::{Opt, truth};
use crate::os::secret::Secret;
use crate::os::uuid;

/// The default time limit of an action that changes the power, in seconds. The fencer's own limit is 60 s by default.
const ACTING: u64 = 55;
const ASKING_UNDER_FENCER: u64 = 15;
const ASKING_BY_HAND: u64 = 30;
/// The seconds that an action needs in addition to the power change: for finding the system, for two readings that prove the
/// state, and for a session.
const OVERHEAD: u64 = 15;
/// The number of seconds that an action must have left after its configured delay.
const AFTER_DELAY: u64 = 30;
/// The time limit in seconds for connecting to the BMC, if the options disable time-outs. It keeps one request from using up the
/// action's time.
const UNLIMITED_CONNECT: u64 = 15;
/// The time limit in seconds for one answer of the BMC if the options disable time-outs.
const UNLIMITED_ANSWER: u64 = 30;
/// The greatest number of systems that one value of `plug` may name.
const PLUGS: usize = 64;

/// A reader of the options. It collects all faults, and does not stop at the first one.
pub(super) struct Reader<'a> {
    given: &'a Given,
    faults: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(given: &'a Given) -> Self {
        Self { given, faults: given.faults.clone() }
    }

    pub(super) fn read(mut self, action: Action, environment: Environment) -> Result<Config, Vec<String>> {
        match self.config(action, environment) {
            Some(config) if self.faults.is_empty() => Ok(config),
            _ => Err(self.faults),
        }
    }

    fn config(&mut self, action: Action, environment: Environment) -> Option<Config> {
        let port_as_ip = self.flag(Opt::PortAsIp);
        let address = self.address(port_as_ip);
        let username = self.required(Opt::Username);
        let password = self.password();
        let (systems, dynamic) = self.systems(port_as_ip);
        let trust = self.trust();
        let auth = match self.value::<String>(Opt::Auth).as_deref() {
            Some("basic") => LoginMethod::Basic,
            Some("session") => LoginMethod::Session,
            _ => LoginMethod::Auto,
        };
        let method =
            if self.value::<String>(Opt::Method).as_deref() == Some("cycle") { Method::Cycle } else { Method::OnOff };
        let timing = self.timing(action, environment);
        let race = self.race(address.as_ref(), trust.as_ref());
        let wait_attribute = self.wait_attribute().filter(|_| action.switches_off() && environment.under_fencer);
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
            environment,
            race,
            wait_attribute,
            address: address?,
            username: username?,
            password: password?,
            systems,
            trust: trust?,
        })
    }

    fn address(&mut self, port_as_ip: bool) -> Option<Address> {
        let port = self.value(Opt::IpPort).unwrap_or(443);
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
        if let Some(uuid) = uuid.as_deref().filter(|uuid| !uuid::is_valid(uuid)) {
            self.faults.push(format!(
                "system_uuid={uuid} is no UUID; on the node, 'dmidecode -s system-uuid' prints the right one"
            ));
        }
        let plug = if port_as_ip { None } else { self.text(Opt::Plug) };
        let dynamic = plug.as_deref() == Some(DYNAMIC);
        let separator = self.text_or_default(Opt::PlugSeparator);
        let wanted = wanted(plug.filter(|_| !dynamic), self.given.node.as_deref(), &separator);
        if wanted.len() > PLUGS {
            self.faults.push(format!("plug names more than {PLUGS} systems; no BMC has so many"));
        }
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
        let races = action.switches_off() && self.text(Opt::RaceWith).is_some();
        let race = if races { self.seconds(Opt::RaceDelay) } else { 0 };
        let before = delay + race;
        let retry_on = self.value(Opt::RetryOn).unwrap_or(1);
        let [connect, answer] = [Opt::LoginTimeout, Opt::ShellTimeout].map(|opt| self.seconds(opt));
        // Zero has always meant "no limit" for these options.
        let limit = |wanted: u64, unlimited: u64| if disabled || wanted == 0 { unlimited } else { wanted };
        let power_limit = (!disabled && power > 0).then_some(power);
        let counted = power_limit.or_else(|| self.text(Opt::PowerTimeout).map(|_| power)).unwrap_or(0);
        let phases = match action {
            Action::Off | Action::Diag => 1,
            Action::On => u64::from(1 + retry_on),
            _ if disabled => 1,
            _ => u64::from(1 + retry_on.max(1)),
        };
        let acting = ACTING.max(before + AFTER_DELAY).max(before + phases * (power_wait + counted) + OVERHEAD);
        let asking = if environment.under_fencer { ASKING_UNDER_FENCER } else { ASKING_BY_HAND };
        let total = match self.text(Opt::ActionTimeout) {
            Some(_) => self.action_timeout(delay, race),
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

    fn action_timeout(&mut self, delay: u64, race: u64) -> u64 {
        let seconds = self.value(Opt::ActionTimeout).unwrap_or(u64::MAX);
        if seconds <= delay {
            self.faults.push(format!("delay={delay} leaves nothing of action_timeout={seconds}: raise action_timeout"));
        } else if race > 0 && seconds < delay + race + AFTER_DELAY {
            let needed = delay + race + AFTER_DELAY;
            self.faults.push(format!(
                "race_delay={race} needs an action_timeout of {needed} s at least: raise action_timeout"
            ));
        }
        seconds
    }

    fn wait_attribute(&mut self) -> Option<String> {
        let name = self.text_or_default(Opt::WaitAttribute);
        let is_name = |character: char| character.is_ascii_alphanumeric() || "_-.#".contains(character);
        if name.starts_with('-') || !name.chars().all(is_name) {
            self.faults.push("wait_attribute is no name of a node attribute: give etcd_fence_wait, or none".to_owned());
        }
        Some(name).filter(|name| name != "none")
    }

    /// Records a fault of the configuration. [`Self::read`] returns all of them at once.
    pub(super) fn fault(&mut self, fault: &str) {
        self.faults.push(fault.to_owned());
    }

    /// Returns the name of the node to fence; `None` if the program that started the agent does not name it.
    pub(super) fn node(&self) -> Option<String> {
        self.given.node.clone()
    }

    /// Returns the text of an option; `None` if the option is not set, is empty or is not UTF-8.
    pub(super) fn text(&mut self, opt: Opt) -> Option<String> {
        let value = self.given.values.get(&opt)?;
        if let Some(text) = value.text() {
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        } else {
            self.fault_once(format!("{} is not valid UTF-8", opt.row().name));
            None
        }
    }

    fn text_or_default(&mut self, opt: Opt) -> String {
        self.text(opt).unwrap_or_else(|| opt.row().default.unwrap_or_default().to_owned())
    }

    fn required(&mut self, opt: Opt) -> Option<String> {
        let text = self.text(opt);
        if text.is_none() {
            self.faults.push(format!("{0} is missing: give {0}=", opt.row().name));
        }
        text
    }

    fn flag(&mut self, opt: Opt) -> bool {
        let Some(text) = self.given.values.get(&opt).map(|value| value.text().unwrap_or_default().to_owned()) else {
            return false;
        };
        self.parsed(opt, &text).unwrap_or(false)
    }

    fn truth(&mut self, opt: Opt) -> bool {
        let default = opt.row().default.and_then(truth).unwrap_or(false);
        if self.given.values.contains_key(&opt) { self.flag(opt) } else { default }
    }

    pub(super) fn seconds(&mut self, opt: Opt) -> u64 {
        self.value(opt).unwrap_or(0)
    }

    /// Returns the value of an option, or its default if the option is not set. Records a fault and returns `None` if the value
    /// is not valid.
    fn value<T: TryFrom<OptionValue>>(&mut self, opt: Opt) -> Option<T> {
        let text = self.text_or_default(opt);
        self.parsed(opt, &text)
    }

    fn parsed<T: TryFrom<OptionValue>>(&mut self, opt: Opt, text: &str) -> Option<T> {
        opt.row().parse(Standard::FenceAgent, text).map_err(|fault| self.fault_once(fault)).ok()
    }

    fn fault_once(&mut self, fault: String) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }
}

/// Returns the systems that the option `plug` names. If `plug` is the fenced node's name, it comes from the fencer, and not from
/// an operator.
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
        if all.len() <= PLUGS && !all.contains(&one) {
            all.push(one);
        }
    }
    if all.is_empty() { vec![Wanted::Any] } else { all }
}
