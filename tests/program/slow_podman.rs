//! A slow podman: the agent learns its speed, and does not end a running call. The set-up is that of `killed_agent`.
//!
//! Needs root.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::time::Instant;

use crate::killed_agent::{
    PODMAN, STAGE, agent, await_asked, etcd_lives, in_namespaces, kill_group, position_of, script, set_the_stage, told,
};

/// The number of seconds for which the agent waits for an answer of podman if it considers the machine fast.
const GIVEN_UP_AFTER_S: u64 = 8;

/// The time that the slow podman of the test takes to answer, in seconds. It is longer than the agent waits at first.
const SLOW_S: u64 = 9;

/// The time that the agent and a busy machine may take in addition to podman's time, in seconds. It is far below the
/// action's time-out.
const BESIDES_S: u64 = 6;

/// The time that the slow podman takes to start the container, in seconds. It is longer than the agent waits for an earlier
/// action.
const LAUNCH_S: u64 = 14;

#[test]
fn a_podman_that_is_slow_to_answer_is_waited_for_the_next_time() {
    in_namespaces(module_path!(), "a_podman_that_is_slow_to_answer_is_waited_for_the_next_time", || {
        set_the_stage();
        script("podman", &format!("sleep {SLOW_S}\n{PODMAN}"));
        let probe = || {
            let began = Instant::now();
            (agent("monitor", 25).status().unwrap().code(), began.elapsed().as_secs())
        };
        let after = |podmans_s: u64, took_s| (podmans_s..podmans_s + BESIDES_S).contains(&took_s);
        // The agent does not report stopped as long as it cannot distinguish podman from one that hangs.
        let (code, took_s) = probe();
        assert!(code == Some(1) && after(GIVEN_UP_AFTER_S, took_s), "{code:?} after {took_s} s: {}", told());
        assert!(told().contains(&format!("no answer within {GIVEN_UP_AFTER_S}.0 s")), "{}", told());
        let (code, took_s) = probe();
        assert!(code == Some(7) && after(SLOW_S, took_s), "{code:?} after {took_s} s: {}", told());
        // The speed is known now, so a slow answer does not make the agent give up again.
        assert_eq!(probe().0, Some(7), "{}", told());
    });
}

#[test]
fn a_stop_does_not_end_a_launch_that_takes_as_long_as_launches_do_there() {
    in_namespaces(module_path!(), "a_stop_does_not_end_a_launch_that_takes_as_long_as_launches_do_there", || {
        set_the_stage();
        script("podman", &PODMAN.replace("LAUNCH_TAKES", &LAUNCH_S.to_string()));
        let measured = format!(r#"{{"questions":{{"launch":[{{"answered":{}}}]}}}}"#, LAUNCH_S * 1_000);
        std::fs::create_dir_all(format!("{STAGE}/tmp")).unwrap();
        std::fs::write(format!("{STAGE}/tmp/podman-etcd-etcd-pace.json"), measured).unwrap();
        let start = agent("start", 600).spawn().unwrap();
        await_asked("run --detach");
        kill_group(start);
        assert_eq!(agent("stop", 90).status().unwrap().code(), Some(0), "{}", told());
        assert!(position_of("launched", 0).is_some(), "it was ended in its middle: {}", told());
        assert!(!etcd_lives(), "{}", told());
    });
}
