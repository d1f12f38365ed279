//! The information that operators, scripts and Prometheus have before and during failures.

mod confined;
mod costs;
mod cut_off;
mod database_full;
mod secrets;
mod states_of_bmcs;
mod states_of_etcd;
mod typed_commands;

use super::needs::Needs;
use super::table::{Scenario, scenario};
use super::{alarm, events_of_a_cut, known_states, operators_day};

/// The scenarios of this folder, in the order in which they run.
pub(super) const SCENARIOS: &[Scenario] = &[
    scenario("known_states", "what 'tandem status' says in each state, and how soon", known_states::run).nightly(),
    scenario("alarm", "etcd raises NOSPACE: it is shown, and the member does not fail", alarm::run),
    scenario(
        "events_of_a_cut",
        "the leader's power is cut: the survivor tells exactly what happened, and a recipient that was down gets it later",
        events_of_a_cut::run,
    ),
    scenario(
        "states_of_etcd",
        "what 'tandem status' says of a learner, a failed start, a node that is lost and one that was fenced",
        states_of_etcd::run,
    )
    .nightly(),
    scenario(
        "states_of_bmcs",
        "what 'tandem status' says of a BMC that refuses, hangs, is gone, is another machine's, says Off of one that lives",
        states_of_bmcs::run,
    )
    .nightly(),
    scenario(
        "collector_confined",
        "the collector with no more than its unit leaves it: it writes, publishes and delivers all the same",
        confined::run,
    )
    .nightly(),
    scenario(
        "knowing_costs_little",
        "the CPU time of a status and of a collection, beside that of 'pcs status xml'",
        costs::cpu_time,
    )
    .nightly(),
    scenario(
        "idle_hour_writes_no_cib",
        "as many collections as in an hour, and nobody does anything: the CIB stays as it is",
        costs::idle_cib,
    )
    .nightly(),
    scenario(
        "fencing_test_cut_off",
        "the power of the node that conducts 'tandem fencing test' goes in the middle of it: two voters come of it",
        cut_off::run,
    )
    .leaves_a_mess()
    .nightly(),
    scenario(
        "database_full",
        "the database reaches its quota: the command that 'tandem status' prints, typed in a shell, has writes taken again",
        database_full::run,
    ).nightly()
    .needs(Needs::NoEtcd)
    .leaves_a_mess(),
    scenario(
        "typed_commands",
        "a state after the other that 'tandem status' names: the command that it prints, typed in a shell, ends it",
        typed_commands::run,
    )
    .nightly(),
    scenario(
        "operators_day",
        "what an operator meets in a day: the sentence on the screen in each state, and the command that follows, as printed",
        operators_day::run,
    )
    .nightly(),
    scenario(
        "no_secret_is_told",
        "secrets in devices, files, a key, a hook and what BMCs send back: none is in what is said, written or gathered",
        secrets::run,
    )
    .leaves_a_mess()
    .nightly(),
];
