//! The verdict in one word, and the time since which it holds.

use super::{Health, Severity, Verdict, problems, view};
use crate::adapters::pacemaker::attributes::REDUNDANCY;
use crate::decide::evidence::Redundancy;
use crate::operate::cluster::Cluster;
use crate::operate::health::view::ResourceSeen;

/// Returns the cluster's problems, and the verdict that follows from them.
pub fn assess(cluster: &Cluster) -> Health {
    let problems = problems::of(cluster);
    let is_known = |id: &str| !problems::is_unasked(id);
    let is_bad = |severity: Severity| severity != Severity::Notice;
    let missing = problems.iter().any(|problem| is_bad(problem.severity) && is_known(problem.id));
    let unasked = problems.iter().any(|problem| is_bad(problem.severity) && !is_known(problem.id));
    let voters = view::voters(cluster);
    let verdict = match view::writes(cluster) {
        Some(false) => Verdict::Down,
        None => Verdict::Unknown,
        Some(true) if missing || voters.is_some_and(|voters| voters < 2) => Verdict::Degraded,
        Some(true) if unasked || voters.is_none() => Verdict::Unknown,
        Some(true) => Verdict::Redundant,
    };
    Health { verdict, since: since(cluster), problems }
}

/// Returns the time since which the cluster has had two voters, or since which it has had fewer than two. The agents record the time in a
/// cluster property. A record that contradicts the present number of voters is ignored. With two voters, the result is not earlier than
/// etcd's last start, because a kill or restart does not change the record.
fn since(cluster: &Cluster) -> Option<u64> {
    let written: Redundancy = cluster.configuration.known()?.properties.get(REDUNDANCY)?.parse().ok()?;
    let is_redundant = view::voters(cluster)? >= 2;
    let started = last_start(cluster).filter(|_| is_redundant).unwrap_or_default();
    (written.is_redundant == is_redundant).then_some(written.since.max(started))
}

