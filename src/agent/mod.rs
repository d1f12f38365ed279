//! `podman-etcd`, the OCF resource agent: observe, decide, act, until the action is answered.

mod contract;
pub mod metadata;
mod rounds;
mod unconfigured;
mod validate;

use std::ffi::OsString;
use std::time::Duration;

use log::LevelFilter;

use crate::act;
use crate::clock::Deadline;
use crate::command::Programs;
use crate::decide::Request;
use crate::logging;
use crate::ocf::env::Env;
use crate::ocf::exit::{Code, print_reason};
use crate::output::{complain, say};
use crate::podman;
use crate::resource::actions;
use crate::resource::context::Context;
use crate::resource::deployment::{self, Manifests};
use crate::resource::params::{self, Invalid, Params, Source};

const USAGE: &str = "usage: podman-etcd {start|stop|monitor|notify|promote|demote|reload-agent|validate-all|meta-data}";

/// How long a check of the parameters takes at most.
const VALIDATE_TAKES: Duration = Duration::from_secs(20);
/// What a start needs of its time once the manifest is there.
const START_NEEDS: Duration = Duration::from_secs(60);
const LOOK_FOR_THE_MANIFEST_EVERY: Duration = Duration::from_secs(1);

/// Runs the agent; `args` follow the program's name. The first is the action, others are ignored as OCF has it.
pub fn run(args: &[OsString]) -> u8 {
    let action = args.first().map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default();
    if matches!(action.as_str(), "meta-data" | "metadata") {
        return printed(metadata::xml().trim_end());
    }
    if matches!(action.as_str(), "usage" | "help" | "--help" | "-h") {
        return printed(USAGE);
    }
    let env = Env::from_process();
    init_logging(&env);
    let code = match action.as_str() {
        "validate-all" => validate_all(&env),
        "reload-agent" => reload(&env),
        "start" => answer(&env, Request::Start),
        "stop" => answer(&env, Request::Stop),
        "monitor" | "status" => answer(&env, if env.is_recurring() { Request::Monitor } else { Request::Probe }),
        "notify" => answer(&env, Request::Notify),
        "promote" => answer(&env, Request::Promote),
        "demote" => answer(&env, Request::Demote),
        _ => {
            complain(USAGE);
            print_reason(&format!("'{action}' is no action of this agent"));
            Code::Unimplemented
        }
    };
    code.status()
}

fn printed(text: &str) -> u8 {
    say(text).map_or(Code::Generic, |()| Code::Success).status()
}

fn init_logging(env: &Env) {
    let level = if env.debug() { LevelFilter::Debug } else { LevelFilter::Info };
    logging::init(logging::Settings {
        tag: format!("podman-etcd({})", env.resource()),
        stderr: level,
        syslog: level,
        file: env.log_file(),
    });
}

fn validate_all(env: &Env) -> Code {
    let checked = params::parse(env).and_then(|params| {
        let deadline = Deadline::after(VALIDATE_TAKES);
        let context = Context::new(env, params, &Programs::default(), deadline, Manifests::Current)?;
        validate::validate(&context)
    });
    match checked {
        Ok(()) => Code::Success,
        Err(invalid) => refuse(&invalid),
    }
}

fn answer(env: &Env, request: Request) -> Code {
    let timeout = env.timeout().unwrap_or_else(|| actions::advertised_timeout(request));
    let deadline = Deadline::after(actions::budget(timeout));
    let programs = Programs::default().until(deadline);
    let context = params::parse(env).and_then(|params| context(env, params, &programs, deadline, request));
    let context = match context {
        Ok(context) => Context { acts: true, is_monitor: request == Request::Monitor, ..context },
        Err(invalid) => return without_parameters(env, &programs, request, &invalid),
    };
    contract::say(&context, request);
    if request == Request::Start
        && let Err(invalid) = validate::certificates(&context).and_then(|()| validate::wait_for_address(&context))
    {
        return refuse(&invalid);
    }
    rounds::run(&context, request)
}

/// A start waits for a manifest that OpenShift has yet to write: nothing can be decided before it is there. Everybody
/// else makes do with the copy that the container was made from.
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

fn reload(env: &Env) -> Code {
    let deadline = Deadline::after(env.timeout().unwrap_or(VALIDATE_TAKES));
    let context = params::parse(env)
        .and_then(|params| Context::new(env, params, &Programs::default(), deadline, Manifests::CurrentOrSaved));
    match context.map(|context| act::reload(&context)) {
        Ok(Ok(())) => Code::Success,
        Ok(Err(error)) => {
            log::error!("{error}");
            print_reason(&error.to_string());
            Code::Generic
        }
        Err(invalid) => refuse(&invalid),
    }
}

fn refuse(invalid: &Invalid) -> Code {
    log::error!("{invalid}");
    print_reason(&invalid.sentence);
    invalid.code
}

/// A wrong parameter must not keep etcd from being stopped, nor make a probe fail where nothing runs.
fn without_parameters(env: &Env, programs: &Programs, request: Request, invalid: &Invalid) -> Code {
    let name = params::container_name(env);
    match request {
        // What can be put right at any moment, such as a manifest that is gone, is no fault of an etcd that runs.
        Request::Monitor if invalid.code == Code::Generic => match podman::inspect(programs, &name) {
            Ok(Some(container)) if container.state.running => {
                log::warn!("{invalid}");
                Code::Success
            }
            Ok(_) => Code::NotRunning,
            Err(_) => refuse(invalid),
        },
        Request::Stop => match unconfigured::stop(env, programs) {
            Ok(()) => Code::Success,
            Err(why) => {
                log::error!("{invalid}; {why}");
                print_reason(&why);
                Code::Generic
            }
        },
        Request::Probe => match unconfigured::is_gone(env, programs) {
            Ok(true) => Code::NotRunning,
            Ok(false) | Err(_) => refuse(invalid),
        },
        Request::Start | Request::Monitor | Request::Notify | Request::Promote | Request::Demote => refuse(invalid),
    }
}
