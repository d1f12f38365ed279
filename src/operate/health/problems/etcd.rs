//! Problems of both etcds.

use super::attempts::WATCH;
use super::resource::Start;
use super::{Found, leading, on, resource};
use crate::base::Fact;
use crate::base::shell::command;
use crate::operate::cluster::{Cluster, Etcd, Member};
use crate::operate::health::{third_voter, view};

/// Share of the quota from which a database counts as nearly full, in percent.
pub(in crate::operate) const NEARLY_FULL: u64 = 80;
/// The command that frees space in the database of every member, and disarms the alarm NOSPACE.
const RECLAIM: &str = "tandem space --reclaim";
/// Number of entries by which a learner may lag to count as nearly caught up. The agent promotes a learner with a smaller lag.
const CLOSE: u64 = 100;

pub(super) fn find(cluster: &Cluster, found: &mut Found) {
    writes(cluster, found);
    for name in view::names(cluster) {
        match view::etcd_fact(cluster, &name) {
            Fact::Known(etcd) => one(cluster, &name, etcd, found),
            Fact::Absent => stopped(cluster, &name, found),
            unknown @ (Fact::Unknown(_) | Fact::NotAsked) if !is_lost(cluster, &name) => {
                let text = format!("etcd on {name} could not be asked: {}", unknown.why_unknown());
                found.warning("etcd-unknown", Some(&name), text).typed("tandem explain");
            }
            Fact::Unknown(_) | Fact::NotAsked => {}
        }
    }
    alarms(cluster, found);
    membership(cluster, found);
}

/// Returns whether Pacemaker reports the node as offline, which is reported as another problem.
fn is_lost(cluster: &Cluster, name: &str) -> bool {
    cluster.pacemaker.known().is_some() && view::node(cluster, name).is_none_or(|node| !node.online)
}

fn writes(cluster: &Cluster, found: &mut Found) {
    let known: Vec<&Etcd> = cluster.etcd.values().filter_map(Fact::known).collect();
    if view::writes(cluster) != Some(false) || known.iter().any(|etcd| view::is_silenced(etcd)) {
        return;
    }
    if known.is_empty() {
        let text = "no writes are taken: etcd runs on no node".to_owned();
        let names = view::names(cluster);
        let all_start =
            names.iter().all(|name| view::is_online(cluster, name) && resource::start(cluster, name).is_some());
        let problem = found.critical("no-etcd", None, text);
        match view::disabled_etcd(cluster) {
            Some(id) => problem.typed(command!("pcs resource enable {}", id)),
            None => problem.typed(if all_start { WATCH } else { "tandem explain" }),
        }
    } else {
        let names = view::names(cluster);
        let stopped = names.iter().find(|name| view::etcd_fact(cluster, name).is_absent());
        let text = match stopped.filter(|_| known.iter().any(|etcd| view::is_without_its_peer(cluster, etcd))) {
            Some(name) => {
                format!("no writes are taken: etcd does not run on {name}, and one of two voters is no majority")
            }
            None => match leading::yields(cluster) {
                Some(yields) => format!("no writes are taken: etcd has no leader; {yields}"),
                None => "no writes are taken: etcd has no leader".to_owned(),
            },
        };
        found.critical("no-leader", None, text).typed("tandem explain");
    }
}

fn one(cluster: &Cluster, name: &str, etcd: &Etcd, found: &mut Found) {
    if etcd.learner {
        learner(cluster, name, found);
    }
    let is_known_to_wait = view::is_without_its_peer(cluster, etcd);
    if etcd.leader.is_some() && !etcd.learner && etcd.reads != Fact::Known(()) && !is_known_to_wait {
        let why = etcd.reads.why_unknown();
        let text = format!("whether etcd on {name} takes writes could not be asked: {why}");
        found.warning("reads-unknown", Some(name), text).typed("tandem explain");
    }
    // The alarm NOSPACE is a problem of its own.
    let quota = etcd.quota_bytes.filter(|quota| *quota > 0 && !view::is_silenced(etcd));
    if let Some(percent) = quota.map(|quota| etcd.db_bytes.saturating_mul(100) / quota)
        && percent >= NEARLY_FULL
    {
        let text =
            format!("the database on {name} has reached {percent} % of its quota: at 100 % etcd takes no writes");
        found.warning("quota", Some(name), text).typed(RECLAIM);
    }
}

