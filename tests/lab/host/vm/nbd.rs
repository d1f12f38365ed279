//! A disk with a volatile cache, as an NBD server for one client. Written data is safe on the disk only after a flush.
//! A power cut keeps, loses or tears each unflushed block, as on a real disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;

use super::disk::Drive;
use crate::host::node::Node;
use crate::host::proc::Record;
use crate::host::state::{self, Lab};
use crate::random::Random;
use crate::sh::{self, Result};

// https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md: the fixed newstyle handshake, and simple replies.
const MAGIC: u64 = 0x4e42_444d_4147_4943;
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
/// The server's flags in an NBD handshake: fixed newstyle, and no 124 zeroes after the export's data.
const HANDSHAKE_FLAGS: u16 = 0b11;
const OPTION_EXPORT_NAME: u32 = 1;
const OPTION_ABORT: u32 = 2;
const OPTION_GO: u32 = 7;
const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;
const REPLY_UNSUPPORTED: u32 = 1 << 31 | 1;
const INFO_EXPORT: u16 = 0;
/// The flags of the exported disk: the flags are valid, and the disk accepts flushes.
const EXPORT_FLAGS: u16 = 0b101;
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const INVALID: u32 = 22;
/// The largest request that the server accepts, in bytes. QEMU's requests are smaller.
const LARGEST: u32 = 64 << 20;

const BLOCK: u64 = BLOCK_LENGTH as u64;
const BLOCK_LENGTH: usize = 4096;
/// The number of bytes that a disk writes as a whole or not at all.
const SECTOR: usize = 512;

pub fn socket(lab: &Lab, node: Node, drive: Drive) -> PathBuf {
    lab.node_dir(node).join(format!("{}.sock", drive.word()))
}

fn server_record(lab: &Lab, node: Node, drive: Drive) -> PathBuf {
    lab.node_dir(node).join(format!("{}.pid", drive.word()))
}

/// Starts the servers of a virtual machine's disks, and waits until they listen.
pub fn start(lab: &Lab, node: Node) -> Result<()> {
    Drive::of(lab).iter().try_for_each(|drive| start_one(lab, node, *drive))
}

fn start_one(lab: &Lab, node: Node, drive: Drive) -> Result<()> {
    let _ = std::fs::remove_file(socket(lab, node, drive));
    let log = lab.node_dir(node).join(format!("{}.log", drive.word()));
    let log = File::options().append(true).create(true).open(log)?;
    let child = Command::new("/proc/self/exe")
        .args(["--name", &lab.name, "disk-daemon", node.name(), drive.word()])
        .env_clear()
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    Record::of(child.id())?.save(&server_record(lab, node, drive))?;
    let listens = || socket(lab, node, drive).exists().then_some(());
    let what = format!("the {} of {node}", drive.word());
    sh::wait_for(&what, Duration::from_secs(20), Duration::from_millis(5), listens)
}

/// Stops the server of a disk until the machine's next power cut. The disk answers no request meanwhile, and loses none.
pub fn stand_still(lab: &Lab, node: Node, drive: Drive) -> Result<()> {
    let server = Record::load(&server_record(lab, node, drive)).ok_or_else(|| format!("{node} has no such disk"))?;
    server.signal(Signal::SIGSTOP)?;
    lab.event(&format!("{} of {node} stands still", drive.word()));
    Ok(())
}

/// Waits until the servers of a host's disks have noticed the end of their client.
pub fn ended(lab: &Lab, node: Node) -> Result<()> {
    Drive::of(lab).iter().try_for_each(|drive| one_ended(lab, node, *drive))
}

fn one_ended(lab: &Lab, node: Node, drive: Drive) -> Result<()> {
    let Some(server) = Record::load(&server_record(lab, node, drive)) else { return Ok(()) };
    // It may stand still, and settles what its client sent meanwhile.
    server.signal(Signal::SIGCONT)?;
    if sh::wait_for_quietly(Duration::from_secs(20), Duration::from_millis(5), || !server.alive()) {
        return Ok(());
    }
    // No client has connected.
    server.kill()
}

/// Runs the server of one disk of a host for one client, and then ends.
pub fn daemon(lab: &Lab, node: Node, drive: Drive) -> Result<()> {
    nix::unistd::setsid()?;
    let image = File::options().read(true).write(true).open(drive.image(lab, node))?;
    let size = image.metadata()?.len();
    let mut disk = Disk { image, cache: BTreeMap::new() };
    let listener = UnixListener::bind(socket(lab, node, drive))?;
    let (mut client, _) = listener.accept()?;
    let ended_well = if greet(&mut client, size)? { serve(&mut client, &mut disk) } else { Ok(false) };
    if matches!(ended_well, Ok(true)) {
        return Ok(disk.flush()?);
    }
    let seed = u64::from(state::since_epoch().subsec_nanos());
    let fate = disk.lose_power(seed)?;
    if fate != Fate::default() {
        let Fate { lost, torn, kept } = fate;
        lab.event(&format!(
            "{} of {node}: of the blocks that were not flushed {lost} are lost, {torn} torn, {kept} kept (seed {seed})",
            drive.word()
        ));
    }
    Ok(())
}

