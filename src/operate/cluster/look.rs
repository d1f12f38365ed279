//! Observation of the whole cluster, with all questions in parallel. Each question runs in a thread of its own, and the observation
//! waits for it no longer than its limit. A thread that hangs is left behind, and ends with the process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use super::error::MustBeRoot;
use super::etcds::{self, Place};
use super::{Cluster, Collected, Etcd, own, published};
use crate::adapters::command::Programs;
use crate::adapters::corosync::quorum::Quorum;
use crate::adapters::corosync::{conf, quorum};
use crate::adapters::pace::limits::Limits;
use crate::adapters::pacemaker::configuration::{self, Read};
use crate::adapters::pacemaker::crm_mon;
use crate::adapters::pacemaker::seen::Configuration;
use crate::base::Fact;
use crate::os::clock::{self, Deadline};
use crate::os::proc;

/// Time to wait for this node's name once the CIB has arrived. Corosync either returns the name within milliseconds or hangs.
const FOR_THE_NAME: Duration = Duration::from_millis(300);

/// Age up to which a process of Corosync or Pacemaker counts as starting. An older Pacemaker has connected to Corosync even on a slow
/// machine.
const STARTS: Duration = Duration::from_secs(60);

/// Fails unless this process runs as root.
pub fn must_be_root() -> Result<(), MustBeRoot> {
    if nix::unistd::geteuid().is_root() { Ok(()) } else { Err(MustBeRoot) }
}

/// Queries Pacemaker, Corosync, each etcd and the published facts in parallel. `resource` selects an etcd resource where the cluster has
/// several. Returns once every query has ended, and after `limits.whole` at the latest.
pub fn look(programs: &Programs, resource: Option<&str>, limits: &Limits) -> Cluster {
    match must_be_root() {
        Ok(()) => ask(programs, resource, limits),
        Err(why) => nothing(&why.to_string()),
    }
}

fn ask(programs: &Programs, resource: Option<&str>, limits: &Limits) -> Cluster {
    let (end, at) = (Deadline::after(limits.whole), clock::wall_seconds());
    let cib = Asked::by({
        let (programs, limits, resource) = (programs.clone(), *limits, resource.map(str::to_owned));
        move || find(&programs, resource.as_deref(), &limits)
    });
    let quorum = Asked::program(programs, limits, quorum::ask);
    let pacemaker = Asked::program(programs, limits, crm_mon::ask);
    let published = Asked::program(programs, limits, published::ask);
    let own_notes = Asked::by(own::own_notes);
    let (configuration, hint) = cib.within(end.left()).unwrap_or_else(|why| (Fact::Unknown(why), None));
    let configured = configuration.known().or(hint.as_ref());
    let quorum = quorum.peek(end.at_most(FOR_THE_NAME));
    let here = configured.and_then(|read| name(quorum.known(), read)).unwrap_or_default();
    let etcds = configured.map(|read| ask_etcds(&read.configuration, &here, limits)).unwrap_or_default();
    let hand_over = configured.and_then(|read| own::hand_over(&read.configuration));
    let leaderless_for_s = configured.and_then(|read| own::leaderless_for_s(&read.configuration));
    let nodes: Vec<String> = configured.map(|read| read.configuration.nodes.clone()).unwrap_or_default();
    Cluster {
        at,
        here,
        etcd: etcds.into_iter().map(|(node, asked)| (node, asked.fact(end))).collect(),
        pacemaker: pacemaker.fact(end),
        quorum: quorum.fact(end),
        detection: conf::text().ok().map(|text| conf::detection(&text)),
        collected: by_node(&nodes, &published.fact(end)),
        configuration: configuration.map(|read| read.configuration),
        power: BTreeMap::new(),
        hand_over,
        leaderless_for_s,
        own_notes: own_notes.within(end.left()).unwrap_or_default(),
        is_starting: is_starting(),
    }
}

/// Returns whether a process of Corosync or Pacemaker on this node is younger than [`STARTS`].
fn is_starting() -> bool {
    proc::youngest(&["corosync", "pacemakerd"]).is_some_and(|age| age < STARTS)
}

/// Returns a cluster with nothing known, for a process that may not query anything. `why` is the reason.
fn nothing(why: &str) -> Cluster {
    let why = || why.to_owned();
    Cluster {
        at: clock::wall_seconds(),
        pacemaker: Fact::Unknown(why()),
        configuration: Fact::Unknown(why()),
        quorum: Fact::Unknown(why()),
        ..Cluster::default()
    }
}

