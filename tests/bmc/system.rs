//! A computer system of the model: its power over time, and the document that describes it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A change of power that is due.
type Due = (Instant, String);

/// The time from which on a BMC knows the power of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knows {
    Always,
    AfterReset,
    Never,
}

/// Derives a number from a name, so that each system has a UUID of its own.
fn number(name: &str) -> u64 {
    name.bytes().fold(0, |number, byte| (number << 8 | u64::from(byte)) & 0xffff_ffff_ffff)
}

/// A computer system of the model.
#[derive(Clone, Debug)]
pub struct System {
    pub id: String,
    pub name: String,
    pub uuid: Value,
    pub serial: String,
    /// Any JSON value, because BMCs put anything here.
    pub power: Value,
    /// The power states after a `ForceOff`, each with its delay.
    pub when_off: Vec<(Duration, &'static str)>,
    pub when_on: Vec<(Duration, &'static str)>,
    pub when_cycled: Vec<(Duration, &'static str)>,
    /// The inline list of reset types. `None` omits it.
    pub allowed: Option<Vec<&'static str>>,
    /// The list in an `ActionInfo` resource. `None` omits the resource.
    pub action_info: Option<Vec<&'static str>>,
    /// Reset types that are refused as unknown values, whatever the lists contain.
    pub refuses: Vec<&'static str>,
    pub can_reset: bool,
    pub names_target: bool,
    pub last_reset: Option<String>,
    pub restore_policy: Option<&'static str>,
    /// The knowledge of its host, until which it reports Off.
    pub knows: Knows,
    /// The answer to a `ForceOff` while it is off.
    pub refuses_when_off: Option<(u16, String)>,
    /// True if it links to the chassis `/redfish/v1/Chassis/1`.
    pub in_chassis: bool,
    due: Vec<Due>,
}

impl System {
    pub fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: format!("System {id}"),
            uuid: json!(format!("00000000-0000-4000-8000-{:012x}", number(id))),
            serial: format!("SN-{id}"),
            power: json!("On"),
            when_off: vec![(Duration::ZERO, "Off")],
            when_on: vec![(Duration::ZERO, "On")],
            when_cycled: vec![(Duration::from_millis(100), "Off"), (Duration::from_millis(1500), "On")],
            allowed: Some(vec!["On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PowerCycle"]),
            action_info: None,
            refuses: Vec::new(),
            can_reset: true,
            names_target: true,
            last_reset: None,
            restore_policy: None,
            knows: Knows::Always,
            refuses_when_off: None,
            in_chassis: false,
            due: Vec::new(),
        }
    }

    pub fn uri(&self) -> String {
        format!("/redfish/v1/Systems/{}", self.id)
    }

    /// Returns the name of its present state.
    pub(super) fn etag(&self) -> String {
        format!("W/\"{}\"", self.power.as_str().unwrap_or_default())
    }

    /// Returns the power state that it reports.
    pub(super) fn says(&self) -> Value {
        if self.knows == Knows::Always { self.power.clone() } else { json!("Off") }
    }

    /// Applies all changes that are due.
    pub fn settle(&mut self) {
        let now = Instant::now();
        self.due.sort_by_key(|(at, _)| *at);
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            self.power = Value::String(self.due.remove(0).1);
        }
    }

    pub(super) fn reset(&mut self, reset_type: &str) -> bool {
        if self.knows == Knows::AfterReset {
            self.knows = Knows::Always;
        }
        let steps = match reset_type {
            "ForceOff" => self.when_off.clone(),
            "On" | "ForceOn" => self.when_on.clone(),
            "PowerCycle" | "ForceRestart" => self.when_cycled.clone(),
            "Nmi" => Vec::new(),
            _ => return false,
        };
        self.due = steps.iter().map(|(after, word)| (Instant::now() + *after, (*word).to_owned())).collect();
        self.settle();
        true
    }

    pub(super) fn document(&self) -> Value {
        let mut action = json!({});
        if self.names_target {
            action["target"] = json!(format!("{}/Actions/ComputerSystem.Reset", self.uri()));
        }
        if let Some(allowed) = &self.allowed {
            action["ResetType@Redfish.AllowableValues"] = json!(allowed);
        }
        if self.action_info.is_some() {
            action["@Redfish.ActionInfo"] = json!(format!("{}/ResetActionInfo", self.uri()));
        }
        let mut document = json!({
            "@odata.id": self.uri(), "Id": self.id, "Name": self.name, "UUID": self.uuid,
            "SerialNumber": self.serial, "PowerState": self.says(), "Actions": {},
        });
        if self.in_chassis {
            document["Links"] = json!({"Chassis": [{"@odata.id": "/redfish/v1/Chassis/1"}]});
        }
        if self.can_reset {
            document["Actions"]["#ComputerSystem.Reset"] = action;
        }
        if let Some(last_reset) = &self.last_reset {
            document["LastResetTime"] = json!(last_reset);
        }
        if let Some(policy) = self.restore_policy {
            document["PowerRestorePolicy"] = json!(policy);
        }
        document
    }
}
