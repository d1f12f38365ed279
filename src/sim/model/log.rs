//! etcd's log in the model: a list of entries, of which every prefix says which writes it holds and who its members
//! are. A prefix that both nodes hold as committed is folded into one entry, so that histories stay short.

use crate::sim::store::intern::{Id, Interner};

/// A member id: 1 to 7 lie on the first node, 9 to 15 on the second, 8 is the third voter's; 0 is nobody.
pub type Mid = u8;

/// The cluster of which two voters are at the beginning.
pub const CLUSTER: u8 = 0xc1;
/// The third voter, on neither node.
pub const THIRD_VOTER: Mid = 8;

/// The node that a member lies on; the third voter lies on neither.
pub fn node_of(mid: Mid) -> usize {
    if mid == THIRD_VOTER { 2 } else { usize::from(mid >> 3) }
}

/// The first member id of a node, which a bootstrap gives it.
pub fn first_mid(node: usize) -> Mid {
    if node == 0 { 1 } else { 9 }
}

/// A member as a bit of a set.
pub fn bit(mid: Mid) -> u16 {
    1 << mid
}

/// Who belongs to a cluster; bits are member ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Conf {
    pub voters: u16,
    pub learners: u16,
    pub started: u16,
}

impl Conf {
    /// Whether `mid` votes.
    pub fn votes(self, mid: Mid) -> bool {
        self.voters & bit(mid) != 0
    }

    /// Whether `mid` is listed at all.
    pub fn lists(self, mid: Mid) -> bool {
        (self.voters | self.learners) & bit(mid) != 0
    }

    /// Whether there is one voter only.
    pub fn has_one_voter(self) -> bool {
        self.voters.is_power_of_two()
    }
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// Everything up to here: which writes, and which members.
    Base {
        writes: u8,
        conf: Conf,
    },
    Write(u8),
    AddLearner(Mid),
    Started(Mid),
    Promote(Mid),
    Remove(Mid),
    /// The first entry of a leader, which begins a term; only where terms count.
    Elected,
}

/// What the entries of a prefix add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub writes: u8,
    pub conf: Conf,
    /// How many terms began in it.
    pub terms: u8,
}

/// Adds up entries.
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

/// Every log, and what each of its prefixes amounts to: nearly every move asks that of both nodes.
#[derive(Clone, Debug)]
pub struct Logs {
    entries: Interner<Vec<Entry>>,
    /// The prefixes' sums, of one log after the other, each from the empty prefix to the whole log.
    sums: Vec<Sum>,
    /// Where each log's sums begin, and where the next one's will.
    starts: Vec<usize>,
}

impl Default for Logs {
    /// Number 0 is the empty log.
    fn default() -> Self {
        let mut logs = Self { entries: Interner::default(), sums: Vec::new(), starts: vec![0] };
        logs.add_up();
        logs
    }
}

impl Logs {
    /// The number of a log.
    pub fn id(&mut self, entries: Vec<Entry>) -> Id {
        let id = self.entries.id(entries);
        self.add_up();
        id
    }

    /// The entries of a log.
    pub fn get(&self, id: Id) -> &[Entry] {
        self.entries.get(id)
    }

    /// See [`Interner::mark`].
    pub fn mark(&self, id: Id) -> u16 {
        self.entries.mark(id)
    }

    /// See [`Interner::catch_up`].
    pub fn catch_up(&mut self) {
        self.entries.catch_up();
        self.add_up();
    }

    /// What the prefixes of a log amount to, by their length.
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

/// A node's data dir.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Data {
    /// 0 where the data dir is blank.
    pub mid: Mid,
    pub cluster: u8,
    pub log: Id,
    /// How many entries this member knows to be committed, and how many of them it has written down as that: the
    /// difference is lost with its process.
    pub commit: u8,
    pub durable: u8,
    /// How many entries were folded away: a search leaves that out.
    pub folded: u16,
}

impl Data {
    /// Whether there is anything.
    pub fn is_blank(self) -> bool {
        self.mid == 0
    }

    /// Its entries.
    pub fn entries(self, logs: &Logs) -> &[Entry] {
        if self.is_blank() { &[] } else { logs.get(self.log) }
    }

    /// What it knows to be committed: the membership that its etcd acts by.
    pub fn applied(self, logs: &Logs) -> Sum {
        if self.is_blank() { Sum::default() } else { logs.sums(self.log)[usize::from(self.commit)] }
    }

    /// All of its entries: what reading the data dir offline shows.
    pub fn newest(self, logs: &Logs) -> Sum {
        if self.is_blank() { Sum::default() } else { logs.sums(self.log).last().copied().unwrap_or_default() }
    }

    /// The term of its last entry.
    pub fn term(self, logs: &Logs) -> u8 {
        1 + self.newest(logs).terms
    }

    /// How many entries it has.
    pub fn len(self, logs: &Logs) -> u8 {
        u8::try_from(self.entries(logs).len()).unwrap_or(u8::MAX)
    }

    /// Adds an entry; with it goes to disk what was known to be committed before.
    pub fn append(&mut self, logs: &mut Logs, entry: Entry) {
        let mut entries = self.entries(logs).to_vec();
        entries.push(entry);
        self.log = logs.id(entries);
        self.durable = self.commit;
    }
}

/// Folds entries that are durably committed, and that nothing tells apart any more, into one: those that both nodes
/// hold, and all of them on a node that does not list the other node's member, as the two logs are never compared again.
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

/// True if `mid` is not a member after the durable entries of `data`, and no later entry adds it. Ids are never given
/// twice, so it never becomes one.
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
