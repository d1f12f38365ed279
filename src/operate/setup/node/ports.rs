//! The ports that each node needs at the other: finds other programs that hold them, and firewalls that block them.
//!
//! One node listens on the ports for a moment and echoes a word; the other one sends it. So a firewall on either node,
//! or between them, is found before anything is changed.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::os::clock;

/// The bytes that a client sends to a test listener, and that the listener sends back.
const WORD: [u8; 16] = *b"tandem setup 17\n";
/// Interval at which a test listener checks whether it is to stop.
const BEAT: Duration = Duration::from_millis(50);
/// Longest time that a test listener waits for a client's bytes. Tandem's own client sends them at once.
const FOR_THE_WORD: Duration = Duration::from_millis(500);
/// Longest time that a client waits for an answer. A firewall may drop packets silently.
const PATIENCE: Duration = Duration::from_secs(3);

/// A port of one node that the other node must reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Port {
    Pcsd,
    Corosync,
    EtcdClients,
    EtcdPeers,
}

pub const ALL: [Port; 4] = [Port::Pcsd, Port::Corosync, Port::EtcdClients, Port::EtcdPeers];

impl Port {
    pub fn number(self) -> u16 {
        match self {
            Self::Pcsd => 2224,
            Self::Corosync => 5405,
            Self::EtcdClients => 2379,
            Self::EtcdPeers => 2380,
        }
    }

    fn is_udp(self) -> bool {
        self == Self::Corosync
    }

    /// Returns the port's number and protocol, such as `2379/tcp`.
    pub fn word(self) -> String {
        format!("{}/{}", self.number(), if self.is_udp() { "udp" } else { "tcp" })
    }

    fn at(self, address: IpAddr) -> SocketAddr {
        SocketAddr::new(address, self.number())
    }
}

/// Returns the ports among `ports` that a program already holds at `address`.
pub fn taken(address: IpAddr, ports: &[Port]) -> Vec<Port> {
    let is_taken = |port: &Port| {
        let bound = if port.is_udp() {
            UdpSocket::bind(port.at(address)).map(drop)
        } else {
            TcpListener::bind(port.at(address)).map(drop)
        };
        bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    };
    ports.iter().copied().filter(is_taken).collect()
}

/// Test listeners on ports, each with a thread. Dropping the value stops them.
#[derive(Debug, Default)]
pub struct Listeners {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Listeners {
    /// Starts a test listener at `address` on each free port among `ports`.
    pub fn open(address: IpAddr, ports: &[Port]) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let threads = ports.iter().filter_map(|port| listen(port.at(address), port.is_udp(), is_over.clone()).ok());
        Self { threads: threads.collect(), is_over }
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn listen(at: SocketAddr, is_udp: bool, is_over: Arc<AtomicBool>) -> io::Result<JoinHandle<()>> {
    if is_udp {
        let socket = UdpSocket::bind(at)?;
        socket.set_read_timeout(Some(BEAT))?;
        return Ok(thread::spawn(move || {
            let mut word = [0; WORD.len()];
            while !is_over.load(Ordering::Relaxed) {
                if let Ok((length, from)) = socket.recv_from(&mut word)
                    && word[..length] == WORD
                {
                    let _ = socket.send_to(&word, from);
                }
            }
        }));
    }
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    Ok(thread::spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((stream, _)) => drop(send_back(stream)),
                Err(_) => clock::sleep(BEAT),
            }
        }
    }))
}

fn send_back(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(FOR_THE_WORD))?;
    let mut word = [0; WORD.len()];
    stream.read_exact(&mut word)?;
    if word == WORD { stream.write_all(&word) } else { Ok(()) }
}

/// Returns the ports among `ports` that cannot be reached at `address`. On a port in `whoever` any program may answer;
/// on the others a test listener must.
pub fn closed(address: IpAddr, ports: &[Port], whoever: &[Port]) -> Vec<Port> {
    thread::scope(|scope| {
        let asked: Vec<_> = ports
            .iter()
            .map(|port| {
                let any = whoever.contains(port);
                (
                    *port,
                    scope.spawn(
                        move || if port.is_udp() { ask_udp(port.at(address)) } else { ask_tcp(port.at(address), any) },
                    ),
                )
            })
            .collect();
        asked.into_iter().filter_map(|(port, thread)| (!matches!(thread.join(), Ok(Ok(())))).then_some(port)).collect()
    })
}

