//! The story of a recovery: it follows the logs, and selects the lines that a reader needs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use crate::host::node::Node;
use crate::host::state::{self, Lab};

/// The steps of a recovery that appear in the logs, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoryStep {
    TokenLost,
    NodeLost,
    FencingAsked,
    BmcAsked,
    Fenced,
    Forced,
}

impl StoryStep {
    fn words(self) -> &'static str {
        match self {
            Self::TokenLost => "corosync hears nothing from it",
            Self::NodeLost => "pacemaker counts it as lost",
            Self::FencingAsked => "fencing asked for",
            Self::BmcAsked => "its BMC is asked",
            Self::Fenced => "fencing confirmed",
            Self::Forced => "new cluster forced",
        }
    }
}

struct Log {
    path: PathBuf,
    offset: u64,
    /// The beginning of a log line that is not complete yet.
    partial: String,
}

/// An observer of a recovery. It reads the lines that the survivor and the BMCs log after its creation.
pub struct Story {
    victim: Node,
    began: Duration,
    logs: Vec<Log>,
    /// The time from the observer's creation until it first saw each step.
    pub steps: BTreeMap<StoryStep, Duration>,
    print: bool,
}

impl Story {
    /// Begins to observe the recovery now. With `print`, every step and every line of the agent is printed as it
    /// appears.
    pub fn begin(lab: &Lab, victim: Node, print: bool) -> Self {
        let open = |path: PathBuf| {
            let offset = std::fs::metadata(&path).map_or(0, |meta| meta.len());
            Log { path, offset, partial: String::new() }
        };
        Self {
            victim,
            began: state::since_epoch(),
            logs: vec![open(lab.messages(victim.other())), open(lab.bmc_log()), open(lab.events())],
            steps: BTreeMap::new(),
            print,
        }
    }

    /// Prints a line with the seconds since the observation began.
    pub fn tell(&self, text: &str) {
        let since = state::since_epoch().saturating_sub(self.began);
        self.tell_at(since, text);
    }

    fn tell_at(&self, since: Duration, text: &str) {
        if self.print {
            println!("{:>8.2} s  {text}", since.as_secs_f64());
        }
    }

    /// Reads the lines that were logged since the last call.
    pub fn follow(&mut self) {
        let mut lines = Vec::new();
        for log in &mut self.logs {
            lines.extend(log.news());
        }
        lines.sort();
        for line in lines {
            self.hear(&line);
        }
    }

    fn hear(&mut self, line: &str) {
        let Some((time, rest)) = line.split_once(' ') else { return };
        let Some((source, text)) = rest.split_once(": ") else { return };
        let since = state::since_stamp(time, self.began);
        if let Some(step) = self.step(source, text)
            && let Entry::Vacant(unseen) = self.steps.entry(step)
        {
            unseen.insert(since);
            self.tell_at(since, &format!("{}  [{}]", step.words(), shorten(text)));
            return;
        }
        let spoken = text.contains("podman-etcd") && !text.contains("pacemaker-") && !text.contains("DEBUG");
        if spoken || source == "lab" || source.starts_with("bmc-") && text.starts_with("POST") {
            self.tell_at(since, &format!("  {source}: {}", shorten(text)));
        }
    }

    /// Returns the step of the recovery that a log line reports. `None` if it reports none.
    fn step(&self, source: &str, text: &str) -> Option<StoryStep> {
        let victim = self.victim.name();
        let has = |words: &[&str]| words.iter().all(|word| text.contains(word));
        if source == format!("bmc-{victim}") {
            return Some(StoryStep::BmcAsked);
        }
        if has(&["corosync", "Token has not been received"]) || has(&["corosync", "A processor failed"]) {
            return Some(StoryStep::TokenLost);
        }
        if has(&["pacemaker-controld", victim, "state is now lost"]) {
            return Some(StoryStep::NodeLost);
        }
        if has(&["pacemaker-fenced", "Requesting peer fencing", victim]) {
            return Some(StoryStep::FencingAsked);
        }
        if has(&["pacemaker-fenced", "Operation", victim, "OK"]) {
            return Some(StoryStep::Fenced);
        }
        if has(&["podman-etcd", "forcing a new cluster"]) {
            return Some(StoryStep::Forced);
        }
        None
    }
}

impl Log {
    fn news(&mut self) -> Vec<String> {
        let mut text = std::mem::take(&mut self.partial);
        if let Ok(mut file) = File::open(&self.path) {
            let mut bytes = Vec::new();
            if file.seek(SeekFrom::Start(self.offset)).is_ok() && file.read_to_end(&mut bytes).is_ok() {
                self.offset += bytes.len() as u64;
                text.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        text.get(whole..).unwrap_or_default().clone_into(&mut self.partial);
        text.get(..whole).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

/// Cuts a log line to the width that is left next to the time.
fn shorten(text: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= 150 {
        return text.to_owned();
    }
    text.chars().take(149).chain(['…']).collect()
}
