//! The program's own files that outlive a process. `docs/design/formats.md` has a row for each.

pub mod bmc_note;
pub mod data_mount;
pub mod decision_log;
pub mod events;
pub mod failed_starts;
pub mod image_versions;
pub mod kept_history;
pub mod lone_boot;
pub mod own_dir;
pub mod state_file;
