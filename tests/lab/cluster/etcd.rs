//! Queries of etcd over TLS from the client's place on the network, one node at a time.

use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Identity, ResponseHeader, TlsOptions};
use nix::sched::{CloneFlags, setns};

use crate::host;
use crate::host::net;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check;
use crate::judge::history::Header;
use crate::sh::{self, Result};

/// The time-out of one request to etcd.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs `work` in a thread in the network namespace of the lab's client, so that its sockets have the client's
/// address.
pub fn as_client<T: Send + 'static>(lab: &Lab, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let network = std::fs::File::open(net::client_handle(lab))?;
    let thread = std::thread::spawn(move || {
        setns(network, CloneFlags::CLONE_NEWNET)?;
        work()
    });
    thread.join().map_err(|_| "a client thread panicked")?
}

/// Returns a runtime that uses only the calling thread, because other threads would be in another network namespace.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Returns TLS options with the client certificate of the lab's client and the lab's CA.
pub fn tls(lab: &Lab) -> Result<TlsOptions> {
    let read = |name: &str| std::fs::read(lab.pki().join(name));
    Ok(TlsOptions::new()
        .ca_certificate(Certificate::from_pem(read("ca.crt")?))
        .identity(Identity::from_pem(read("client.crt")?, read("client.key")?)))
}

/// Connects an etcd client only to `node`, so that each response is from that node's member.
pub async fn connect(tls: &TlsOptions, node: Node) -> Result<Client> {
    let options = ConnectOptions::new()
        .with_tls(tls.clone())
        .with_connect_timeout(sh::patience(Duration::from_millis(400)))
        .with_keep_alive(Duration::from_secs(1), sh::patience(Duration::from_secs(1)));
    Ok(Client::connect([node.endpoint()], Some(options)).await?)
}

/// Reads the header of an etcd response. `None` if it has none.
pub fn header(said: Option<&ResponseHeader>) -> Option<Header> {
    let said = said?;
    let (revision, term) = (said.revision(), said.raft_term());
    Some(Header { revision, term, cluster: said.cluster_id(), member: said.member_id() })
}

/// The state of one node's etcd and its cluster, as that etcd reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    pub member: u64,
    pub leader: u64,
    pub learner: bool,
    /// The member ids of the started voters, sorted.
    pub voters: Vec<u64>,
    /// The number of learners, plus that of members that are listed but never started.
    pub others: usize,
    /// True if a linearizable read succeeded. That needs a member that reaches a quorum.
    pub reads: bool,
}

/// Queries the etcd of one node for its state and its members' list.
pub fn view(lab: &Lab, node: Node) -> Result<View> {
    let tls = tls(lab)?;
    as_client(lab, move || {
        runtime()?.block_on(async {
            tokio::time::timeout(sh::patience(PATIENCE), ask(&tls, node)).await.map_err(|_| "no answer in time")?
        })
    })
}

/// Queries a node's etcd until it responds, because a busy machine may take longer than one time-out.
pub fn wait_view(lab: &Lab, node: Node) -> Result<View> {
    check::eventually(&format!("the etcd of {node} answers"), || view(lab, node), Result::is_ok)?
}

async fn ask(tls: &TlsOptions, node: Node) -> Result<View> {
    let mut client = connect(tls, node).await?;
    let status = client.status().await?;
    let mut view = View {
        member: status.header().map_or(0, ResponseHeader::member_id),
        leader: status.leader(),
        learner: status.is_learner(),
        ..View::default()
    };
    if view.learner {
        // This etcd neither lists members nor serves reads.
        return Ok(view);
    }
    for member in client.member_list().await?.members() {
        if member.is_learner() || member.name().is_empty() {
            view.others += 1;
        } else {
            view.voters.push(member.id());
        }
    }
    view.voters.sort_unstable();
    view.reads = client.get("lab/probe", None).await.is_ok();
    Ok(view)
}

/// The result of [`two_voters`] if both nodes are voters of one cluster: the node that leads.
#[derive(Clone, Copy, Debug)]
pub struct Voters {
    pub leader: Node,
}

/// Checks that both nodes report the same two voters of one cluster, and the same leader.
pub fn two_voters(lab: &Lab) -> std::result::Result<Voters, String> {
    let mut views = Vec::new();
    for node in NODES {
        views.push(view(lab, node).map_err(|error| format!("{node}: {error}"))?);
    }
    let (one, two) = (&views[0], &views[1]);
    let mut members = vec![one.member, two.member];
    members.sort_unstable();
    for (node, view) in NODES.iter().zip(&views) {
        if view.learner {
            return Err(format!("{node} is a learner"));
        }
        if view.voters != members || view.others != 0 {
            return Err(format!("{node} sees {} voters and {} others", view.voters.len(), view.others));
        }
        if !view.reads {
            return Err(format!("{node} cannot read"));
        }
    }
    if one.leader != two.leader {
        return Err("the nodes follow different leaders".to_owned());
    }
    match one.leader {
        0 => Err("there is no leader".to_owned()),
        leader if leader == one.member => Ok(Voters { leader: Node::One }),
        _ => Ok(Voters { leader: Node::Two }),
    }
}

