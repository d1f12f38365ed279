//! `fence_redfish_rs`, the fence agent: power on and off through a BMC's Redfish service.
//!
//! [`run`] executes an action for any caller. [`input`] and [`config`] turn the given options into a checked configuration, by
//! the table in [`options`]. [`act`] executes the action, and asks [`plan`], which is pure, for every single step. [`process`] is
//! the program around it. Exit codes are those of the fencing library: 0 is done and proven (`status`: on), 2 is off (`status`
//! only), and 1 is everything else.

pub mod act;
pub mod config;
mod contest;
pub mod examine;
mod fence_wait;
pub mod input;
mod limits;
mod login_memory;
pub mod metadata;
pub mod note;
pub mod options;
pub mod outage;
pub mod password;
pub mod password_file;
pub mod plan;
pub mod process;
pub mod race;
pub mod renewal;
mod sightings;
pub mod trace;

use self::act::{Actor, ActorSeen, Ending};
use self::config::{Action, Config, PasswordSource, RaceWith, TrustSource};
use self::contest::Contest;
use self::login_memory::Remembered;
use self::note::Noted;
use self::password::Fetched;
use self::password_file::Identity;
use crate::adapters::https::tls::{self, Trust};
use crate::adapters::redfish::account::Account;
use crate::adapters::redfish::bmc::Bmc;
use crate::adapters::redfish::client::{Client, Settings, Trace};
use crate::adapters::redfish::failure::Failure;
use crate::adapters::redfish::flag::{self, Flag};
use crate::adapters::redfish::mark::{MarkBoard, MarkLogin};
use crate::adapters::redfish::request::Credentials;
use crate::adapters::redfish::service::Login;
use crate::adapters::redfish::session::{OnSession, SessionHandle};
use crate::os::clock::Deadline;
use crate::os::secret::{Scrubber, Secret};

/// The reason why an action was not performed, or why its result could not be proven.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A fault on this machine, such as an unreadable password file.
    #[error("{0}")]
    Here(String),
    #[error(transparent)]
    Bmc(#[from] Failure),
}

/// The result of an action, and the facts that it has found about its BMC.
#[derive(Debug)]
pub struct Run {
    pub ended: Result<Ending, Error>,
    pub notes: Vec<Noted>,
    /// The account at the BMC; `None` if the caller did not ask for it, or if the action failed.
    pub account: Option<Result<Account, Failure>>,
    /// The property by which the BMC shows a session to other clients; `None` if the caller did not ask for it, or if the action failed.
    pub flag: Option<Flag>,
    pub login: LoggedIn,
}

/// Facts about the BMC that an operator's command wants in addition to an action's result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Curiosity {
    /// True if the command wants the account at the BMC and its role.
    pub account: bool,
    /// True if the command wants a test with two sessions, which shows whether the BMC shows one client's session to another
    /// client.
    pub flag: bool,
}

/// The BMC's answers to the passwords that were tried. A password is named by its line in the password file, counted from 0. If
/// the password is not from a file, its number is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedIn {
    pub accepted: Option<usize>,
    pub refused: Vec<usize>,
}

/// Executes the action of `config` within its time, and writes requests and answers to `debug_file`.
///
/// This function sends no signal, prints nothing and does not end the process. `on_session` receives a handle to the agent's
/// session. A caller that ends the process early has to delete the session by that handle first. Metadata, manual page and help
/// are not actions; see [`metadata`].
pub fn run(
    config: &Config,
    debug_file: Option<&str>,
    on_session: impl FnOnce(SessionHandle) + Send + 'static,
) -> Result<Ending, Error> {
    run_and_note(config, debug_file, on_session).ended
}

/// Executes an action as [`run`] does. Returns its result, and facts about the BMC that the action found.
pub fn run_and_note(
    config: &Config,
    debug_file: Option<&str>,
    on_session: impl FnOnce(SessionHandle) + Send + 'static,
) -> Run {
    carry_out(config, debug_file, Box::new(on_session), Curiosity::default())
}

