//! Checks the parameters against this machine: the files are readable, podman is installed, the addresses fit.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use crate::adapters::data_dir;
use crate::adapters::etcd::client::PEM_LIMIT;
use crate::agent::resource::context::Context;
use crate::agent::resource::params::Invalid;
use crate::os::beneath::Dir;
use crate::os::regular_file;

/// Checks the parameters against this machine, without any change of the cluster.
pub(super) fn validate(context: &Context) -> Result<(), Invalid> {
    for program in ["podman", "cibadmin", "crm_attribute", "attrd_updater"] {
        if context.programs.find(program).is_none() {
            return Err(Invalid::here(format!(
                "{program} is not installed: install the packages podman and pacemaker"
            )));
        }
    }
    certificates(context)?;
    warn_of_secrets(context);
    data_can_be_moved(context.data_dir())?;
    addresses(context)
}

/// Checks that the data dir could be renamed for a backup before a join. A start only logs the error, because an etcd that ran with this
/// data dir before must start again.
pub(super) fn data_can_be_moved(data_dir: &Path) -> Result<(), Invalid> {
    data_dir::mounted_member(data_dir).map_or(Ok(()), |member| {
        Err(Invalid::here(format!(
            "mount the file system one level higher, at {}, not at {}: no join could back that up",
            data_dir.display(),
            member.display()
        )))
    })
}

/// Part of a start's time that is reserved for starting etcd. The agent waits for this node's address only as long as this part is left.
const START_NEEDS: Duration = Duration::from_secs(60);
const LOOK_FOR_THE_ADDRESS_EVERY: Duration = Duration::from_secs(1);

/// Waits for this node's address, which a slow network set-up may add later. Pacemaker counts failed starts, so waiting is better than
/// failing. Does not wait if this node has the peer's address, because waiting does not end that fault.
pub(super) fn wait_for_address(context: &Context) -> Result<(), Invalid> {
    let mut is_news = true;
    loop {
        match addresses(context) {
            Err(invalid) if !is_swapped(context) && context.deadline.left() > START_NEEDS => {
                if std::mem::take(&mut is_news) {
                    log::info!("start: waiting: {invalid}");
                }
                context.deadline.sleep(LOOK_FOR_THE_ADDRESS_EVERY);
            }
            checked => return checked,
        }
    }
}

/// Checks that this node has its own address in `node_ip_map`, and not the peer's. If the two were exchanged, each agent would take the
/// other node's etcd for its own. An operator can repair this on the node or in the map, so Pacemaker may try again.
fn addresses(context: &Context) -> Result<(), Invalid> {
    match own_addresses() {
        Some(known) => addresses_fit(&context.me.name, context.own_ip, peer_ip(context), &known),
        None => Ok(()),
    }
}

fn addresses_fit(name: &str, own: IpAddr, peer: Option<IpAddr>, known: &[IpAddr]) -> Result<(), Invalid> {
    if let Some(peer) = peer.filter(|peer| known.contains(peer)) {
        return Err(Invalid::for_now(format!(
            "see 'ip addr': node_ip_map gives the peer {peer}, which is this node's; give each node its own"
        )));
    }
    if known.contains(&own) {
        return Ok(());
    }
    Err(Invalid::for_now(format!("see 'ip addr': node_ip_map gives {name} {own}, which is not on this node")))
}

fn is_swapped(context: &Context) -> bool {
    let known = own_addresses().unwrap_or_default();
    peer_ip(context).is_some_and(|peer| known.contains(&peer))
}

fn peer_ip(context: &Context) -> Option<IpAddr> {
    context.params.nodes.iter().find(|node| node.name != context.me.name).map(|node| node.ip)
}

/// Returns the addresses of this machine's network interfaces; `None` if they cannot be determined.
fn own_addresses() -> Option<Vec<IpAddr>> {
    let interfaces = nix::ifaddrs::getifaddrs();
    if let Err(error) = &interfaces {
        log::debug!("this machine's addresses cannot be read: {error}");
    }
    let addresses = interfaces.ok()?.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    });
    Some(addresses.collect())
}

/// Checks that the certificates are readable. A file can be repaired at any moment, so Pacemaker may try again.
pub(super) fn certificates(context: &Context) -> Result<(), Invalid> {
    context.deployment.files.iter().try_for_each(|(name, path)| readable_pem(name, path))
}

