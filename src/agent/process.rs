//! The agent as a process: its action, environment, log, exit code and exit reason.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use log::LevelFilter;

use super::resource::actions;
use crate::adapters::command::Programs;
use crate::adapters::ocf::env::Env;
use crate::adapters::ocf::exit::{Answered, Code, print_reason};
use crate::decide::Request;
use crate::os::isolated::caught;
use crate::os::output::{complain, say};
use crate::os::{clock, logging};
use crate::records::decision_log;

const USAGE: &str = "usage: podman-etcd {start|stop|monitor|notify|promote|demote|reload-agent|validate-all|meta-data}";
/// Part of an action's time that is reserved for reporting that the action hangs. If the time is short, only an eighth of it is reserved.
const FOR_THE_END: Duration = Duration::from_secs(1);

/// Runs the resource agent. `args` are the arguments after the program's name. The first one is the action; OCF requires that further ones
/// are ignored.
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
    end_before(time_of(&action, &env));
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

/// Returns the time-out that Pacemaker gives to `action`, or the action's default.
fn time_of(action: &str, env: &Env) -> Duration {
    let action = if action == "status" { "monitor" } else { action };
    let advertised = || actions::ACTIONS.iter().find(|known| known.name == action).map(|known| known.timeout_s);
    env.timeout().unwrap_or_else(|| Duration::from_secs(advertised().unwrap_or(actions::PACEMAKERS_DEFAULT_S).into()))
}

/// Ends the process with a failure and a reason, shortly before Pacemaker would kill it without a reason.
///
/// Every query has a time-out, and the action has a deadline. This function is for operations without a limit: a file on a dead file
/// server, or a log that accepts no more lines.
#[expect(clippy::exit, reason = "the other threads hang in something that cannot be interrupted")]
fn end_before(timeout: Duration) {
    let ends = timeout.saturating_sub(FOR_THE_END.min(timeout / 8));
    std::thread::spawn(move || {
        clock::sleep(ends);
        // A separate thread prints it, and not through the log, because stderr may be what hangs.
        std::thread::spawn(move || print_reason(&hangs(ends)));
        clock::sleep(FOR_THE_END / 10);
        std::process::exit(Code::Generic.status().into());
    });
}

fn hangs(after: Duration) -> String {
    format!(
        "something on this machine hangs: a file, a pipe or the log: the action ended itself after {} s",
        after.as_secs()
    )
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::ocf::exit::as_kept;

    #[test]
    fn the_reason_of_what_hangs_is_kept_whole() {
        let reason = hangs(Duration::from_secs(599));
        assert_eq!(as_kept(&reason), reason);
    }
}
