//! `fence_redfish_rs`, the fence agent: power on and off through a BMC's Redfish service.
//!
//! [`run`] carries out an action for any caller. [`input`] and [`config`] turn what was typed into a checked configuration
//! by the one table in [`options`]; [`act`] carries the action out, and asks [`plan`], which is pure, for every single step.
//! [`process`] is the program around it. Exit codes are those of the fencing library: 0 done and proven (`status`: on), 2
//! `status` only: off, 1 everything else.

pub mod act;
pub mod config;
pub mod input;
pub mod metadata;
pub mod options;
pub mod outage;
pub mod password;
pub mod plan;
pub mod process;
pub mod trace;

use self::act::{Actor, Ending};
use self::config::{Action, Config, TrustSource};
use crate::clock::Deadline;
use crate::redfish::bmc::Bmc;
use crate::redfish::client::{Client, Settings};
use crate::redfish::failure::Failure;
use crate::redfish::request::Credentials;
use crate::redfish::secret::Scrubber;
use crate::redfish::service::Login;
use crate::redfish::session::SessionHandle;
use crate::redfish::tls::{self, Trust};

/// Why an action was not done, or not proven.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Something on this machine, such as a file with the password.
    #[error("{0}")]
    Here(String),
    #[error(transparent)]
    Bmc(#[from] Failure),
}

/// Carries out what `config` asks for, within its time, and writes what is sent and answered to `debug_file`.
///
/// Nothing of the process is touched: no signal, no output, no exit. Whoever may end the process in the middle takes what
/// `on_session` gets, and deletes that session first. Metadata, manual page and help are not actions; see [`metadata`].
pub fn run(
    config: &Config,
    debug_file: Option<&str>,
    on_session: impl FnOnce(SessionHandle) + Send + 'static,
) -> Result<Ending, Error> {
    let trust = trust(&config.trust).map_err(Error::Here)?;
    if config.action == Action::ValidateAll {
        return password::check(&config.password).map(|()| Ending::success("")).map_err(Error::Here);
    }
    let deadline = Deadline::after(config.timing.total);
    let trace = trace::open(debug_file);
    let password = password::fetch(&config.password, deadline.left()).map_err(Error::Here)?;
    if matches!(config.action, Action::Off | Action::Reboot) && !config.timing.delay.is_zero() {
        log::info!("waiting {} s before fencing, as delay says", config.timing.delay.as_secs());
        deadline.sleep(config.timing.delay);
    }
    let scrubber = Scrubber::default();
    scrubber.hide(password.reveal());
    if let Credentials::Basic(header) = Credentials::basic(&config.username, &password) {
        scrubber.hide(header.reveal().strip_prefix(b"Basic ").unwrap_or_default());
    }
    let settings = Settings {
        address: config.address.clone(),
        trust,
        check_name: config.check_name,
        connect_limit: config.timing.connect,
        answer_limit: config.timing.answer,
        deadline,
    };
    let client = Client::new(settings, scrubber, trace)?;
    let login = Login { user: config.username.clone(), password, method: config.auth };
    let mut bmc = Bmc::new(client, login, &config.redfish_uri, Box::new(on_session));
    let ended = Actor::new(config, &mut bmc, deadline).run();
    bmc.close();
    Ok(ended?)
}

fn trust(source: &TrustSource) -> Result<Trust, String> {
    Ok(match source {
        TrustSource::System => Trust::System,
        TrustSource::Anyone => Trust::Anyone,
        TrustSource::Pinned(pins) => Trust::Pinned(pins.clone()),
        TrustSource::CaFile(path) => Trust::Listed(tls::read_ca_file(path)?),
    })
}
