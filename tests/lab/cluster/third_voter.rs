//! A third etcd at the client's place on the network: a plain process that only the lab starts and stops.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::host::net;
use crate::host::node::{CLIENT_IP, NODES};
use crate::host::state::Lab;
use crate::host::tls;
use crate::programs::etcdctl;
use crate::programs::image::{Tools, Version};
use crate::sh::{self, Result};

pub const NAME: &str = "guest";

/// Returns the peer URL of the third etcd member, which runs at the client's address.
pub fn peer_url() -> String {
    format!("https://{CLIENT_IP}:2380")
}

fn client_url() -> String {
    format!("https://{CLIENT_IP}:2379")
}

/// The process of a third etcd member. Dropping this value kills it.
pub struct ThirdVoter {
    lab: Lab,
    child: Child,
}

impl ThirdVoter {
    /// Starts the third member with an empty data dir. The members' list must contain it already.
    pub fn join(lab: &Lab) -> Result<Self> {
        let _ = fs::remove_dir_all(data(lab));
        sh::make_dir(&data(lab))?;
        Self::start(lab)
    }

    pub fn start(lab: &Lab) -> Result<Self> {
        let version = Version::parse(&lab.setting("etcd").unwrap_or_default())?;
        let mut command = Command::new("/usr/bin/nsenter");
        command.arg(format!("--net={}", net::client_handle(lab).display()));
        command.arg(etcdctl::program(version, Tools::None, "etcd")?).env_clear();
        let members = NODES.map(|node| format!("{node}=https://{}:2380", node.ip())).join(",");
        let (peer, client) = (peer_url(), client_url());
        let data = data(lab);
        command.env("ETCD_DATA_DIR", &data).env("ETCD_NAME", NAME);
        command.env("ETCD_INITIAL_CLUSTER", format!("{members},{NAME}={peer}"));
        command.env("ETCD_INITIAL_CLUSTER_STATE", "existing");
        for (name, url) in [("PEER", &peer), ("CLIENT", &client)] {
            command.env(format!("ETCD_LISTEN_{name}_URLS"), url);
        }
        command.env("ETCD_INITIAL_ADVERTISE_PEER_URLS", &peer).env("ETCD_ADVERTISE_CLIENT_URLS", &client);
        for (prefix, auth) in [("", "ETCD_CLIENT_CERT_AUTH"), ("PEER_", "ETCD_PEER_CLIENT_CERT_AUTH")] {
            command.env(format!("ETCD_{prefix}TRUSTED_CA_FILE"), lab.pki().join("ca.crt")).env(auth, "true");
            for (name, kind) in [("CERT", "crt"), ("KEY", "key")] {
                command
                    .env(format!("ETCD_{prefix}{name}_FILE"), lab.pki().join(format!("{}.{kind}", tls::THIRD_VOTER)));
            }
        }
        let log = File::options().create(true).append(true).open(lab.dir().join("guest.log"))?;
        let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
        lab.event("the guest's etcd is started");
        Ok(Self { lab: lab.clone(), child })
    }

    /// Sends SIGKILL to the third member, which ends it as a power cut does.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.lab.event("the guest's etcd is killed");
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Drop for ThirdVoter {
    fn drop(&mut self) {
        self.end();
    }
}

fn data(lab: &Lab) -> PathBuf {
    lab.dir().join("guest")
}
