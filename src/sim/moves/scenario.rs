//! Scenario files. The first lines contain the initial state and the survivors' recovery, each further line a move.
//! Blank lines and `#` comments are left out.

use super::kinds::{self, Move};
use crate::sim::Bounds;
use crate::sim::model::initial_states::Beginning;
use crate::sim::model::world::NAMES;

/// A run of the model: an initial state, and the moves from there.
#[derive(Clone, Debug)]
pub struct Trace {
    pub begin: Beginning,
    /// True if survivors continue in this run without a restart of etcd (`recovery=standin`).
    pub vote_proxies: bool,
    /// The number of terms that may begin in a log after its first one ([`crate::sim::bounds::Bounds::terms`]).
    pub terms: u8,
    /// The node that is configured to lead ([`crate::sim::bounds::Bounds::primary`]).
    pub primary: Option<u8>,
    /// True if the primary's history is kept when the nodes hold different ones ([`crate::sim::bounds::Bounds::two_histories`]).
    pub two_histories: bool,
    /// True if a sole voter may boot without its peer ([`crate::sim::bounds::Bounds::lone_boot`]).
    pub lone_boot: bool,
    pub moves: Vec<Move>,
}

impl Trace {
    /// Returns a run without moves and without options: survivors restart etcd, and no node is configured to lead.
    pub fn of(begin: Beginning) -> Self {
        let (vote_proxies, two_histories, lone_boot) = (false, false, false);
        Self { begin, vote_proxies, terms: 0, primary: None, two_histories, lone_boot, moves: Vec::new() }
    }

    /// Sets the fields of `bounds` that this run needs.
    pub fn set_bounds(&self, bounds: &mut Bounds) {
        (bounds.vote_proxies, bounds.terms) = (self.vote_proxies, self.terms);
        (bounds.primary, bounds.two_histories) = (self.primary, self.two_histories);
        bounds.lone_boot = self.lone_boot;
        // No node boots alone where the CIB has a third voter.
        bounds.third_voter &=
            !self.lone_boot || matches!(self.begin, Beginning::ThirdVoter | Beginning::ThirdVoterPromoted);
    }
}

/// The error about a line of a scenario file that is not a move. `instead` is what to type in its place.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: '{text}' is no move; type {instead}")]
pub struct Error {
    line: usize,
    text: String,
    instead: String,
}

/// The line of a scenario file that lets survivors continue without a restart of etcd. Without this line, they restart etcd.
const VOTE_PROXIES: &str = "recovery is standin";

/// The beginning of the line that sets how many terms may begin in a log. The number follows it.
const TERMS: &str = "terms that begin: ";

/// The beginning of the line that names the node that is configured to lead. The node's name follows it.
const PRIMARY: &str = "the primary is ";

/// The line of a scenario file that keeps the primary's history when the nodes hold different ones.
const TWO_HISTORIES: &str = "the primary's history is kept";

/// The line of a scenario file that lets a sole voter boot without its peer.
const LONE_BOOT: &str = "a sole voter boots alone";

/// Reads the text of a scenario file.
pub fn parse(text: &str) -> Result<Trace, Error> {
    let known = kinds::all();
    let mut trace = Trace::of(Beginning::Voters);
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    for (number, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
        if let Some(begin) = Beginning::ALL.into_iter().find(|begin| begin.text() == line) {
            trace.begin = begin;
            continue;
        }
        if line == TWO_HISTORIES {
            trace.two_histories = true;
            continue;
        }
        if line == LONE_BOOT {
            trace.lone_boot = true;
            continue;
        }
        if line == VOTE_PROXIES {
            trace.vote_proxies = true;
            continue;
        }
        if let Some(terms) = line.strip_prefix(TERMS).and_then(|terms| terms.parse().ok()) {
            trace.terms = terms;
            continue;
        }
        if let Some(node) = line.strip_prefix(PRIMARY).and_then(|name| NAMES.iter().position(|known| *known == name)) {
            trace.primary = u8::try_from(node).ok();
            continue;
        }
        let found = known.iter().find(|what| what.text() == line);
        trace.moves.push(*found.ok_or_else(|| unknown(number + 1, line, &known))?);
    }
    Ok(trace)
}

fn unknown(line: usize, text: &str, known: &[Move]) -> Error {
    let first = text.split(' ').next().unwrap_or_default();
    let alike: Vec<String> = known
        .iter()
        .map(|what| format!("'{}'", what.text()))
        .filter(|what| what.starts_with(&format!("'{first} ")))
        .take(6)
        .collect();
    let instead = if alike.is_empty() {
        "a line that begins with client, etcd, power, agent, net, cib, pacemaker, users, guest, disk, bmc, lone, another or operator".to_owned()
    } else {
        alike.join(" or ")
    };
    Error { line, text: text.to_owned(), instead }
}

/// Returns the text of a scenario file.
pub fn format(trace: &Trace) -> String {
    let recovery = if trace.vote_proxies { format!("{VOTE_PROXIES}\n") } else { String::new() };
    let terms = if trace.terms > 0 { format!("{TERMS}{}\n", trace.terms) } else { String::new() };
    let primary = trace.primary.map(|node| format!("{PRIMARY}{}\n", NAMES[usize::from(node)])).unwrap_or_default();
    let kept = if trace.two_histories { format!("{TWO_HISTORIES}\n") } else { String::new() };
    let alone = if trace.lone_boot { format!("{LONE_BOOT}\n") } else { String::new() };
    let begin = format!("{}\n{recovery}{terms}{primary}{kept}{alone}", trace.begin.text());
    trace.moves.iter().fold(begin, |text, what| text + &what.text() + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_move_reads_back_and_no_two_are_written_alike() {
        for begin in Beginning::ALL {
            for (vote_proxies, terms, primary) in [(false, 0, None), (true, 0, Some(1)), (false, 2, None)] {
                let (two_histories, lone_boot) = (primary.is_some(), terms > 0);
                let moves = kinds::all();
                let trace = Trace { begin, vote_proxies, terms, primary, two_histories, lone_boot, moves };
                let read = parse(&format(&trace)).unwrap();
                let header =
                    |of: &Trace| (of.begin, of.vote_proxies, of.terms, of.primary, of.two_histories, of.lone_boot);
                assert_eq!((header(&read), read.moves), (header(&trace), trace.moves));
            }
        }
    }

    #[test]
    fn a_line_that_is_no_move_says_what_to_type() {
        let error = parse("power of node3 is cut").unwrap_err().to_string();
        assert!(error.starts_with("line 1:") && error.contains("'power of node1 is cut'"), "{error}");
    }
}
