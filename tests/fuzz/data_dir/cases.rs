//! Conversion of any bytes into a data dir. Mostly it is sound at first, with valid checksums, so that the readers
//! reach everything, and is then damaged. proptest and cargo-fuzz both use it.

use tandem::adapters::data_dir::MemoryDir;

use crate::writer::{
    ADD, Changed, ME, Message, OTHER, PEER, Writer, database, database_of_keys, learner, member, promotion, snapshot,
};

/// The largest size of a generated WAL file, in bytes, so that millions of cases take minutes.
const LARGEST: usize = 64 * 1024;

/// The input of a fuzzer, from which a generator takes its choices one after the other. Zeros follow the end.
struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or_default()
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(count.min(self.0.len()));
        self.0 = tail;
        head
    }

    /// Returns a number that is mostly small and sometimes huge.
    fn number(&mut self) -> u64 {
        match self.byte() {
            255 => {
                let mut all = [0; 8];
                let bytes = self.bytes(8);
                all[..bytes.len()].copy_from_slice(bytes);
                u64::from_le_bytes(all)
            }
            254 => u64::MAX,
            small => u64::from(small),
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.number()).unwrap_or(usize::MAX) % limit.max(1)
    }

    fn some_bytes(&mut self) -> &'a [u8] {
        let count = usize::from(self.byte());
        self.bytes(count)
    }

    fn id(&mut self) -> u64 {
        match self.byte() % 4 {
            0 => ME,
            1 => PEER,
            2 => OTHER,
            _ => self.number(),
        }
    }

    fn context(&mut self) -> String {
        match self.byte() % 5 {
            0 => member("http://10.0.0.1:2380"),
            1 => learner("http://10.0.0.2:2380"),
            2 => promotion().to_owned(),
            3 => String::new(),
            _ => String::from_utf8_lossy(self.some_bytes()).into_owned(),
        }
    }
}

/// Converts the input of a fuzzer to a data dir, which may be sound or damaged.
pub(crate) fn data_dir(input: &[u8]) -> MemoryDir {
    let mut choices = Choices(input);
    let mode = choices.byte();
    if mode % 16 == 15 {
        // This mode uses the bytes themselves.
        let name = format!("{:016x}-{:016x}.wal", 0, 0);
        let (database, wal) = choices.0.split_at(choices.0.len() / 4);
        return MemoryDir { wals: vec![(name, wal.to_vec())], snaps: Vec::new(), database: database.to_vec() };
    }
    let purged_at = choices.number();
    let mut writer = match mode % 4 {
        0 => Writer::new(ME),
        1 => Writer::purged(ME, 3, purged_at.min(u64::MAX - 1), choices.number()),
        _ => Writer::two_voters(),
    };
    let mut dir = MemoryDir::default();
    while !choices.0.is_empty() && writer.tail().len() < LARGEST {
        let kind = choices.byte() % 16;
        // Half of the cases contain nothing that etcd would not write, so that they get far.
        let kind = if mode & 16 == 0 { SOUND[usize::from(kind)] } else { kind };
        step(kind, &mut choices, &mut writer, &mut dir);
    }
    dir.wals = writer.files().to_vec();
    let mut damage = Choices(input.get(1..).unwrap_or_default());
    for _ in 0..mode / 64 {
        let number = damage.below(dir.wals.len());
        spoil(&mut damage, &mut dir.wals[number].1);
        if let Some((_, snap)) = dir.snaps.last_mut() {
            spoil(&mut damage, snap);
        }
        spoil(&mut damage, &mut dir.database);
    }
    dir
}

/// The kinds of [`step`] that etcd itself could take. Each of the 16 choices in the input has one.
const SOUND: [u8; 16] = [0, 1, 2, 0, 4, 5, 6, 7, 8, 8, 10, 11, 0, 5, 0, 15];

