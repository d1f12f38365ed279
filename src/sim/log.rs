//! etcd's log in the model: a list of entries, of which every prefix says which writes it holds and who its members
//! are. A prefix that both nodes hold as committed is folded into one entry, so that histories stay short.

use super::intern::{Id, Interner};

/// A member id: 1 to 7 lie on the first node, 9 to 15 on the second; 0 is nobody.
pub type Mid = u8;

/// The node that a member lies on.
pub fn node_of(mid: Mid) -> usize {
    usize::from(mid >> 3)
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
}

/// What a prefix amounts to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub writes: u8,
    pub conf: Conf,
}

/// Adds up entries.
pub fn sum(entries: &[Entry]) -> Sum {
    entries.iter().fold(Sum::default(), |mut sum, entry| {
        let conf = &mut sum.conf;
        match *entry {
            Entry::Base { writes, conf } => sum = Sum { writes, conf },
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
        }
        sum
    })
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
    pub fn entries(self, logs: &Interner<Vec<Entry>>) -> &[Entry] {
        if self.is_blank() { &[] } else { logs.get(self.log) }
    }

    /// What it knows to be committed: the membership that its etcd acts by.
    pub fn applied(self, logs: &Interner<Vec<Entry>>) -> Sum {
        sum(&self.entries(logs)[..usize::from(self.commit)])
    }

    /// All of it: what the data dir shows to who reads it offline.
    pub fn newest(self, logs: &Interner<Vec<Entry>>) -> Sum {
        sum(self.entries(logs))
    }

    /// How many entries it has.
    pub fn len(self, logs: &Interner<Vec<Entry>>) -> u8 {
        u8::try_from(self.entries(logs).len()).unwrap_or(u8::MAX)
    }

    /// Adds an entry; with it goes to disk what was known to be committed before.
    pub fn append(&mut self, logs: &mut Interner<Vec<Entry>>, entry: Entry) {
        let mut entries = self.entries(logs).to_vec();
        entries.push(entry);
        self.log = logs.id(entries);
        self.durable = self.commit;
    }
}

/// Folds what is committed and can no longer be told apart into one entry: what both nodes hold, and all that a node
/// holds for good where it does not know the other's member, whose log is then never compared with it.
pub fn fold(logs: &mut Interner<Vec<Entry>>, a: &mut Data, b: &mut Data) {
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
        if !data.is_blank() && other != 0 && is_stranger(data.entries(logs), usize::from(data.durable), other) {
            fold_first(logs, data, usize::from(data.durable));
        }
    }
}

/// Whether `mid` is no member from the first `count` entries on. Ids are never given twice, so it stays away.
fn is_stranger(entries: &[Entry], count: usize, mid: Mid) -> bool {
    let (kept, rest) = entries.split_at(count);
    count > 0 && !sum(kept).conf.lists(mid) && !rest.contains(&Entry::AddLearner(mid))
}

fn fold_first(logs: &mut Interner<Vec<Entry>>, data: &mut Data, count: usize) {
    if count < 2 || data.is_blank() {
        return;
    }
    let entries = data.entries(logs);
    let Sum { writes, conf } = sum(&entries[..count]);
    let mut folded = vec![Entry::Base { writes, conf }];
    folded.extend_from_slice(&entries[count..]);
    data.log = logs.id(folded);
    let gone = u8::try_from(count - 1).unwrap_or(u8::MAX);
    data.commit -= gone;
    data.durable -= gone;
    data.folded += u16::from(gone);
}
