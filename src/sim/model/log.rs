//! etcd's log in the model: a list of entries, of which every prefix yields its writes and its members. A prefix that
//! both nodes hold as committed is folded into one entry, so that histories stay short.

use crate::sim::store::intern::{Id, Interner};

/// The id of an etcd member. Members of node1 have 1 to 7, members of node2 have 9 to 15, and the third voter has 8. 0 means no member.
pub type Mid = u8;

/// The id of the etcd cluster that the two voters form in the initial states.
pub const CLUSTER: u8 = 0xc1;
/// The member id of the third voter, which runs on neither node.
pub const THIRD_VOTER: Mid = 8;

/// Returns the index of the node that runs a member, or 2 for the third voter.
pub fn node_of(mid: Mid) -> usize {
    if mid == THIRD_VOTER { 2 } else { usize::from(mid >> 3) }
}

/// Returns the member id that a node gets when it begins a new cluster.
pub fn first_mid(node: usize) -> Mid {
    if node == 0 { 1 } else { 9 }
}

/// Returns the bit that represents a member in a set of members.
pub fn bit(mid: Mid) -> u16 {
    1 << mid
}

/// The membership of a cluster. Each field is a set with a bit per member id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Conf {
    pub voters: u16,
    pub learners: u16,
    pub started: u16,
}

impl Conf {
    /// Returns whether the member `mid` is a voter.
    pub fn votes(self, mid: Mid) -> bool {
        self.voters & bit(mid) != 0
    }

    /// Returns whether the member `mid` is a voter or a learner of the cluster.
    pub fn lists(self, mid: Mid) -> bool {
        (self.voters | self.learners) & bit(mid) != 0
    }

    /// Returns whether the cluster has only one voter.
    pub fn has_one_voter(self) -> bool {
        self.voters.is_power_of_two()
    }
}

/// An entry of a member's Raft log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// An entry in place of all entries up to this one. It has their writes, and the membership that they result in.
    Base {
        writes: u8,
        conf: Conf,
    },
    Write(u8),
    AddLearner(Mid),
    Started(Mid),
    Promote(Mid),
    Remove(Mid),
    /// The entry with which a new leader begins its term. It exists only in a search with terms.
    Elected,
}

/// The result of a log's entries up to some index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub writes: u8,
    pub conf: Conf,
    /// The number of terms that begin in these entries. The first term of the log does not count.
    pub terms: u8,
}

fn sum(entries: &[Entry]) -> Sum {
    entries.iter().fold(Sum::default(), |mut sum, entry| {
        let conf = &mut sum.conf;
        match *entry {
            Entry::Base { writes, conf } => sum = Sum { writes, conf, terms: 0 },
            Entry::Write(number) => sum.writes |= 1 << number,
            Entry::AddLearner(mid) => conf.learners |= bit(mid),
            Entry::Started(mid) => conf.started |= bit(mid),
            Entry::Promote(mid) => {
                conf.learners &= !bit(mid);
                conf.voters |= bit(mid);
            }
            Entry::Remove(mid) => {
                conf.learners &= !bit(mid);
                conf.voters &= !bit(mid);
                conf.started &= !bit(mid);
            }
            Entry::Elected => sum.terms += 1,
        }
        sum
    })
}

/// All logs that occur in states, each with its result up to each index. They are stored because nearly every move reads the results of
/// both nodes' logs.
#[derive(Clone, Debug)]
pub struct Logs {
    entries: Interner<Vec<Entry>>,
    /// The results of all logs, one log after the other, in the order of the logs' numbers. The results of a log are those after 0
    /// entries, after 1 entry, and so on, up to the whole log.
    sums: Vec<Sum>,
    /// The index in `sums` at which each log's results begin, and the index at which those of the next new log will begin.
    starts: Vec<usize>,
}

impl Default for Logs {
    /// Creates the table with one log. This is the empty log, which has number 0.
    fn default() -> Self {
        let mut logs = Self { entries: Interner::default(), sums: Vec::new(), starts: vec![0] };
        logs.add_up();
        logs
    }
}

impl Logs {
    /// Returns the number of the log with these entries, and assigns one if the log is new.
    pub fn id(&mut self, entries: Vec<Entry>) -> Id {
        let id = self.entries.id(entries);
        self.add_up();
        id
    }

    /// Returns the entries of the log with the number `id`.
    pub fn get(&self, id: Id) -> &[Entry] {
        self.entries.get(id)
    }

    /// Returns the fingerprint of a log: see [`Interner::mark`].
    pub fn mark(&self, id: Id) -> u16 {
        self.entries.mark(id)
    }

    /// Adds the logs that other threads have numbered since the last call: see [`Interner::catch_up`].
    pub fn catch_up(&mut self) {
        self.entries.catch_up();
        self.add_up();
    }