fn ask_tcp(at: SocketAddr, whoever: bool) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE)?;
    if whoever {
        return Ok(());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&WORD)?;
    let mut word = [0; WORD.len()];
    stream.read_exact(&mut word)?;
    if word == WORD { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

fn ask_udp(at: SocketAddr) -> io::Result<()> {
    const TRIES: u32 = 6;
    let any: SocketAddr = if at.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.connect(at)?;
    socket.set_read_timeout(Some(PATIENCE / TRIES))?;
    let mut word = [0; WORD.len()];
    for _ in 0..TRIES {
        socket.send(&WORD)?;
        if socket.recv(&mut word).is_ok_and(|length| word[..length] == WORD) {
            return Ok(());
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Returns the commands that open `ports` to the address `from`, one for each usual kind of firewall.
pub fn ways_to_open(ports: &[Port], from: IpAddr) -> Vec<String> {
    let words =
        |separator: &str, form: &dyn Fn(&Port) -> String| ports.iter().map(form).collect::<Vec<_>>().join(separator);
    let family = if from.is_ipv4() { "ip" } else { "ip6" };
    let rules = |kind: bool| -> Option<String> {
        let numbers: Vec<String> =
            ports.iter().filter(|port| port.is_udp() == kind).map(|port| port.number().to_string()).collect();
        let protocol = if kind { "udp" } else { "tcp" };
        (!numbers.is_empty()).then(|| {
            format!(
                "nft add rule inet filter input {family} saddr {from} {protocol} dport '{{ {} }}' accept",
                numbers.join(", ")
            )
        })
    };
    let mut ways = vec![
        format!(
            "firewall-cmd --permanent {} && firewall-cmd --reload",
            words(" ", &|port| format!("--add-port={}", port.word()))
        ),
        words(" && ", &|port| {
            format!(
                "ufw allow from {from} to any port {} proto {}",
                port.number(),
                if port.is_udp() { "udp" } else { "tcp" }
            )
        }),
    ];
    ways.extend([false, true].into_iter().filter_map(rules));
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loopback address that no other test uses.
    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 44, 17, 1));

    #[test]
    fn open_ports_are_told_from_closed_and_taken_ones() {
        assert_eq!(closed(HERE, &ALL, &[]), ALL, "nobody listens");
        let listeners = Listeners::open(HERE, &ALL);
        assert_eq!(taken(HERE, &ALL), ALL);
        assert_eq!(closed(HERE, &ALL, &[]), []);
        drop(listeners);
        crate::os::test_port::settles(&Vec::new(), || taken(HERE, &ALL));
        let pcsd = TcpListener::bind(Port::Pcsd.at(HERE)).unwrap();
        assert_eq!(taken(HERE, &ALL), [Port::Pcsd]);
        assert_eq!(closed(HERE, &[Port::Pcsd], &[Port::Pcsd]), [], "somebody is enough");
        drop(pcsd);
    }

    #[test]
    fn who_says_something_else_is_not_answered() {
        let address: IpAddr = "127.44.17.2".parse().unwrap();
        let _listeners = Listeners::open(address, &[Port::EtcdClients]);
        let mut stream = TcpStream::connect(Port::EtcdClients.at(address)).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty());
    }

    #[test]
    fn the_commands_for_a_firewall_name_what_is_closed_and_no_more() {
        let ways = ways_to_open(&[Port::Corosync, Port::EtcdPeers], "192.0.2.2".parse().unwrap());
        assert_eq!(
            ways[0],
            "firewall-cmd --permanent --add-port=5405/udp --add-port=2380/tcp && firewall-cmd --reload"
        );
        assert!(ways[1].starts_with("ufw allow from 192.0.2.2 to any port 5405 proto udp && "), "{ways:?}");
        assert_eq!(ways[2], "nft add rule inet filter input ip saddr 192.0.2.2 tcp dport '{ 2380 }' accept");
        assert_eq!(ways.len(), 4);
    }
}