/// Changes the data dir by one step, such as a record in the WAL or a new file. `kind` chooses the step. Some kinds are steps that etcd
/// takes, and others are damage.
fn step(kind: u8, choices: &mut Choices<'_>, writer: &mut Writer, dir: &mut MemoryDir) {
    let next = writer.index.wrapping_add(1);
    match kind {
        0..=2 => writer.entry_at(next, 0, choices.some_bytes()),
        3 => writer.entry_at(choices.number(), choices.number(), choices.some_bytes()),
        4 => writer.entry_at(writer.index.saturating_sub(choices.number() % 8), 0, b"again"),
        5 | 6 => {
            let (kind, id, context) =
                (choices.number() % if kind == 6 { 5 } else { 4 }, choices.id(), choices.context());
            let change = Message::default().number(2, kind).number(3, id).bytes(4, context.as_bytes());
            writer.entry_at(next, 1, &change.done());
        }
        7 => {
            let single = Message::default().number(1, ADD).number(2, choices.id()).done();
            writer.entry_at(next, 2, &Message::default().bytes(2, &single).done());
        }
        8 => writer.state(writer.index.saturating_sub(choices.number() % 4)),
        9 => writer.state(choices.number()),
        10 => writer.cut(if choices.byte() < 254 { ME } else { PEER }),
        11 => add_snapshot(choices, writer, dir),
        12 => writer.record(choices.number(), choices.some_bytes()),
        13 => writer.term = choices.number(),
        14 if choices.byte() & 1 == 0 => dir.database = keys(choices),
        14 => dir.database = database(Some(choices.number()), choices.byte() & 1 == 0),
        _ => {
            let zeros = choices.below(1024);
            let length = writer.tail().len();
            writer.tail().resize(length + zeros, 0);
        }
    }
}

/// Returns a database with changes of keys, which mostly have increasing revisions.
fn keys(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut revision = 0_u64;
    let count = choices.below(12);
    let changes: Vec<Changed<'_>> = (0..count)
        .map(|place| {
            revision = revision.wrapping_add(choices.number() % 3);
            (revision, place as u64, choices.byte() & 1 == 1, choices.some_bytes(), choices.some_bytes())
        })
        .collect();
    database_of_keys(choices.number(), choices.number(), &changes, 1 + choices.below(4))
}

fn add_snapshot(choices: &mut Choices<'_>, writer: &mut Writer, dir: &mut MemoryDir) {
    let index = writer.index.saturating_sub(choices.number() % 3);
    writer.state(index);
    writer.snapshot_record(index, writer.term);
    let store = String::from_utf8_lossy(choices.some_bytes());
    let store = match choices.byte() % 3 {
        0 => store.into_owned(),
        1 => format!(r#"{{"Root":{{"Children":{{"0":{{"Children":{{"members":{{"Children":{store}}}}}}}}}}}}}"#),
        _ => format!(r#"{{"Root":{{"Children":{{"0":{{"Children":{{"removed_members":{store}}}}}}}}}}}"#),
    };
    let (voters, learners) = ([choices.id(), choices.id()], [choices.id()]);
    let (name, bytes) = snapshot(index, writer.term, &voters, &learners, &store);
    dir.snaps.retain(|(other, _)| *other != name);
    dir.snaps.push((name, bytes));
}

/// Damages a file at one place, in one of several ways.
fn spoil(choices: &mut Choices<'_>, bytes: &mut Vec<u8>) {
    let at = choices.below(bytes.len());
    let count = choices.below(600).min(bytes.len() - at);
    match choices.byte() % 6 {
        0 => bytes.truncate(at),
        1 => bytes[at..at + count].fill(0),
        2 if count > 0 => bytes[at] ^= choices.byte(),
        3 => drop(bytes.splice(at..at + count, choices.some_bytes().iter().copied())),
        4 => bytes.extend(choices.some_bytes()),
        _ => {
            let field = (at / 8 * 8)..(at / 8 * 8 + 8);
            if let Some(field) = bytes.get_mut(field) {
                field.copy_from_slice(&choices.number().to_le_bytes());
            }
        }
    }
}

/// Reads all changes of keys, and asserts that their revisions increase. Also reads the requests of the log. Returns the number
/// of changes, or `None` if they cannot all be read.
pub(crate) fn walk(dir: &MemoryDir) -> Option<usize> {
    let _ = dir.above();
    let mut changes = dir.changes().ok()?;
    let (mut count, mut last) = (0, None);
    loop {
        let Some(change) = changes.next_change().ok()? else { return Some(count) };
        let place = Some((change.revision, change.place));
        assert!(last < place, "{last:?} before {place:?}");
        last = place;
        count += 1;
        assert!(count <= dir.database.len(), "more changes than bytes");
    }
}
