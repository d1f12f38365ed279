//! Which TCP ports somebody listens on, from the kernel's table. A connection that lingers blocks nobody.

use std::collections::BTreeSet;

/// The state of a socket that listens, as the table writes it.
const LISTEN: &str = "0A";

/// The ports of this machine that are taken.
pub fn ports() -> BTreeSet<u16> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .flat_map(|table| listening(&std::fs::read_to_string(table).unwrap_or_default()))
        .collect()
}

/// Lines are `0: 00000000:094B 00000000:0000 0A ...`: number, local address and port, remote ones, state.
fn listening(table: &str) -> Vec<u16> {
    let port = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next()?;
        let state = fields.nth(1)?;
        let port = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
        (state == LISTEN).then_some(port)
    };
    table.lines().filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listeners_count() {
        let table = "  sl  local_address rem_address   st tx_queue\n   \
            0: 00000000:094B 00000000:0000 0A 00000000:00000000\n   \
            1: 0100007F:094C 0100007F:C350 06 00000000:00000000\n   \
            2: 00000000000000000000000000000000:26FA 00000000000000000000000000000000:0000 0A 0\n";
        assert_eq!(listening(table), [2379, 9978]);
    }

    #[test]
    fn a_port_in_time_wait_is_free() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(ports().contains(&port));
        let client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (server, _) = listener.accept().unwrap();
        // The side that closes first lingers.
        drop((server, listener));
        drop(client);
        // Another test's child may have the listener for the moment between its fork and its exec.
        let mut looks = 0..100;
        assert!(looks.any(|_| {
            crate::clock::sleep(std::time::Duration::from_millis(10));
            !ports().contains(&port)
        }));
    }
}
