//! The parameters about the node that is to lead. A fault in them only fails a check of the parameters. An etcd that
//! runs behaves as if the faulty ones were not set.

use super::NodeIp;
use super::table::{
    CONFIGURED_PRIMARY, FAILBACK_DELAY, FAILBACK_TO_PRIMARY, KEEP_PRIMARYS, PARTITION_PATIENCE, REACH_ATTRIBUTE,
    REFUSE, TWO_HISTORIES,
};
use crate::adapters::options::OptionRow;
use crate::adapters::options::standard::Standard;
use crate::adapters::options::value::OptionValue;

/// Least value of `partition_patience` in seconds. It is longer than an election and the interval of the monitor that notices a missing
/// leader.
const LEAST_PATIENCE_S: u64 = 10;

/// Parameters that name the node that is to lead, and that control when leadership moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leading {
    pub primary: Option<String>,
    /// True if leadership returns to the primary after a failure.
    pub failback: bool,
    /// True if the history of the primary's data continues when the two nodes' data have diverged (`two_histories=primary`).
    pub keeps_its_history: bool,
    pub delay_s: u64,
    /// Seconds without a leader after which the other node yields to the primary; 0 means never.
    pub patience_s: u64,
    /// Name of the node attribute that is 0 if users cannot reach a node; `None` if no parameter names one.
    pub reach: Option<String>,
}

impl Leading {
    /// Returns whether any parameter makes the agent move leadership.
    pub fn is_wanted(&self) -> bool {
        self.primary.is_some() || self.reach.is_some()
    }
}

/// Reads the parameters about leadership by their names. A parameter with a fault counts as unset.
pub fn read<'a>(parameter: impl Fn(&str) -> Option<&'a str>, nodes: &[NodeIp]) -> Leading {
    let primary = parameter(CONFIGURED_PRIMARY.name).filter(|name| nodes.iter().any(|node| node.name == *name));
    let failback = parameter(FAILBACK_TO_PRIMARY.name).and_then(|text| parsed::<bool>(&FAILBACK_TO_PRIMARY, text).ok());
    Leading {
        primary: primary.map(str::to_owned),
        failback: primary.is_some() && failback.unwrap_or(true),
        keeps_its_history: primary.is_some() && parameter(TWO_HISTORIES.name) == Some(KEEP_PRIMARYS),
        delay_s: seconds(&FAILBACK_DELAY, parameter(FAILBACK_DELAY.name)),
        patience_s: patience(parameter(PARTITION_PATIENCE.name)),
        reach: parameter(REACH_ATTRIBUTE.name).filter(|name| is_a_name(name)).map(str::to_owned),
    }
}

/// Returns the first fault of the parameters about leadership, as a sentence with what to type instead; `None` if there is none.
pub fn fault<'a>(parameter: impl Fn(&str) -> Option<&'a str>, nodes: &[NodeIp], resource: &str) -> Option<String> {
    let (primary, wanted) = (parameter(CONFIGURED_PRIMARY.name), parameter(FAILBACK_TO_PRIMARY.name));
    if let Some(primary) = primary.filter(|name| !nodes.iter().any(|node| node.name == *name)) {
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        return Some(format!("configured_primary={primary} is none of the nodes: write {}", names.join(" or ")));
    }
    let failback = match wanted.map(|text| parsed::<bool>(&FAILBACK_TO_PRIMARY, text)) {
        Some(Err(sentence)) => return Some(sentence),
        Some(Ok(failback)) => failback,
        None => false,
    };
    if failback && primary.is_none() {
        return Some(format!(
            "failback_to_primary=1 without configured_primary: 'pcs resource update {resource} configured_primary=NODE'"
        ));
    }
    if let Some(sentence) = parameter(TWO_HISTORIES.name).and_then(|word| no_history(word, primary, resource)) {
        return Some(sentence);
    }
    if let Some(Err(sentence)) = parameter(FAILBACK_DELAY.name).map(|text| parsed::<u64>(&FAILBACK_DELAY, text)) {
        return Some(sentence);
    }
    if let Some(Err(sentence)) = parameter(PARTITION_PATIENCE.name).map(parsed_patience) {
        return Some(sentence);
    }
    let reach = parameter(REACH_ATTRIBUTE.name).filter(|name| !is_a_name(name))?;
    Some(format!(
        "reach_attribute={reach} names no node attribute: write letters, digits, '-', '_' and '.', such as pingd"
    ))
}

/// Returns the number of seconds in `text`, or the row's default if it is missing or faulty.
fn seconds(row: &OptionRow, text: Option<&str>) -> u64 {
    let read = |text: Option<&str>| text.and_then(|text| parsed::<u64>(row, text).ok());
    read(text).or_else(|| read(row.default)).unwrap_or_default()
}

fn patience(text: Option<&str>) -> u64 {
    seconds(&PARTITION_PATIENCE, text.filter(|text| parsed_patience(text).is_ok()))
}

/// Parses the value of `partition_patience`, which is 0 or at least [`LEAST_PATIENCE_S`]. The table of parameters has only one range for
/// it, and cannot exclude the numbers in between.
fn parsed_patience(text: &str) -> Result<u64, String> {
    match parsed::<u64>(&PARTITION_PATIENCE, text)? {
        seconds if (1..LEAST_PATIENCE_S).contains(&seconds) => {
            Err(format!("partition_patience={text} is neither 0 nor a whole number from {LEAST_PATIENCE_S} to 600"))
        }
        seconds => Ok(seconds),
    }
}

/// Returns the fault of the parameter `two_histories`, as a sentence; `None` if there is none.
fn no_history(word: &str, primary: Option<&str>, resource: &str) -> Option<String> {
    match word {
        KEEP_PRIMARYS if primary.is_none() => Some(format!(
            "two_histories=primary without configured_primary: 'pcs resource update {resource} configured_primary=NODE'"
        )),
        REFUSE | KEEP_PRIMARYS => None,
        word => Some(format!("two_histories={word} is neither refuse nor primary")),
    }
}

fn parsed<T: TryFrom<OptionValue>>(row: &OptionRow, text: &str) -> Result<T, String> {
    row.parse(Standard::ResourceAgent, text)
}

/// Returns whether every release of Pacemaker accepts an attribute with this name.
fn is_a_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}
