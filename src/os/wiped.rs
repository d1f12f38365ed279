//! Reads secrets into buffers that are wiped when they are dropped, and that leave no copies behind by growing.

use std::io::{self, Read};
use std::path::Path;

use zeroize::Zeroizing;

use crate::os::regular_file;

/// Returns a buffer that holds `room` bytes without growing, because a buffer that grows leaves copies in memory.
fn buffer(room: usize) -> Zeroizing<Vec<u8>> {
    // A full buffer would grow just to find the end of the file.
    Zeroizing::new(Vec::with_capacity(room.saturating_add(1)))
}

/// Reads all of `reader` into a buffer that is wiped when it is dropped. No other copy is made if the contents are at most `room` bytes.
pub fn read(mut reader: impl Read, room: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = buffer(room);
    reader.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file as [`regular_file::read_at_most`] does, into a buffer that is wiped when it is dropped.
pub fn read_at_most(path: &Path, limit: u64) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = regular_file::open(path)?;
    let mut bytes = buffer(usize::try_from(file.metadata()?.len().min(limit)).unwrap_or_default());
    regular_file::read_into(&mut bytes, file, limit)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_with_room_does_not_grow() {
        for length in [0, 99, 100] {
            let bytes = read(&vec![7; length][..], 100).unwrap();
            assert_eq!((bytes.len(), bytes.capacity()), (length, 101));
        }
        assert_eq!(read(&[7; 500][..], 100).unwrap().len(), 500, "what does not fit is read all the same");
    }

    #[test]
    fn a_file_has_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(**read_at_most(&path, 5).unwrap(), *b"12345");
        assert_eq!(read_at_most(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(read_at_most(Path::new("/dev/zero"), 4).unwrap_err().to_string().contains("a device"));
    }
}
