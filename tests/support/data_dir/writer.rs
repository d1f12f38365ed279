//! A writer of data dirs in etcd's format. It writes them byte by byte and without the code under test, for cases that
//! a real etcd does not produce on demand.

use std::fs;
use std::path::{Path, PathBuf};

/// The member id of the data dir's own member. It needs all 64 bits, as etcd's ids do.
pub(crate) const ME: u64 = 0xfedc_ba98_7654_3210;
pub(crate) const PEER: u64 = 0x8000_0000_0000_0001;
pub(crate) const OTHER: u64 = 0x9000_0000_0000_0002;
pub(crate) const CLUSTER: u64 = 0xcdf8_1818_e32e_3b5b;

/// The number that etcd's log has for the addition of a voter.
pub(crate) const ADD: u64 = 0;
/// The number that etcd's log has for the removal of a member.
pub(crate) const REMOVE: u64 = 1;
/// The number that etcd's log has for a change of a member's URLs.
pub(crate) const UPDATE: u64 = 2;
/// The number that etcd's log has for the addition of a learner.
pub(crate) const ADD_LEARNER: u64 = 3;

/// A protobuf message that is being built.
#[derive(Clone, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    pub(crate) fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

/// Returns the CRC-32C of `bytes` with the initial value `crc`, as its definition computes it.
pub(crate) fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!crc, |crc, byte| crc >> 8 ^ CRC_OF_BYTE[usize::from(crc.to_le_bytes()[0] ^ byte)])
}

