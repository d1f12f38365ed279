//! One BMC: its Redfish service, and the systems that it manages.

use std::time::Duration;

use serde_json::json;

use super::account::{self, Account};
use super::client::{ACCEPTED, Client};
use super::discovery::{self, Found, Pointer};
use super::failure::{Failure, FailureKind};
use super::mark::MarkLogin;
use super::quirks::{self, ResetGoal};
use super::reply::Answer;
use super::request::{Credentials, Request};
use super::resource::{self, System};
use super::select::Candidate;
use super::service::{Login, Service, Tried};
use super::session::SessionHandle;
use super::task;
use crate::adapters::https::address::Location;
use crate::os::secret::Secret;
use crate::os::uuid;

/// The greatest number of a system's chassis that are read.
const CHASSIS: usize = 4;
/// The least time that a TCP connection takes if its first packet was lost. The kernel repeats the packet after a second (RFC 6298).
const LOST_PACKET: Duration = Duration::from_millis(900);
/// One BMC, reached through a client that logs in.
#[derive(Debug)]
pub struct Bmc {
    service: Service,
}

/// A system behind a BMC. It is found by the first observation, [`Bmc::observe`].
#[derive(Clone, Debug)]
pub struct Target {
    pointer: Pointer,
    found: Option<Found>,
    /// True once the system has shown the configured UUID.
    proven: bool,
    allowed: Option<Vec<String>>,
    /// The BMC's task for the last reset; `None` if the BMC did not start one, or if the task has ended.
    task: Option<Location>,
    /// The path of a chassis that reports On while the system reports Off; `None` if there is none, or if the agent has not asked.
    pub chassis_on: Option<String>,
}

impl Target {
    pub fn new(pointer: Pointer) -> Self {
        Self { pointer, found: None, proven: false, allowed: None, task: None, chassis_on: None }
    }

    /// Returns the system's path; `None` until the system is found.
    pub fn path(&self) -> Option<&str> {
        self.found.as_ref().map(|found| found.place.path.as_str())
    }

    /// Returns the system as it was last observed; `None` until it is found.
    pub fn system(&self) -> Option<&System> {
        self.found.as_ref().map(|found| &found.system)
    }

    /// Returns the configured options that identify the system.
    pub fn pointer(&self) -> &Pointer {
        &self.pointer
    }

    /// Returns the reset types that the BMC allows, if earlier answers have shown them. Sends no request.
    pub fn seen_allowed(&self) -> Option<&Vec<String>> {
        self.allowed.as_ref().or_else(|| self.system()?.reset.as_ref()?.allowed.as_ref())
    }
}

impl Bmc {
    /// Creates a BMC for the service that `client` reaches. Sends no request. `sessions` holds the agent's session, so that it can be
    /// deleted if the process ends early.
    pub fn new(client: Client, login: Login, redfish_uri: &str, sessions: SessionHandle) -> Self {
        Self { service: Service::new(client, login, redfish_uri, sessions) }
    }

    /// Reads the present state of a system. The first call for a `host` searches for the system.
    pub fn observe(&mut self, host: &mut Target) -> Result<System, Failure> {
        let mut found = match &host.found {
            None => discovery::locate(&mut self.service, &host.pointer)?,
            Some(found) => {
                let place = found.place.clone();
                let document = self.service.get(&place)?;
                Found { system: discovery::read_system(&self.service, &place, &document)?, place }
            }
        };
        prove(host, &found).map_err(|failure| Failure { text: self.service.clean(&failure.text), ..failure })?;
        // A system that has shown its reset action may omit it in a state without a possible reset.
        let shown = host.system().and_then(|system| system.reset.clone());
        found.system.reset = found.system.reset.or(shown);
        host.found = Some(found.clone());
        Ok(found.system)
    }

    /// Returns true if the last connection had to repeat its first packet, which means that the BMC was unreachable until now. Makes a
    /// second connection to exclude a BMC that delays every connection.
    pub fn has_just_come_back(&self) -> bool {
        let waited = || self.service.client().waited() >= LOST_PACKET;
        if !waited() {
            return false;
        }
        if let Ok(root) = self.service.root() {
            // The answer does not matter, only the time to connect does.
            let _ = self
                .service
                .client()
                .briefly()
                .send(Request { fresh: true, ..Request::get(&root, &Credentials::None) });
        }
        !waited()
    }

