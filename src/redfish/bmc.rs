//! A BMC at work: the client with its login, and the systems behind it.

use std::time::Duration;

use serde_json::{Value, json};

use super::address::Place;
use super::client::{ACCEPTED, Client};
use super::discovery::{self, Found, Pointer};
use super::failure::{Failure, Kind};
use super::quirks::{self, Wish};
use super::reply::Answer;
use super::request::{Ask, Credentials};
use super::resource::{self, System};
use super::secret::Secret;
use super::select::{self, Candidate};
use super::session::Keeper;
use super::task;

/// How to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginMethod {
    /// Basic authentication, and a session where that is refused.
    Auto,
    Basic,
    Session,
}

/// Who we are to the BMC.
#[derive(Clone, Debug)]
pub struct Login {
    pub user: String,
    pub password: Secret,
    pub method: LoginMethod,
}

/// A 401 now and then comes from a BMC that is starting; more of them lock the account.
const SECOND_CHANCES: u32 = 2;
/// Where the standard has sessions opened; asked where the service root does not say it.
const SESSIONS: &str = "SessionService/Sessions";
/// `If-Match` for a resource whose state has no name.
const ANY_STATE: &str = "*";
/// So many chassis of a system are asked.
const CHASSIS: usize = 4;
/// A connection whose first packet is lost takes at least this long: the kernel repeats it after a second (RFC 6298).
const LOST_PACKET: Duration = Duration::from_millis(900);
/// Such a BMC knows its users again a second or two later.
const BEFORE_SECOND_TRY: Duration = Duration::from_secs(1);

/// One BMC.
#[derive(Debug)]
pub struct Bmc {
    client: Client,
    login: Login,
    credentials: Credentials,
    session: Keeper,
    /// Basic authentication was refused where sessions are offered: it is not tried again.
    needs_session: bool,
    chances: u32,
    redfish_uri: String,
    systems: Option<Place>,
}

/// One system behind the BMC, found at the first look.
#[derive(Clone, Debug)]
pub struct Host {
    pointer: Pointer,
    found: Option<Found>,
    /// Whether its UUID was seen to be the right one.
    proven: bool,
    allowed: Option<Vec<String>>,
    /// What a reset was accepted as, where the BMC works on it after its answer.
    task: Option<Place>,
}

impl Host {
    pub fn new(pointer: Pointer) -> Self {
        Self { pointer, found: None, proven: false, allowed: None, task: None }
    }

    /// Its path, once it was found.
    pub fn path(&self) -> Option<&str> {
        self.found.as_ref().map(|found| found.place.path.as_str())
    }

    /// What it said last.
    pub fn system(&self) -> Option<&System> {
        self.found.as_ref().map(|found| &found.system)
    }
}

impl Bmc {
    pub fn new(client: Client, login: Login, redfish_uri: &str) -> Self {
        let credentials = match login.method {
            LoginMethod::Auto | LoginMethod::Basic => Credentials::basic(&login.user, &login.password),
            LoginMethod::Session => Credentials::None,
        };
        let needs_session = login.method == LoginMethod::Session;
        Self {
            client,
            login,
            credentials,
            session: Keeper::default(),
            needs_session,
            chances: SECOND_CHANCES,
            redfish_uri: redfish_uri.to_owned(),
            systems: None,
        }
    }

    /// Reads a system afresh; at the first call it is looked for.
    pub fn observe(&mut self, host: &mut Host) -> Result<System, Failure> {
        let mut found = match &host.found {
            None => discovery::locate(self, &host.pointer)?,
            Some(found) => {
                let place = found.place.clone();
                let document = self.get(&place)?;
                Found { system: discovery::read_system(&place, &document)?, place }
            }
        };
        prove(host, &found)?;
        // One that has shown its action may leave it out where there is nothing to do with it.
        let shown = host.system().and_then(|system| system.reset.clone());
        found.system.reset = found.system.reset.or(shown);
        host.found = Some(found.clone());
        Ok(found.system)
    }

