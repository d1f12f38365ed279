//! `podman-etcd`, the OCF resource agent: observe, decide, act, until the action is answered.
//!
//! Each action is a function of its environment and of the programs that it may run, for any caller. [`process`] is the
//! program around them.

pub mod act;
mod contract;
pub mod metadata;
pub mod observe;
pub mod process;
mod recent_monitor;
pub mod resource;
mod rounds;
mod unconfigured;
mod validate;
mod volatile;

use std::path::Path;
use std::time::Duration;

use self::resource::actions;
use self::resource::context::Context;
use self::resource::deployment::{self, Manifests};
use self::resource::params::{self, Invalid, Params, Source};
use crate::adapters::command::Programs;
use crate::adapters::ocf::env::Env;
use crate::adapters::ocf::exit::{Answered, Code};
use crate::adapters::pace::Pace;
use crate::adapters::podman;
use crate::decide::Request;
use crate::os::clock::Deadline;
use crate::os::isolated::isolated;
use crate::records::{data_mount, events, state_file};

/// Time limit of the action `validate-all`.
const VALIDATE_TAKES: Duration = Duration::from_secs(20);
/// Part of a start's time that is reserved for starting etcd. The agent waits for the pod manifest only as long as this part is left.
const START_NEEDS: Duration = Duration::from_secs(60);
const LOOK_FOR_THE_MANIFEST_EVERY: Duration = Duration::from_secs(1);

/// Checks whether the parameters fit each other and this machine (`validate-all`).
pub fn validate_all(env: &Env, programs: &Programs) -> Answered {
    let strict = || params::outdated(env).map_or(Ok(()), Err);
    let checked = strict().and_then(|()| params::parse(env)).and_then(|params| {
        let budget = env.timeout().map_or(VALIDATE_TAKES, |timeout| actions::budget(timeout, Duration::ZERO));
        let deadline = Deadline::after(budget.min(VALIDATE_TAKES));
        let context = Context::new(env, params, &programs.clone().until(deadline), deadline, Manifests::Current)?;
        validate::validate(&context)
    });
    match checked {
        Ok(()) => Code::Success.into(),
        Err(invalid) => refuse(&invalid),
    }
}

/// Performs Pacemaker's request within its time-out, and records the agent's decisions in the directory `decisions`.
pub fn answer(env: &Env, programs: &Programs, decisions: &Path, request: Request) -> Answered {
    let volatile = env.volatile_dir();
    if let Err(error) = volatile::settle(&volatile, env.resource()) {
        let why = format!("other users can write in {}: {error}", volatile.display());
        log::error!("{why}");
        // Whatever other users wrote there, etcd can be stopped, and a running one is monitored.
        if request == Request::Start {
            return Answered::failed(Code::Generic, why);
        }
    }
    if let Some(answered) = recent_monitor::answer(env, request) {
        return answered;
    }
    let timeout = env.timeout().unwrap_or_else(|| actions::advertised_timeout(request));
    let (pace, deadline) = paced(env, timeout, request);
    let programs = programs.clone().paced(pace);
    let context = params::parse(env).and_then(|params| context(env, params, &programs, deadline, request));
    let context = match context {
        Ok(context) => {
            let is_monitor = request == Request::Monitor;
            let data_mount_path = data_mount::path(decisions, &context.resource);
            let (decisions, events) = (Some(decisions.to_owned()), Some(events::DIRECTORY.into()));
            Context { data_mount_path, is_monitor, decisions, events, ..context }
        }
        Err(invalid) => return without_parameters(env, &programs, request, &invalid),
    };
    make_room_for_events(request);
    if matches!(request, Request::Start | Request::Stop | Request::Reload)
        && let Some(invalid) = params::outdated(env)
    {
        log::warn!("{invalid}");
    }
    if request == Request::Start
        && let Err(invalid) = validate::data_can_be_moved(context.data_dir())
    {
        log::warn!("{invalid}");
    }
    if request == Request::Start
        && let Err(invalid) = validate::certificates(&context).and_then(|()| validate::wait_for_address(&context))
    {
        return refuse(&invalid);
    }
    if request == Request::Start {
        validate::warn_of_secrets(&context);
    }
    if request == Request::Reload {
        act::reload(&context);
    }
    let ended = rounds::run(&context, request);
    if ended.all_well && request == Request::Monitor {
        recent_monitor::keep(env, ended.answered.code);
    }
    ended.answered
}