const CRC_OF_BYTE: [u32; 256] = {
    let (mut table, mut byte, mut number) = ([0; 256], 0, 0);
    while byte < 256 {
        let (mut crc, mut bit) = (number, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
        number += 1;
    }
    table
};

/// A data dir that is being built in memory.
pub(crate) struct Writer {
    files: Vec<(String, Vec<u8>)>,
    crc: u32,
    state: Option<Vec<u8>>,
    pub(crate) index: u64,
    pub(crate) term: u64,
}

impl Writer {
    /// Returns a data dir with an empty WAL of the member `id`, as etcd makes it.
    pub(crate) fn new(id: u64) -> Self {
        let mut writer = Self { files: Vec::new(), crc: 0, state: None, index: 0, term: 1 };
        writer.begin_file(0, id);
        writer.snapshot_record(0, 0);
        writer
    }

    /// Returns a data dir with a WAL of the two voters [`ME`] and [`PEER`].
    pub(crate) fn two_voters() -> Self {
        let mut writer = Self::new(ME);
        writer.change(ADD, ME, &member("http://10.0.0.1:2380"));
        writer.change(ADD, PEER, &member("http://10.0.0.2:2380"));
        writer
    }

    /// Returns a data dir with a WAL that begins at file `sequence` and index `index`, because the earlier files were
    /// purged.
    pub(crate) fn purged(id: u64, sequence: u64, index: u64, term: u64) -> Self {
        let mut writer = Self { files: Vec::new(), crc: 0xdead_beef, state: None, index, term };
        writer.begin_file(sequence, id);
        writer
    }

    fn begin_file(&mut self, sequence: u64, id: u64) {
        let first = if sequence == 0 { 0 } else { self.index.wrapping_add(1) };
        self.files.push((format!("{sequence:016x}-{first:016x}.wal"), Vec::new()));
        let crc = self.crc;
        let body = Message::default().number(1, 4).number(2, u64::from(crc)).done();
        self.frame(&body);
        self.record(1, &Message::default().number(1, id).number(2, CLUSTER).done());
    }

    /// Continues the WAL in a new file, as etcd does when a file is full.
    pub(crate) fn cut(&mut self, id: u64) {
        let sequence = u64::from_str_radix(&self.files.last().unwrap().0[..16], 16).unwrap() + 1;
        self.begin_file(sequence, id);
        if let Some(state) = self.state.clone() {
            self.record(3, &state);
        }
    }

    /// Appends a record with its checksum to the WAL.
    pub(crate) fn record(&mut self, kind: u64, data: &[u8]) {
        self.crc = crc32c(self.crc, data);
        let body = Message::default().number(1, kind).number(2, u64::from(self.crc)).bytes(3, data).done();
        self.frame(&body);
    }

    fn frame(&mut self, body: &[u8]) {
        let padding = (8 - body.len() % 8) % 8;
        let flag = if padding == 0 { 0 } else { (0x80 | padding as u64) << 56 };
        let tail = self.tail();
        tail.extend((body.len() as u64 | flag).to_le_bytes());
        tail.extend(body);
        tail.resize(tail.len() + padding, 0);
    }

    pub(crate) fn entry_at(&mut self, index: u64, kind: u64, data: &[u8]) {
        self.index = index;
        let entry = Message::default().number(1, kind).number(2, self.term).number(3, index).bytes(4, data);
        self.record(2, &entry.done());
    }

    /// Appends a log entry with a client's request.
    pub(crate) fn put(&mut self, data: &[u8]) {
        self.entry_at(self.index + 1, 0, data);
    }

    pub(crate) fn puts(&mut self, count: usize) {
        (0..count).for_each(|number| self.put(format!("value {number}").as_bytes()));
    }

    /// Appends a log entry that changes the members.
    pub(crate) fn change(&mut self, kind: u64, id: u64, context: &str) {
        let change = Message::default().number(1, 7).number(2, kind).number(3, id).bytes(4, context.as_bytes());
        self.entry_at(self.index + 1, 1, &change.done());
    }

    pub(crate) fn state(&mut self, commit: u64) {
        let state = Message::default().number(1, self.term).number(2, PEER).number(3, commit).done();
        self.record(3, &state);
        self.state = Some(state);
    }

    pub(crate) fn snapshot_record(&mut self, index: u64, term: u64) {
        self.record(5, &Message::default().number(1, index).number(2, term).done());
    }

    /// Appends a record of a snapshot with its members to the WAL, as etcd 3.5 and later write it.
    pub(crate) fn snapshot_record_of(&mut self, index: u64, term: u64, voters: &[u64], learners: &[u64]) {
        let record = Message::default().number(1, index).number(2, term);
        self.record(5, &record.bytes(3, &conf_state(voters, learners)).done());
    }

    /// Returns the WAL files: the name and the bytes of each.
    pub(crate) fn files(&self) -> &[(String, Vec<u8>)] {
        &self.files
    }

    /// Returns the bytes of the last WAL file, so that a test can damage them.
    pub(crate) fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.files.last_mut().unwrap().1
    }

    pub(crate) fn file(&mut self, number: usize) -> &mut Vec<u8> {
        &mut self.files[number].1
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.files.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Appends zeros to the last WAL file, as etcd does when it allocates a file in advance. They are fewer than etcd's 64 MB.
    pub(crate) fn preallocate(&mut self) {
        let length = self.tail().len().next_multiple_of(4096) + 64 * 1024;
        self.tail().resize(length, 0);
    }

    /// Writes the data dir to a temporary folder.
    pub(crate) fn write(&self) -> Dir {
        let dir = Dir(tempfile::tempdir().unwrap());
        fs::create_dir_all(dir.wal()).unwrap();
        fs::create_dir_all(dir.snap()).unwrap();
        fs::write(dir.snap().join("db"), b"not looked into").unwrap();
        for (name, bytes) in self.files() {
            fs::write(dir.wal().join(name), bytes).unwrap();
        }
        dir
    }
}

/// A data dir on disk that is deleted with the test.
pub(crate) struct Dir(tempfile::TempDir);

impl Dir {
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn wal(&self) -> PathBuf {
        self.path().join("member/wal")
    }

    pub(crate) fn snap(&self) -> PathBuf {
        self.path().join("member/snap")
    }

    /// Returns the paths of the WAL files, in order.
    pub(crate) fn wals(&self) -> Vec<PathBuf> {
        let mut paths: Vec<_> = fs::read_dir(self.wal()).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }

    /// Adds a snapshot file to the data dir, and returns its path.
    pub(crate) fn add_snapshot(&self, index: u64, term: u64, voters: &[u64], learners: &[u64], store: &str) -> PathBuf {
        let (name, bytes) = snapshot(index, term, voters, learners, store);
        let path = self.snap().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// Returns the name and the bytes of a snapshot file.
pub(crate) fn snapshot(index: u64, term: u64, voters: &[u64], learners: &[u64], store: &str) -> (String, Vec<u8>) {
    let metadata = Message::default().bytes(1, &conf_state(voters, learners)).number(2, index).number(3, term);
    let snapshot = Message::default().bytes(1, store.as_bytes()).bytes(2, &metadata.done()).done();
    let file = Message::default().number(1, u64::from(crc32c(0, &snapshot))).bytes(2, &snapshot).done();
    (format!("{term:016x}-{index:016x}.snap"), file)
}

fn conf_state(voters: &[u64], learners: &[u64]) -> Vec<u8> {
    let state = voters.iter().fold(Message::default(), |state, id| state.number(1, *id));
    learners.iter().fold(state, |state, id| state.number(2, *id)).done()
}

/// Returns the context of a log entry that adds a voter, as etcd writes it.
pub(crate) fn member(url: &str) -> String {
    format!(r#"{{"id":1,"peerURLs":["{url}"]}}"#)
}

/// Returns the context of a log entry that adds a learner, as etcd writes it.
pub(crate) fn learner(url: &str) -> String {
    format!(r#"{{"id":1,"peerURLs":["{url}"],"isLearner":true,"isPromote":false}}"#)
}

/// Returns the context of a log entry that promotes a learner, as etcd writes it.
pub(crate) fn promotion() -> &'static str {
    r#"{"id":1,"peerURLs":null,"isPromote":true}"#
}

/// Returns a database file as bbolt makes it, with everything up to the log index `applied`. `None` is a database that
/// etcd has just made. With `inline`, the bucket is in its parent's page, as a small one is. Otherwise it has a page of
/// its own.
pub(crate) fn database(applied: Option<u64>, inline: bool) -> Vec<u8> {
    let entry = applied.map(u64::to_be_bytes);
    let entries: Vec<(u32, &[u8], &[u8])> =
        entry.iter().map(|value| (0, &b"consistent_index"[..], &value[..])).collect();
    let bucket = page(5, 2, &entries);
    let header = |root: u64| [root.to_le_bytes(), [0; 8]].concat();
    let value = if inline { [header(0), bucket.clone()].concat() } else { header(5) };
    let root = page(4, 2, &[(1, b"cluster", &header(9)), (1, b"meta", &value)]);
    // The root is a branch page here, which the newer of the two meta pages names.
    let branch = branch(3, &[(b"alarm", 9), (b"cluster", 4), (b"zone", 9)]);
    let mut file = Vec::new();
    for (number, page) in
        [meta_page(0, 8, 9), meta_page(1, 9, 3), page(2, 16, &[]), branch, root, bucket].iter().enumerate()
    {
        file.extend(page);
        file.resize((number + 1) * 4096, 0);
    }
    file
}

/// Returns a database file of a cluster of `version`. `members` are its members, and `removed` the ids of removed ones.
pub(crate) fn database_of(applied: u64, version: &str, members: &[(u64, &str)], removed: &[u64]) -> Vec<u8> {
    type Pairs = Vec<(String, Vec<u8>)>;
    let named = |(id, url): &(u64, &str)| (format!("{id:x}"), member(url).into_bytes());
    let (mut members, mut gone): (Pairs, Pairs) = (
        members.iter().map(named).collect(),
        removed.iter().map(|id| (format!("{id:x}"), b"removed".to_vec())).collect(),
    );
    members.sort();
    gone.sort();
    let bucket = |entries: Pairs| {
        let entries: Vec<(u32, &[u8], &[u8])> =
            entries.iter().map(|(key, value)| (0, key.as_bytes(), value.as_slice())).collect();
        [[0; 16].to_vec(), page(0, 2, &entries)].concat()
    };
    let pair = |key: &str, value: &[u8]| vec![(key.to_owned(), value.to_vec())];
    let buckets = [
        (b"cluster".as_slice(), bucket(pair("clusterVersion", version.as_bytes()))),
        (b"members", bucket(members)),
        (b"members_removed", bucket(gone)),
        (b"meta", bucket(pair("consistent_index", &applied.to_be_bytes()))),
    ];
    let root: Vec<(u32, &[u8], &[u8])> = buckets.iter().map(|(name, value)| (1, *name, value.as_slice())).collect();
    let mut file = Vec::new();
    for (number, page) in
        [meta_page(0, 8, 9), meta_page(1, 9, 3), page(2, 16, &[]), page(3, 2, &root)].iter().enumerate()
    {
        file.extend(page);
        file.resize((number + 1) * 4096, 0);
    }
    file
}

/// A change of a key in the database: revision, sub-revision, whether it is a deletion, key and value.
pub(crate) type Changed<'a> = (u64, u64, bool, &'a [u8], &'a [u8]);

/// Returns a database file with these changes of keys, `per_leaf` of them on each page. It is compacted up to the
/// revision `compacted`.
pub(crate) fn database_of_keys(applied: u64, compacted: u64, changes: &[Changed<'_>], per_leaf: usize) -> Vec<u8> {
    let header = |root: u64| [root.to_le_bytes(), [0; 8]].concat();
    let compacted = [&compacted.to_be_bytes()[..], b"_", &[0; 8]].concat();
    let meta: [(u32, &[u8], &[u8]); 2] =
        [(0, b"consistent_index", &applied.to_be_bytes()), (0, b"scheduledCompactRev", &compacted)];
    let meta = [header(0), page(0, 2, &meta)].concat();
    let mut created = std::collections::BTreeMap::new();
    let mut of = |change: &Changed<'_>| {
        let since = *created.entry(change.3.to_vec()).or_insert(change.0);
        if change.2 {
            created.remove(change.3);
        }
        (revision_key(change), pair(change, since))
    };
    let pairs: Vec<(Vec<u8>, Vec<u8>)> = changes.iter().map(&mut of).collect();
    let mut leaves = Vec::new();
    for (number, pairs) in pairs.chunks(per_leaf.max(1)).enumerate() {
        let entries: Vec<(u32, &[u8], &[u8])> = pairs.iter().map(|(key, value)| (0, &key[..], &value[..])).collect();
        leaves.push((pairs[0].0.clone(), page(5 + number as u64, 2, &entries)));
    }
    let below: Vec<(&[u8], u64)> = leaves.iter().zip(5..).map(|((first, _), id)| (first.as_slice(), id)).collect();
    let root = page(3, 2, &[(1, b"key", &header(4)), (1, b"meta", &meta)]);
    let mut file = Vec::new();
    let pages = [meta_page(0, 8, 9), meta_page(1, 9, 3), page(2, 16, &[]), root, branch(4, &below)];
    for (number, page) in pages.into_iter().chain(leaves.into_iter().map(|(_, page)| page)).enumerate() {
        file.extend(page);
        assert!(file.len() <= (number + 1) * 4096, "a page is too long");
        file.resize((number + 1) * 4096, 0);
    }
    file
}

fn revision_key((revision, place, is_deletion, ..): &Changed<'_>) -> Vec<u8> {
    let mark: &[u8] = if *is_deletion { b"t" } else { b"" };
    [&revision.to_be_bytes()[..], b"_", &place.to_be_bytes(), mark].concat()
}

fn pair((revision, _, is_deletion, key, value): &Changed<'_>, created: u64) -> Vec<u8> {
    let pair = Message::default().bytes(1, key);
    if *is_deletion {
        return pair.done();
    }
    pair.number(2, created).number(3, *revision).number(4, 1).bytes(5, value).done()
}

fn page_header(id: u64, flags: u16, count: usize) -> Vec<u8> {
    let count = u16::try_from(count).unwrap();
    [&id.to_le_bytes()[..], &flags.to_le_bytes(), &count.to_le_bytes(), &[0; 4]].concat()
}

fn meta_page(id: u64, transaction: u64, root: u64) -> Vec<u8> {
    let words = [0xed0c_daed_u32, 2, 4096, 0].into_iter().flat_map(u32::to_le_bytes);
    let longs = [root, 0, 2, 6, transaction].into_iter().flat_map(u64::to_le_bytes);
    let meta: Vec<u8> = words.chain(longs).collect();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in &meta {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    }
    [page_header(id, 4, 0), meta, hash.to_le_bytes().to_vec()].concat()
}

fn page(id: u64, flags: u16, entries: &[(u32, &[u8], &[u8])]) -> Vec<u8> {
    let (mut elements, mut data) = (page_header(id, flags, entries.len()), Vec::new());
    for (number, (flags, key, value)) in entries.iter().enumerate() {
        let position = (entries.len() - number) * 16 + data.len();
        for word in [*flags as usize, position, key.len(), value.len()] {
            elements.extend(u32::try_from(word).unwrap().to_le_bytes());
        }
        data.extend([*key, *value].concat());
    }
    [elements, data].concat()
}

fn branch(id: u64, entries: &[(&[u8], u64)]) -> Vec<u8> {
    let (mut elements, mut keys) = (page_header(id, 1, entries.len()), Vec::new());
    for (number, (key, child)) in entries.iter().enumerate() {
        let position = (entries.len() - number) * 16 + keys.len();
        elements.extend(u32::try_from(position).unwrap().to_le_bytes());
        elements.extend(u32::try_from(key.len()).unwrap().to_le_bytes());
        elements.extend(child.to_le_bytes());
        keys.extend(*key);
    }
    [elements, keys].concat()
}