/// Returns the CIB that Pacemaker reports. Only if that is unknown, also returns the CIB on this node's disk. The CIB on disk may be
/// outdated, and only serves to find the etcds.
fn find(programs: &Programs, resource: Option<&str>, limits: &Limits) -> (Fact<Read>, Option<Read>) {
    let read = configuration::ask(programs, resource, limits);
    let hint = match &read {
        Fact::Unknown(_) => configuration::on_disk(Path::new(configuration::ON_DISK), resource).known().cloned(),
        Fact::Known(_) | Fact::Absent | Fact::NotAsked => None,
    };
    (read, hint)
}

/// Returns this node's name in the cluster: the one that Corosync has for the node's id, else the host name. Returns
/// `None` if the cluster has no node with the host name either.
fn name(quorum: Option<&Quorum>, read: &Read) -> Option<String> {
    let by_id = quorum.and_then(|quorum| read.ids.get(&quorum.node_id));
    by_id.cloned().or_else(|| {
        let host = nix::unistd::gethostname().ok()?.into_string().ok()?;
        let is_it = |node: &&String| **node == host || host.split('.').next() == Some(node.as_str());
        read.configuration.nodes.iter().find(is_it).cloned()
    })
}

fn ask_etcds(configuration: &Configuration, here: &str, limits: &Limits) -> BTreeMap<String, Asked<Fact<Etcd>>> {
    let places = match etcds::resolve(configuration, here) {
        Ok(here) => etcds::places(configuration, &here),
        Err(why) => configuration.nodes.iter().map(|node| (node.clone(), Err(why.clone()))).collect(),
    };
    let ask = |(node, place): (String, Result<Place, String>)| {
        let limits = *limits;
        let asked = Asked::by(move || match place {
            Ok(place) => etcds::ask(&place, &limits),
            Err(why) => Fact::Unknown(why),
        });
        (node, asked)
    };
    places.into_iter().map(ask).collect()
}

/// Returns what the collector of each configured node has published. A node that published nothing is `Absent`, not `Unknown`.
fn by_node(nodes: &[String], published: &Fact<BTreeMap<String, Fact<Collected>>>) -> BTreeMap<String, Fact<Collected>> {
    let of = |node: &String| match published {
        Fact::Known(all) => all.get(node).cloned().unwrap_or(Fact::Absent),
        Fact::Absent => Fact::Unknown("Pacemaker is stopped on this node, which has what was published".to_owned()),
        Fact::Unknown(why) => Fact::Unknown(why.clone()),
        Fact::NotAsked => Fact::NotAsked,
    };
    nodes.iter().map(|node| (node.clone(), of(node))).collect()
}

/// A query that runs in a thread of its own.
struct Asked<T> {
    answer: Receiver<T>,
    began: Deadline,
}

impl<T: Send + 'static> Asked<T> {
    fn by(ask: impl FnOnce() -> T + Send + 'static) -> Self {
        let (sender, answer) = sync_channel(1);
        // No caller joins this thread. The channel discards an answer that comes too late.
        thread::spawn(move || drop(sender.send(ask())));
        Self { answer, began: Deadline::after(Duration::ZERO) }
    }

    fn program(programs: &Programs, limits: &Limits, ask: fn(&Programs, &Limits) -> T) -> Self {
        let (programs, limits) = (programs.clone(), *limits);
        Self::by(move || ask(&programs, &limits))
    }

    /// Waits for the query's answer for at most `patience`. Returns the reason as an error if no answer arrives.
    fn within(&self, patience: Duration) -> Result<T, String> {
        self.answer.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => format!("no answer within {:.1} s", self.began.elapsed().as_secs_f64()),
            RecvTimeoutError::Disconnected => "the question failed".to_owned(),
        })
    }
}

impl<T: Send + 'static> Asked<Fact<T>> {
    /// Waits for the query's answer until `end`. Returns `Unknown` if no answer arrives.
    fn fact(&self, end: Deadline) -> Fact<T> {
        self.within(end.left()).unwrap_or_else(Fact::Unknown)
    }

    /// Waits for the query's answer for at most `patience`. If none arrives, a later answer can still be fetched from the result.
    fn peek(self, patience: Duration) -> Peeked<T> {
        match self.within(patience) {
            Ok(fact) => Peeked::There(fact),
            Err(_) => Peeked::Later(self),
        }
    }
}