/// Runs a monitor for an operator. Returns its result, and the facts that `asks` selects. Each of these facts costs additional
/// requests.
pub fn examine(config: &Config, asks: Curiosity, on_session: impl FnOnce(SessionHandle) + Send + 'static) -> Run {
    carry_out(config, None, Box::new(on_session), asks)
}

fn carry_out(config: &Config, debug_file: Option<&str>, on_session: OnSession, asks: Curiosity) -> Run {
    let deadline = Deadline::after(config.timing.total);
    if config.action == Action::ValidateAll {
        let checked = trust(&config.trust).and_then(|_| password::check(&config.password));
        let ended = checked.map(|()| Ending::success("")).map_err(Error::Here);
        return Run { ended, notes: Vec::new(), account: None, flag: None, login: LoggedIn::default() };
    }
    let (mut bmc, keys, contest) = match connect(config, debug_file, deadline, on_session) {
        Ok(connected) => connected,
        Err(error) => {
            let notes = note::of(config, None, &ActorSeen::default(), Some(&error), deadline.elapsed());
            return Run { ended: Err(error), notes, account: None, flag: None, login: LoggedIn::default() };
        }
    };
    let mut actor = Actor::new(config, &mut bmc, deadline, contest);
    let ended = actor.run().map_err(Error::from);
    let seen = actor.into_seen();
    let notes = note::of(config, Some(&bmc), &seen, ended.as_ref().err(), deadline.elapsed());
    let account = (asks.account && ended.is_ok()).then(|| bmc.account(&config.redfish_uri));
    let flag = (asks.flag && ended.is_ok()).then(|| flag_of(&bmc, config));
    let login = keys.learn(&bmc);
    bmc.close();
    Run { ended, notes, account, flag, login }
}

/// Tests with two sessions by which property `bmc` shows one client's session to another client.
fn flag_of(bmc: &Bmc, config: &Config) -> Flag {
    let handle = SessionHandle::new(Box::new(|_| {}));
    let client = bmc.client().within(contest::TARGET_LIMIT);
    let board =
        || MarkBoard::new(client.clone(), bmc.mark_login(&config.redfish_uri), handle.clone(), contest::TARGET_LIMIT);
    flag::prove([&mut board(), &mut board()])
}

/// Changes the password of `config`'s account at the BMC to `new`. Before that, runs a monitor, which proves that this is the
/// right BMC.
pub fn change_password(config: &Config, new: &Secret) -> Result<(), Error> {
    let deadline = Deadline::after(config.timing.total);
    let (mut bmc, keys, _) = connect(config, None, deadline, Box::new(|_| {}))?;
    bmc.client().hide(new.reveal());
    let monitored = Actor::new(config, &mut bmc, deadline, None).run();
    let changed = monitored.and_then(|_| bmc.change_password(&config.redfish_uri, new));
    keys.learn(&bmc);
    bmc.close();
    changed.map_err(Error::from)
}

/// The passwords of an action, in the order in which the action tries them.
struct Keys {
    order: Vec<usize>,
    file: Option<Identity>,
    remembered: Remembered,
}

impl Keys {
    /// Returns the passwords that were `fetched` from the file in the order in which to try them. The one that the BMC accepted
    /// last is the first.
    fn of(config: &Config, fetched: &Fetched) -> Self {
        let remembered = Remembered::of(&config.address);
        let mut order: Vec<usize> = (0..fetched.secrets.len()).collect();
        let first = fetched.file.and_then(|file| remembered.about(file)?.line);
        order.sort_by_key(|line| Some(*line) != first);
        Self { order, file: fetched.file, remembered }
    }

    /// Stores the results of the logins at `bmc` for the next action, and also returns them.
    fn learn(&self, bmc: &Bmc) -> LoggedIn {
        let tried = bmc.tried();
        self.remembered.keep(tried, self.file.map(|file| (file, self.order.as_slice())));
        let line = |at: usize| self.order.get(at).copied();
        LoggedIn {
            accepted: tried.accepted.and_then(line),
            refused: tried.refused.iter().filter_map(|at| line(*at)).collect(),
        }
    }
}