/// Logs a warning if the container can read another program's secret. This must not be an error, because a resource that worked before an
/// update must continue to work.
pub(super) fn warn_of_secrets(context: &Context) {
    if let Some(sentence) = exposed(context) {
        log::warn!("{sentence}");
    }
}

/// Returns a fault if a directory of certificates that is mounted in the container contains a secret of another program; else `None`.
///
/// Each directory is mounted as a whole, because a renewal replaces files. With single files mounted, a container would see the old files
/// until it is made anew. The key of Tandem's own CA is in the directory of etcd's certificates, and etcd may read it.
fn exposed(context: &Context) -> Option<String> {
    let shown =
        context.deployment.mounts.iter().filter(|mount| mount.read_only).map(|mount| mount.on_the_node.as_path());
    let secret_in = |directory: &Path| {
        let names = Dir::open(directory).and_then(|directory| directory.names()).unwrap_or_default();
        let name = names.iter().map(|name| name.to_string_lossy()).find(|name| is_a_secret(name))?;
        let directory = directory.display();
        Some(format!("move {name} away: {directory} goes into etcd's container as a directory of certificates"))
    };
    shown.into_iter().find_map(secret_in)
}

/// Returns whether a file's name is one that the guides give to a BMC's password, or that `tandem` gives to files for another node.
fn is_a_secret(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "join") || name.to_lowercase().contains("password")
}

fn readable_pem(name: &str, path: &Path) -> Result<(), Invalid> {
    let wrong = |why: String| {
        Invalid::for_now(format!("{name}={} {why}: put a PEM file there, readable by root", path.display()))
    };
    let unreadable = |error: std::io::Error| wrong(format!("cannot be read ({})", error.kind()));
    let text = regular_file::text_of_at_most(path, PEM_LIMIT).map_err(unreadable)?;
    if text.contains("-----BEGIN ") { Ok(()) } else { Err(wrong("is not a PEM file".to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::ocf::exit::Code;

    #[test]
    fn addresses_that_are_exchanged_or_not_here_are_told_and_tried_again() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let (own, peer) = (ip("192.0.2.1"), ip("2001:db8::2"));
        let here = [ip("127.0.0.1"), own];
        assert!(addresses_fit("node1", own, Some(peer), &here).is_ok());
        assert!(addresses_fit("node1", own, None, &here).is_ok());
        for (own, peer, words) in [
            (peer, Some(own), "see 'ip addr': node_ip_map gives the peer 192.0.2.1, which is this node's"),
            (own, Some(ip("127.0.0.1")), "gives the peer 127.0.0.1"),
            (
                peer,
                Some(ip("192.0.2.3")),
                "see 'ip addr': node_ip_map gives node1 2001:db8::2, which is not on this node",
            ),
            (peer, None, "which is not on this node"),
        ] {
            let invalid = addresses_fit("node1", own, peer, &here).unwrap_err();
            assert!(invalid.sentence.contains(words), "{invalid}");
            assert_eq!(invalid.code, Code::Generic, "an address may come: {invalid}");
            assert!(invalid.sentence.len() <= crate::adapters::ocf::exit::REASON_LIMIT);
        }
    }

    #[test]
    fn a_directory_of_certificates_with_a_secret_of_others_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name).display().to_string();
        let (ca, cert, key, data) = (file("ca.crt"), file("etcd.crt"), file("etcd.key"), file("data"));
        let files = [("trusted_ca_file", ca.as_str()), ("cert_file", &cert), ("key_file", &key)];
        let more = [("image", "etcd:test"), ("data_dir", data.as_str()), ("config_location", &data)];
        let context = Context::of_test(dir.path(), &[&files[..], &more].concat());
        for name in ["ca.crt", "ca.key", "etcd.key"] {
            std::fs::write(file(name), "").unwrap();
        }
        assert!(exposed(&context).is_none());
        for name in ["bmc-password", "node2.join"] {
            std::fs::write(file(name), "").unwrap();
            let fault = exposed(&context).unwrap();
            assert!(fault.starts_with(&format!("move {name} away: ")), "{fault}");
            std::fs::remove_file(file(name)).unwrap();
        }
    }

    #[test]
    fn this_machine_has_its_loopback_address() {
        assert!(own_addresses().unwrap().contains(&IpAddr::from([127, 0, 0, 1])));
    }
}
