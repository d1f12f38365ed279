//! The two hosts, with all their names and addresses.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::sh::{Error, Result};

/// One of the lab's two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    One,
    Two,
}

pub const NODES: [Node; 2] = [Node::One, Node::Two];
/// The IP address of the lab's client, on which the writers run: a third machine on the cluster network.
pub const CLIENT_IP: &str = "10.99.0.254";
/// The IP network of the BMCs, to which each host has a cable.
pub const FENCING_NETWORK: &str = "10.98.0.0/24";
pub const BMC_USER: &str = "admin";
/// The password of both BMCs. It is public, because it guards an emulator that only this machine can reach.
pub const BMC_PASSWORD: &str = "lab-secret";

/// The identity of the lab's second host: its name and its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Second {
    Node2,
    /// The machine of `node2` under the name `node10`, which begins like the name of the other host, `node1`.
    Node10,
    /// Another machine, `node3`, with disks, addresses and a BMC of its own.
    Node3,
}

static SECOND: AtomicU8 = AtomicU8::new(Second::Node2 as u8);

/// Sets the second host's identity for the rest of this process.
pub fn call_second(second: Second) {
    SECOND.store(second as u8, Ordering::Relaxed);
}

fn is_second(second: Second) -> bool {
    SECOND.load(Ordering::Relaxed) == second as u8
}

impl Node {
    pub fn number(self) -> u8 {
        match self {
            Self::One => 1,
            Self::Two if is_second(Second::Node3) => 3,
            Self::Two => 2,
        }
    }

    pub fn other(self) -> Self {
        match self {
            Self::One => Self::Two,
            Self::Two => Self::One,
        }
    }

    /// Returns the node's name in Corosync and Pacemaker, which is also its host name.
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "node1",
            Self::Two if is_second(Second::Node10) => "node10",
            Self::Two if is_second(Second::Node3) => "node3",
            Self::Two => "node2",
        }
    }

    /// Returns the node's IPv6 address on the cluster network.
    pub fn ipv6(self) -> String {
        format!("fd00:7a4e::{}", self.number())
    }

    /// Returns the node's IPv4 address on the cluster network.
    pub fn ip(self) -> String {
        format!("10.99.0.{}", self.number())
    }

    /// Returns a second IP address that the node's etcd certificate contains. Scenarios use it to give the node
    /// another address.
    pub fn other_ip(self) -> String {
        format!("10.99.0.{}", 10 + self.number())
    }

    /// Returns the node's IP address on the fencing network.
    pub fn fence_ip(self) -> String {
        format!("10.98.0.{}", self.number())
    }

    /// Returns the IP address of the BMC that controls the node's power.
    pub fn bmc_ip(self) -> String {
        format!("10.98.0.10{}", self.number())
    }

    pub fn endpoint(self) -> String {
        format!("https://{}:2379", self.ip())
    }

    /// Returns the id of the Redfish system at the node's BMC. It differs on each BMC, as on real ones.
    pub fn system_id(self) -> String {
        format!("System.Embedded.{}", self.number())
    }

    pub fn uuid(self) -> String {
        format!("7a4e1000-0000-4000-8000-00000000000{}", self.number())
    }

    /// Returns the MAC address of the host's card on the network with this number. Each boot gives the card the same address. Otherwise
    /// peers could not reach a rebooted host until their neighbour entries with the old address expire.
    pub fn mac(self, network: u8) -> String {
        format!("02:7a:4e:00:0{network}:0{}", self.number())
    }
}

impl std::fmt::Display for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Node {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "node1" | "1" => Ok(Self::One),
            "node2" | "2" => Ok(Self::Two),
            // The lab's own processes learn the second host's identity from this name.
            "node10" => {
                call_second(Second::Node10);
                Ok(Self::Two)
            }
            "node3" => {
                call_second(Second::Node3);
                Ok(Self::Two)
            }
            other => Err(format!("there is no node '{other}'; type node1 or node2").into()),
        }
    }
}