/// Fetches the passwords, waits for the configured delay, and returns a client for the BMC. Sends no request to the BMC yet.
fn connect(
    config: &Config,
    debug_file: Option<&str>,
    deadline: Deadline,
    on_session: OnSession,
) -> Result<(Bmc, Keys, Option<Contest>), Error> {
    let trust = trust(&config.trust).map_err(Error::Here)?;
    let trace = trace::open(debug_file);
    let fetched = password::fetch(&config.password, deadline.left()).map_err(Error::Here)?;
    if matches!(config.action, Action::Off | Action::Reboot) && !config.timing.delay.is_zero() {
        log::info!("this action waits {} s before fencing, because delay is set", config.timing.delay.as_secs());
        deadline.sleep(config.timing.delay);
    }
    let scrubber = Scrubber::default();
    for password in &fetched.secrets {
        scrubber.hide(password.reveal());
        if let Credentials::Basic(header) = Credentials::basic(&config.username, password) {
            scrubber.hide(header.reveal().strip_prefix(b"Basic ").unwrap_or_default());
        }
    }
    let settings = Settings {
        address: config.address.clone(),
        trust,
        check_name: config.check_name,
        connect_limit: config.timing.connect,
        answer_limit: config.timing.answer,
        deadline,
    };
    let client = Client::new(settings.clone(), scrubber.clone(), trace.clone())?;
    let keys = Keys::of(config, &fetched);
    let passwords: Vec<Secret> = keys.order.iter().filter_map(|line| fetched.secrets.get(*line)).cloned().collect();
    let handle = SessionHandle::new(on_session);
    let race = config.race.as_ref().filter(|_| config.action.switches_off());
    let contest = match race {
        Some(with) => Some(contest_of(config, with, (&client, settings, scrubber, trace), &passwords, &handle)?),
        None => None,
    };
    let way = keys.remembered.memory.way;
    let login = Login { user: config.username.clone(), passwords, method: config.auth, way };
    Ok((Bmc::new(client, login, &config.redfish_uri, handle), keys, contest))
}

/// Creates the race with the other node's agent. The race uses a client of its own for the BMC of this node.
fn contest_of(
    config: &Config,
    with: &RaceWith,
    (client, settings, scrubber, trace): (&Client, Settings, Scrubber, Trace),
    passwords: &[Secret],
    handle: &SessionHandle,
) -> Result<Contest, Error> {
    let of_device = |user: &str, passwords: Vec<Secret>| MarkLogin {
        user: user.to_owned(),
        passwords,
        redfish_uri: config.redfish_uri.clone(),
    };
    let own_passwords = match &with.password_file {
        Some(file) => {
            let source = PasswordSource::File(file.clone());
            password::fetch(&source, settings.deadline.left()).map_err(Error::Here)?.secrets
        }
        None => passwords.to_vec(),
    };
    for password in &own_passwords {
        scrubber.hide(password.reveal());
    }
    let settings = Settings {
        address: with.address.clone(),
        trust: trust(&with.trust).map_err(Error::Here)?,
        connect_limit: settings.connect_limit.min(contest::OWN_LIMIT),
        answer_limit: contest::LATE,
        ..settings
    };
    let own = Client::new(settings, scrubber, trace)?;
    let own_user = with.username.as_deref().unwrap_or(&config.username);
    let logins = [
        (client.within(contest::LATE), of_device(&config.username, passwords.to_vec())),
        (own, of_device(own_user, own_passwords)),
    ];
    Ok(Contest::new(with, config.timing.total, logins, handle.clone()))
}

fn trust(source: &TrustSource) -> Result<Trust, String> {
    Ok(match source {
        TrustSource::System => Trust::System,
        TrustSource::Anyone => Trust::Anyone,
        TrustSource::Pinned(pins) => Trust::Pinned(pins.clone()),
        TrustSource::CaFile(path) => Trust::Listed(tls::read_ca_file(path)?),
    })
}
