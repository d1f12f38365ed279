//! The results of a series of power cuts.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Outcome;
use super::draw::{Blow, Draw, Kind};
use crate::judge::report;
use crate::sh::Result;

/// The results of a series of runs, grouped by kind.
#[derive(Default)]
pub(super) struct Summary {
    by_kind: BTreeMap<Kind, Vec<Outcome>>,
    failed_seeds: Vec<u64>,
    /// The runs in which a data dir was swapped, one line each with the failure and the final state.
    endings: Vec<String>,
}

/// Describes the result of one run in one line.
pub(super) fn line(outcome: &Outcome) -> String {
    let given_up =
        if outcome.given_up > 0 { format!(", {} given up by name", outcome.given_up) } else { String::new() };
    let counted = format!(
        "{} acknowledged, {} lost{given_up}, longest gap {:.1} s",
        outcome.acknowledged,
        outcome.lost,
        outcome.gap.as_secs_f64()
    );
    let ending = outcome.ending.as_ref().map(|ending| format!("; {}", ending.words)).unwrap_or_default();
    match &outcome.wrong {
        None => format!("ok: {counted}{ending}"),
        Some(wrong) if outcome.acknowledged == 0 => format!("FAILED: {wrong}{ending}"),
        Some(wrong) => format!("FAILED: {wrong}; {counted}{ending}"),
    }
}

impl Summary {
    pub(super) fn add(&mut self, draw: &Draw, outcome: Outcome) {
        if outcome.wrong.is_some() {
            self.failed_seeds.push(draw.seed);
        }
        if let Blow::Swap(_) = draw.blow {
            let what = format!("  seed {} {}: {}", draw.seed, draw.kind.name(), draw.words());
            self.endings.push(format!("{what}\n      {}", line(&outcome)));
        }
        self.by_kind.entry(draw.kind).or_default().push(outcome);
    }

    pub(super) fn print(&self) {
        println!();
        println!("  kind              runs  failed  acknowledged    lost  given up   gap median      max");
        for (kind, outcomes) in &self.by_kind {
            print_row(kind.name(), &outcomes.iter().collect::<Vec<_>>());
        }
        print_row("all", &self.by_kind.values().flatten().collect::<Vec<_>>());
        println!();
        self.endings.iter().for_each(|ending| println!("{ending}"));
    }

    fn failures(&self) -> Vec<String> {
        let outcomes =
            self.by_kind.iter().flat_map(|(kind, outcomes)| outcomes.iter().map(move |outcome| (kind, outcome)));
        outcomes.filter_map(|(kind, outcome)| Some(report::failure(kind.name(), outcome.wrong.as_deref()?))).collect()
    }

    /// Returns the numbers of runs that passed and that failed, as text.
    pub(super) fn result(&self) -> String {
        let runs: usize = self.by_kind.values().map(Vec::len).sum();
        format!("{} passed, {} failed", runs - self.failed_seeds.len(), self.failed_seeds.len())
    }

    /// Returns the figures of all runs together, as text.
    pub(super) fn figures(&self) -> Vec<String> {
        let all: Vec<&Outcome> = self.by_kind.values().flatten().collect();
        let sum = |count| sum(&all, count);
        let (acknowledged, lost) = (sum(|outcome| outcome.acknowledged), sum(|outcome| outcome.lost));
        let gaps = gaps(&all);
        let (median, longest) = (seconds(gaps.get(gaps.len() / 2)), seconds(gaps.last()));
        vec![
            format!(
                "{acknowledged} writes acknowledged, {lost} lost, {} given up by name",
                sum(|outcome| outcome.given_up)
            ),
            format!("longest gap {median} in the median run, {longest} in the worst"),
        ]
    }

    /// Returns an error if a run failed. It lists the seeds that repeat the failed runs.
    pub(super) fn verdict(&self) -> Result<()> {
        let runs: usize = self.by_kind.values().map(Vec::len).sum();
        let failed = self.failed_seeds.len();
        report::count(runs - failed, &self.failures());
        println!("{}", self.result());
        if failed == 0 {
            return Ok(());
        }
        let outcomes = self.by_kind.values().flatten();
        let lost: usize = outcomes.map(|outcome| outcome.lost).sum();
        let seeds: Vec<String> = self.failed_seeds.iter().map(u64::to_string).collect();
        let seeds = seeds.join(", ");
        Err(format!("{failed} runs failed (seeds {seeds}), {lost} acknowledged writes are lost").into())
    }
}

fn sum(outcomes: &[&Outcome], count: fn(&Outcome) -> usize) -> usize {
    outcomes.iter().map(|outcome| count(outcome)).sum()
}

/// Returns the longest gap of each run that wrote, sorted.
fn gaps(outcomes: &[&Outcome]) -> Vec<Duration> {
    let mut gaps: Vec<Duration> =
        outcomes.iter().filter(|outcome| outcome.acknowledged > 0).map(|outcome| outcome.gap).collect();
    gaps.sort_unstable();
    gaps
}

fn seconds(gap: Option<&Duration>) -> String {
    gap.map_or_else(|| "-".to_owned(), |gap| format!("{:.1} s", gap.as_secs_f64()))
}

fn print_row(name: &str, outcomes: &[&Outcome]) {
    let sum = |count| sum(outcomes, count);
    let gaps = gaps(outcomes);
    println!(
        "  {name:<16} {:>5} {:>7} {:>13} {:>7} {:>9} {:>12} {:>8}",
        outcomes.len(),
        outcomes.iter().filter(|outcome| outcome.wrong.is_some()).count(),
        sum(|outcome| outcome.acknowledged),
        sum(|outcome| outcome.lost),
        sum(|outcome| outcome.given_up),
        seconds(gaps.get(gaps.len() / 2)),
        seconds(gaps.last())
    );
}
