//! The parameters about a node that boots without its peer. What is wrong with them fails a check of the parameters alone: a running etcd works
//! as if none of them were there.

use super::table::{LONE_BOOT, LONE_BOOT_WAIT, NEVER, SOLE_VOTER};
use crate::adapters::options::standard::Standard;

/// Parameters about a boot without the peer: whether a sole voter may then start, and how long the peer has to be off before that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoneBoot {
    pub is_wanted: bool,
    pub wait_s: u64,
}

/// Reads, by name, the parameters about a boot without the peer. A parameter with a fault counts as unset. If the parameter with the
/// length of the wait has a fault, no node starts without its peer.
pub fn read<'a>(parameter: impl Fn(&str) -> Option<&'a str>) -> LoneBoot {
    let wait = parameter(LONE_BOOT_WAIT.name).or(LONE_BOOT_WAIT.default).and_then(|text| parsed(text).ok());
    let is_wanted = parameter(LONE_BOOT.name) == Some(SOLE_VOTER) && wait.is_some();
    LoneBoot { is_wanted, wait_s: wait.unwrap_or_default() }
}

/// Returns the first fault of the parameters about a boot without the peer, as a sentence with what to type instead; `None` if there is
/// none.
pub fn fault<'a>(parameter: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    match parameter(LONE_BOOT.name) {
        None | Some(NEVER | SOLE_VOTER) => parsed(parameter(LONE_BOOT_WAIT.name)?).err(),
        Some(word) => Some(format!("lone_boot={word} is neither never nor sole_voter")),
    }
}

fn parsed(text: &str) -> Result<u64, String> {
    LONE_BOOT_WAIT.parse(Standard::ResourceAgent, text)
}
