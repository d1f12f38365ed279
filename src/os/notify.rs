//! Notifications to systemd from a service of `Type=notify`: datagrams to the socket that the environment names.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends a `state` such as `READY=1` to the service manager's `socket`. A name that begins with `@` is an abstract socket.
pub(crate) fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let sender = UnixDatagram::unbound()?;
    sender.set_nonblocking(true)?;
    sender.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_a_name_without_one_are_reached() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let name = format!("tandem-test-{}", std::process::id());
        let listening = [SocketAddr::from_pathname(&path).unwrap(), SocketAddr::from_abstract_name(&name).unwrap()];
        for (address, given) in listening.iter().zip([path.into_os_string(), format!("@{name}").into()]) {
            let receiver = UnixDatagram::bind_addr(address).unwrap();
            send(&given, "READY=1").unwrap();
            let mut buffer = [0; 16];
            let read = receiver.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..read], b"READY=1");
        }
        assert!(send(OsStr::new("/nowhere/socket"), "READY=1").is_err());
    }
}