fn learner(cluster: &Cluster, name: &str, found: &mut Found) {
    match view::lag(cluster, name) {
        Some(lag) if lag > CLOSE => {
            let text = format!("{name} is a learner and lacks {lag} entries: it votes once it has caught up");
            found.warning("learner-lags", Some(name), text).typed("tandem explain");
        }
        _ => {
            let text = format!("{name} is a learner and catches up: it votes next");
            found.warning("learner-catches-up", Some(name), text).typed("tandem explain");
        }
    }
}

/// Reports a stopped etcd on a node that should run it.
fn stopped(cluster: &Cluster, name: &str, found: &mut Found) {
    let away = view::node(cluster, name).is_some_and(|node| node.standby || node.pending || node.shutdown);
    if away || is_lost(cluster, name) || !view::may_start(cluster) || resource::explains(cluster, name) {
        return;
    }
    let (id, text) = match resource::start(cluster, name) {
        Some(Start::UnderWay) => {
            let text = format!("etcd is being started on {name}, and the agent is choosing how: nothing to type yet");
            ("etcd-starting", text)
        }
        Some(Start::Next) => {
            let text = format!(
                "etcd was not started on {name} yet: nothing to type in the first seconds; later, 'tandem explain' there has the reason"
            );
            ("etcd-starting", text)
        }
        None => ("etcd-stopped", format!("etcd does not run on {name}: 'tandem explain' there says why")),
    };
    let problem = found.warning(id, Some(name), text);
    if id == "etcd-starting" {
        problem.typed(WATCH);
    } else {
        problem.typed(on(cluster, name, "tandem explain"));
    }
}

fn alarms(cluster: &Cluster, found: &mut Found) {
    // Every member lists the alarms of all members.
    let mut alarms: Vec<&String> =
        cluster.etcd.values().filter_map(Fact::known).flat_map(|etcd| &etcd.alarms).collect();
    alarms.sort();
    alarms.dedup();
    for alarm in alarms {
        if alarm == "NOSPACE" {
            let text =
                "etcd raises the alarm NOSPACE, and takes no writes until there is room and the alarm is disarmed";
            found.critical("alarm-nospace", None, text.to_owned()).typed(RECLAIM);
        } else {
            let text = format!("etcd raises the alarm {alarm}");
            found.critical("alarm", None, text).typed("tandem etcdctl endpoint hashkv --cluster");
        }
    }
}

fn membership(cluster: &Cluster, found: &mut Found) {
    let known: Vec<(&String, &Etcd)> =
        cluster.etcd.iter().filter_map(|(name, etcd)| Some((name, etcd.known()?))).collect();
    if let [(one, first), (other, second)] = known.as_slice()
        && first.cluster_id != second.cluster_id
    {
        let text =
            format!("etcd on {one} and etcd on {other} belong to two clusters: each took writes without the other");
        found.critical("two-clusters", None, text).typed("tandem explain");
    }
    // A configured third voter is there on purpose.
    let expected = 2 + usize::from(third_voter(cluster).is_some());
    let count = known.iter().map(|(_, etcd)| view::voters_known_to(etcd)).max();
    let Some(count) = count.filter(|count| *count > expected) else { return };
    let text = format!("etcd has {count} voters: members were added with etcd's own commands");
    found.notice("more-voters", None, text).typed(others(cluster, &known));
}

/// Returns the command that removes a voter that belongs to no node. If there is none, returns the command that lists the members.
fn others(cluster: &Cluster, known: &[(&String, &Etcd)]) -> String {
    let (names, third_voter) = (view::names(cluster), third_voter(cluster));
    let is_third =
        |member: &Member| third_voter.as_ref().is_some_and(|third| member.peer_urls.contains(&third.peer_url));
    let is_other = |member: &&Member| !member.learner && !names.contains(&member.name) && !is_third(member);
    match known.iter().flat_map(|(_, etcd)| &etcd.members).find(is_other) {
        Some(member) => format!("tandem etcdctl member remove {}", member.id),
        None => "tandem member list".to_owned(),
    }
}