    /// Whether the last connection had to be waited for because nobody was there to answer. Another one, made now, shows
    /// that it is not this BMC's way to let everybody wait.
    pub fn has_just_come_back(&self) -> bool {
        let waited = || self.client.waited() >= LOST_PACKET;
        if !waited() {
            return false;
        }
        if let Ok(root) = self.place(&self.redfish_uri) {
            // Whatever is answered: how long it took to be connected is all that counts.
            let _ = self.client.briefly().send(Ask { fresh: true, ..Ask::get(&root, &Credentials::None) });
        }
        !waited()
    }

    /// Posts a reset to a system that was observed before.
    pub fn reset(&mut self, host: &mut Host, reset_type: &str) -> Result<Answer, Failure> {
        let found = host.found.as_ref().ok_or_else(|| Failure::new(Kind::WrongSystem, "no system was chosen yet"))?;
        let action = found.system.reset.as_ref().ok_or_else(|| no_reset_action(found))?;
        let place = if let Some(target) = &action.target {
            self.follow(&found.place, target)?
        } else {
            log::info!("{} names no target for its Reset action; using the standard's", found.place.path);
            let path = format!("{}/Actions/ComputerSystem.Reset", found.place.path.trim_end_matches('/'));
            Place { path, ..found.place.clone() }
        };
        let body = json!({ "ResetType": reset_type });
        let fresh = !quirks::is_repeatable(reset_type);
        let ask = Ask { fresh, ..Ask::post(&place, &body, &Credentials::None) };
        let answer = self.post_for_any_state(ask, found.system.etag.as_deref())?;
        host.task = match answer.status {
            ACCEPTED => task::place(answer.location.as_deref(), &answer.body)
                .and_then(|link| self.client.address().here(&place, &link)),
            _ => None,
        };
        Ok(answer)
    }

    /// Posts without `If-Match`, and where the service insists on one with the state that was seen, then with any: a
    /// weak name of a state (`W/"..."`) fits nothing where RFC 9110 is taken at its word.
    fn post_for_any_state(&mut self, ask: Ask<'_>, etag: Option<&str>) -> Result<Answer, Failure> {
        let mut answer = self.post(ask);
        for state in [etag, Some(ANY_STATE)].into_iter().flatten() {
            match answer {
                Err(failure) if failure.kind == Kind::Precondition => {
                    answer = self.post(Ask { if_match: Some(state), ..ask });
                }
                other => return other,
            }
        }
        answer
    }

    /// Why the task of the last reset has failed, if it has; it is not asked about again then.
    pub fn failed_task(&mut self, host: &mut Host) -> Option<Failure> {
        let place = host.task.clone()?;
        let failure = match self.with_login(|client, credentials| client.send(Ask::get(&place, credentials))) {
            Ok(answer) => {
                if answer.status != ACCEPTED {
                    host.task = None;
                }
                let failure = task::failure(&place.path, &answer.body)?;
                Failure { text: self.clean(&failure.text), ..failure }
            }
            // A task's monitor ends with the answer to the request itself. What says nothing about that is passed over.
            Err(failure) if failure.is_passing() => return None,
            Err(failure) if matches!(failure.kind, Kind::Missing | Kind::Unauthorised | Kind::Astray) => {
                host.task = None;
                return None;
            }
            Err(failure) => failure,
        };
        host.task = None;
        Some(failure)
    }

    /// The chassis that this system has for itself and that says it is on, if there is one. What cannot be read, and what
    /// is built around several systems, says nothing.
    pub fn chassis_that_is_on(&mut self, host: &Host) -> Option<String> {
        let found = host.found.as_ref()?;
        found.system.chassis.iter().take(CHASSIS).find_map(|link| {
            let place = self.follow(&found.place, link).ok()?;
            let document = self.get(&place).ok()?;
            resource::is_own_chassis_on(&document, &found.place.path).then_some(place.path)
        })
    }

