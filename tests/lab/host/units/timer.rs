//! A timer, which runs its service repeatedly. It supports systemd's clocks that count from a start. A calendar timer
//! is active, and never elapses in the life of a lab.

use std::sync::Arc;
use std::time::Duration;

use super::file::Unit;
use super::manager::{Manager, State};
use crate::sh::Result;

pub fn start(manager: &Arc<Manager>, unit: &Unit) -> Result<()> {
    let name = unit.value("Timer", "Unit").map_or_else(|| unit.name.replace(".timer", ".service"), str::to_owned);
    let service = Unit::find(&name).ok_or_else(|| format!("Unit {name} not found."))?;
    let known = manager.note(&unit.name, |known| {
        known.state = State::Active;
        known.start += 1;
    });
    let (manager, unit) = (Arc::clone(manager), unit.clone());
    std::thread::spawn(move || tick(&manager, &unit, &service, known.start));
    Ok(())
}

pub fn stop(manager: &Manager, unit: &Unit) {
    manager.note(&unit.name, |known| {
        known.state = State::Inactive;
        known.start += 1;
    });
}

fn tick(manager: &Arc<Manager>, unit: &Unit, service: &Unit, start: u64) {
    let time = |keys: &[&str]| keys.iter().find_map(|key| unit.time("Timer", key));
    let mut wait = time(&["OnActiveSec", "OnBootSec"]);
    while let Some(pause) = wait {
        if !slept(manager, unit, start, pause) {
            return;
        }
        // The service logs its own failure.
        let _ = Manager::start(manager, service);
        wait = time(&["OnUnitInactiveSec", "OnUnitActiveSec"]);
    }
}

/// Sleeps for `pause`. Returns false early if the timer was stopped or started anew since its start with the number
/// `start`.
fn slept(manager: &Manager, unit: &Unit, start: u64, pause: Duration) -> bool {
    let stopped = || manager.known(&unit.name).start != start;
    !crate::sh::wait_for_quietly(pause, Duration::from_millis(200), stopped)
}