    /// Returns the results of a log: those after 0 entries, after 1 entry, and so on, up to the whole log.
    fn sums(&self, id: Id) -> &[Sum] {
        let id = id as usize;
        &self.sums[self.starts[id]..self.starts[id + 1]]
    }

    fn add_up(&mut self) {
        for id in self.starts.len() - 1..self.entries.len() {
            let entries = self.entries.get(Id::try_from(id).unwrap_or(Id::MAX));
            self.sums.extend((0..=entries.len()).map(|length| sum(&entries[..length])));
            self.starts.push(self.sums.len());
        }
    }
}

/// A node's data dir in the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Data {
    /// The id of the member that owns the data; 0 if the data dir is blank.
    pub mid: Mid,
    pub cluster: u8,
    pub log: Id,
    /// The number of entries that this member knows to be committed.
    pub commit: u8,
    /// The number of entries that this member's disk shows as committed. If the process is killed, it forgets that further entries are
    /// committed.
    pub durable: u8,
    /// The number of entries that were merged into the first one (see [`fold`]). It is 0 in the states that a search stores, because
    /// their packed form omits it.
    pub folded: u16,
}

impl Data {
    /// Returns whether the data dir holds no data.
    pub fn is_blank(self) -> bool {
        self.mid == 0
    }

    /// Returns the entries of this node's log. There are none if the data dir is blank.
    pub fn entries(self, logs: &Logs) -> &[Entry] {
        if self.is_blank() { &[] } else { logs.get(self.log) }
    }

    /// Returns the result of the entries that the member knows to be committed. Its etcd uses the membership in this result.
    pub fn applied(self, logs: &Logs) -> Sum {
        if self.is_blank() { Sum::default() } else { logs.sums(self.log)[usize::from(self.commit)] }
    }

    /// Returns the result of all entries, committed or not. This is what a program finds that reads the data dir offline.
    pub fn newest(self, logs: &Logs) -> Sum {
        if self.is_blank() { Sum::default() } else { logs.sums(self.log).last().copied().unwrap_or_default() }
    }

    /// Returns the term of the log's last entry.
    pub fn term(self, logs: &Logs) -> u8 {
        1 + self.newest(logs).terms
    }

    /// Returns the number of entries in the log.
    pub fn len(self, logs: &Logs) -> u8 {
        u8::try_from(self.entries(logs).len()).unwrap_or(u8::MAX)
    }

    /// Appends an entry. The record that is written to disk with this entry still has the commit index from before it.
    pub fn append(&mut self, logs: &mut Logs, entry: Entry) {
        let mut entries = self.entries(logs).to_vec();
        entries.push(entry);
        self.log = logs.id(entries);
        self.durable = self.commit;
    }
}

/// Merges entries that are committed on disk into one, if it no longer matters how they differ. These are the entries that both nodes
/// hold.
///
/// If a node's data does not list the other node's member, all of its committed entries are merged, because the two logs are never
/// compared again.
pub fn fold(logs: &mut Logs, a: &mut Data, b: &mut Data) {
    if a.durable < 2 && b.durable < 2 {
        return;
    }
    let common = match (a.is_blank(), b.is_blank()) {
        (true, true) => return,
        (false, true) => usize::from(a.durable),
        (true, false) => usize::from(b.durable),
        (false, false) => {
            let equal = a.entries(logs).iter().zip(b.entries(logs)).take_while(|(a, b)| a == b).count();
            equal.min(usize::from(a.durable)).min(usize::from(b.durable))
        }
    };
    fold_first(logs, a, common);
    fold_first(logs, b, common);
    let (a_mid, b_mid) = (a.mid, b.mid);
    for (data, other) in [(a, b_mid), (b, a_mid)] {
        if !data.is_blank() && other != 0 && is_stranger(logs, *data, other) {
            fold_first(logs, data, usize::from(data.durable));
        }
    }
}

/// Returns whether the member `mid` is not listed after the durable entries of `data`, and no later entry adds it. Such a member is
/// never listed again, because etcd assigns no id twice.
fn is_stranger(logs: &Logs, data: Data, mid: Mid) -> bool {
    let count = usize::from(data.durable);
    let is_listed = logs.sums(data.log)[count].conf.lists(mid);
    count > 0 && !is_listed && !data.entries(logs)[count..].contains(&Entry::AddLearner(mid))
}

fn fold_first(logs: &mut Logs, data: &mut Data, count: usize) {
    if count < 2 || data.is_blank() {
        return;
    }
    let entries = data.entries(logs);
    let Sum { writes, conf, terms: _ } = logs.sums(data.log)[count];
    let mut folded = vec![Entry::Base { writes, conf }];
    folded.extend_from_slice(&entries[count..]);
    data.log = logs.id(folded);
    let gone = u8::try_from(count - 1).unwrap_or(u8::MAX);
    data.commit -= gone;
    data.durable -= gone;
    data.folded += u16::from(gone);
}