/// Returns the end of the last successful start of etcd in Pacemaker's history, in seconds since 1970.
fn last_start(cluster: &Cluster) -> Option<u64> {
    let seen = ResourceSeen::of(cluster)?;
    let etcd = seen.configuration.etcd.as_ref()?;
    let of_etcd = seen.pacemaker.histories.iter().filter(|history| history.resource == etcd.id);
    let starts = of_etcd.flat_map(|history| &history.operations).filter(|one| one.task == "start" && one.rc == 0);
    starts.filter_map(|one| Some(one.last_change? + one.exec_millis.unwrap_or_default().div_ceil(1_000))).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Fact;
    use crate::operate::health::samples;

    fn redundancy(cluster: &mut Cluster, value: &str) {
        let Fact::Known(configuration) = &mut cluster.configuration else { panic!("no CIB") };
        configuration.properties.insert(REDUNDANCY.to_owned(), value.to_owned());
    }

    #[test]
    fn two_voters_and_nothing_else_is_redundant() {
        let health = assess(&samples::read("healthy"));
        assert_eq!(health.verdict, Verdict::Redundant, "{:#?}", health.problems);
    }

    #[test]
    fn a_third_voter_is_a_problem_where_nobody_has_named_it() {
        let mut three = samples::read("healthy");
        for etcd in three.etcd.values_mut() {
            let Fact::Known(etcd) = etcd else { panic!("no etcd") };
            let third_voter = crate::operate::cluster::Member { id: "c3".to_owned(), ..etcd.members[0].clone() };
            etcd.members.push(third_voter);
        }
        let is_told = |cluster: &Cluster| assess(cluster).problems.iter().any(|problem| problem.id == "more-voters");
        assert!(is_told(&three));
        let Fact::Known(configuration) = &mut three.configuration else { panic!("no CIB") };
        configuration.properties.insert("etcd_guest".to_owned(), "node3=https://192.0.2.3:2380 c3".to_owned());
        assert!(!is_told(&three));
    }

    #[test]
    fn a_real_healthy_cluster_is_redundant() {
        let captured = samples::captured().into_iter().find(|(name, _)| name == "healthy").unwrap().1;
        let health = assess(&captured);
        assert_eq!(health.verdict, Verdict::Redundant, "{:#?}", health.problems);
    }

    #[test]
    fn nothing_asked_is_nothing_known() {
        let health = assess(&Cluster::default());
        assert_eq!((health.verdict, health.since), (Verdict::Unknown, None));
    }

    #[test]
    fn since_is_of_the_state_that_is_seen() {
        let mut cluster = samples::read("healthy");
        redundancy(&mut cluster, "redundant:1795170000");
        assert_eq!(assess(&cluster).since, Some(1_795_170_000));
        for other in ["alone:1795000000", "redundant", "redundant:then"] {
            redundancy(&mut cluster, other);
            assert_eq!(assess(&cluster).since, None, "{other}");
        }
    }

    /// Asserts that the time since which two voters exist begins again with each start of etcd. A kill, or a restart of both nodes,
    /// leaves the recorded time unchanged.
    #[test]
    fn since_begins_anew_with_each_start_of_a_voter() {
        let mut cluster = samples::read("healthy");
        redundancy(&mut cluster, "redundant:1795170000");
        let Fact::Known(pacemaker) = &mut cluster.pacemaker else { panic!("no crm_mon") };
        let history = pacemaker.histories.iter_mut().find(|one| one.resource == "etcd" && one.node == "node2").unwrap();
        let start = history.operations.iter_mut().find(|one| one.task == "start").unwrap();
        (start.last_change, start.exec_millis) = (Some(1_795_180_000), Some(1_900));
        assert_eq!(assess(&cluster).since, Some(1_795_180_002));
        redundancy(&mut cluster, "redundant:1795190000");
        assert_eq!(assess(&cluster).since, Some(1_795_190_000));
    }

    /// Asserts that the verdict is unknown for a cluster in which one source could not be queried, for each source in turn.
    #[test]
    fn what_cannot_be_asked_is_never_healthy() {
        type Change = fn(&mut Cluster, String);
        let hangs = || "gave no answer within 2.0 s".to_owned();
        let changes: [(&str, Change); 4] = [
            ("pacemaker", |cluster, why| cluster.pacemaker = Fact::Unknown(why)),
            ("configuration", |cluster, why| cluster.configuration = Fact::Unknown(why)),
            ("quorum", |cluster, why| cluster.quorum = Fact::Unknown(why)),
            ("etcd", |cluster, why| drop(cluster.etcd.insert("node2".to_owned(), Fact::Unknown(why)))),
        ];
        for (what, change) in changes {
            let mut cluster = samples::read("healthy");
            change(&mut cluster, hangs());
            assert_eq!(assess(&cluster).verdict, Verdict::Unknown, "{what}");
        }
    }

    fn leader(cluster: &mut Cluster) -> &mut crate::operate::cluster::Etcd {
        let leads = |etcd: &&mut Fact<crate::operate::cluster::Etcd>| etcd.known().is_some_and(view::leads);
        let Some(Fact::Known(etcd)) = cluster.etcd.values_mut().find(leads) else { panic!("no leader") };
        etcd
    }

    /// Asserts that etcd counts as down if one of only two voters does not run, even while the other one still has the leader's role.
    /// With a third voter it does not count as down, because two voters remain.
    #[test]
    fn a_leader_whose_only_peer_does_not_run_takes_no_writes() {
        let mut cluster = samples::read("healthy");
        leader(&mut cluster).reads = Fact::Unknown("no majority confirmed a read within 1.5 s".to_owned());
        let other = cluster.etcd.iter().find(|(_, etcd)| !etcd.known().is_some_and(view::leads)).unwrap().0.clone();
        cluster.etcd.insert(other.clone(), Fact::Absent);
        let health = assess(&cluster);
        assert_eq!(health.verdict, Verdict::Down, "{:#?}", health.problems);
        let of = |id: &str| health.problems.iter().find(|problem| problem.id == id);
        assert!(of("no-leader").is_some_and(|problem| problem.text.contains("one of two voters")), "{health:#?}");
        assert!(of("reads-unknown").is_none(), "it is known why");
        let Fact::Known(configuration) = &mut cluster.configuration else { panic!("no CIB") };
        configuration.properties.insert("etcd_guest".to_owned(), "node3=https://192.0.2.3:2380 c3".to_owned());
        assert_ne!(assess(&cluster).verdict, Verdict::Down);
    }

    /// Asserts that the verdict is degraded, not unknown, while a sole voter serves and the other node's etcd is silent. The silent etcd
    /// does not vote, because the member list lacks it.
    #[test]
    fn a_sole_voter_that_serves_beside_a_silent_etcd_is_degraded() {
        let mut cluster = samples::read("healthy");
        let own = leader(&mut cluster);
        let id = own.member_id.clone();
        own.members.retain(|member| member.id == id);
        let other = cluster.etcd.iter().find(|(_, etcd)| !etcd.known().is_some_and(view::leads)).unwrap().0.clone();
        cluster.etcd.insert(other, Fact::Unknown("gave no answer within 1.0 s".to_owned()));
        assert_eq!(assess(&cluster).verdict, Verdict::Degraded);
        leader(&mut cluster).reads = Fact::Unknown("no majority confirmed a read within 1.5 s".to_owned());
        assert_eq!(assess(&cluster).verdict, Verdict::Unknown);
    }

    #[test]
    fn no_verdict_below_redundant_goes_without_a_problem() {
        for (name, cluster) in samples::all() {
            let health = assess(&cluster);
            let explained = health.problems.iter().any(|problem| problem.severity != Severity::Notice);
            assert_eq!(explained, health.verdict != Verdict::Redundant, "{name}: {health:#?}");
        }
    }
}