    /// Posts a reset to a system that [`Self::observe`] has found.
    pub fn reset(&mut self, host: &mut Target, reset_type: &str) -> Result<Answer, Failure> {
        let found =
            host.found.as_ref().ok_or_else(|| Failure::new(FailureKind::WrongSystem, "no system was chosen yet"))?;
        let action = found.system.reset.as_ref().ok_or_else(|| no_reset_action(found))?;
        let place = if let Some(target) = &action.target {
            self.service.follow(&found.place, target)?
        } else {
            log::info!(
                "{} names no target for the Reset action, so the agent uses the standard target",
                found.place.path
            );
            let path = format!("{}/Actions/ComputerSystem.Reset", found.place.path.trim_end_matches('/'));
            Location { path, ..found.place.clone() }
        };
        let body = json!({ "ResetType": reset_type });
        let fresh = !quirks::is_repeatable(reset_type);
        let ask = Request { fresh, ..Request::post(&place, &body, &Credentials::None) };
        let answer = self.service.send_for_any_state(ask, &found.system.etags)?;
        host.task = match answer.status {
            ACCEPTED => task::place(answer.location.as_deref(), &answer.body)
                .and_then(|link| self.service.client().address().here(&place, &link)),
            _ => None,
        };
        Ok(answer)
    }

    /// Returns the failure of the BMC's task for the last reset; `None` if the task has not failed, or if there is none. Once a task has
    /// ended, sends no further query about it.
    pub fn failed_task(&mut self, host: &mut Target) -> Option<Failure> {
        let place = host.task.clone()?;
        let failure = match self.service.send(Request::get(&place, &Credentials::None)) {
            Ok(answer) => {
                if answer.status != ACCEPTED {
                    host.task = None;
                }
                let failure = task::failure(&place.path, &answer.body)?;
                Failure { text: self.service.clean(&failure.text), ..failure }
            }
            // A task monitor ends with the answer to the request itself. Failures that show nothing about the task are ignored.
            Err(failure) if failure.is_passing() => return None,
            Err(failure)
                if matches!(
                    failure.kind,
                    FailureKind::Missing | FailureKind::Unauthorised | FailureKind::ForeignRedirect
                ) =>
            {
                host.task = None;
                return None;
            }
            Err(failure) => failure,
        };
        host.task = None;
        Some(failure)
    }

    /// Returns the path of a chassis that reports On and belongs only to this system; `None` if there is none. Ignores a chassis that the
    /// BMC does not show. Fails if the BMC may show the chassis a moment later.
    pub fn chassis_that_is_on(&mut self, host: &Target) -> Result<Option<String>, Failure> {
        let Some(found) = host.found.as_ref() else { return Ok(None) };
        for link in found.system.chassis.iter().take(CHASSIS) {
            let Ok(place) = self.service.follow(&found.place, link) else { continue };
            match self.service.get(&place) {
                Ok(document) if resource::is_own_chassis_on(&document, &found.place.path) => {
                    return Ok(Some(self.service.clean(&place.path)));
                }
                Err(failure) if failure.is_passing() => return Err(failure),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(None)
    }

    /// Returns the reset types to try for `wish`, best first.
    ///
    /// For Off does not ask which types the BMC allows, because only `ForceOff` is suitable. A list without it is more often wrong than
    /// right.
    pub fn reset_types(&mut self, host: &mut Target, wish: ResetGoal) -> Vec<String> {
        let best = quirks::reset_types(wish);
        let allowed = if wish == ResetGoal::Off { None } else { self.allowed(host) };
        let mut types: Vec<String> = best
            .iter()
            .filter(|name| allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|one| one == *name)))
            .map(ToString::to_string)
            .collect();
        if types.is_empty() {
            log::info!("the reset types {} are not listed as allowed, and are tried nevertheless", best.join(", "));
            types = best.iter().map(ToString::to_string).collect();
        }
        types
    }

    /// Returns the reset types that the system allows; `None` if it does not list them. The caller may then try any type.
    pub fn allowed(&mut self, host: &mut Target) -> Option<Vec<String>> {
        if host.allowed.is_none() {
            let found = host.found.clone()?;
            let action = found.system.reset?;
            host.allowed = action.allowed.or_else(|| {
                let place = self.service.follow(&found.place, &action.action_info?).ok()?;
                let document = self.service.get(&place).ok()?;
                resource::allowed_by_action_info(&document)
            });
        }
        host.allowed.clone()
    }