/// A virtual machine's disk, with the blocks that were written to it and not flushed.
struct Disk {
    image: File,
    cache: BTreeMap<u64, Box<[u8; BLOCK_LENGTH]>>,
}

/// The numbers of unflushed blocks that a power cut lost, wrote or tore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fate {
    lost: usize,
    /// The number of blocks of which only some sectors are on the disk.
    torn: usize,
    kept: usize,
}

impl Disk {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.image.read_exact_at(into, offset)?;
        let end = offset + into.len() as u64;
        for (&number, block) in self.cache.range(offset / BLOCK..end.div_ceil(BLOCK)) {
            let begin = number * BLOCK;
            let (from, to) = (begin.max(offset), (begin + BLOCK).min(end));
            into[index(from - offset)..index(to - offset)]
                .copy_from_slice(&block[index(from - begin)..index(to - begin)]);
        }
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let end = offset + data.len() as u64;
        for number in offset / BLOCK..end.div_ceil(BLOCK) {
            let begin = number * BLOCK;
            let (from, to) = (begin.max(offset), (begin + BLOCK).min(end));
            if !self.cache.contains_key(&number) {
                let mut block = Box::new([0; BLOCK_LENGTH]);
                if to - from < BLOCK {
                    self.image.read_exact_at(&mut block[..], begin)?;
                }
                self.cache.insert(number, block);
            }
            if let Some(block) = self.cache.get_mut(&number) {
                block[index(from - begin)..index(to - begin)]
                    .copy_from_slice(&data[index(from - offset)..index(to - offset)]);
            }
        }
        Ok(())
    }

    /// Writes the unflushed blocks to the disk's file. The file is not synced, because the machine that holds it
    /// stays up.
    fn flush(&mut self) -> io::Result<()> {
        for (number, block) in std::mem::take(&mut self.cache) {
            self.image.write_all_at(&block[..], number * BLOCK)?;
        }
        Ok(())
    }

    /// Decides the fate of the unflushed blocks by chance, as a power cut does. Each block is lost, written, or torn. Of a torn block,
    /// chance decides for each sector whether it is written.
    fn lose_power(&mut self, seed: u64) -> io::Result<Fate> {
        let (mut chance, mut fate) = (Random::new(seed), Fate::default());
        for (number, block) in std::mem::take(&mut self.cache) {
            match chance.below(3) {
                0 => fate.lost += 1,
                1 => {
                    self.image.write_all_at(&block[..], number * BLOCK)?;
                    fate.kept += 1;
                }
                _ => {
                    for (place, sector) in block.chunks_exact(SECTOR).enumerate() {
                        if chance.below(2) == 0 {
                            self.image.write_all_at(sector, number * BLOCK + (place * SECTOR) as u64)?;
                        }
                    }
                    fate.torn += 1;
                }
            }
        }
        Ok(fate)
    }
}

/// Returns whether the disk passes the lab's self-test. Reads must return what was written, flushed or not. A power
/// cut must be able to lose any block that was not flushed: the only one, the first or the last.
pub fn loses_what_was_not_flushed() -> bool {
    reads_what_was_written().unwrap_or(false) && [1, 2, 9].into_iter().all(|blocks| loses_any(blocks).unwrap_or(false))
}

fn reads_what_was_written() -> Result<bool> {
    let mut disk = disk_of(2)?;
    disk.write(0, &[1; BLOCK_LENGTH])?;
    disk.flush()?;
    // The write crosses the end of a block.
    disk.write(BLOCK - 3, &[2; 6])?;
    let mut around = [0; 8];
    disk.read(BLOCK - 4, &mut around)?;
    disk.flush()?;
    let mut found = vec![0; 2 * BLOCK_LENGTH];
    disk.read(0, &mut found)?;
    let (old, new) = found.split_at(BLOCK_LENGTH - 3);
    let is_there = old.iter().all(|byte| *byte == 1) && new[..6] == [2; 6] && new[6..].iter().all(|byte| *byte == 0);
    Ok(around == [1, 2, 2, 2, 2, 2, 2, 0] && is_there)
}