    /// The reset types to try for `wish`, best first.
    ///
    /// Off does not ask: `ForceOff` is the only one that will do, and a list that lacks it is more often wrong than right.
    pub fn reset_types(&mut self, host: &mut Host, wish: Wish) -> Vec<String> {
        let best = quirks::reset_types(wish);
        let allowed = if wish == Wish::Off { None } else { self.allowed(host) };
        let mut types: Vec<String> = best
            .iter()
            .filter(|name| allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|one| one == *name)))
            .map(ToString::to_string)
            .collect();
        if types.is_empty() {
            log::info!("none of {} is listed as allowed; trying nevertheless", best.join(", "));
            types = best.iter().map(ToString::to_string).collect();
        }
        types
    }

    /// The reset types that the system allows, as far as it says; a missing list never stands in the way.
    pub fn allowed(&mut self, host: &mut Host) -> Option<Vec<String>> {
        if host.allowed.is_none() {
            let found = host.found.clone()?;
            let action = found.system.reset?;
            host.allowed = action.allowed.or_else(|| {
                let place = self.follow(&found.place, &action.action_info?).ok()?;
                let document = self.get(&place).ok()?;
                resource::allowed_by_action_info(&document)
            });
        }
        host.allowed.clone()
    }

    /// Every system behind the BMC.
    pub fn list(&mut self, pointer: &Pointer) -> Result<Vec<Candidate>, Failure> {
        Ok(discovery::candidates(self, pointer)?.into_iter().map(|(_, candidate)| candidate).collect())
    }

    /// Ends what must not outlive the action.
    pub fn close(&mut self) {
        self.session.close(&self.client);
    }

    /// A resource, with our credentials.
    pub fn get(&mut self, place: &Place) -> Result<Value, Failure> {
        self.with_login(|client, credentials| client.get(place, credentials))
    }

    /// A request, with our credentials.
    fn post(&mut self, ask: Ask<'_>) -> Result<Answer, Failure> {
        self.with_login(|client, credentials| client.send(Ask { credentials, ..ask }))
    }

    /// Sends a request with our credentials, and after a 401 once more with whatever they are then.
    fn with_login<T>(&mut self, request: impl Fn(&Client, &Credentials) -> Result<T, Failure>) -> Result<T, Failure> {
        let first = self.authenticate().and_then(|()| request(&self.client, &self.credentials));
        let refused = match first {
            Err(failure) if failure.kind == Kind::Unauthorised && self.chances > 0 => failure,
            other => return other.map_err(explain_401),
        };
        self.chances -= 1;
        self.client.note(&format!("{refused}; once more"));
        self.client.deadline().sleep(BEFORE_SECOND_TRY);
        let no_session = self.renew_login()?;
        match (request(&self.client, &self.credentials), no_session) {
            // Basic authentication is off here, so it is the session that would be needed.
            (Err(second), Some(no_session)) if second.kind == Kind::Unauthorised => {
                self.needs_session = true;
                Err(no_session)
            }
            (second, _) => second.map_err(explain_401),
        }
    }

    /// Makes sure that there is a session where one is asked for.
    fn authenticate(&mut self) -> Result<(), Failure> {
        if self.needs_session && !self.session.is_open() { self.open_session() } else { Ok(()) }
    }

    /// After a 401: a new session where there are sessions. Answers why there is none just now where the same
    /// credentials are worth another try, as a BMC that is starting, or whose sessions are used up, still takes those.
    fn renew_login(&mut self) -> Result<Option<Failure>, Failure> {
        if self.login.method == LoginMethod::Basic {
            return Ok(None);
        }
        self.session.close(&self.client);
        let may_be_basic = self.login.method == LoginMethod::Auto && !self.needs_session;
        match self.open_session() {
            Ok(()) => {
                self.needs_session = true;
                Ok(None)
            }
            Err(none) if may_be_basic && is_absence(&none) => Ok(None),
            Err(full) if may_be_basic && full.is_passing() => Ok(Some(full)),
            Err(other) => {
                self.needs_session = true;
                Err(explain_401(other))
            }
        }
    }

    fn open_session(&mut self) -> Result<(), Failure> {
        let sessions = self.sessions_collection()?;
        self.credentials = self.session.open(&self.client, &sessions, &self.login.user, &self.login.password)?;
        Ok(())
    }

    /// Where sessions are opened. The service root says so, and should to anybody; where it does not, there is a
    /// place for them in the standard.
    fn sessions_collection(&mut self) -> Result<Place, Failure> {
        let root = self.place(&self.redfish_uri.clone())?;
        let document = match self.client.get(&root, &Credentials::None) {
            Ok(document) => document,
            Err(failure) if matches!(failure.kind, Kind::Unauthorised | Kind::Forbidden | Kind::Missing) => {
                return self.place(&format!("{}/{SESSIONS}", root.path.trim_end_matches('/')));
            }
            Err(failure) => return Err(failure),
        };
        let link = document
            .get("Links")
            .and_then(|links| resource::link(links, "Sessions"))
            .ok_or_else(|| Failure::new(Kind::Missing, format!("the service root {} offers no sessions", root.path)))?;
        self.follow(&root, &link)
    }

    pub(super) fn place(&self, uri: &str) -> Result<Place, Failure> {
        self.client.address().place(uri)
    }

    pub(super) fn follow(&self, from: &Place, link: &str) -> Result<Place, Failure> {
        self.client.follow(from, link)
    }

    pub(super) fn clean(&self, text: &str) -> String {
        self.client.clean(text)
    }

    pub(super) fn systems(&self) -> Option<Place> {
        self.systems.clone()
    }

    pub(super) fn remember_systems(&mut self, place: Place) {
        self.systems = Some(place);
    }
}

