//! The arguments of `systemctl`, and its answers.

use std::sync::Arc;

use super::Answer;
use super::file::Unit;
use super::manager::{Manager, State};
use crate::host::syslog;
use crate::sh::Result;

/// The subcommands of `systemctl` that change nothing.
const ASKING: &[&str] =
    &["is-active", "is-enabled", "is-failed", "is-system-running", "cat", "status", "show", "list-unit-files"];

/// Executes `systemctl` with the arguments `words`.
pub fn answer(manager: &Arc<Manager>, words: &[&str]) -> Answer {
    let (options, mut rest): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
    if rest.is_empty() {
        return Answer::refused(1, "the lab's systemctl needs a word to do\n");
    }
    let verb = rest.remove(0);
    if !ASKING.contains(&verb) {
        syslog::say(manager.node, "systemctl", &words.join(" "));
    }
    match verb {
        "list-unit-files" => list(),
        "daemon-reload" | "reset-failed" => Answer::default(),
        "is-system-running" => Answer::said(0, "running\n"),
        "is-active" => of_each(&rest, 3, |unit| {
            let state = manager.state(&unit.name);
            (state == State::Active, format!("{}\n", state.word()))
        }),
        "is-failed" => of_each(&rest, 1, |unit| {
            let state = manager.state(&unit.name);
            (state == State::Failed, format!("{}\n", state.word()))
        }),
        "is-enabled" => of_each(&rest, 1, |unit| (unit.enabled() != "disabled", format!("{}\n", unit.enabled()))),
        "cat" => of_each(&rest, 1, |unit| (true, format!("# {}\n{}", unit.path.display(), unit.text()))),
        "status" => of_each(&rest, 3, |unit| {
            let state = manager.state(&unit.name);
            let about = unit.value("Unit", "Description").unwrap_or(&unit.name);
            (state == State::Active, format!("{} - {about}\n     Active: {}\n", unit.name, state.word()))
        }),
        "show" => show(manager, &options, &mut rest),
        _ => change(manager, verb, &options, &rest),
    }
}

/// Describes each unit by `tell`, for `systemctl is-active` and alike. The exit code is `bad` if `tell` returns false
/// for a unit.
fn of_each(names: &[&str], bad: i32, tell: impl Fn(&Unit) -> (bool, String)) -> Answer {
    let mut answer = Answer::default();
    for name in names {
        let Some(unit) = Unit::find(name) else {
            answer.code = if bad == 3 { 4 } else { 1 };
            match bad {
                3 => answer.out.push_str("inactive\n"),
                _ => answer
                    .err
                    .push_str(&format!("Failed to get unit file state for {name}: No such file or directory\n")),
            }
            continue;
        };
        let (good, said) = tell(&unit);
        answer.out.push_str(&said);
        if !good {
            answer.code = bad;
        }
    }
    answer
}

fn list() -> Answer {
    let mut said = String::from("UNIT FILE STATE PRESET\n");
    for unit in Unit::all() {
        said.push_str(&format!("{} {} enabled\n", unit.name, unit.enabled()));
    }
    Answer::said(0, said)
}

fn show(manager: &Manager, options: &[&str], rest: &mut Vec<&str>) -> Answer {
    let bare = options.contains(&"--value");
    let mut asked: Vec<String> =
        options.iter().filter_map(|word| word.strip_prefix("--property=")).map(str::to_owned).collect();
    if options.contains(&"-p") || options.contains(&"--property") {
        // The option's value is the next word that does not look like an option.
        let at = rest.iter().position(|word| word.chars().next().is_some_and(char::is_uppercase));
        asked.extend(at.map(|at| rest.remove(at).to_owned()));
    }
    let mut said = String::new();
    for name in rest {
        let unit = Unit::find(name);
        let state = unit.as_ref().map_or(State::Inactive, |unit| manager.state(&unit.name));
        for property in asked.iter().flat_map(|words| words.split(',')) {
            let value = match property {
                "ActiveState" => state.word(),
                "LoadState" => {
                    if unit.is_some() {
                        "loaded"
                    } else {
                        "not-found"
                    }
                }
                "UnitFileState" => unit.as_ref().map_or("", Unit::enabled),
                _ => "",
            };
            said.push_str(&if bare { format!("{value}\n") } else { format!("{property}={value}\n") });
        }
    }
    Answer::said(0, said)
}

fn change(manager: &Arc<Manager>, verb: &str, options: &[&str], names: &[&str]) -> Answer {
    let mut answer = Answer::default();
    for name in names {
        let Some(unit) = Unit::find(name) else {
            let known = if verb == "stop" { "not loaded" } else { "not found" };
            answer.err.push_str(&format!("Failed to {verb} {name}: Unit {name} {known}.\n"));
            answer.code = 5;
            continue;
        };
        match changed(manager, verb, options.contains(&"--now"), &unit) {
            Ok(said) => answer.err.push_str(&said),
            Err(error) => {
                answer.err.push_str(&format!("{error}\n"));
                answer.code = 1;
            }
        }
    }
    answer
}

fn changed(manager: &Arc<Manager>, verb: &str, now: bool, unit: &Unit) -> Result<String> {
    let nothing = String::new;
    match verb {
        "start" => Manager::start(manager, unit).map(|()| nothing()),
        "stop" => {
            Manager::stop(manager, unit);
            Ok(nothing())
        }
        "restart" => {
            Manager::stop(manager, unit);
            Manager::start(manager, unit).map(|()| nothing())
        }
        "try-restart" | "reload" | "reload-or-restart" => match manager.state(&unit.name) {
            State::Active => changed(manager, "restart", now, unit),
            _ => Ok(nothing()),
        },
        "enable" => {
            let said = unit.enable()?;
            if now { Manager::start(manager, unit).map(|()| said) } else { Ok(said) }
        }
        "disable" => {
            let said = unit.disable()?;
            if now {
                Manager::stop(manager, unit);
            }
            Ok(said)
        }
        _ => Err(format!("the lab's systemctl does not know '{verb}'").into()),
    }
}