/// Returns whether each of `blocks` unflushed blocks is lost in some power cut, torn in another and kept in a third.
/// Nothing else on the disk may change.
fn loses_any(blocks: usize) -> Result<bool> {
    const SEEDS: u64 = 64;
    let mut seen = vec![Fate::default(); blocks];
    for seed in 0..SEEDS {
        let mut disk = disk_of(blocks + 1)?;
        disk.write(0, &vec![3; blocks * BLOCK_LENGTH])?;
        let fate = disk.lose_power(seed)?;
        let mut found = vec![0; (blocks + 1) * BLOCK_LENGTH];
        disk.read(0, &mut found)?;
        let mut counted = Fate::default();
        for (block, seen) in found.chunks(BLOCK_LENGTH).zip(&mut seen) {
            let sectors: Vec<&[u8]> = block.chunks(SECTOR).collect();
            if sectors.iter().any(|sector| sector.iter().any(|byte| *byte != sector[0])) {
                return Ok(false);
            }
            let new = sectors.iter().filter(|sector| sector[0] == 3).count();
            for all in [seen, &mut counted] {
                let became = match new {
                    0 => &mut all.lost,
                    whole if whole == sectors.len() => &mut all.kept,
                    _ => &mut all.torn,
                };
                *became += 1;
            }
        }
        let is_behind_untouched = found[blocks * BLOCK_LENGTH..].iter().all(|byte| *byte == 0);
        // A torn block may by chance keep all its sectors, or none.
        if !is_behind_untouched || counted.torn > fate.torn || fate.lost + fate.torn + fate.kept != blocks {
            return Ok(false);
        }
    }
    Ok(seen.iter().all(|block| block.lost > 0 && block.torn > 0 && block.kept > 0))
}

/// Returns an empty disk of `blocks` blocks in the machine's memory.
fn disk_of(blocks: usize) -> Result<Disk> {
    let image = File::from(nix::sys::memfd::memfd_create(c"tandem-lab-disk", nix::sys::memfd::MFdFlags::empty())?);
    image.set_len((blocks * BLOCK_LENGTH) as u64)?;
    Ok(Disk { image, cache: BTreeMap::new() })
}

/// Converts an offset within one request to an index.
fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// Performs the NBD handshake. Returns whether the client wants to use the disk.
fn greet(client: &mut UnixStream, size: u64) -> io::Result<bool> {
    client.write_all(&MAGIC.to_be_bytes())?;
    client.write_all(&OPTION_MAGIC.to_be_bytes())?;
    client.write_all(&HANDSHAKE_FLAGS.to_be_bytes())?;
    let _flags = u32::from_be_bytes(take(client)?);
    loop {
        let _magic: [u8; 8] = take(client)?;
        let option = u32::from_be_bytes(take(client)?);
        let mut data = vec![0; index(u64::from(u32::from_be_bytes(take(client)?).min(LARGEST)))];
        client.read_exact(&mut data)?;
        match option {
            OPTION_EXPORT_NAME => {
                client.write_all(&size.to_be_bytes())?;
                client.write_all(&EXPORT_FLAGS.to_be_bytes())?;
                return Ok(true);
            }
            OPTION_GO => {
                let mut info = INFO_EXPORT.to_be_bytes().to_vec();
                info.extend(size.to_be_bytes());
                info.extend(EXPORT_FLAGS.to_be_bytes());
                reply(client, option, REPLY_INFO, &info)?;
                reply(client, option, REPLY_ACK, &[])?;
                return Ok(true);
            }
            OPTION_ABORT => return reply(client, option, REPLY_ACK, &[]).map(|()| false),
            _ => reply(client, option, REPLY_UNSUPPORTED, &[])?,
        }
    }
}

fn reply(client: &mut UnixStream, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
    client.write_all(&OPTION_REPLY_MAGIC.to_be_bytes())?;
    client.write_all(&option.to_be_bytes())?;
    client.write_all(&kind.to_be_bytes())?;
    client.write_all(&u32::try_from(data.len()).unwrap_or(0).to_be_bytes())?;
    client.write_all(data)
}

/// Answers NBD requests. Returns true when the client disconnects in order, and false when it vanishes.
fn serve(client: &mut UnixStream, disk: &mut Disk) -> io::Result<bool> {
    loop {
        if u32::from_be_bytes(take(client)?) != REQUEST_MAGIC {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let _flags = u16::from_be_bytes(take(client)?);
        let kind = u16::from_be_bytes(take(client)?);
        let cookie: [u8; 8] = take(client)?;
        let offset = u64::from_be_bytes(take(client)?);
        let length = u32::from_be_bytes(take(client)?).min(LARGEST);
        let mut data = vec![0; index(u64::from(length))];
        let mut error = 0;
        match kind {
            READ => disk.read(offset, &mut data)?,
            WRITE => {
                client.read_exact(&mut data)?;
                disk.write(offset, &data)?;
            }
            FLUSH => disk.flush()?,
            DISCONNECT => return Ok(true),
            _ => error = INVALID,
        }
        client.write_all(&REPLY_MAGIC.to_be_bytes())?;
        client.write_all(&u32::to_be_bytes(error))?;
        client.write_all(&cookie)?;
        if kind == READ {
            client.write_all(&data)?;
        }
    }
}

fn take<const N: usize>(client: &mut UnixStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes)?;
    Ok(bytes)
}
