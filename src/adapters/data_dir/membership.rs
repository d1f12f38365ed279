//! The members of a cluster: a snapshot's configuration, and every later change in the log.
//!
//! Raft applies each change as it is. etcd checks it first, and drops changes that contradict its member list. Examples are a
//! second `member add` with a peer URL in use, and a change of a removed member. This module does the same, so that a rejected
//! `member add` does not count as a member.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use prost::bytes::Bytes;
use serde::Deserialize;

use super::database::Members;
use super::proto::{ConfChange, ConfChangeV2, ConfState};
use crate::base::json;

/// The kind of a change of members, with etcd's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeKind {
    Add,
    Remove,
    Update,
    AddLearner,
    Unknown,
}

impl From<u64> for ChangeKind {
    fn from(number: u64) -> Self {
        match number {
            0 => Self::Add,
            1 => Self::Remove,
            2 => Self::Update,
            3 => Self::AddLearner,
            _ => Self::Unknown,
        }
    }
}

/// A change of one member that was found in the log.
#[derive(Clone, Debug)]
pub(super) struct Change {
    kind: ChangeKind,
    id: u64,
    /// The data with which etcd checks the change before it applies it; `None` if the change has none. Raft does not use it.
    context: Option<Context>,
}

impl Change {
    /// Decodes the configuration-change entry (`ConfChange`) that etcd writes; `None` if that fails.
    pub(super) fn decode(data: Bytes) -> Option<Self> {
        let change = ConfChange::decode(data).ok()?;
        let context = serde_json::from_slice(&change.context).ok();
        Some(Self { kind: change.kind.into(), id: change.node_id, context })
    }

    /// Decodes Raft's newer configuration-change entry (`ConfChangeV2`), which may contain several changes; `None` if that fails.
    pub(super) fn decode_v2(data: Bytes) -> Option<Vec<Self>> {
        let change = ConfChangeV2::decode(data).ok()?;
        let single = |single: &super::proto::ConfChangeSingle| Self {
            kind: single.kind.into(),
            id: single.node_id,
            context: None,
        };
        Some(change.changes.iter().map(single).collect())
    }

    fn urls(&self) -> Vec<String> {
        self.context.as_ref().and_then(|context| context.peer_urls.clone()).unwrap_or_default()
    }

    pub(super) fn removes(&self) -> bool {
        self.kind == ChangeKind::Remove
    }

    /// Returns whether this version of Tandem knows the change's kind.
    pub(super) fn is_known(&self) -> bool {
        self.kind != ChangeKind::Unknown
    }
}

/// The data that etcd writes with a change of members, as JSON.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Context {
    #[serde(rename = "peerURLs")]
    peer_urls: Option<Vec<String>>,
    #[serde(rename = "isPromote")]
    is_promote: bool,
}

/// The members of a cluster after the changes that have been applied to this value.
#[derive(Clone, Debug, Default)]
pub(super) struct Membership {
    pub(super) voters: BTreeSet<u64>,
    pub(super) learners: BTreeSet<u64>,
    pub(super) removed: BTreeSet<u64>,
    peer_urls: BTreeMap<u64, Vec<String>>,
}

impl Membership {
    /// Returns the members in a `.snap` file. `state` has their ids. `store` is the key-value tree in the snapshot, which has the
    /// peer URLs.
    pub(super) fn from_snapshot(state: &ConfState, store: &[u8]) -> Self {
        let store = Store::parse(store);
        Self {
            voters: state.voters.iter().copied().collect(),
            learners: state.learners.iter().copied().collect(),
            removed: store.removed,
            peer_urls: store.peer_urls,
        }
    }

    /// Returns the members that the WAL records with a snapshot. `state` has their ids. `members`, from the newer database, has the peer
    /// URLs and the removed members. A removed member stays removed even if the log adds it, unless `state` has it.
    pub(super) fn from_record(state: &ConfState, members: Members) -> Self {
        let is_member = |id: &u64| state.voters.contains(id) || state.learners.contains(id);
        Self {
            voters: state.voters.iter().copied().collect(),
            learners: state.learners.iter().copied().collect(),
            removed: members.removed.into_iter().filter(|id| !is_member(id)).collect(),
            peer_urls: members.peer_urls.into_iter().filter(|(id, _)| is_member(id)).collect(),
        }
    }

