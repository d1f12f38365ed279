//! `tandem fencing test --last`: prints the last test of both nodes, as far as this node or the other one knows it.

use std::fmt::Write as _;

use serde::Serialize;

use super::Arguments;
use crate::adapters::command::Programs;
use crate::admin::exit::Exit;
use crate::admin::report::Report;
use crate::operate::failure::Failure;
use crate::operate::fencing::halves::{Half, Halves};
use crate::operate::fencing::record::Phases;
use crate::operate::fencing::seen;
use crate::operate::fencing::there::There;
use crate::operate::node::must_be_root;

/// The report of the last tests of both halves. It also contains the reason why a test of both halves was interrupted.
#[derive(Serialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    halves: Halves,
    why: Option<String>,
    next: Option<String>,
}

impl Shown {
    pub(super) fn of(halves: Halves, why: Option<String>) -> Self {
        let next = next(&halves);
        Self { halves, why, next }
    }
}

/// Returns the first command that the operator still has to type; `None` if both halves have passed.
fn next(halves: &Halves) -> Option<String> {
    let here = &halves.here;
    let of = |half: &Half| {
        let Half { node, by, .. } = half;
        let on = if by == here { String::new() } else { format!(" on {by}") };
        match half.has_passed() {
            Some(true) => None,
            Some(false) => Some(format!("type{on}: tandem fencing check, then tandem fencing test {node}")),
            None if half.passed_at.is_none() || by == here => Some(format!("type{on}: tandem fencing test {node}")),
            None => Some(format!("type{on}: tandem fencing test --last, or here the same with --ssh {by}")),
        }
    };
    halves.halves.iter().find_map(of)
}

impl Report for Shown {
    fn text(&self) -> String {
        let halves = &self.halves.halves;
        let mut text = String::new();
        if let Some(why) = &self.why {
            let _ = writeln!(text, "NOT PASSED: {why}\n");
        }
        for half in halves {
            let _ = writeln!(text, "{:<12} by {:<12} {}", half.node, half.by, standing(half, &self.halves.here));
        }
        let known: Vec<(&str, Phases)> =
            halves.iter().filter_map(|half| Some((half.node.as_str(), half.test.as_ref()?.seconds))).collect();
        if !known.is_empty() {
            let _ = write!(text, "\n{:<26}", "seconds");
            for (node, _) in &known {
                let _ = write!(text, " {node:>12}");
            }
            for (at, (name, _)) in Phases::default().rows().into_iter().enumerate() {
                let _ = write!(text, "\n{name:<26}");
                for (_, phases) in &known {
                    let time = phases.rows().get(at).and_then(|(_, time)| *time);
                    let time = time.map_or_else(|| "-".to_owned(), |time| format!("{time:.1}"));
                    let _ = write!(text, " {time:>12}");
                }
            }
            text.push('\n');
        }
        if let Some(next) = &self.next {
            let _ = write!(text, "\nnow {next}");
        }
        text.trim_end().to_owned()
    }

    fn exit(&self) -> Exit {
        let passed: Vec<Option<bool>> = self.halves.halves.iter().map(Half::has_passed).collect();
        if self.why.is_some() || passed.contains(&Some(false)) {
            Exit::Worst
        } else if passed.contains(&None) {
            Exit::Degraded
        } else {
            Exit::Done
        }
    }
}

fn standing(half: &Half, here: &str) -> String {
    match (&half.test, &half.passed_at) {
        (Some(test), _) if test.passed => format!("passed at {}", test.at),
        (Some(test), _) => {
            format!("NOT PASSED at {}: {}", test.at, test.why.as_deref().unwrap_or("the reason was not kept"))
        }
        (None, Some(at)) if half.by == here => format!("passed at {at}; its record is not here any more"),
        (None, Some(at)) => format!("last passed at {at}; its record is on {}", half.by),
        (None, None) => "no test is known that passed".to_owned(),
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Shown, Failure> {
    must_be_root()?;
    let cluster = seen::look(arguments.resource.id());
    let halves = Halves::here(&cluster)?;
    let Some(host) = &arguments.ssh else { return Ok(Shown::of(halves, None)) };
    let other = halves.halves.iter().map(|half| half.by.as_str()).find(|by| *by != halves.here);
    let there = There {
        programs: &Programs::default(),
        host,
        name: other.unwrap_or_default(),
        resource: arguments.resource.id(),
    };
    let theirs = there.halves()?;
    Ok(Shown::of(halves.with(&theirs), None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;
    use crate::operate::fencing::record::Record;

    fn record(node: &str, by: &str, passed: bool) -> Record {
        Record {
            at: "2026-11-20T10:00:00Z".to_owned(),
            node: node.to_owned(),
            by: by.to_owned(),
            passed,
            why: (!passed).then(|| format!("{node} was not fenced: the BMC refuses")),
            seconds: Phases { off: Some(4.2), told: passed.then_some(5.6), ..Phases::default() },
            tandem: "0.1.0".to_owned(),
        }
    }

    fn halves(own: Option<bool>, theirs: Option<bool>) -> Halves {
        let half = |node: &str, by: &str, passed: Option<bool>| Half {
            node: node.to_owned(),
            by: by.to_owned(),
            test: passed.map(|passed| record(node, by, passed)),
            passed_at: Some("2026-08-21T09:30:00Z".to_owned()),
        };
        let halves = vec![half("node2", "node1", own), half("node1", "node2", theirs)];
        Halves { here: "node1".to_owned(), halves }
    }

    #[test]
    fn both_halves_are_shown_and_the_worse_one_is_the_exit_code() {
        let shown = |own, theirs| Shown::of(halves(own, theirs), None);
        golden::compare("fencing-test-last", &shown(Some(true), Some(false)));
        for (own, theirs, exit) in [
            (Some(true), Some(true), Exit::Done),
            (Some(true), Some(false), Exit::Worst),
            (Some(false), None, Exit::Worst),
            (Some(true), None, Exit::Degraded),
        ] {
            assert_eq!(shown(own, theirs).exit(), exit);
        }
        assert_eq!(shown(Some(true), Some(true)).next, None);
        let next = shown(Some(true), None).next.unwrap();
        assert_eq!(next, "type on node2: tandem fencing test --last, or here the same with --ssh node2");
        let ended = Shown::of(halves(Some(true), Some(true)), Some("ssh to node2: Permission denied".to_owned()));
        assert_eq!(ended.exit(), Exit::Worst, "an old half of the other node is not the one that was meant");
        assert!(ended.text().starts_with("NOT PASSED: ssh to node2"));
    }

    #[test]
    fn a_node_that_was_never_tested_is_to_be_tested() {
        let mut both = halves(None, None);
        both.halves.iter_mut().for_each(|half| half.passed_at = None);
        let shown = Shown::of(both, None);
        assert_eq!(shown.next.as_deref(), Some("type: tandem fencing test node2"));
        assert!(shown.text().contains("no test is known that passed"), "{}", shown.text());
    }
}
