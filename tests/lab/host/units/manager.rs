//! The units' states, and the order in which units start and stop.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::file::Unit;
use super::{service, timer};
use crate::host::node::Node;
use crate::host::syslog;
use crate::sh::Result;

/// The state of a unit, as `systemctl is-active` prints it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Inactive,
    Activating,
    Active,
    Deactivating,
    Failed,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            Self::Inactive => "inactive",
            Self::Activating => "activating",
            Self::Active => "active",
            Self::Deactivating => "deactivating",
            Self::Failed => "failed",
        }
    }
}

/// The state of one unit that was started at least once, as the service manager records it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    pub state: State,
    /// The id of the unit's main process. `None` if it has none.
    pub pid: Option<i32>,
    /// The number of times that the unit was started. A thread that watches the process of one start compares this
    /// number to detect a later start.
    pub start: u64,
}

/// The lab's service manager on one host, in the place of systemd. It records the state of each unit.
#[derive(Debug)]
pub struct Manager {
    pub node: Node,
    units: Mutex<HashMap<String, Known>>,
    /// A lock for each unit's name. A start or a stop of the unit holds it, so that there is one at a time.
    at_work: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

impl Manager {
    pub fn new(node: Node) -> Self {
        Self { node, units: Mutex::default(), at_work: Mutex::default() }
    }

    /// Starts all enabled units at the same time, each after the units that it requires.
    pub fn boot(manager: &Arc<Self>) {
        for unit in Unit::all().into_iter().filter(|unit| unit.enabled() == "enabled") {
            let manager = Arc::clone(manager);
            std::thread::spawn(move || {
                if let Err(error) = Self::start(&manager, &unit) {
                    manager.say(&unit.name, &error.to_string());
                }
            });
        }
    }

    pub fn state(&self, name: &str) -> State {
        self.known(name).state
    }

    pub fn known(&self, name: &str) -> Known {
        lock(&self.units).get(name).copied().unwrap_or_default()
    }

    /// Changes the recorded state of a unit by `change`, and returns the new state.
    pub fn note(&self, name: &str, change: impl FnOnce(&mut Known)) -> Known {
        let mut units = lock(&self.units);
        let known = units.entry(name.to_owned()).or_default();
        change(known);
        *known
    }

    pub fn say(&self, name: &str, text: &str) {
        syslog::say(self.node, "boot", &format!("{name}: {text}"));
    }

    /// Starts a unit after the units that it requires. An active unit stays as it is.
    pub fn start(manager: &Arc<Self>, unit: &Unit) -> Result<()> {
        for required in unit.list("Unit", "Requires").iter().filter_map(|name| Unit::find(name)) {
            Self::start(manager, &required)
                .map_err(|error| format!("A dependency job for {} failed: {error}", unit.name))?;
        }
        let alone = manager.alone(&unit.name);
        let _alone = lock(&alone);
        if manager.state(&unit.name) == State::Active {
            return Ok(());
        }
        if unit.is_timer() { timer::start(manager, unit) } else { service::start(manager, unit) }
    }

    /// Stops a unit after the units that require it or are part of it.
    pub fn stop(manager: &Arc<Self>, unit: &Unit) {
        for other in Unit::all() {
            let hangs_on_it = ["Requires", "PartOf"].iter().any(|key| other.list("Unit", key).contains(&unit.name));
            if hangs_on_it && manager.state(&other.name) == State::Active {
                Self::stop_alone(manager, &other);
            }
        }
        Self::stop_alone(manager, unit);
    }

    fn stop_alone(manager: &Arc<Self>, unit: &Unit) {
        let alone = manager.alone(&unit.name);
        let _alone = lock(&alone);
        match manager.state(&unit.name) {
            State::Inactive => {}
            State::Failed => {
                manager.note(&unit.name, |known| known.state = State::Inactive);
            }
            _ if unit.is_timer() => timer::stop(manager, unit),
            _ => service::stop(manager, unit),
        }
    }

    fn alone(&self, name: &str) -> Arc<Mutex<()>> {
        Arc::clone(lock(&self.at_work).entry(name.to_owned()).or_default())
    }
}

/// Locks a mutex even if a thread panicked while it held the lock, because no change of this data takes several
/// steps.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
