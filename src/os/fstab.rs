//! The file systems that this machine mounts when it boots: `/etc/fstab`. The unit files of systemd are not read.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use super::proc;

pub(crate) const PATH: &str = "/etc/fstab";

/// A line of `/etc/fstab`: a file system with its mount point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The device of the file system, or a name for it such as `UUID=...`.
    pub(crate) source: String,
    pub(crate) point: PathBuf,
    pub(crate) file_system: String,
}

/// Returns the file systems that `/etc/fstab` mounts at boot. Returns none if there is no such file.
pub(crate) fn read() -> io::Result<Vec<Entry>> {
    match fs::read(PATH) {
        Ok(table) => Ok(parse(&table)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Reads lines of `/etc/fstab` such as `/dev/sdb1 /mnt/a\040b xfs defaults,nofail 0 2`. Skips lines of swap space, and lines with the
/// option `noauto`.
pub(crate) fn parse(table: &[u8]) -> Vec<Entry> {
    table.split(|byte| *byte == b'\n').filter_map(entry).collect()
}

fn entry(line: &[u8]) -> Option<Entry> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let source = fields.next().filter(|source| !source.starts_with(b"#"))?;
    let point = PathBuf::from(proc::unescaped(fields.next()?));
    let file_system = fields.next()?;
    let options = fields.next().unwrap_or_default();
    let is_mounted_at_boot = !options.split(|byte| *byte == b',').any(|option| option == b"noauto");
    let text = |field: &[u8]| proc::unescaped(field).to_string_lossy().into_owned();
    let entry = Entry { source: text(source), file_system: text(file_system), point };
    (entry.point.is_absolute() && is_mounted_at_boot).then_some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_mounted_at_boot_counts() {
        let table = b"# /dev/sda9 /comment xfs defaults 0 0\n\n\
            UUID=1234 / ext4 defaults 1 1\n\
            /dev/sdb1\t/var/lib/my\\040etcd   xfs\tdefaults,nofail 0 2\n\
            /dev/sdc1 /mnt xfs nofail,noauto 0 0\n\
            /dev/sdd1 none swap sw 0 0\n\
            \x20 LABEL=short /srv btrfs\n\
            /dev/sde1\n";
        let entry = |source: &str, point: &str, file_system: &str| Entry {
            source: source.to_owned(),
            point: point.into(),
            file_system: file_system.to_owned(),
        };
        let expected = [
            entry("UUID=1234", "/", "ext4"),
            entry("/dev/sdb1", "/var/lib/my etcd", "xfs"),
            entry("LABEL=short", "/srv", "btrfs"),
        ];
        assert_eq!(parse(table), expected);
    }
}
