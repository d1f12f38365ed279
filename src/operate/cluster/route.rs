//! The interface of this machine over which an address is reached. The kernel answers it for a datagram that is never sent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// UDP port with which the route to an address is looked up. Any port works, because connecting a UDP socket sends nothing.
const ANY_PORT: u16 = 9;

/// Returns the interface over which the kernel reaches `address`; `None` if it has no route, or does not answer.
pub(super) fn interface_to(address: IpAddr) -> Option<String> {
    let unspecified: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((unspecified, 0)).ok()?;
    socket.connect((address, ANY_PORT)).ok()?;
    interface_with(socket.local_addr().ok()?)
}

/// Returns the name of the interface that has the address `own`; `None` if there is none.
fn interface_with(own: SocketAddr) -> Option<String> {
    let mut interfaces = nix::ifaddrs::getifaddrs().ok()?;
    let has_it = |interface: &nix::ifaddrs::InterfaceAddress| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        let found = v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))?;
        (found == own.ip()).then_some(())
    };
    interfaces.find(|interface| has_it(interface).is_some()).map(|interface| interface.interface_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_reached_over_its_own_interface_and_nothing_over_none() {
        assert_eq!(interface_to(Ipv4Addr::LOCALHOST.into()).as_deref(), Some("lo"));
        assert_eq!(interface_to(Ipv4Addr::BROADCAST.into()), None);
    }
}
