//! Compares the two nodes' password files without revealing their content.
//!
//! Each node publishes a digest of each line of its copies. Corosync's authkey is the digest's key, because only root
//! on one of the nodes can read it, and root may read the password files too. An unkeyed digest could be tried against
//! a list of passwords. Without an authkey a node publishes only the number of lines.

use std::collections::BTreeMap;
use std::path::Path;

use data_encoding::HEXLOWER;
use ring::hmac;

use crate::adapters::pacemaker::seen::Configuration;
use crate::base::Fact;
use crate::fence::password_file::PasswordFile;
use crate::operate::cluster::Cluster;
use crate::os::secret::Secret;
use crate::os::wiped;

const KEY: &str = "/etc/corosync/authkey";
const KEY_LIMIT: u64 = 4_096;
/// Bytes of a password's digest that are published. They suffice to distinguish two passwords of one device.
const BYTES: usize = 8;

/// Adds the digests of this node's password files to this node's facts in `cluster`.
pub fn take_own(cluster: &mut Cluster) {
    let own = match &cluster.configuration {
        Fact::Known(configuration) => of(configuration, Path::new(KEY)),
        _ => return,
    };
    if let Some(Fact::Known(collected)) = cluster.collected.get_mut(&cluster.here) {
        collected.passwords = own;
    }
}

/// Returns the digests of the lines of each fence device's password file, by device. An unreadable file has an empty list.
pub fn of(configuration: &Configuration, key: &Path) -> BTreeMap<String, Vec<String>> {
    let key = key_of(key);
    let files = configuration.fence_devices.iter().filter_map(|device| {
        let path = device.resource.parameters.get("password_file")?;
        let lines = PasswordFile::look(Path::new(path)).map(|file| file.lines).unwrap_or_default();
        Some((device.resource.id.clone(), lines))
    });
    files.map(|(id, lines)| (id.clone(), lines.iter().map(|line| digest(key.as_ref(), &id, line)).collect())).collect()
}

/// Returns whether `node` has published that its copy of the password file of `device` contains `password`.
pub fn has(cluster: &Cluster, node: &str, device: &str, password: &Secret) -> bool {
    let Some(key) = key_of(Path::new(KEY)) else { return false };
    let collected = cluster.collected.get(node).and_then(Fact::known);
    let lines = collected.and_then(|collected| collected.passwords.get(device));
    lines.is_some_and(|lines| lines.contains(&digest(Some(&key), device, password)))
}

fn key_of(path: &Path) -> Option<hmac::Key> {
    let bytes = wiped::read_at_most(path, KEY_LIMIT).ok().filter(|bytes| !bytes.is_empty())?;
    Some(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

/// Returns the keyed digest of a line of a password file. It depends on the device, so that equal passwords of two devices have different
/// digests.
fn digest(key: Option<&hmac::Key>, device: &str, line: &Secret) -> String {
    let Some(key) = key else { return String::new() };
    let mut context = hmac::Context::with_key(key);
    for piece in [b"tandem password file\0", device.as_bytes(), b"\0", line.reveal()] {
        context.update(piece);
    }
    let tag = context.sign();
    HEXLOWER.encode(&tag.as_ref()[..BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::pacemaker::seen::{FenceDevice, Resource};

    #[test]
    fn a_digest_needs_the_key_and_differs_from_device_to_device() {
        let dir = tempfile::tempdir().unwrap();
        let (key, file) = (dir.path().join("authkey"), dir.path().join("password"));
        std::fs::write(&file, "hunter2\nhunter3\n").unwrap();
        let device = |id: &str| {
            let parameters = [("password_file".to_owned(), file.display().to_string())].into();
            FenceDevice {
                resource: Resource { id: id.to_owned(), parameters, ..Resource::default() },
                ..FenceDevice::default()
            }
        };
        let configuration = Configuration { fence_devices: vec![device("a"), device("b")], ..Configuration::default() };
        assert_eq!(of(&configuration, &key)["a"], ["", ""], "no key, so only how many there are");
        std::fs::write(&key, [7; 128]).unwrap();
        let with_key = of(&configuration, &key);
        assert_ne!(with_key["a"][0], with_key["a"][1]);
        assert_ne!(with_key["a"], with_key["b"]);
        assert_eq!(with_key, of(&configuration, &key), "the other node comes to the same");
        std::fs::write(&key, [8; 128]).unwrap();
        assert_ne!(with_key["a"], of(&configuration, &key)["a"]);
        std::fs::remove_file(&file).unwrap();
        assert!(of(&configuration, &key)["a"].is_empty());
    }
}