/// The state of a query after a first, short wait: answered, or still running.
enum Peeked<T> {
    There(Fact<T>),
    Later(Asked<Fact<T>>),
}

impl<T: Send + 'static> Peeked<T> {
    fn known(&self) -> Option<&T> {
        match self {
            Self::There(fact) => fact.known(),
            Self::Later(_) => None,
        }
    }

    fn fact(self, end: Deadline) -> Fact<T> {
        match self {
            Self::There(fact) => fact,
            Self::Later(asked) => asked.fact(end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    const CIB: &str = include_str!("../../../tests/data/fixtures/cib/two-voters.xml");
    const CRM_MON: &str = include_str!("../../../tests/data/fixtures/crm_mon/healthy.xml");
    const QUORUM: &str = include_str!("../../../tests/data/fixtures/corosync/both.txt");
    const TOOLS: [&str; 4] = ["cibadmin", "crm_mon", "corosync-quorumtool", "attrd_updater"];

    /// Returns fake programs that answer as in a healthy cluster without etcd. The programs in `hanging` do not answer.
    fn programs(dir: &Path, hanging: &[&str]) -> Programs {
        let mut programs = Programs::default();
        for tool in TOOLS {
            let cib = CIB.replace("podman-etcd", "Dummy");
            let said = match tool {
                "cibadmin" => cib.as_str(),
                "crm_mon" => CRM_MON,
                "corosync-quorumtool" => QUORUM,
                _ => "<pacemaker-result/>",
            };
            let file = dir.join(format!("{tool}.txt"));
            std::fs::write(&file, said).unwrap();
            let answer = format!("exec cat {}", file.display());
            programs = fake_program(dir, tool, if hanging.contains(&tool) { "exec sleep 60" } else { &answer });
        }
        programs
    }

    fn quick() -> Limits {
        let millis = Duration::from_millis;
        Limits {
            cib: millis(1_000),
            crm_mon: millis(1_500),
            quorum: millis(1_000),
            attributes: millis(1_000),
            whole: millis(2_000),
            ..Limits::default()
        }
    }

    #[test]
    fn all_of_a_cluster_is_asked_for_and_who_is_here_is_known_by_corosyncs_id() {
        let dir = tempfile::tempdir().unwrap();
        let cluster = ask(&programs(dir.path(), &[]), None, &Limits::default());
        assert_eq!(cluster.here, "node1");
        assert!(cluster.pacemaker.known().is_some_and(|pacemaker| pacemaker.dc.as_deref() == Some("node1")));
        assert!(cluster.configuration.known().is_some() && cluster.quorum.known().is_some());
        assert_eq!(cluster.collected.get("node2"), Some(&Fact::Absent));
        let why = cluster.etcd["node1"].why_unknown();
        assert_eq!(why, "this cluster has no podman-etcd resource");
    }

    #[test]
    fn whoever_hangs_is_unknown_in_time_and_all_others_are_known() {
        for hanging in TOOLS {
            let dir = tempfile::tempdir().unwrap();
            let began = Deadline::after(Duration::from_secs(60));
            let cluster = ask(&programs(dir.path(), &[hanging]), None, &quick());
            assert!(began.elapsed() < Duration::from_secs(6), "{hanging}: {:?}", began.elapsed());
            let known = [
                ("cibadmin", cluster.configuration.known().is_some()),
                ("crm_mon", cluster.pacemaker.known().is_some()),
                ("corosync-quorumtool", cluster.quorum.known().is_some()),
            ];
            for (tool, is_known) in known {
                assert_eq!(is_known, tool != hanging, "{tool} while {hanging} hangs");
            }
            if hanging == "attrd_updater" {
                assert!(matches!(cluster.collected["node1"], Fact::Unknown(_)));
            }
        }
    }

    #[test]
    fn a_question_that_never_ends_keeps_nobody() {
        let began = Deadline::after(Duration::from_millis(300));
        let asked: Asked<Fact<()>> = Asked::by(|| {
            clock::sleep(Duration::from_secs(600));
            Fact::Absent
        });
        let Fact::Unknown(why) = asked.fact(began) else { panic!("it is not over") };
        assert!(why.starts_with("no answer within 0."), "{why}");
        let failed: Asked<Fact<()>> = Asked::by(|| panic!("on purpose"));
        assert_eq!(
            failed.fact(Deadline::after(Duration::from_secs(30))),
            Fact::Unknown("the question failed".to_owned())
        );
    }
}
