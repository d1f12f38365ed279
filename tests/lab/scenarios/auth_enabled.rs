//! An operator enables etcd's authentication, which does not know the agents' certificates. An etcd that rejects the
//! agent's request is alive. Both members continue to serve permitted users, and no action fails because of that. A
//! node that returns needs a user that may change the membership: the exit reason names the command.

use std::time::Duration;

use etcd_client::{Client, ConnectOptions};

use super::steps;
use crate::cluster::agent_call;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::cluster::{self, Failure};
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::sh::Result;

const RETURNS: Node = NODES[1];
const ASKED: u32 = 0;
const READ: u32 = 10;
const WRITTEN: u32 = 20;
const ROOT: &str = "root";
const PASSWORD: &str = "lab-root";
/// The time of several monitors, including the wait of a monitor for an etcd that does not respond.
const A_WHILE: Duration = Duration::from_secs(20);
/// The beginning of the command in the exit reason of a refused start.
const WAY_OUT: &str = "tandem etcdctl";

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    let members = steps::members(lab)?;
    let processes = NODES.map(|node| etcd::pid(lab, node));
    let failed = failures(lab).len();
    enable(lab)?;
    lab.event("authentication is switched on");
    let served = serves(lab, &processes, failed);
    let returned = served.is_ok().then(|| returns(lab));
    eventually("authentication is switched off again", || disable(lab), Result::is_ok)??;
    lab.event("authentication is switched off");
    served?;
    returned.unwrap_or(Ok(()))?;
    super::ends_well(lab, &mut writers)?;
    must("the node that stayed is the member that it was", steps::members(lab)?[0], |now| *now == members[0]).map(drop)
}

/// Checks that etcd with authentication serves: both processes continue, no action fails, and monitors of each level
/// succeed.
fn serves(lab: &Lab, processes: &[Option<String>; 2], failed: usize) -> Result<()> {
    std::thread::sleep(A_WHILE);
    must("both etcds ran on", NODES.map(|node| etcd::pid(lab, node)), |now| now == processes)?;
    must("no action of etcd failed", failures(lab), |failures| failures.len() <= failed)?;
    for node in NODES {
        put(lab, node)?;
        for level in [ASKED, READ, WRITTEN] {
            let done = host::output(lab, node, &["sh", "-c", &agent_call::monitor(lab, node, level)?])?;
            must(&format!("level {level} passes on {node}"), done, |done| done.ok)?;
        }
    }
    Ok(())
}

/// Puts a node to standby and back. The other node must serve. The node must join, or the exit reason of its start
/// must name the command to type.
fn returns(lab: &Lab) -> Result<()> {
    steps::standby(lab, RETURNS, true)?;
    steps::wait_stopped(lab, &[RETURNS])?;
    let stays = RETURNS.other();
    eventually(&format!("{stays} serves who may ask"), || put(lab, stays), Result::is_ok)??;
    steps::standby(lab, RETURNS, false)?;
    let votes_or_tells = || {
        let told = failures(lab).into_iter().filter(|failure| failure.is_on(RETURNS));
        (etcd::view(lab, RETURNS).is_ok_and(|view| view.voters.len() == 2), told.collect::<Vec<_>>())
    };
    let what = format!("{RETURNS} votes, or its start fails with what to type");
    eventually(&what, votes_or_tells, |(votes, told)| {
        *votes || told.iter().any(|failure| failure.reason.contains(WAY_OUT))
    })
    .map(drop)
}

fn failures(lab: &Lab) -> Vec<Failure> {
    let all = cluster::failures(lab, NODES[0]).into_iter();
    all.filter(|failure| failure.action.starts_with(cluster::ETCD)).collect()
}

/// Enables authentication in etcd as `etcdctl auth enable` requires it: with a user `root` that has a password.
fn enable(lab: &Lab) -> Result<()> {
    let tls = etcd::tls(lab)?;
    etcd::as_client(lab, move || {
        etcd::runtime()?.block_on(async {
            let mut client = etcd::connect(&tls, NODES[0]).await?;
            client.user_add(ROOT, PASSWORD, None).await?;
            client.role_add(ROOT).await?;
            client.user_grant_role(ROOT, ROOT).await?;
            client.auth_enable().await?;
            Ok(())
        })
    })
}

fn disable(lab: &Lab) -> Result<()> {
    as_root(lab, NODES[0], async |mut client| client.auth_disable().await.map(drop))?;
    let tls = etcd::tls(lab)?;
    etcd::as_client(lab, move || {
        etcd::runtime()?.block_on(async {
            let mut client = etcd::connect(&tls, NODES[0]).await?;
            client.user_delete(ROOT).await?;
            Ok(client.role_delete(ROOT).await.map(drop)?)
        })
    })
}

/// Writes to etcd as a user with permission to write.
fn put(lab: &Lab, node: Node) -> Result<()> {
    as_root(lab, node, async |mut client| client.put("lab/as-root", "", None).await.map(drop))
}

fn as_root<F>(lab: &Lab, node: Node, work: impl FnOnce(Client) -> F + Send + 'static) -> Result<()>
where
    F: Future<Output = std::result::Result<(), etcd_client::Error>>,
{
    let options = ConnectOptions::new().with_tls(etcd::tls(lab)?).with_user(ROOT, PASSWORD);
    let options = options.with_connect_timeout(Duration::from_secs(1)).with_timeout(Duration::from_secs(3));
    etcd::as_client(lab, move || {
        etcd::runtime()?.block_on(async {
            let client = Client::connect([node.endpoint()], Some(options)).await?;
            Ok(work(client).await?)
        })
    })
}
