//! Clients that use a certificate from a node's files, as `etcdctl` there does, and a client that opens a connection
//! for each write.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use etcd_client::{Client, ConnectOptions};

use crate::cluster::etcd;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::host::tls;
use crate::sh::{self, Result};

const FILES: [&str; 3] = ["ca.crt", "client.crt", "client.key"];
/// The time-out of a write. Even a busy machine responds sooner, so a write that takes longer counts as refused.
const PATIENCE: Duration = Duration::from_secs(8);
const BETWEEN: Duration = Duration::from_millis(20);
const LOOKS: Duration = Duration::from_millis(100);

/// A thread that keeps copying the first node's client certificates to the lab's clients. Dropping this value ends
/// it.
pub(super) struct Following {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Following {
    pub(super) fn begin(lab: &Lab) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let (lab, seen) = (lab.clone(), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                // Between two renames a file may be missing: the next round reads it.
                let _ = take(&lab);
                std::thread::sleep(LOOKS);
            }
            let _ = take(&lab);
        });
        Self { ends, thread: Some(thread) }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Copies the client certificates from the first node's disk to the lab's clients. The disk is readable even while
/// the node is off.
fn take(lab: &Lab) -> Result<()> {
    let dir = lab.disk(NODES[0], "etc").join("tandem/pki");
    for name in FILES {
        let (from, to) = (std::fs::read(dir.join(name))?, lab.pki().join(name));
        if std::fs::read(&to).is_ok_and(|there| there == from) {
            continue;
        }
        let aside = lab.pki().join(format!(".{name}.next"));
        tls::write_secret(&aside, &from)?;
        std::fs::rename(aside, to)?;
    }
    Ok(())
}

/// The results of the writes of [`Knocks`], each over a new connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Knocked {
    pub(super) served: usize,
    pub(super) refused: Vec<String>,
    /// The largest number of writes in a row that one node refused.
    pub(super) in_a_row: usize,
}

/// A client that opens a new connection for each write, to the two nodes in turn.
pub(super) struct Knocks {
    ends: Arc<AtomicBool>,
    knocked: Arc<Mutex<Knocked>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Knocks {
    pub(super) fn begin(lab: &Lab) -> Self {
        let (ends, knocked) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Knocked>>::default());
        let (seen, into, lab) = (Arc::clone(&ends), Arc::clone(&knocked), lab.clone());
        let thread = std::thread::spawn(move || {
            let inner = lab.clone();
            etcd::as_client(&lab, move || {
                let runtime = etcd::runtime()?;
                let mut row = BTreeMap::new();
                for node in NODES.into_iter().cycle().take_while(|_| !seen.load(Ordering::Relaxed)) {
                    let done = runtime.block_on(async {
                        tokio::time::timeout(sh::patience(PATIENCE), knock(&inner, node))
                            .await
                            .map_err(|_| "no answer")?
                    });
                    note(&into, &mut row, node, done);
                    std::thread::sleep(BETWEEN);
                }
                Ok(())
            })
        });
        Self { ends, knocked, thread: Some(thread) }
    }

    /// Returns the number of successful writes so far.
    pub(super) fn served(&self) -> usize {
        self.knocked.lock().unwrap_or_else(PoisonError::into_inner).served
    }

    /// Waits for twenty more successful writes over new connections, which go to both nodes in turn.
    pub(super) fn go_on(&self) -> Result<()> {
        let before = self.served();
        sh::wait_for("new connections", Duration::from_secs(60), Duration::from_millis(50), || {
            (self.served() >= before + 20).then_some(())
        })
    }

    pub(super) fn end(mut self) -> Result<Knocked> {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| "who knocks panicked")??;
        }
        Ok(self.knocked.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl Drop for Knocks {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

fn note(into: &Mutex<Knocked>, row: &mut BTreeMap<&'static str, usize>, node: Node, done: Result<()>) {
    let mut knocked = into.lock().unwrap_or_else(PoisonError::into_inner);
    let failed = row.entry(node.name()).or_default();
    match done {
        Ok(()) => {
            knocked.served += 1;
            *failed = 0;
        }
        Err(error) => {
            *failed += 1;
            knocked.in_a_row = knocked.in_a_row.max(*failed);
            knocked.refused.push(format!("{node}: {error}"));
        }
    }
}

async fn knock(lab: &Lab, node: Node) -> Result<()> {
    let options = ConnectOptions::new().with_tls(etcd::tls(lab)?).with_connect_timeout(sh::patience(PATIENCE));
    let mut client = Client::connect([node.endpoint()], Some(options)).await?;
    client.put("lab/knock", "", None).await?;
    Ok(())
}