/// The time within which two voters must be back after any failure, however slow the machine is.
pub const TWO_VOTERS_WITHIN: Duration = Duration::from_secs(600);

/// Checks that `took`, the time from a failure to two voters, is at most [`TWO_VOTERS_WITHIN`].
pub fn must_be_in_time(took: Duration) -> Result<()> {
    if took <= TWO_VOTERS_WITHIN {
        return Ok(());
    }
    let (took, limit) = (took.as_secs(), TWO_VOTERS_WITHIN.as_secs());
    Err(format!("two voters took {took} s, more than the {limit} that any recovery may take").into())
}

/// Waits until [`two_voters`] succeeds. The limit is `limit`, stretched on slow machines, but at most
/// [`TWO_VOTERS_WITHIN`].
pub fn wait_two_voters(lab: &Lab, limit: Duration) -> Result<Voters> {
    wait_two_voters_and(lab, limit, || ())
}

/// Waits as [`wait_two_voters`] does, and calls `each` before each query.
pub fn wait_two_voters_and(lab: &Lab, limit: Duration, mut each: impl FnMut()) -> Result<Voters> {
    let limit = limit.min(sh::unstretched(TWO_VOTERS_WITHIN));
    let mut last = String::new();
    let found = sh::wait_for("two voters", limit, Duration::from_millis(300), || {
        each();
        two_voters(lab).map_err(|why| last = why).ok()
    });
    found.map_err(|error| format!("{error}: {last}").into())
}

/// Returns the hash of each node's key-value store up to the newest revision that both have, in the order of
/// [`NODES`]. Members of one history have equal hashes.
pub fn hashes(lab: &Lab) -> Result<[u32; 2]> {
    check::eventually("both nodes say what their stores hold", || try_hashes(lab), Result::is_ok)?
}

fn try_hashes(lab: &Lab) -> Result<[u32; 2]> {
    let tls = tls(lab)?;
    as_client(lab, move || {
        runtime()?.block_on(async {
            tokio::time::timeout(sh::patience(PATIENCE * 5), hash_both(&tls)).await.map_err(|_| "no hash in time")?
        })
    })
}

async fn hash_both(tls: &TlsOptions) -> Result<[u32; 2]> {
    let mut revision = i64::MAX;
    for node in NODES {
        let answer = connect(tls, node).await?.get("lab/probe", None).await?;
        revision = revision.min(answer.header().map_or(0, ResponseHeader::revision));
    }
    let mut hashes = [0; 2];
    for (node, hash) in NODES.into_iter().zip(&mut hashes) {
        *hash = connect(tls, node).await?.hash_kv(revision).await?.hash();
    }
    Ok(hashes)
}

/// Describes a node's etcd in one line, for `cargo lab status`.
pub fn describe(lab: &Lab, node: Node) -> String {
    match view(lab, node) {
        Ok(view) => format!(
            "member {:x}, {}, leader {:x}, {} voters, {} others{}",
            view.member,
            if view.learner { "learner" } else { "voter" },
            view.leader,
            view.voters.len(),
            view.others,
            if view.reads { "" } else { ", cannot read" }
        ),
        Err(error) => format!("no answer ({error})"),
    }
}

/// Returns the process id of etcd on a node, as the host counts processes. `None` if etcd does not run.
pub fn pid(lab: &Lab, node: Node) -> Option<String> {
    let said = host::must(lab, node, &["podman", "inspect", "--format", "{{.State.Pid}}", "etcd"]).ok()?;
    Some(said.trim().to_owned()).filter(|pid| !pid.is_empty() && pid != "0")
}

/// Makes the leader `from` transfer leadership to the other node.
pub fn move_leader(lab: &Lab, from: Node, to: Node) -> Result<()> {
    let id = wait_view(lab, to)?.member;
    let tls = tls(lab)?;
    lab.event(&format!("etcd on {from} is asked to hand leadership to {to}"));
    as_client(lab, move || {
        runtime()?.block_on(async { Ok(connect(&tls, from).await?.move_leader(id).await.map(drop)?) })
    })
}

/// Sends SIGKILL to the etcd process in a node's container.
pub fn kill(lab: &Lab, node: Node) -> Result<()> {
    let pid = pid(lab, node).ok_or_else(|| format!("no etcd runs on {node}"))?;
    // The process id is valid only inside the host, so the signal must be sent there.
    host::must(lab, node, &["kill", "-9", &pid])?;
    lab.event(&format!("etcd on {node} got SIGKILL"));
    Ok(())
}
