//! The machine that the program runs on: clock, files, locks, processes, log, output and secrets in memory.

pub(crate) mod appended;
pub mod beneath;
pub mod clock;
pub(crate) mod daemon;
pub(crate) mod directory;
pub mod dmi;
pub(crate) mod file_kind;
pub(crate) mod fstab;
pub(crate) mod isolated;
#[cfg(feature = "lab-faults")]
pub(crate) mod lab_faults;
pub mod logging;
pub(crate) mod notify;
pub(crate) mod ofd_lock;
pub(crate) mod output;
pub(crate) mod proc;
pub mod regular_file;
pub mod secret;
pub(crate) mod terminate;
#[cfg(test)]
pub(crate) mod test_port;
pub mod uuid;
pub(crate) mod version;
pub mod wiped;
