//! The change of the members that an operator asked for, and its terms.

use std::net::IpAddr;
use std::time::Duration;

use super::source::Target;
use crate::decide::members::Newcomer;

/// The change of the members that the operator typed.
#[derive(Clone, Debug)]
pub enum Order {
    Add {
        new: Newcomer,
        fence: Vec<(String, String)>,
        links: Vec<IpAddr>,
    },
    AddOutside {
        new: Newcomer,
    },
    Remove {
        node: String,
        allow_fewer_voters: bool,
    },
    Replace {
        /// The member that leaves; `None` to continue the replacement in progress.
        old: Option<String>,
        new: Option<Newcomer>,
        fence: Vec<(String, String)>,
        links: Vec<IpAddr>,
        old_is_off: bool,
        abort: bool,
    },
    Promote {
        node: String,
    },
}

impl Order {
    /// Returns the name of the member that leaves; `None` for an order that removes none.
    pub(super) fn old(&self) -> Option<&str> {
        match self {
            Self::Remove { node, .. } => Some(node),
            Self::Replace { old, .. } => old.as_deref(),
            Self::Add { .. } | Self::AddOutside { .. } | Self::Promote { .. } => None,
        }
    }
}

/// The options that every change of the members has.
#[derive(Clone, Debug)]
pub struct Terms {
    pub target: Target,
    /// True to print the plan only, and change nothing.
    pub dry_run: bool,
    /// Longest time that the change waits for obstacles that pass by themselves.
    pub timeout: Duration,
}

/// Parses a new member from `NAME=ADDRESS` or `NAME=URL`. The default port is 2380.
pub fn newcomer(text: &str) -> Result<Newcomer, String> {
    let Some((name, address)) = text.split_once('=').filter(|(name, address)| !name.is_empty() && !address.is_empty())
    else {
        return Err("it is not NAME=ADDRESS".to_owned());
    };
    let peer_url = if address.contains("://") {
        address.to_owned()
    } else if let Ok(ip) = address.parse::<std::net::IpAddr>() {
        format!("https://{}", std::net::SocketAddr::new(ip, 2380))
    } else if address.contains(':') {
        format!("https://{address}")
    } else {
        format!("https://{address}:2380")
    };
    Ok(Newcomer { name: name.to_owned(), peer_url })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newcomer_has_a_name_and_an_address() {
        let url = |text: &str| newcomer(text).map(|new| new.peer_url);
        assert_eq!(url("node3=192.0.2.3"), Ok("https://192.0.2.3:2380".to_owned()));
        assert_eq!(url("node3=2001:db8::3"), Ok("https://[2001:db8::3]:2380".to_owned()));
        assert_eq!(url("node3=etcd3.example"), Ok("https://etcd3.example:2380".to_owned()));
        assert_eq!(url("node3=etcd3.example:4000"), Ok("https://etcd3.example:4000".to_owned()));
        assert_eq!(url("node3=http://127.0.0.1:4000"), Ok("http://127.0.0.1:4000".to_owned()));
        for wrong in ["node3", "=192.0.2.3", "node3=", ""] {
            assert!(newcomer(wrong).is_err(), "{wrong}");
        }
    }
}
