//! The result of a setup, for people and for programs.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;

use crate::admin::exit::Exit;
use crate::admin::report::Report;
use crate::operate::setup::drive::{Shown, Standing};

/// The report of `tandem setup`.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    pub(super) node: String,
    pub(super) other: String,
    pub(super) dry_run: bool,
    pub(super) redundant: Option<bool>,
    pub(super) steps: Vec<Shown>,
    pub(super) warnings: Vec<String>,
    pub(super) faults: Vec<String>,
    pub(super) price: Option<String>,
    pub(super) next: Option<String>,
}

impl Told {
    fn has_work(&self) -> bool {
        self.steps.iter().any(|step| !matches!(step.state, Standing::Done | Standing::Made))
    }
}

impl Report for Told {
    fn text(&self) -> String {
        let mut text = String::new();
        for step in &self.steps {
            let _ = writeln!(text, "{:<8} {}", step.state.word(), step.title);
            for difference in &step.differences {
                let _ = writeln!(
                    text,
                    "    {}: {} is there, {} is described",
                    difference.what, difference.there, difference.described
                );
            }
            if let Some(why) = &step.why {
                let _ = writeln!(text, "    {why}");
            }
            // An operator does not type the commands of a step that is done.
            let is_shown = self.dry_run || step.state == Standing::Differs;
            for command in step.commands.iter().filter(|_| is_shown) {
                let _ = writeln!(text, "    {}: {command}", step.on);
            }
        }
        if self.steps.iter().any(|step| step.state == Standing::Differs) {
            text.push_str("\nwhat differs is changed by 'tandem setup --change', or by what is above\n");
        }
        if let Some(price) = self.price.as_ref().filter(|_| self.faults.is_empty()) {
            let _ = writeln!(text, "\n{price}");
        }
        if let Some(next) = self.next.as_ref().filter(|_| self.faults.is_empty()) {
            let _ = writeln!(text, "\nnow {next}");
        }
        text.trim_end().to_owned()
    }

    fn complaint(&self) -> Option<Cow<'_, str>> {
        (!self.faults.is_empty()).then(|| Cow::Owned(self.faults.join("\ntandem: ")))
    }

    fn exit(&self) -> Exit {
        if self.dry_run && self.has_work() { Exit::Degraded } else { Exit::Done }
    }
}

/// The report of `tandem setup join`.
#[derive(Debug, Serialize)]
pub(super) struct Joined {
    pub(super) node: String,
    pub(super) from: String,
    #[serde(rename = "joined")]
    pub(super) is_in: bool,
    pub(super) text: String,
}

impl Report for Joined {
    fn text(&self) -> String {
        if self.is_in { format!("{} is in: {}", self.node, self.text) } else { String::new() }
    }

    fn complaint(&self) -> Option<Cow<'_, str>> {
        let why = || Cow::Owned(format!("{} ended without two voters: {}", self.from, self.text));
        (!self.is_in).then(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;
    use crate::operate::setup::step::Difference;

    fn step(id: &str, state: Standing) -> Shown {
        Shown {
            id: id.to_owned(),
            title: format!("the step {id}"),
            on: "node1".to_owned(),
            state,
            commands: Vec::new(),
            differences: Vec::new(),
            why: None,
        }
    }

    fn told() -> Told {
        let difference = Difference {
            what: "fence-node1: pcmk_delay_base".to_owned(),
            there: "5s".to_owned(),
            described: "10s".to_owned(),
        };
        let command = |words: &str| vec![words.to_owned()];
        Told {
            node: "node1".to_owned(),
            other: "node2".to_owned(),
            dry_run: true,
            redundant: None,
            steps: vec![
                step("certificates-node1", Standing::Done),
                Shown { commands: command("podman pull etcd:v3.5"), ..step("image-node1", Standing::ToDo) },
                Shown {
                    commands: command("pcs stonith update fence-node1 pcmk_delay_base=10s"),
                    differences: vec![difference],
                    ..step("fence-node1", Standing::Differs)
                },
            ],
            warnings: vec!["node1: a slow disk".to_owned()],
            faults: Vec::new(),
            price: Some("node1 wins a split".to_owned()),
            next: Some("tandem setup".to_owned()),
        }
    }

    #[test]
    fn a_dry_run_is_shown_in_both_forms() {
        let told = told();
        assert_eq!((told.exit(), told.complaint()), (Exit::Degraded, None));
        golden::compare("setup", &told);
    }

    #[test]
    fn a_dry_run_with_nothing_to_do_is_well_and_so_is_a_run_that_left_what_differs() {
        let mut told = told();
        told.steps.truncate(1);
        assert_eq!(told.exit(), Exit::Done);
        told.dry_run = false;
        told.steps.push(step("fence-node1", Standing::Differs));
        assert_eq!(told.exit(), Exit::Done);
        assert!(told.text().contains("--change"));
        told.faults = vec!["one".to_owned(), "two".to_owned()];
        assert_eq!(told.complaint().as_deref(), Some("one\ntandem: two"));
    }

    #[test]
    fn who_joined_is_told_what_became_of_it() {
        let mut joined =
            Joined { node: "node2".to_owned(), from: "node1".to_owned(), is_in: true, text: "two voters".to_owned() };
        assert!(joined.complaint().is_none());
        golden::compare("setup-join", &joined);
        joined.is_in = false;
        assert_eq!(joined.complaint().as_deref(), Some("node1 ended without two voters: two voters"));
    }
}
