//! The file of members, which a controller rewrites while the agent runs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::fencing_agent::config::refusal::Refusal;
use crate::fencing_agent::config::{Config, read_members};

/// The inode, size and time of modification of a file, which show that it was changed.
type Print = (u64, u64, i64, i64);

/// The file of members, as it was last read.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    last: Option<Print>,
}

impl Lists {
    /// Records the present file of members as already read.
    pub(crate) fn new(config: &Config) -> Self {
        Self { last: config.members_file.as_deref().and_then(print) }
    }

    /// Returns the configuration with the new list of members, once after each change of the file. An invalid list or a missing file is an
    /// error, which is also returned only once.
    pub(crate) fn changed(&mut self, config: &Config) -> Result<Option<Config>, Refusal> {
        let Some(file) = &config.members_file else { return Ok(None) };
        let found = print(file);
        if found == self.last {
            return Ok(None);
        }
        self.last = found;
        let config = config.with_members(read_members(file)?)?;
        Ok(Some(config))
    }
}

fn print(file: &Path) -> Option<Print> {
    let about = fs::metadata(file).ok()?;
    Some((about.ino(), about.size(), about.mtime(), about.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fencing_agent::config::{EXAMPLE, Environment};

    #[test]
    fn a_rewritten_list_is_taken_once_and_a_wrong_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (file, members) = (dir.path().join("config"), dir.path().join("members"));
        let list = "node1 = '192.0.2.1'\nnode2 = '192.0.2.2'\nnode3 = '192.0.2.3'\n";
        fs::write(&members, list).unwrap();
        let named = format!("members_file = '{}'", members.display());
        let text = EXAMPLE.replace(&format!("[members]\n{}", list.replace('\'', "\"")), "");
        assert_ne!(text, EXAMPLE);
        fs::write(&file, text.replacen("port = 7946", &format!("port = 7946\n{named}"), 1)).unwrap();
        let config = Config::read(&file, Environment::default()).unwrap();
        let mut lists = Lists::new(&config);
        assert!(lists.changed(&config).unwrap().is_none());
        fs::write(&members, format!("{list}node4 = '192.0.2.4'\n")).unwrap();
        let changed = lists.changed(&config).unwrap().unwrap();
        assert_eq!((changed.members.len(), changed.quorum()), (4, 3));
        assert!(lists.changed(&changed).unwrap().is_none());
        fs::write(&members, "node4 = '192.0.2.4'\n").unwrap();
        assert!(lists.changed(&changed).unwrap_err().to_string().contains("node node1 is not listed"));
        assert!(lists.changed(&changed).unwrap().is_none());
        fs::remove_file(&members).unwrap();
        assert!(lists.changed(&changed).unwrap_err().to_string().contains("cannot be read"));
    }
}
