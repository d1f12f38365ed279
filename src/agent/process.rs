//! The agent as a process: which action is asked for, its environment, its log, its exit code and exit reason.

use std::ffi::OsString;
use std::path::Path;

use log::LevelFilter;

use crate::adapters::command::Programs;
use crate::adapters::ocf::env::Env;
use crate::adapters::ocf::exit::{Answered, Code, print_reason};
use crate::decide::Request;
use crate::os::isolated::caught;
use crate::os::logging;
use crate::os::output::{complain, say};
use crate::records::decision_log;

const USAGE: &str = "usage: podman-etcd {start|stop|monitor|notify|promote|demote|reload-agent|validate-all|meta-data}";

/// Runs the agent; `args` follow the program's name. The first is the action, others are ignored as OCF has it.
pub fn main(args: &[OsString]) -> u8 {
    let action = args.first().map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default();
    if matches!(action.as_str(), "meta-data" | "metadata") {
        return printed(super::metadata::xml().trim_end());
    }
    if matches!(action.as_str(), "usage" | "help" | "--help" | "-h") {
        return printed(USAGE);
    }
    let env = Env::from_process();
    init_logging(&env);
    let answered = caught(|| answer(&action, &env)).unwrap_or_else(|why| {
        log::error!("{action}: a bug ended this action: {why}");
        Answered::failed(Code::Generic, format!("report this bug, which ended the action: {why}"))
    });
    if let Some(reason) = &answered.reason {
        print_reason(reason);
    }
    answered.code.status()
}

fn answer(action: &str, env: &Env) -> Answered {
    let programs = Programs::default();
    let request = match action {
        "validate-all" => return super::validate_all(env, &programs),
        "start" => Request::Start,
        "stop" => Request::Stop,
        "monitor" | "status" if env.is_recurring() => Request::Monitor,
        "monitor" | "status" => Request::Probe,
        "notify" => Request::Notify,
        "promote" => Request::Promote,
        "demote" => Request::Demote,
        "reload-agent" => Request::Reload,
        _ => {
            complain(USAGE);
            return Answered::failed(Code::Unimplemented, format!("'{action}' is no action of this agent"));
        }
    };
    super::answer(env, &programs, Path::new(decision_log::DIRECTORY), request)
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
