//! Locks that belong to an open file and not to a process. Every process that inherits the file holds the lock as well. The lock
//! ends when the last of them has closed the file or has ended.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Locks the whole `file` exclusively, without waiting. The file must be open for writing. Returns whether the lock was free.
pub(crate) fn try_take(file: &File) -> io::Result<bool> {
    match fcntl(file.as_fd(), FcntlArg::F_OFD_SETLK(&exclusive())) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether the file is locked through another open file description, in this process or in another one. Takes no lock.
pub(crate) fn is_taken(file: &File) -> io::Result<bool> {
    let mut query = exclusive();
    fcntl(file.as_fd(), FcntlArg::F_OFD_GETLK(&mut query))?;
    Ok(i32::from(query.l_type) != libc::F_UNLCK)
}

fn exclusive() -> libc::flock {
    libc::flock {
        // The constants are 0 to 2 in every libc.
        l_type: i16::try_from(libc::F_WRLCK).unwrap_or_default(),
        l_whence: i16::try_from(libc::SEEK_SET).unwrap_or_default(),
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}
