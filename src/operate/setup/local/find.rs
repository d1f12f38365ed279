//! Reports the state of a node, and changes nothing.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::{COLLECTOR, Found, LONE_BOOT, PCSD, PCSD_PAIR, Question, RENEWAL, Unit};
use crate::adapters::command::Programs;
use crate::adapters::podman;
use crate::operate::setup::found_file::{FoundFile, digest};
use crate::os::wiped;

/// Largest size of a file that is read, in bytes.
const FILE: u64 = 1024 * 1024;
/// Timeout of systemctl and podman. It is long, because a booting machine is slow, and no client of etcd waits for the
/// setup.
const PATIENCE: Duration = Duration::from_secs(90);
/// Path of the file with the tokens that pcsd accepts.
const ACCEPTED: &str = "/var/lib/pcsd/pcs_users.conf";
/// Directories with systemd's unit files.
const UNITS: [&str; 3] = ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];

/// Reads the state of everything that `question` names on this node. It changes nothing.
pub fn look(programs: &Programs, question: &Question) -> Found {
    let mut found = Found::default();
    for path in &question.files {
        match file(path) {
            Ok(Some(file)) => drop(found.files.insert(path.clone(), file)),
            Ok(None) => {}
            Err(error) => found.failures.push(format!("{} cannot be read: {error}", path.display())),
        }
    }
    if !question.image.is_empty() {
        match podman::image_id(programs, &question.image, PATIENCE) {
            Ok(id) => found.has_image = id.is_some(),
            Err(error) => found.failures.push(error.to_string()),
        }
    }
    found.units = units(programs);
    found.accepts_token = !question.token.0.is_empty() && accepts(Path::new(ACCEPTED), question.token.0.as_bytes());
    found.has_empty_pcsd_pair = has_nothing_whole(PCSD_PAIR.map(Path::new));
    found
}

/// Returns whether both files exist and neither contains the end of a PEM block, so that both are incomplete.
fn has_nothing_whole(paths: [&Path; 2]) -> bool {
    const END: &[u8] = b"-----END ";
    paths.iter().all(|path| wiped::read_at_most(path, FILE).is_ok_and(|content| !contains(&content, END)))
}

fn file(path: &Path) -> std::io::Result<Option<FoundFile>> {
    let mode = match std::fs::metadata(path) {
        Ok(metadata) => metadata.permissions().mode() & 0o7777,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let content = wiped::read_at_most(path, FILE)?;
    let text = std::str::from_utf8(&content).ok();
    let certificates =
        text.filter(|text| text.contains("-----BEGIN CERTIFICATE-----") && !text.contains("PRIVATE KEY"));
    Ok(Some(FoundFile { mode, digest: digest(&content), certificates: certificates.map(str::to_owned) }))
}

fn units(programs: &Programs) -> BTreeMap<String, Unit> {
    let says = |word: &str, unit: &str| {
        programs.run("systemctl", &[word, unit], PATIENCE).is_ok_and(|output| output.code == 0)
    };
    [PCSD, COLLECTOR, RENEWAL, LONE_BOOT]
        .into_iter()
        .map(|name| {
            let file = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
            let is_there = UNITS.iter().any(|directory| PathBuf::from(directory).join(&file).exists());
            let unit = Unit { is_there, is_active: says("is-active", &file), is_enabled: says("is-enabled", &file) };
            (name.to_owned(), unit)
        })
        .collect()
}

/// Returns whether pcsd's file `path` contains `token`, which pcs stores in base64.
fn accepts(path: &Path, token: &[u8]) -> bool {
    let Ok(text) = wiped::read_at_most(path, FILE) else { return false };
    let encoded = Zeroizing::new(STANDARD.encode(token));
    !encoded.is_empty() && contains(&text, encoded.as_bytes())
}

/// Returns whether `text` contains `part`, which must not be empty.
fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|there| there == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_by_its_digest_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert_eq!(file(&path).unwrap(), None);
        std::fs::write(&path, "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n").unwrap();
        assert_eq!(file(&path).unwrap().unwrap().certificates, None);
        std::fs::write(&path, "-----BEGIN CERTIFICATE-----\n").unwrap();
        assert!(file(&path).unwrap().unwrap().certificates.is_some());
    }

    #[test]
    fn what_a_power_cut_left_of_a_key_is_told_from_one() {
        let dir = tempfile::tempdir().unwrap();
        let paths = [dir.path().join("pcsd.crt"), dir.path().join("pcsd.key")];
        let pair = || has_nothing_whole([&paths[0], &paths[1]]);
        let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        std::fs::write(&paths[0], "").unwrap();
        assert!(!pair(), "pcsd makes both where one is not there");
        for (content, is_empty) in [("", true), ("\0\0\0\0", true), (&key[..40], true), (key, false)] {
            std::fs::write(&paths[1], content).unwrap();
            assert_eq!(pair(), is_empty, "{content:?}");
        }
        std::fs::write(&paths[0], key).unwrap();
        std::fs::write(&paths[1], "").unwrap();
        assert!(!pair(), "somebody may have given pcsd a certificate");
    }

    #[test]
    fn podman_has_longer_than_in_an_action() {
        let dir = tempfile::tempdir().unwrap();
        let late = crate::adapters::pace::Question::Podman.floor().as_secs() + 1;
        let programs =
            crate::adapters::command::fake_program(dir.path(), "podman", &format!("sleep {late}; echo sha256:1"));
        let found = look(&programs, &Question { image: "localhost/etcd".to_owned(), ..Question::default() });
        assert!(found.has_image, "{:?}", found.failures);
    }

    #[test]
    fn a_token_is_looked_for_as_pcs_writes_it_down() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pcs_users.conf");
        assert!(!accepts(&path, b"abc"));
        std::fs::write(&path, "[{\"username\": \"hacluster\", \"token\": \"YWJj\"}]").unwrap();
        assert!(accepts(&path, b"abc") && !accepts(&path, b"abd"));
    }
}