    /// Lists every system behind the BMC.
    pub fn list(&mut self, pointer: &Pointer) -> Result<Vec<Candidate>, Failure> {
        Ok(discovery::candidates(&mut self.service, pointer)?.into_iter().map(|(_, candidate)| candidate).collect())
    }

    /// Returns the account that the agent logs in with, as far as the BMC shows it.
    pub fn account(&mut self, redfish_uri: &str) -> Result<Account, Failure> {
        account::own(&mut self.service, redfish_uri)
    }

    /// Changes the password of the account that the agent logs in with.
    pub fn change_password(&mut self, redfish_uri: &str, new: &Secret) -> Result<(), Failure> {
        account::change_password(&mut self.service, redfish_uri, new)
    }

    /// Returns which passwords the BMC has accepted and refused so far.
    pub fn tried(&self) -> &Tried {
        self.service.tried()
    }

    /// Returns a login for the sessions of the fence race on this BMC (see [`MarkLogin`]), with the password that the BMC has accepted.
    pub fn mark_login(&self, redfish_uri: &str) -> MarkLogin {
        let login = self.service.login();
        let accepted = self.tried().accepted.unwrap_or_default();
        let passwords = vec![login.password(accepted)];
        MarkLogin { user: login.user.clone(), passwords, redfish_uri: redfish_uri.to_owned() }
    }

    pub fn client(&self) -> &Client {
        self.service.client()
    }

    /// Deletes the agent's session on the BMC, because it must not outlive the action.
    pub fn close(&mut self) {
        self.service.close();
    }
}

fn no_reset_action(found: &Found) -> Failure {
    Failure::new(
        FailureKind::WrongSystem,
        format!("{} offers no Reset action, so it cannot be fenced", found.place.path),
    )
}

/// Fails if the system has another UUID than the configured one.
///
/// A system that has shown the configured UUID once may omit it later, as some systems do while they are off.
fn prove(host: &mut Target, found: &Found) -> Result<(), Failure> {
    let Some(expected) = &host.pointer.uuid else { return Ok(()) };
    let path = &found.place.path;
    match &found.system.uuid {
        Some(theirs) if uuid::same(expected, theirs) => {
            host.proven = true;
            Ok(())
        }
        Some(theirs) => Err(Failure::new(
            FailureKind::WrongSystem,
            format!(
                "the system at {path} has the UUID {theirs}, not system_uuid={expected}: this BMC is another machine's"
            ),
        )),
        None if host.proven => Ok(()),
        None => Err(Failure::new(
            FailureKind::WrongSystem,
            format!("the system at {path} names no UUID, so it cannot be proven to be system_uuid={expected}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::select::Wanted;
    use super::*;

    const UUID: &str = "11111111-2222-3333-4444-555555555555";

    fn host() -> Target {
        Target::new(Pointer {
            redfish_uri: "/redfish/v1".into(),
            systems_uri: None,
            wanted: Wanted::Any,
            uuid: Some(UUID.into()),
            confirm_missing: false,
        })
    }

    fn found(uuid: &serde_json::Value) -> Found {
        let system = System::read(&json!({ "UUID": uuid, "PowerState": "On" })).unwrap();
        Found { place: Location { port: 443, path: "/s".into() }, system }
    }

    #[test]
    fn another_machine_is_refused_and_so_is_one_without_a_uuid() {
        for uuid in [json!("66666666-7777-8888-9999-aaaaaaaaaaaa"), json!(null), json!(""), json!("x")] {
            assert_eq!(prove(&mut host(), &found(&uuid)).unwrap_err().kind, FailureKind::WrongSystem);
        }
        assert!(prove(&mut host(), &found(&json!(UUID))).is_ok());
    }

    #[test]
    fn a_proven_machine_may_fall_silent_but_not_change() {
        let mut host = host();
        prove(&mut host, &found(&json!(UUID))).unwrap();
        assert!(prove(&mut host, &found(&json!(null))).is_ok());
        assert!(prove(&mut host, &found(&json!("66666666-7777-8888-9999-aaaaaaaaaaaa"))).is_err());
    }
}
