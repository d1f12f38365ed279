//! The key that all members share, in a file that only root may read.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use data_encoding::HEXLOWER;
use ring::rand::{SecureRandom, SystemRandom};

use super::refusal::Refusal;
use crate::os::regular_file;
use crate::os::secret::Secret;

/// The shortest key, in bytes, without white space around it in the file.
const LEAST: usize = 32;
const LIMIT: u64 = 4_096;
/// The number of random bytes in a key that `fencing-agent keygen` generates.
const MADE: usize = 32;

/// Reads the shared key. Refuses a file that other users can read, or that belongs to another user.
pub(crate) fn read(file: &Path) -> Result<Secret, Refusal> {
    let failed = |source: std::io::Error| match source.kind() {
        ErrorKind::NotFound => Refusal::NoKey { file: file.to_owned() },
        _ => Refusal::KeyUnreadable { file: file.to_owned(), source },
    };
    let opened = regular_file::open(file).map_err(failed)?;
    let about = opened.metadata().map_err(failed)?;
    let mode = about.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(Refusal::OpenKey { file: file.to_owned(), mode });
    }
    let user = nix::unistd::geteuid().as_raw();
    if about.uid() != 0 && about.uid() != user {
        return Err(Refusal::KeyOfAnother { file: file.to_owned(), owner: about.uid() });
    }
    let mut bytes = zeroize::Zeroizing::new(Vec::new());
    regular_file::read_into(&mut bytes, opened, LIMIT).map_err(failed)?;
    let key = bytes.trim_ascii();
    if key.len() < LEAST {
        return Err(Refusal::ShortKey { file: file.to_owned(), has: key.len(), least: LEAST });
    }
    Ok(Secret::new(key))
}

/// Generates a random shared key, in hexadecimal.
pub(crate) fn generate() -> Result<String, Refusal> {
    let mut bytes = zeroize::Zeroizing::new([0; MADE]);
    SystemRandom::new().fill(bytes.as_mut()).map_err(|_| Refusal::Random)?;
    Ok(HEXLOWER.encode(bytes.as_ref()))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_for_root_alone_and_long_enough() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        let why = || read(&file).unwrap_err().to_string().replace(&file.display().to_string(), "FILE");
        assert!(why().contains("'fencing-agent keygen > FILE', 'chmod 0600 FILE'"), "{}", why());
        fs::write(&file, format!("{}\n", generate().unwrap())).unwrap();
        for mode in [0o640, 0o604, 0o660, 0o644] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            assert_eq!(why(), format!("FILE can be read by others (mode {mode:04o}): 'chmod 0600 FILE'"));
        }
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&file).unwrap().reveal().len(), 64);
        assert_ne!(generate().unwrap(), generate().unwrap());
        fs::write(&file, "  too short \n").unwrap();
        assert_eq!(why(), "FILE has 9 bytes, and a key has at least 32: 'fencing-agent keygen > FILE'");
    }
}
