//! The fence device to change, and its present options.

use std::path::PathBuf;

use zeroize::Zeroizing;

use crate::adapters::command::Programs;
use crate::adapters::pacemaker::Error;
use crate::adapters::pacemaker::fence_options::{self, Devices};
use crate::adapters::pacemaker::fence_update::old_name;
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::operate::cluster::Cluster;
use crate::operate::failure::Failure;
use crate::operate::fencing::with_node;
use crate::operate::health::fencing::is_ours;
use crate::os::secret::Secret;

/// A fence device that uses `fence_redfish_rs`, and the one node that it is to fence.
pub(super) struct Device {
    pub id: String,
    pub node: String,
    pub plug: Option<String>,
    /// The device's options as `NAME=VALUE` lines, as Pacemaker's fencer passes them to the fence agent, secrets included.
    options: Zeroizing<Vec<u8>>,
    /// Path of the password file, of which each node has its own copy; `None` if the device has no such file.
    pub password_file: Option<PathBuf>,
}

/// The fence device options that contain a password, or name its file or script.
const PASSWORDS: [&str; 5] = ["password", "passwd", "password_file", "password_script", "passwd_script"];
/// Triples of an option, another option that would disable it, and the value that the other option must have.
const TOGETHER: [(&str, &str, &str); 1] = [("ssl_fingerprint", "ssl_insecure", "0")];

impl Device {
    /// Reads the options of the device `chosen`, which fences `node`.
    pub(super) fn read(options: &Devices, chosen: &FenceDevice, node: &str) -> Result<Self, Error> {
        let id = chosen.resource.id.clone();
        Ok(Self {
            options: options.lines_of(&id)?,
            plug: chosen.plugs.get(node).cloned(),
            password_file: chosen.resource.parameters.get("password_file").map(PathBuf::from),
            node: node.to_owned(),
            id,
        })
    }

    /// Returns the device's options as `NAME=VALUE` lines. `values` and `password` replace the options that the device has.
    pub(super) fn options(&self, values: &[(&str, &str)], password: Option<&[u8]>) -> Zeroizing<Vec<u8>> {
        let mut lines = Zeroizing::new(Vec::with_capacity(self.options.len() * 2 + 64 * 1024));
        for line in self.options.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let name = line.split(|byte| *byte == b'=').next().unwrap_or_default();
            let is = |known: &str| known.as_bytes() == name;
            let is_replaced = values.iter().any(|(new, _)| is(new) || old_name(new).is_some_and(is));
            let is_password = password.is_some() && PASSWORDS.iter().any(|known| is(known));
            if !is_replaced && !is_password {
                lines.extend_from_slice(line);
                lines.push(b'\n');
            }
        }
        let password = password.map(|password| ("password", password));
        for (name, value) in values.iter().map(|(name, value)| (*name, value.as_bytes())).chain(password) {
            for piece in [name.as_bytes(), b"=", value, b"\n"] {
                lines.extend_from_slice(piece);
            }
        }
        lines
    }

    /// Returns the option that must change together with `name`, and its value; `None` if there is none.
    pub(super) fn with_it(&self, name: &str) -> Option<(&'static str, &'static str)> {
        let (_, other, value) = TOGETHER.iter().find(|(one, ..)| *one == name)?;
        self.has(other).then_some((*other, *value))
    }

    /// Returns the value of the option `name`, which must not be a secret; `None` if it is not set.
    pub(super) fn value(&self, name: &str) -> Option<String> {
        let mut lines = self.options.split(|byte| *byte == b'\n');
        let value = lines.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// Returns the value of the option `name`, which contains a password; `None` if it is not set.
    pub(super) fn secret(&self, name: &str) -> Option<Secret> {
        let mut lines = self.options.split(|byte| *byte == b'\n');
        lines.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b"=")).map(Secret::new)
    }

    /// Returns whether the device has the option `name`.
    pub(super) fn has(&self, name: &str) -> bool {
        let is_it = |line: &[u8]| line.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='));
        self.options.split(|byte| *byte == b'\n').any(is_it)
    }
}

