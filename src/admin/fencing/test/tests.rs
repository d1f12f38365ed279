use super::*;
use crate::adapters::pacemaker::seen::Node;
use crate::admin::report::golden;
use crate::base::Fact;
use crate::operate::fencing::record::Phases;
use crate::operate::health::fencing::tests::{asked, healthy};
use crate::operate::health::fencing::{self, Asked};

fn node2(cluster: &mut Cluster) -> &mut Node {
    let Fact::Known(pacemaker) = &mut cluster.pacemaker else { panic!("nobody was asked") };
    &mut pacemaker.nodes[1]
}

fn refused(cluster: &Cluster, asked: &Asked) -> String {
    may_be_tested(&fencing::check(cluster, asked, None), "node2").unwrap_err().0
}

#[test]
fn only_the_other_node_of_a_cluster_that_is_known_is_fenced() {
    let cluster = healthy();
    assert!(target(&cluster, "node2").is_ok());
    let told = |cluster: &Cluster, node| target(cluster, node).unwrap_err().0;
    assert!(told(&cluster, "node3").contains("there are: node1, node2"));
    let own = told(&cluster, "node1");
    assert!(own.contains("no node fences itself") && own.ends_with("on node2"), "{own}");
    assert!(told(&Cluster::default(), "node2").contains("pcs cluster start"));
}

#[test]
fn a_cluster_that_would_not_survive_it_is_left_alone() {
    let (mut cluster, mut asked) = (healthy(), asked());
    may_be_tested(&fencing::check(&cluster, &asked, None), "node2").unwrap();
    // A warning does not stop the test.
    asked.answers[1].note.clock_ahead = Some(7_200);
    may_be_tested(&fencing::check(&cluster, &asked, None), "node2").unwrap();
    asked.answers[1].note.failure = Some("unable to log in".to_owned());
    assert!(refused(&cluster, &asked).contains("unable to log in"));
    asked.answers[1].note.failure = None;
    let refused_with = |change: fn(&mut Cluster)| {
        let mut cluster = cluster.clone();
        change(&mut cluster);
        refused(&cluster, &asked)
    };
    let pending = |cluster: &mut Cluster| node2(cluster).pending = true;
    assert!(refused_with(|cluster| node2(cluster).online = false).contains("node2 is off or its cluster is stopped"));
    assert!(refused_with(pending).contains("node2 is joining the cluster or leaving it"));
    assert!(refused_with(|cluster| cluster.pacemaker = Fact::Absent).contains("Pacemaker is stopped on node1"));
    let starting = refused_with(|cluster| (cluster.pacemaker, cluster.is_starting) = (Fact::Absent, true));
    assert!(starting.contains("Pacemaker is starting on node1"), "{starting}");
    cluster.etcd.clear();
    assert!(refused(&cluster, &asked).contains("no etcd says which members vote"));
    assert!(refused(&Cluster::default(), &asked).contains("Pacemaker could not be asked"));
}

fn tested(why: Option<&str>) -> Tested {
    let phases = Phases {
        off: Some(4.2),
        told: Some(5.6),
        writes: Some(6.1),
        longest_pause: Some(6.0),
        on: why.is_none().then_some(5.5),
        member: why.is_none().then_some(48.3),
        learner: why.is_none().then_some(52.0),
        voter: why.is_none().then_some(55.4),
        clean: why.is_none().then_some(56.9),
    };
    let record = record_of("node1", "node2", 1_795_428_000_250, FencingSeen { phases, why: why.map(str::to_owned) });
    let before = Record {
        at: "2026-08-21T09:30:00Z".to_owned(),
        seconds: Phases { off: Some(3.9), told: Some(5.1), longest_pause: Some(5.5), ..Phases::default() },
        tandem: "0.1.0".to_owned(),
        ..record.clone()
    };
    let next = next("node1", "node2", &record, false);
    Tested { record: Record { tandem: "0.1.0".to_owned(), ..record }, before: Some(before), next }
}

#[test]
fn a_test_is_told_beside_the_one_before_and_ends_with_the_other_half() {
    let passed = tested(None);
    assert_eq!(passed.exit(), Exit::Done);
    golden::compare("fencing-test", &passed);
    let failed = tested(Some("node2 has not come back to the cluster after 1200 s: see 'tandem status'"));
    assert_eq!(failed.exit(), Exit::Worst);
    let text = failed.text();
    assert!(text.starts_with("NOT PASSED: node2 has not come back") && text.ends_with("tandem status"), "{text}");
}