fn is_absence(failure: &Failure) -> bool {
    matches!(failure.kind, Kind::Missing | Kind::Refused)
}

fn explain_401(failure: Failure) -> Failure {
    match failure.kind {
        Kind::Unauthorised => Failure {
            text: format!("unable to log in, the BMC does not accept this username and password: {failure}"),
            ..failure
        },
        _ => failure,
    }
}

fn no_reset_action(found: &Found) -> Failure {
    Failure::new(Kind::WrongSystem, format!("{} offers no Reset action, so it cannot be fenced", found.place.path))
}

/// Refuses a system that is not the one with the configured UUID.
///
/// A system that was proven once may be silent about its UUID later, as some are while they are off; one that names
/// another UUID is refused at any time.
fn prove(host: &mut Host, found: &Found) -> Result<(), Failure> {
    let Some(expected) = &host.pointer.uuid else { return Ok(()) };
    let path = &found.place.path;
    match &found.system.uuid {
        Some(theirs) if select::same_uuid(expected, theirs) => {
            host.proven = true;
            Ok(())
        }
        Some(theirs) => Err(Failure::new(
            Kind::WrongSystem,
            format!(
                "the system at {path} has the UUID {theirs}, not system_uuid={expected}: this BMC is another machine's"
            ),
        )),
        None if host.proven => Ok(()),
        None => Err(Failure::new(
            Kind::WrongSystem,
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

    fn host() -> Host {
        Host::new(Pointer {
            redfish_uri: "/redfish/v1".into(),
            systems_uri: None,
            wanted: Wanted::Any,
            uuid: Some(UUID.into()),
            confirm_missing: false,
        })
    }

    fn found(uuid: &Value) -> Found {
        let system = System::read(&json!({ "UUID": uuid, "PowerState": "On" })).unwrap();
        Found { place: Place { port: 443, path: "/s".into() }, system }
    }

    #[test]
    fn another_machine_is_refused_and_so_is_one_without_a_uuid() {
        for uuid in [json!("66666666-7777-8888-9999-aaaaaaaaaaaa"), json!(null), json!(""), json!("x")] {
            assert_eq!(prove(&mut host(), &found(&uuid)).unwrap_err().kind, Kind::WrongSystem);
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
