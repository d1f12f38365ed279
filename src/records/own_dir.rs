//! The agent's own directory in a directory that etcd's container writes to, such as the data dir. The container has it mounted
//! read-only over itself, and can neither change, rename nor delete it.
//!
//! A mount of each file would not last, because the kernel removes such a mount when the agent renames a new file to that name.
//! Earlier versions of the agent wrote next to this directory. Their files are read until the directory is created, and are then
//! moved into it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::base::Fact;
use crate::os::beneath::Dir;
use crate::os::directory;
use crate::os::file_kind::Kind;
use crate::os::regular_file;
use crate::records::state_file;

/// The name of the agent's own directory in a directory that etcd's container can write to.
pub const NAME: &str = "tandem";
/// The name of the agent's own directory while the files of an earlier version are being moved there.
const UNFINISHED: &str = "tandem.new";
/// The file with the agent's durable record (`DurableState`) about etcd's data.
pub const NOTE: &str = "tandem-note.json";
/// The file with the number of etcd's crashes over its data.
pub const FAILED_STARTS: &str = "tandem-failed-starts.json";

/// Returns the path of the agent's file `name` for messages.
pub fn path(data_dir: &Path, name: &str) -> PathBuf {
    data_dir.join(NAME).join(name)
}

/// Reads the agent's file `name`, which [`write`] has written.
pub fn read<T: DeserializeOwned>(data_dir: &Path, name: &str) -> Fact<T> {
    let opened = Dir::open(data_dir).and_then(opened);
    let path = opened.as_ref().map_or_else(|_| path(data_dir, name), |own| own.path().join(name));
    state_file::parsed(&path, opened.and_then(|own| own.own_file(name, state_file::SMALL)))
}

/// Replaces the agent's file `name`, and reads the new one to check it.
pub fn write<T: Serialize + DeserializeOwned + PartialEq>(data_dir: &Path, name: &str, value: &T) -> io::Result<()> {
    directory::make(data_dir, 0o700)?;
    make(&Dir::open(data_dir)?)?.replace(name, &serde_json::to_vec(value)?, 0o600)?;
    match read::<T>(data_dir, name) {
        Fact::Known(found) if found == *value => Ok(()),
        _ => Err(state_file::not_as_written(&path(data_dir, name))),
    }
}

