//! The parameters about a node that boots without its peer. What is wrong with them fails a check of the parameters alone: a running etcd works
//! as if none of them were there.

use super::table::{LONE_BOOT, LONE_BOOT_WAIT, NEVER, SOLE_VOTER};
use crate::adapters::options::standard::Standard;

/// Parameters about a lone boot: whether a sole voter may have quorum without its peer, and how long the peer has to be off before that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoneBoot {
    pub is_wanted: bool,
    pub wait_s: u64,
}

/// Reads the parameters about a lone boot by their names. A faulty one counts as unset, and with a faulty wait no node boots alone.
pub fn read<'a>(parameter: impl Fn(&str) -> Option<&'a str>) -> LoneBoot {
    let wait = parameter(LONE_BOOT_WAIT.name).or(LONE_BOOT_WAIT.default).and_then(|text| parsed(text).ok());
    let is_wanted = parameter(LONE_BOOT.name) == Some(SOLE_VOTER) && wait.is_some();
    LoneBoot { is_wanted, wait_s: wait.unwrap_or_default() }
}

/// Returns the first fault of the parameters about a lone boot, as a sentence with what to type instead; `None` if there is none.
pub fn fault<'a>(parameter: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    match parameter(LONE_BOOT.name) {
        None | Some(NEVER | SOLE_VOTER) => parsed(parameter(LONE_BOOT_WAIT.name)?).err(),
        Some(word) => Some(format!("lone_boot={word} is neither never nor sole_voter")),
    }
}

fn parsed(text: &str) -> Result<u64, String> {
    LONE_BOOT_WAIT.parse(Standard::ResourceAgent, text)
}
