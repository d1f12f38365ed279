//! OpenShift's Secret of a node's BMC: compares it with the node's fence device, and returns what to take over from it.

use std::path::Path;

use super::device::Device;
use super::values::{self, New};
use crate::adapters::https::address::{Address, HTTPS_PORT};
use crate::adapters::openshift::machine::PATIENCE;
use crate::adapters::openshift::tnf::{self, Credentials};
use crate::adapters::pacemaker::fence_options::Devices;
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::base::Fact;
use crate::fence::password_file::PasswordFile;
use crate::operate::failure::Failure;
use crate::os::secret::Secret;

// Names of the differences.
const ADDRESS: &str = "address";
const USER: &str = "user";
const PASSWORD: &str = "password";

/// Returns the parts in which `device` differs from OpenShift's Secret of the node that it fences. Returns `Absent` if there is no
/// Secret.
pub fn differences(options: &Devices, device: &FenceDevice, kubeconfig: &Path) -> Fact<Vec<&'static str>> {
    let Some(node) = device.targets.first() else { return Fact::Absent };
    let device = match Device::read(options, device, node) {
        Ok(device) => device,
        Err(error) => return Fact::Unknown(error.to_string()),
    };
    credentials(kubeconfig, &device).and_then(|credentials| compared(&device, &credentials))
}

fn credentials(kubeconfig: &Path, device: &Device) -> Fact<Credentials> {
    let host = device.value("ip").or_else(|| device.value("ipaddr"));
    let host = host.and_then(|ip| Address::parse(&ip, HTTPS_PORT).ok());
    tnf::secret_of(kubeconfig, (&device.node, host.as_ref().map(Address::host)), PATIENCE)
}

fn compared(device: &Device, credentials: &Credentials) -> Fact<Vec<&'static str>> {
    let Ok(passwords) = passwords(device) else {
        return Fact::Unknown(format!("the password file of {} cannot be read", device.id));
    };
    let taken = taken(device, credentials, &passwords);
    let has = |names: &[&str]| taken.options.iter().any(|(name, _)| names.contains(name));
    let found = [
        (ADDRESS, has(&["ip", "ipport", "systems_uri"])),
        (USER, has(&["username"])),
        (PASSWORD, taken.password.is_some()),
    ];
    Fact::Known(found.into_iter().filter_map(|(word, differs)| differs.then_some(word)).collect())
}

/// Returns the values in OpenShift's Secret of the node that differ from those of `device`.
pub(super) fn read(kubeconfig: &Path, device: &Device) -> Result<New, Failure> {
    let node = &device.node;
    let credentials = match credentials(kubeconfig, device) {
        Fact::Known(credentials) => credentials,
        Fact::Unknown(why) => {
            return Err(Failure(format!(
                "nothing was changed, because the Secret of {node} cannot be read ({why}): type 'oc -n openshift-etcd get secrets'"
            )));
        }
        Fact::Absent | Fact::NotAsked => {
            return Err(Failure(format!(
                "nothing was changed, because OpenShift has no Secret of {node}: type 'tandem fencing update {node}' without --from-secret"
            )));
        }
    };
    let passwords = passwords(device).map_err(|error| {
        let file = device.password_file.as_deref().unwrap_or(Path::new("")).display();
        Failure(format!("nothing was changed, because the password file {file} cannot be read: {error}"))
    })?;
    let new = taken(device, &credentials, &passwords);
    if device.password_file.is_none() && new.password.as_ref().is_some_and(|password| values::text(password).is_none())
    {
        return Err(values::no_text());
    }
    Ok(new)
}

/// Returns the passwords of a fence device. A password file may have two: the old one, and one that waits until the BMC accepts it.
fn passwords(device: &Device) -> std::io::Result<Vec<Secret>> {
    match &device.password_file {
        Some(path) => PasswordFile::look(path).map(|file| file.lines),
        None => Ok(["password", "passwd"].iter().find_map(|name| device.secret(name)).into_iter().collect()),
    }
}

