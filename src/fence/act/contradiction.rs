//! Contradictions to a system that reports Off without a reset that proves it: a chassis that reports On, or a system without a
//! Reset action.

use super::{Actor, no_reset_action};
use crate::adapters::redfish::failure::{Failure, FailureKind};
use crate::adapters::redfish::quirks::PowerWord;
use crate::adapters::redfish::resource::Power;

impl Actor<'_> {
    /// Reads a system's power state for the action `status`, which only reports the BMC's answer. Logs a warning if the system
    /// reports Off and its chassis reports On. The action does not fail for that, because the chassis of some BMCs (such as
    /// sushy-emulator) always reports On.
    pub(super) fn know_for_status(&mut self, at: usize) -> Result<Power, Failure> {
        let power = self.know_and_note(at)?;
        let Some(host) = self.hosts.get(at).filter(|_| power.is(PowerWord::Off)) else { return Ok(power) };
        if host.system().is_some_and(|system| system.reset.is_none()) {
            let why = no_reset_action(host.path().unwrap_or_default());
            return Err(Failure::new(FailureKind::WrongSystem, why));
        }
        if let Some(chassis) = &host.chassis_on {
            log::warn!("the system says Off, but its chassis {chassis} says On: no proof that the machine is off");
        }
        Ok(power)
    }

    /// Reads a system's power state. If the system reports Off and its chassis reports On, stores the path of the chassis. If the
    /// chassis does not answer, it counts as if it did not report On.
    pub(super) fn know_and_note(&mut self, at: usize) -> Result<Power, Failure> {
        let power = self.know(at)?;
        if let Some(host) = self.hosts.get_mut(at) {
            let is_off = power.is(PowerWord::Off);
            host.chassis_on = if is_off { self.bmc.chassis_that_is_on(host).ok().flatten() } else { None };
        }
        Ok(power)
    }
}
