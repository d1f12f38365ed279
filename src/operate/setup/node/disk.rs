//! The file system of the data dir: its free space and the time of a synced write, which bounds every write of etcd.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use nix::sys::statvfs::statvfs;

use super::Disk;
use crate::adapters::data_dir;
use crate::os::clock::Deadline;

const WRITES: usize = 100;
/// Bytes of one test write, about the size of an entry in etcd's log.
const LENGTH: usize = 2048;
/// Longest time for all test writes. A slower disk gets fewer writes, which still show that it is slow.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads the free space of the file system where `dir` is or will be, and measures synced writes. The test file is
/// unlinked as soon as it is open.
pub(super) fn look(dir: &Path) -> Disk {
    let Some(there) = dir.ancestors().find(|dir| dir.is_dir()) else {
        return Disk { failure: Some("there is no directory".to_owned()), ..Disk::default() };
    };
    let system = statvfs(there).map_err(|error| error.desc().to_owned());
    let free_bytes =
        system.as_ref().map_or(0, |system| system.blocks_available().saturating_mul(system.fragment_size()));
    let is_member_mounted = data_dir::mounted_member(dir).is_some();
    match sync_times(there) {
        Ok(times) => Disk { free_bytes, sync_micros: slow(times), failure: system.err(), is_member_mounted },
        Err(error) => {
            Disk { free_bytes, failure: Some(error.kind().to_string()), is_member_mounted, ..Disk::default() }
        }
    }
}

fn sync_times(dir: &Path) -> io::Result<Vec<u64>> {
    let mut file = nameless(dir)?;
    let (block, end) = ([0x5a_u8; LENGTH], Deadline::after(PATIENCE));
    let mut times = Vec::with_capacity(WRITES);
    while times.len() < WRITES && !end.has_passed() {
        let before = end.elapsed();
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(u64::try_from((end.elapsed().saturating_sub(before)).as_micros()).unwrap_or(u64::MAX));
    }
    Ok(times)
}

fn nameless(dir: &Path) -> io::Result<File> {
    let path = dir.join(format!(".tandem-setup-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Returns the 99th percentile of the measured `times`; `None` if there are none.
fn slow(mut times: Vec<u64>) -> Option<u64> {
    times.sort_unstable();
    let at = (times.len() * 99).div_ceil(100);
    times.get(at.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_but_one_of_a_hundred_counts() {
        assert_eq!(slow((1..=100).collect()), Some(99));
        assert_eq!(slow(vec![7]), Some(7));
        assert_eq!(slow(Vec::new()), None);
    }

    #[test]
    fn a_look_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let disk = look(&dir.path().join("not/there/yet"));
        assert!(disk.free_bytes > 0 && disk.sync_micros.is_some() && disk.failure.is_none(), "{disk:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
