//! Places in a Raft log, and the ones that were reached.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::MemberId;

/// Position in a Raft log: term and index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LogPosition {
    pub term: u64,
    pub index: u64,
}

/// Term and index at which one member's data ends, with the member's ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DataEnd {
    pub cluster_id: u64,
    pub member_id: MemberId,
    pub position: LogPosition,
    /// True if etcd had already died when the agent read where its data ends. Between the death and the reading, an operator may
    /// have replaced the data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub found_dead: bool,
}

/// Log position that etcd had reached when it was published. Every voter has all committed entries up to this position on its
/// disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reached {
    pub cluster_id: u64,
    /// Number of forks (forced new clusters) in the history up to this position.
    pub forks: u64,
    pub position: LogPosition,
    /// True if etcd had two voters at this position.
    pub is_redundant: bool,
}

/// Prints `CLUSTER:FORKS:TERM:INDEX:VOTERS`, with the cluster's id in hexadecimal.
impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster_id, forks, position: LogPosition { term, index }, is_redundant } = self;
        write!(f, "{cluster_id:x}:{forks}:{term}:{index}:{}", if *is_redundant { 2 } else { 1 })
    }
}

impl FromStr for Reached {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let [cluster_id, forks, term, index, voters] = text.split(':').collect::<Vec<_>>()[..] else { return Err(()) };
        let number = |text: &str| text.parse::<u64>().map_err(|_| ());
        Ok(Self {
            cluster_id: u64::from_str_radix(cluster_id, 16).map_err(|_| ())?,
            forks: number(forks)?,
            position: LogPosition { term: number(term)?, index: number(index)? },
            is_redundant: match voters {
                "1" => false,
                "2" => true,
                _ => return Err(()),
            },
        })
    }
}
