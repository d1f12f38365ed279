//! `--may-stop NODE`: whether it may be stopped or rebooted now without a pause in the writes.

use serde::Serialize;

use crate::admin::exit::Exit;
use crate::admin::report::Report;
use crate::decide::may_stop::{Answer, Hindrance, may_stop};
use crate::operate::cluster::Cluster;
use crate::operate::failure::Failure;
use crate::operate::health::{self, view};

#[derive(Debug, Serialize)]
pub(super) struct Answered {
    node: String,
    may_stop: Option<bool>,
    because: Vec<String>,
    /// The command to type where it may not be stopped now.
    instead: Option<String>,
}

pub(super) fn answer(cluster: &Cluster, node: &str) -> Result<Answered, Failure> {
    let names = view::names(cluster);
    if !names.iter().any(|name| name == node) {
        return Err(Failure(format!("no node is called '{node}'; there are: {}", names.join(", "))));
    }
    let (may_stop, because, instead) = match may_stop(&health::outlook(cluster, node)) {
        Answer::Yes => (Some(true), Vec::new(), None),
        Answer::No(hindrances) => {
            let instead = hindrances.first().map(Hindrance::instead);
            (Some(false), hindrances.iter().map(ToString::to_string).collect(), instead)
        }
        Answer::Unknown(doubts) => (None, doubts.iter().map(ToString::to_string).collect(), None),
    };
    Ok(Answered { node: node.to_owned(), may_stop, because, instead })
}

impl Report for Answered {
    fn text(&self) -> String {
        let node = &self.node;
        let answer = match self.may_stop {
            Some(true) => return format!("yes: {node} may be stopped or rebooted now, and the writes go on"),
            Some(false) => "no",
            None => "not known",
        };
        let because = self.because.iter().map(|why| format!("{answer}: {why}"));
        let instead = self.instead.iter().map(|instead| format!("instead: {instead}"));
        because.chain(instead).collect::<Vec<_>>().join("\n")
    }

    fn exit(&self) -> Exit {
        match self.may_stop {
            Some(true) => Exit::Done,
            Some(false) => Exit::Degraded,
            None => Exit::Failed,
        }
    }
}