/// Makes the directory for events at a probe, which precedes every start on a node. On some distributions, Pacemaker's user, which runs the
/// alert agents, cannot make the directory.
fn make_room_for_events(request: Request) {
    if request == Request::Probe {
        isolated("events", || {
            if let Err(error) = events::make_directory(Path::new(events::DIRECTORY)) {
                log::debug!("{error}");
            }
        });
    }
}

/// Returns the durations that were measured on this machine since its boot, and the deadline of an action that Pacemaker ends after
/// `timeout`.
fn paced(env: &Env, timeout: Duration, request: Request) -> (Pace, Deadline) {
    let path = state_file::pace_path(&env.volatile_dir(), env.resource());
    let pace = Pace::read(&path);
    let deadline = Deadline::after(actions::budget(timeout, pace.answer_takes()));
    let pace = pace.ending(deadline).kept_at(&path);
    (if request == Request::Probe { pace.of_a_probe() } else { pace }, deadline)
}

/// Collects the context of an action. A start cannot decide anything without the pod manifest, so it waits until OpenShift has written the
/// manifest. Other actions use the copy from which the container was made.
fn context(
    env: &Env,
    params: Params,
    programs: &Programs,
    deadline: Deadline,
    request: Request,
) -> Result<Context, Invalid> {
    if request != Request::Start {
        return Context::new(env, params, programs, deadline, Manifests::CurrentOrSaved);
    }
    let may_appear = matches!(&params.source, Source::Manifest { path, .. } if deployment::is_openshift(path));
    let mut is_news = true;
    loop {
        match Context::new(env, params.clone(), programs, deadline, Manifests::Current) {
            Err(invalid) if invalid.code == Code::Generic && may_appear && deadline.left() > START_NEEDS => {
                if std::mem::take(&mut is_news) {
                    log::info!("start: waiting: {invalid}");
                }
                deadline.sleep(LOOK_FOR_THE_MANIFEST_EVERY);
            }
            context => return context,
        }
    }
}

fn refuse(invalid: &Invalid) -> Answered {
    log::error!("{invalid}");
    Answered::failed(invalid.code, &invalid.sentence)
}

/// Performs a request although the parameters are wrong. Even with wrong parameters, a stop must stop etcd, and a probe must not fail if
/// nothing runs.
fn without_parameters(env: &Env, programs: &Programs, request: Request, invalid: &Invalid) -> Answered {
    let name = params::container_name(env);
    match request {
        // A fault that can be repaired at any moment, such as a missing manifest, is no fault of a running etcd.
        Request::Monitor if invalid.code == Code::Generic => match podman::inspect(programs, &name) {
            Ok(Some(container)) if container.state.running => {
                log::warn!("{invalid}");
                Code::Success.into()
            }
            Ok(_) => Code::NotRunning.into(),
            Err(_) => refuse(invalid),
        },
        Request::Stop => match unconfigured::stop(env, programs) {
            Ok(()) => {
                unconfigured::give_up_the_claim(env, programs);
                Code::Success.into()
            }
            Err(why) => {
                log::error!("{invalid}; {why}");
                Answered::failed(Code::Generic, why)
            }
        },
        Request::Probe => match unconfigured::is_gone(env, programs) {
            Ok(true) => Code::NotRunning.into(),
            Ok(false) | Err(_) => refuse(invalid),
        },
        Request::Start
        | Request::Monitor
        | Request::Notify
        | Request::Promote
        | Request::Demote
        | Request::Reload
        | Request::LoneBoot => refuse(invalid),
    }
}