/// Deletes the agent's file `name`. A missing file is no error.
pub fn remove(data_dir: &Path, name: &str) -> io::Result<()> {
    match Dir::open(data_dir).and_then(opened) {
        Ok(own) => own.remove(name),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Reads the text that [`replace_and_link`] has written to the file `name` in the agent's own directory, which is in `location`. If that
/// file is missing, reads the file `name` in `location` itself.
pub fn text(location: &Dir, name: &str, limit: u64) -> io::Result<String> {
    let own = opened(location.try_clone()?)?;
    match own.own_text(name, limit) {
        Err(error) if error.kind() == ErrorKind::NotFound => location.own_text(name, limit),
        text => text,
    }
}

/// Opens the agent's own directory in `parent`. If it is missing, creates it and moves there the files that an earlier version wrote to
/// `parent`. A crash in the middle of the move leaves each file complete at the place where the agent reads it.
pub fn make(parent: &Dir) -> io::Result<Dir> {
    if is_made(parent)? {
        return parent.below(NAME);
    }
    parent.remove_all(UNFINISHED)?;
    let own = parent.make_below(UNFINISHED)?;
    for name in [NOTE, FAILED_STARTS] {
        match parent.own_file(name, state_file::SMALL) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // An empty file is damaged. It stays unreadable and does not become absent.
            found => own.replace(name, &found.unwrap_or_default(), 0o600)?,
        }
    }
    own.sync()?;
    parent.remove(NAME)?;
    parent.rename(UNFINISHED, NAME)?;
    parent.sync()?;
    for name in [NOTE, FAILED_STARTS] {
        parent.remove_all(name)?;
    }
    parent.below(NAME)
}

/// Writes the agent's file `name` by calling `write`. The file is in the agent's own directory in `location`. Puts a link to the file into
/// `location` itself, where other programs expect the file.
pub fn replace_and_link(
    location: &Dir,
    name: &str,
    write: impl FnOnce(&mut std::fs::File) -> io::Result<()>,
) -> io::Result<()> {
    make(location)?.replace_with(name, 0o600, write)?;
    location.replace_with_link(name, &Path::new(NAME).join(name))
}

fn opened(parent: Dir) -> io::Result<Dir> {
    if is_made(&parent)? { parent.below(NAME) } else { Ok(parent) }
}

/// Returns whether the agent's own directory exists in `parent`. Any other object of that name does not belong to the agent.
fn is_made(parent: &Dir) -> io::Result<bool> {
    match parent.stat(NAME) {
        Ok(found) => Ok(Kind::of(&found) == Kind::Directory),
        Err(error) if error.kind() == ErrorKind::NotFound || regular_file::is_irregular(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::decide::evidence::{DurableState, Lineage};

    fn note(forks: u64) -> DurableState {
        DurableState { lineage: Lineage { forks, by: "node1".to_owned() }, ..DurableState::default() }
    }

    fn note_in(data_dir: &Path) -> Fact<DurableState> {
        read(data_dir, NOTE)
    }

    #[test]
    fn what_is_written_reads_back_and_moves_with_the_data() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("a/etcd"), dir.path().join("b"));
        assert!(note_in(&old).is_absent());
        write(&old, NOTE, &note(2)).unwrap();
        assert_eq!(fs::read_dir(old.join(NAME)).unwrap().count(), 1);
        fs::rename(&old, &new).unwrap();
        assert_eq!(note_in(&new), Fact::Known(note(2)));
        remove(&new, NOTE).unwrap();
        remove(&new, NOTE).unwrap();
        assert!(note_in(&new).is_absent());
    }

    #[test]
    fn an_earlier_versions_file_counts_until_the_directory_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let former = dir.path().join(NOTE);
        fs::write(&former, serde_json::to_vec(&note(3)).unwrap()).unwrap();
        assert_eq!(note_in(dir.path()), Fact::Known(note(3)));
        let parent = Dir::open(dir.path()).unwrap();
        // A creation that a crash has interrupted.
        fs::create_dir(dir.path().join(UNFINISHED)).unwrap();
        assert_eq!(note_in(dir.path()), Fact::Known(note(3)));
        make(&parent).unwrap();
        assert!(!former.exists() && !dir.path().join(UNFINISHED).exists());
        assert_eq!(note_in(dir.path()), Fact::Known(note(3)));
        // The container may later write such a file there.
        fs::write(&former, serde_json::to_vec(&note(9)).unwrap()).unwrap();
        assert_eq!(note_in(dir.path()), Fact::Known(note(3)));
        remove(dir.path(), NOTE).unwrap();
        assert!(note_in(dir.path()).is_absent());
    }

    #[test]
    fn what_cannot_be_read_stays_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let former = dir.path().join(NOTE);
        nix::unistd::mkfifo(&former, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert!(matches!(note_in(dir.path()), Fact::Unknown(why) if why.contains("a FIFO")));
        make(&Dir::open(dir.path()).unwrap()).unwrap();
        assert!(matches!(note_in(dir.path()), Fact::Unknown(why) if why.contains("damaged")));
        write(dir.path(), NOTE, &note(1)).unwrap();
        assert_eq!(note_in(dir.path()), Fact::Known(note(1)));
    }

    /// Asserts that a file of a terabyte is refused, because reading it could use up the machine's memory.
    #[test]
    fn a_file_of_many_bytes_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), NOTE, &note(1)).unwrap();
        let file = fs::File::options().write(true).open(path(dir.path(), NOTE)).unwrap();
        file.set_len(state_file::SMALL).unwrap();
        assert!(matches!(note_in(dir.path()), Fact::Unknown(why) if !why.contains("too large")), "zeros are no JSON");
        file.set_len(1 << 40).unwrap();
        let Fact::Unknown(why) = note_in(dir.path()) else { panic!("a terabyte was read") };
        assert!(why.contains("too large"), "{why}");
    }

    /// Asserts that a link in place of the agent's own directory is not followed. A container that ran before that directory existed may
    /// have put a link there.
    #[test]
    fn a_link_in_place_of_the_agents_directory_is_not_followed() {
        let (dir, host) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = dir.path().join(NAME);
        fs::write(host.path().join(NOTE), serde_json::to_vec(&note(7)).unwrap()).unwrap();
        symlink(host.path(), &at).unwrap();
        symlink(host.path(), dir.path().join(UNFINISHED)).unwrap();
        assert!(note_in(dir.path()).is_absent());
        write(dir.path(), NOTE, &note(1)).unwrap();
        assert!(fs::symlink_metadata(&at).unwrap().is_dir());
        assert_eq!(fs::read_dir(host.path()).unwrap().count(), 1);
        assert_eq!(fs::read(host.path().join(NOTE)).unwrap(), serde_json::to_vec(&note(7)).unwrap());
    }

    #[test]
    fn the_configuration_is_read_where_the_container_cannot_write() {
        let dir = tempfile::tempdir().unwrap();
        let location = || Dir::open(dir.path()).unwrap();
        let text = || super::text(&location(), "config.yaml", 100);
        fs::write(dir.path().join("config.yaml"), "earlier").unwrap();
        assert_eq!(text().unwrap(), "earlier");
        make(&location()).unwrap();
        assert_eq!(text().unwrap(), "earlier");
        let put = |text: &'static [u8]| {
            replace_and_link(&location(), "config.yaml", |file| io::Write::write_all(file, text)).unwrap();
        };
        put(b"own");
        assert_eq!(fs::read_to_string(dir.path().join("config.yaml")).unwrap(), "own", "by the link");
        assert_eq!(text().unwrap(), "own");
        // The container replaces the link.
        for plant in [|at: &Path| fs::write(at, "planted").unwrap(), |at: &Path| fs::create_dir(at).unwrap()] {
            fs::remove_file(dir.path().join("config.yaml")).unwrap();
            plant(&dir.path().join("config.yaml"));
            assert_eq!(text().unwrap(), "own");
            put(b"own");
            assert_eq!(fs::read_link(dir.path().join("config.yaml")).unwrap(), Path::new("tandem/config.yaml"));
        }
    }
}
