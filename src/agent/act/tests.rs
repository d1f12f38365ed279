//! Files that a compromised etcd leaves under the names that the agent writes in the data dir.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::archive::{CONFIGURATION, keep_configuration};
use super::container::settle_config;
use crate::agent::resource::context::Context;

const FORCED: &str = "name: \"node1\"\nforce-new-cluster: true\n";

/// Returns the context of a node with etcd's configuration in the data dir, which is the default.
fn node(data_dir: &Path) -> Context {
    let place = data_dir.display().to_string();
    let files = [("trusted_ca_file", "/c/ca.crt"), ("cert_file", "/c/etcd.crt"), ("key_file", "/c/etcd.key")];
    let more = [("image", "etcd:test"), ("data_dir", place.as_str()), ("config_location", &place)];
    fs::write(data_dir.join("config.yaml"), FORCED).unwrap();
    Context::of_test(data_dir, &[&files[..], &more].concat())
}

/// Returns the names and texts in the archive of etcd's last configuration.
fn archived(context: &Context) -> Vec<(String, String)> {
    let file = fs::File::open(context.params.config_location.join(CONFIGURATION)).unwrap();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let read = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.unwrap();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        (format!("/{}", entry.path().unwrap().display()), text)
    };
    archive.entries().unwrap().map(read).collect()
}

#[test]
fn the_archive_holds_what_the_container_was_configured_with() {
    let dir = tempfile::tempdir().unwrap();
    let context = node(dir.path());
    fs::write(dir.path().join("pod.yaml"), "pod").unwrap();
    keep_configuration(&context).unwrap();
    let mode = fs::metadata(dir.path().join(CONFIGURATION)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let place = |name: &str| dir.path().join(name).display().to_string();
    let expected = [(place("pod.yaml"), "pod".to_owned()), (place("config.yaml"), FORCED.to_owned())];
    assert_eq!(archived(&context), expected);
}

/// Asserts that the agent follows no link out of the data dir, because a compromised etcd may make any name there a link to a file of the
/// host.
#[test]
fn no_name_in_the_data_dir_leads_to_a_file_of_the_host() {
    type Plant = fn(&Path, &Path);
    const SECRET: &str = "hunter2\nforce-new-cluster: true\n";
    let host = tempfile::tempdir().unwrap();
    let secret = host.path().join("bmc-password");
    fs::write(&secret, SECRET).unwrap();
    let before = fs::metadata(&secret).unwrap().permissions().mode();
    let plants: [Plant; 2] = [|from, to| symlink(from, to).unwrap(), |from, to| fs::hard_link(from, to).unwrap()];
    for plant in plants {
        let dir = tempfile::tempdir().unwrap();
        let context = node(dir.path());
        let config = dir.path().join("config.yaml");
        for name in ["config-previous.tar.new", "config-previous.tar.gz", "config.new", "pod.yaml", "pod.new"] {
            plant(&secret, &dir.path().join(name));
        }
        keep_configuration(&context).unwrap();
        settle_config(&context).unwrap();
        assert_eq!(fs::read_to_string(&config).unwrap(), FORCED.replace("true", "false"));
        fs::remove_file(&config).unwrap();
        plant(&secret, &config);
        settle_config(&context).unwrap();
        let own = dir.path().join("tandem/config.yaml");
        assert_eq!(fs::read_to_string(&own).unwrap(), FORCED.replace("true", "false"), "the agent's own counts");
        fs::remove_file(&own).unwrap();
        plant(&secret, &own);
        let refused = settle_config(&context).unwrap_err().to_string();
        assert!(refused.contains("link where a"), "{refused}");
        keep_configuration(&context).unwrap();
        assert_eq!(archived(&context), [(config.display().to_string(), FORCED.to_owned())]);
        assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET);
        assert_eq!(fs::metadata(&secret).unwrap().permissions().mode(), before);
    }
}

/// Asserts that the agent refuses a FIFO or an endless file in the data dir at once. Either could block an action or cost memory.
#[test]
fn what_has_no_end_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let context = node(dir.path());
    let config = dir.path().join("config.yaml");
    fs::remove_file(&config).unwrap();
    nix::unistd::mkfifo(&config, nix::sys::stat::Mode::S_IRUSR).unwrap();
    nix::unistd::mkfifo(&dir.path().join("pod.yaml"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    assert!(context.config_text().is_err() && context.saved_manifest().is_err());
    fs::remove_file(&config).unwrap();
    fs::File::create(&config).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(context.config_text().unwrap_err().kind(), std::io::ErrorKind::FileTooLarge);
}