/// Returns the device that fences `node`. `wanted` is its id, which is needed if several devices fence `node`.
pub(super) fn find(
    programs: &Programs,
    cluster: &Cluster,
    node: &str,
    wanted: Option<&str>,
) -> Result<Device, Failure> {
    let configuration = with_node(cluster, node)?;
    let chosen = choose(&configuration.fence_devices, node, wanted)?;
    let id = chosen.resource.id.clone();
    if !is_ours(chosen) {
        let agent = &chosen.resource.agent;
        return Err(Failure(format!(
            "{id} is of {agent}, whose options this command does not know: type 'pcs stonith update {id}' with its own"
        )));
    }
    let parameters = &chosen.resource.parameters;
    if ["password_script", "passwd_script"].iter().any(|name| parameters.contains_key(*name)) {
        return Err(Failure(format!(
            "{id} has its password from a script, which says what it is: change it there, then type 'tandem fencing check {id}'"
        )));
    }
    let options = fence_options::read(programs)?;
    if options.has_kept_secret(&id)? {
        return Err(Failure(format!(
            "the password of {id} is kept by cibsecret: type 'cibsecret set {id} password', which asks for it"
        )));
    }
    Ok(Device::read(&options, chosen, node)?)
}

fn choose<'a>(all: &'a [FenceDevice], node: &str, wanted: Option<&str>) -> Result<&'a FenceDevice, Failure> {
    let fits = |device: &&FenceDevice| device.targets.is_empty() || device.targets.iter().any(|one| one == node);
    let mut found: Vec<&FenceDevice> = all.iter().filter(fits).collect();
    let ids: Vec<&str> = found.iter().map(|device| device.resource.id.as_str()).collect();
    let ids = ids.join(" or ");
    if let Some(wanted) = wanted {
        found.retain(|device| device.resource.id == wanted);
        return found.pop().ok_or_else(|| {
            Failure(format!("{node} has no fence device called '{wanted}'; type it with --device {ids}"))
        });
    }
    match (found.pop(), found.is_empty()) {
        (Some(device), true) => Ok(device),
        (Some(_), false) => Err(Failure(format!("{node} has several fence devices: add --device {ids}"))),
        (None, _) => Err(Failure(format!("{node} has no fence device: see 'pcs stonith create'"))),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::adapters::pacemaker::seen::Resource;

    pub(in super::super) fn device(options: &str) -> Device {
        Device {
            id: "fence-node2".to_owned(),
            node: "node2".to_owned(),
            plug: None,
            options: Zeroizing::new(options.as_bytes().to_vec()),
            password_file: None,
        }
    }

    #[test]
    fn new_values_take_the_place_of_old_ones_by_every_name() {
        let device = device("ipaddr=192.0.2.1\nlogin=admin\npassword_file=/etc/p\nssl_insecure=1\n");
        let text = |values: &[(&str, &str)], password: Option<&[u8]>| {
            String::from_utf8(device.options(values, password).to_vec()).unwrap()
        };
        assert_eq!(
            text(&[("ip", "192.0.2.9")], None),
            "login=admin\npassword_file=/etc/p\nssl_insecure=1\nip=192.0.2.9\n"
        );
        assert_eq!(text(&[], Some(b"x=y")), "ipaddr=192.0.2.1\nlogin=admin\nssl_insecure=1\npassword=x=y\n");
        assert_eq!((device.with_it("ssl_fingerprint"), device.with_it("ip")), (Some(("ssl_insecure", "0")), None));
    }

    #[test]
    fn the_nodes_own_device_is_meant() {
        let named = |id: &str, target: &str| FenceDevice {
            resource: Resource { id: id.to_owned(), ..Resource::default() },
            targets: vec![target.to_owned()],
            ..FenceDevice::default()
        };
        let all = [named("a", "node1"), named("b", "node2"), named("c", "node2")];
        let id =
            |node, wanted| choose(&all, node, wanted).map(|device| device.resource.id.clone()).map_err(|why| why.0);
        assert_eq!(id("node1", None).unwrap(), "a");
        assert_eq!(id("node2", Some("c")).unwrap(), "c");
        assert!(id("node2", None).unwrap_err().contains("--device b or c"));
        assert!(id("node2", Some("a")).unwrap_err().contains("no fence device called 'a'"));
        assert!(id("node3", None).unwrap_err().contains("pcs stonith create"));
    }
}
