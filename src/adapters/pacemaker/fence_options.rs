//! The options of a fence device as its agent receives them, secrets included. They are for an operator's command that asks the
//! BMC itself.

use std::path::Path;

use roxmltree::Document;
use zeroize::Zeroizing;

use super::element::nvpairs;
use super::{Error, run};
use crate::adapters::command::Programs;
use crate::os::wiped;

/// The directory where `cibsecret` and Pacemaker's library (`cib_secrets.c`) keep secrets.
const SECRETS: &str = "/var/lib/pacemaker/lrm/secrets";
/// The value that replaces a secret in the CIB.
const IS_SECRET: &str = "lrm://";
const SECRET_LIMIT: u64 = 64 * 1024;
/// The prefixes of options that the fencer itself uses and does not pass to an agent.
const OF_THE_FENCER: [&str; 2] = ["pcmk_", "crm_"];

/// The resources section of the CIB, for the options of all fence devices. It may contain passwords.
pub struct Devices(Zeroizing<String>);

impl std::fmt::Debug for Devices {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Devices(***)")
    }
}

/// Reads the options of all fence devices from the CIB.
pub fn read(programs: &Programs) -> Result<Devices, Error> {
    let xml = run(programs, "cibadmin", &["--query", "--scope", "resources"])?;
    Ok(Devices(Zeroizing::new(xml)))
}

impl Devices {
    /// Returns whether an option of `device` is a secret that `cibsecret` keeps outside of the CIB.
    pub fn has_kept_secret(&self, device: &str) -> Result<bool, Error> {
        let document = Document::parse(&self.0).map_err(|error| Error::Parse(error.to_string()))?;
        let primitive =
            document.descendants().find(|node| node.has_tag_name("primitive") && node.attribute("id") == Some(device));
        let mut pairs = primitive.into_iter().flat_map(|primitive| nvpairs(primitive, "instance_attributes"));
        Ok(pairs.any(|(_, value)| value == IS_SECRET))
    }

    /// Returns the options of `device` as lines for its agent's standard input, or no lines if there is no such device. Fails if a secret
    /// cannot be read. Without this error the agent would run without the secret.
    pub fn lines_of(&self, device: &str) -> Result<Zeroizing<Vec<u8>>, Error> {
        self.lines_with(device, Path::new(SECRETS))
    }

    fn lines_with(&self, device: &str, secrets: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
        let document = Document::parse(&self.0).map_err(|error| Error::Parse(error.to_string()))?;
        let mut lines = Zeroizing::new(Vec::with_capacity(self.0.len()));
        let primitive =
            document.descendants().find(|node| node.has_tag_name("primitive") && node.attribute("id") == Some(device));
        for (name, value) in primitive.into_iter().flat_map(|primitive| nvpairs(primitive, "instance_attributes")) {
            if OF_THE_FENCER.iter().any(|prefix| name.starts_with(prefix)) {
                continue;
            }
            let kept;
            let value = if value == IS_SECRET {
                kept = kept_secret(secrets, device, name)?;
                // The fencer trims the end, too.
                kept.trim_ascii_end()
            } else {
                value.as_bytes()
            };
            lines.extend_from_slice(name.as_bytes());
            lines.push(b'=');
            lines.extend_from_slice(value);
            lines.push(b'\n');
        }
        Ok(lines)
    }
}

fn kept_secret(secrets: &Path, device: &str, name: &str) -> Result<Zeroizing<Vec<u8>>, Error> {
    let path = secrets.join(device).join(name);
    wiped::read_at_most(&path, SECRET_LIMIT).map_err(|error| Error::Secret {
        device: device.to_owned(),
        option: name.to_owned(),
        path: path.display().to_string(),
        why: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that [`SECRETS`] is the directory that Pacemaker's own tool and library use, where they are installed.
    #[test]
    fn a_secret_is_where_pacemaker_has_it() {
        if let Ok(tool) = std::fs::read_to_string("/usr/sbin/cibsecret") {
            assert!(tool.contains(&format!("LRM_CIBSECRETS=\"{SECRETS}\"")), "cibsecret has another place");
        }
        let libraries =
            ["/usr/lib/x86_64-linux-gnu", "/usr/lib64"].into_iter().filter_map(|dir| std::fs::read_dir(dir).ok());
        let library = libraries.flatten().flatten().find(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libcrmcommon.so.") && name.matches('.').count() == 4
        });
        if let Some(library) = library {
            let bytes = std::fs::read(library.path()).unwrap();
            let wanted = format!("\0{SECRETS}\0");
            assert!(
                bytes.windows(wanted.len()).any(|place| place == wanted.as_bytes()),
                "the library has another place"
            );
        }
    }

    #[test]
    fn the_agent_gets_its_own_options_and_nobody_elses() {
        let xml = r#"<resources><primitive id="f1" class="stonith" type="fence_redfish_rs">
            <instance_attributes id="a"><nvpair id="1" name="ip" value="192.0.2.1"/>
            <nvpair id="2" name="password" value="hunter=2 &amp; more"/><nvpair id="3" name="pcmk_host_list" value="node1"/>
            <nvpair id="4" name="passwd" value="lrm://"/></instance_attributes>
            <meta_attributes id="m"><nvpair id="5" name="target-role" value="Stopped"/></meta_attributes></primitive>
            <primitive id="f2"><instance_attributes id="b"><nvpair id="6" name="ip" value="192.0.2.2"/></instance_attributes>
            </primitive></resources>"#;
        let devices = Devices(Zeroizing::new(xml.to_owned()));
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("f1")).unwrap();
        std::fs::write(dir.path().join("f1/passwd"), " kept\n\n").unwrap();
        let lines = devices.lines_with("f1", dir.path()).unwrap();
        assert_eq!(String::from_utf8_lossy(&lines), "ip=192.0.2.1\npassword=hunter=2 & more\npasswd= kept\n");
        // An unreadable secret is an error, and not an empty option.
        std::fs::remove_file(dir.path().join("f1/passwd")).unwrap();
        let why = devices.lines_with("f1", dir.path()).unwrap_err().to_string();
        assert!(why.contains("the passwd of f1 is kept by cibsecret") && why.contains("/f1/passwd"), "{why}");
        assert!(devices.lines_of("f3").unwrap().is_empty());
        assert!(devices.has_kept_secret("f1").unwrap() && !devices.has_kept_secret("f2").unwrap());
        assert!(!format!("{devices:?}").contains("hunter"));
    }
}