    /// Applies one change of members, unless etcd would drop it.
    pub(super) fn apply(&mut self, change: &Change) {
        let id = change.id;
        if id == 0 || self.removed.contains(&id) {
            return;
        }
        match change.kind {
            ChangeKind::Add | ChangeKind::AddLearner if !self.accepts(change) => {}
            ChangeKind::Add => {
                self.learners.remove(&id);
                self.voters.insert(id);
                self.peer_urls.entry(id).or_insert_with(|| change.urls());
            }
            ChangeKind::AddLearner => {
                self.voters.remove(&id);
                self.learners.insert(id);
                self.peer_urls.insert(id, change.urls());
            }
            ChangeKind::Remove if self.is_member(id) => {
                self.voters.remove(&id);
                self.learners.remove(&id);
                self.peer_urls.remove(&id);
                self.removed.insert(id);
            }
            ChangeKind::Update if self.is_member(id) => {
                self.peer_urls.insert(id, change.urls());
            }
            ChangeKind::Remove | ChangeKind::Update | ChangeKind::Unknown => {}
        }
    }

    /// Returns whether etcd would accept the addition or promotion of a member. A change without a context is accepted, because
    /// etcd cannot check it.
    fn accepts(&self, change: &Change) -> bool {
        match &change.context {
            None => true,
            Some(context) if context.is_promote => self.learners.contains(&change.id),
            Some(_) => !self.is_member(change.id) && !self.is_url_taken(&change.urls()),
        }
    }

    fn is_member(&self, id: u64) -> bool {
        self.voters.contains(&id) || self.learners.contains(&id)
    }

    fn is_url_taken(&self, urls: &[String]) -> bool {
        self.peer_urls.values().flatten().any(|taken| urls.contains(taken))
    }
}

/// The part of a snapshot's key-value tree (etcd's v2 store, as JSON) that holds the members.
#[derive(Debug, Default)]
struct Store {
    peer_urls: BTreeMap<u64, Vec<String>>,
    removed: BTreeSet<u64>,
}

/// A directory of a snapshot's key-value tree. Parsing skips unused fields, so their size does not matter.
#[derive(Deserialize)]
struct Directory<T> {
    #[serde(rename = "Children")]
    children: Option<T>,
}

#[derive(Deserialize)]
struct Tree {
    #[serde(rename = "Root")]
    root: Directory<Top>,
}

#[derive(Deserialize)]
struct Top {
    #[serde(rename = "0")]
    cluster: Option<Directory<Cluster>>,
}

#[derive(Deserialize)]
struct Cluster {
    members: Option<Directory<BTreeMap<String, Directory<Member>>>>,
    #[expect(clippy::zero_sized_map_values, reason = "the JSON is a map of which only the keys are wanted")]
    removed_members: Option<Directory<BTreeMap<String, serde::de::IgnoredAny>>>,
}

#[derive(Deserialize)]
struct Member {
    #[serde(rename = "raftAttributes")]
    raft: Option<Leaf>,
}

#[derive(Deserialize)]
struct Leaf {
    #[serde(rename = "Value")]
    value: String,
}

impl Store {
    /// Parses as much of the key-value tree as possible. If the tree is unreadable, the peer URLs are unknown, and
    /// fewer of the member changes that etcd rejected are recognized. Raft's list of voters is still right, because it does not come from this tree.
    fn parse(json: &[u8]) -> Self {
        let Ok(tree) = serde_json::from_slice::<Tree>(json) else { return Self::default() };
        let cluster = tree.root.children.and_then(|top| top.cluster).and_then(|cluster| cluster.children);
        let Some(cluster) = cluster else { return Self::default() };
        let id = |key: &str| u64::from_str_radix(key, 16).ok();
        let urls = |member: Directory<Member>| {
            let context = json::from_text::<Context>(&member.children?.raft?.value).ok()?;
            context.peer_urls
        };
        let members = cluster.members.and_then(|members| members.children).unwrap_or_default();
        let removed = cluster.removed_members.and_then(|removed| removed.children).unwrap_or_default();
        Self {
            peer_urls: members.into_iter().filter_map(|(key, member)| Some((id(&key)?, urls(member)?))).collect(),
            removed: removed.keys().filter_map(|key| id(key)).collect(),
        }
    }
}