fn taken(device: &Device, credentials: &Credentials, passwords: &[Secret]) -> New {
    let of = |name: &str| credentials.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let mut options = Vec::new();
    let own_port = device.value("ipport").and_then(|port| port.parse().ok()).unwrap_or(HTTPS_PORT);
    let own = device.value("ip").or_else(|| device.value("ipaddr")).unwrap_or_default();
    let port = of("ipport").and_then(|port| port.parse().ok()).unwrap_or(HTTPS_PORT);
    let ip = of("ip").unwrap_or_default();
    let full = |ip: &str, port: u16| Address::parse(ip, port).map(|address| address.full()).ok();
    if full(&own, own_port) != full(ip, port) {
        options.push(("ip", ip.to_owned()));
        options.push(("ipport", port.to_string()));
    }
    let own_uri = device.value("systems_uri");
    // A device without the option finds the system itself, so there is nothing to compare.
    if let (Some(own), Some(uri)) = (own_uri, of("systems_uri"))
        && own.trim_end_matches('/') != uri.trim_end_matches('/')
    {
        options.push(("systems_uri", uri.to_owned()));
    }
    let user = device.value("username").or_else(|| device.value("login")).unwrap_or_default();
    if let Some(wanted) = of("username").filter(|wanted| *wanted != user) {
        options.push(("username", wanted.to_owned()));
    }
    let wanted = crate::fence::password_file::lines(credentials.password.as_bytes()).into_iter().next();
    // A `password_script` leaves no password to compare with.
    let password = wanted.filter(|wanted| !passwords.is_empty() && !passwords.contains(wanted));
    New { password, options }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::super::device::tests::device;
    use super::*;

    const DEVICE: &str = "ip=192.0.2.2\nusername=admin\nsystems_uri=/redfish/v1/Systems/1\npassword=hunter2\n";

    fn credentials(changes: &[(&str, &str)]) -> Credentials {
        let same =
            [("username", "admin"), ("ip", "192.0.2.2"), ("ipport", "443"), ("systems_uri", "/redfish/v1/Systems/1")];
        let value = |name: &str, value: &str| {
            changes.iter().find(|(changed, _)| *changed == name).map_or(value, |(_, new)| *new).to_owned()
        };
        let password = Zeroizing::new(value("password", "hunter2"));
        Credentials {
            options: same.iter().map(|(name, old)| ((*name).to_owned(), value(name, old))).collect(),
            password,
        }
    }

    fn differ(text: &str, changes: &[(&str, &str)]) -> Vec<&'static str> {
        match compared(&device(text), &credentials(changes)) {
            Fact::Known(found) => found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_another_bmc_user_or_password_differs() {
        assert_eq!(differ(DEVICE, &[]), [""; 0]);
        for (change, expected) in [
            (("ip", "192.0.2.9"), ADDRESS),
            (("ipport", "8443"), ADDRESS),
            (("systems_uri", "/redfish/v1/Systems/2"), ADDRESS),
            (("username", "root"), USER),
            (("password", "hunter3"), PASSWORD),
        ] {
            assert_eq!(differ(DEVICE, &[change]), [expected], "{change:?}");
        }
        let all = differ(DEVICE, &[("ip", "192.0.2.9"), ("username", "root"), ("password", "hunter3")]);
        assert_eq!(all, [ADDRESS, USER, PASSWORD]);
    }

    /// Asserts that equal values count as equal in every notation. OpenShift's operator and an administrator write the same address or
    /// user differently.
    #[test]
    fn another_way_to_write_the_same_is_no_difference() {
        for same in [
            "ip=192.0.2.2:443\nusername=admin\npassword=hunter2\n",
            "ipaddr=192.0.2.2\nipport=443\nlogin=admin\nsystems_uri=/redfish/v1/Systems/1/\npasswd=hunter2\n",
        ] {
            assert_eq!(differ(same, &[]), [""; 0], "{same}");
        }
        let v6 = "ip=2001:db8::5\nusername=admin\npassword=hunter2\n";
        assert_eq!(differ(v6, &[("ip", "[2001:db8::5]")]), [""; 0]);
        assert_eq!(differ(DEVICE, &[("password", "hunter2\n")]), [""; 0], "a file may end its line");
    }

    #[test]
    fn a_password_that_waits_in_the_file_is_none_that_differs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        std::fs::write(&path, "hunter2\nhunter3\n").unwrap();
        let mut device = device("ip=192.0.2.2\nusername=admin\n");
        device.password_file = Some(path.clone());
        let found = |password| compared(&device, &credentials(&[("password", password)]));
        assert_eq!(found("hunter3"), Fact::Known(Vec::new()));
        assert_eq!(found("hunter4"), Fact::Known(vec![PASSWORD]));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(found("hunter3"), Fact::Unknown(_)), "what cannot be read is not the same");
    }

    #[test]
    fn a_password_that_a_script_has_is_not_compared() {
        assert_eq!(
            differ("ip=192.0.2.2\nusername=admin\npassword_script=/bin/x\n", &[("password", "hunter3")]),
            [""; 0]
        );
    }

    #[test]
    fn what_is_taken_is_what_differs() {
        let new =
            taken(&device(DEVICE), &credentials(&[("ip", "192.0.2.9"), ("ipport", "8443")]), &[Secret::new("hunter2")]);
        let expected = [("ip", "192.0.2.9".to_owned()), ("ipport", "8443".to_owned())];
        assert_eq!((new.options.as_slice(), new.password.is_none()), (&expected[..], true));
        let new = taken(&device(DEVICE), &credentials(&[("password", "hunter3")]), &[Secret::new("hunter2")]);
        assert_eq!(new.password, Some(Secret::new("hunter3")));
    }
}
