//! A computer system of the model: its power over time, and the document that describes it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A pending change of power: the time at which it is due, and the new power state.
type Due = (Instant, String);

/// The time from which the emulated BMC knows whether its host is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knows {
    Always,
    AfterReset,
    Never,
}

/// Returns a number for the name of a system, so that each system has a UUID of its own.
fn number(name: &str) -> u64 {
    name.bytes().fold(0, |number, byte| (number << 8 | u64::from(byte)) & 0xffff_ffff_ffff)
}

/// A computer system that the emulated BMC controls.
#[derive(Clone, Debug)]
pub struct System {
    pub id: String,
    pub name: String,
    pub uuid: Value,
    pub serial: String,
    /// The power state that the system has. It is any JSON value, because real BMCs put anything here.
    pub power: Value,
    /// The power states that follow a `ForceOff`, each with its delay.
    pub when_off: Vec<(Duration, &'static str)>,
    /// The power states that follow an `On`, each with its delay.
    pub when_on: Vec<(Duration, &'static str)>,
    /// The power states that follow a `PowerCycle`, each with its delay.
    pub when_cycled: Vec<(Duration, &'static str)>,
    /// The reset types that the system's own document lists. `None` omits the list.
    pub allowed: Option<Vec<&'static str>>,
    /// The reset types that an `ActionInfo` resource lists. `None` omits the resource.
    pub action_info: Option<Vec<&'static str>>,
    /// The reset types that the BMC refuses as unknown values, whatever its lists contain.
    pub refuses: Vec<&'static str>,
    pub can_reset: bool,
    pub names_target: bool,
    pub last_reset: Option<String>,
    pub restore_policy: Option<&'static str>,
    /// The time from which the BMC knows this host's power. Before that it reports Off.
    pub knows: Knows,
    /// The status and body with which the BMC refuses a `ForceOff` while the system is off. `None` if it accepts that.
    pub refuses_when_off: Option<(u16, String)>,
    /// True if the system's document links to the chassis `/redfish/v1/Chassis/1`.
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

    /// Returns the ETag of the system, which depends on its power state.
    pub(super) fn etag(&self) -> String {
        format!("W/\"{}\"", self.power.as_str().unwrap_or_default())
    }

    /// Returns the power state that the BMC reports for the system.
    pub(super) fn says(&self) -> Value {
        if self.knows == Knows::Always { self.power.clone() } else { json!("Off") }
    }

    /// Applies all changes of power that are due.
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
