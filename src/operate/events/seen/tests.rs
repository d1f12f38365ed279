//! Two observations of a cluster, and the events between them.

use super::*;
use crate::adapters::pacemaker::seen::{Configuration, FenceDevice, Resource};
use crate::base::Fact;
use crate::operate::cluster::{Certificate, Collected, SecretSeen};

const NOW: u64 = 1_800_000_000;

fn cluster(at: u64, change: impl FnOnce(&mut Pacemaker)) -> Cluster {
    let node = |name: &str| Node { name: name.to_owned(), online: true, ..Node::default() };
    let etcd = |node: &str| Instance {
        id: "etcd".to_owned(),
        nodes: vec![node.to_owned()],
        managed: true,
        active: true,
        ..Instance::default()
    };
    let mut pacemaker = Pacemaker {
        dc: Some("node1".to_owned()),
        nodes: vec![node("node1"), node("node2")],
        resources: vec![etcd("node1"), etcd("node2")],
        ..Pacemaker::default()
    };
    change(&mut pacemaker);
    let collected = |at| Fact::Known(Collected { at, ..Collected::default() });
    Cluster {
        at,
        here: "node1".to_owned(),
        pacemaker: Fact::Known(pacemaker),
        collected: [("node1".to_owned(), collected(at)), ("node2".to_owned(), collected(at - 20))].into(),
        ..Cluster::default()
    }
}

fn reasons(before: &Cluster, now: &Cluster) -> Vec<String> {
    changes(Some(before), now).into_iter().map(|event| format!("{} {}", event.reason, event.node)).collect()
}

#[test]
fn what_comes_and_goes_is_told_when_it_does() {
    let healthy = || cluster(NOW, |_| {});
    for (change, there, back) in [
        (
            Box::new(|pacemaker: &mut Pacemaker| pacemaker.maintenance = true) as Box<dyn Fn(&mut Pacemaker)>,
            "PacemakerClusterInMaintenance node1",
            "PacemakerClusterInService node1",
        ),
        (
            Box::new(|pacemaker: &mut Pacemaker| pacemaker.nodes[0].standby = true),
            "PacemakerNodeUnhealthy node1",
            "PacemakerNodeHealthy node1",
        ),
        (
            Box::new(|pacemaker: &mut Pacemaker| pacemaker.resources[0].managed = false),
            "PacemakerResourceUnhealthy node1",
            "",
        ),
        // The other node reports its own state.
        (Box::new(|pacemaker: &mut Pacemaker| pacemaker.nodes[1].standby = true), "", ""),
        (Box::new(|pacemaker: &mut Pacemaker| pacemaker.resources[1].blocked = true), "", ""),
    ] {
        let changed = cluster(NOW + 30, |pacemaker| change(pacemaker));
        let list = |word: &str| if word.is_empty() { Vec::new() } else { vec![word.to_owned()] };
        assert_eq!(reasons(&healthy(), &changed), list(there));
        assert_eq!(reasons(&changed, &changed), list(""), "{there}: told once");
        assert_eq!(reasons(&changed, &healthy()), list(back));
    }
    // A node that is not the designated controller reports nothing about the cluster.
    let elsewhere = cluster(NOW, |pacemaker| {
        pacemaker.maintenance = true;
        pacemaker.dc = Some("node2".to_owned());
    });
    assert_eq!(reasons(&healthy(), &elsewhere), Vec::<String>::new());
}

#[test]
fn a_collector_that_stands_still_is_told_of_by_the_other_one() {
    let fresh = cluster(NOW, |_| {});
    let mut stale = cluster(NOW + 600, |_| {});
    stale.collected.insert("node2".to_owned(), Fact::Known(Collected { at: NOW, ..Collected::default() }));
    assert_eq!(reasons(&fresh, &stale), ["PacemakerStatusStale node2"]);
    assert_eq!(reasons(&stale, &stale), Vec::<String>::new());
    stale.collected.insert("node2".to_owned(), Fact::Absent);
    assert_eq!(reasons(&fresh, &stale), Vec::<String>::new(), "nobody enabled it there");
}

#[test]
fn a_device_that_differs_from_its_secret_is_told_of_once_and_by_the_controller() {
    let with = |looks: u64| {
        let mut cluster = cluster(NOW, |_| {});
        let device = FenceDevice {
            resource: Resource { id: "fence-node2".to_owned(), ..Resource::default() },
            targets: vec!["node2".to_owned()],
            ..FenceDevice::default()
        };
        cluster.configuration = Fact::Known(Configuration { fence_devices: vec![device], ..Configuration::default() });
        let differs = SecretSeen { at: NOW, differs: vec!["password".to_owned()], looks };
        let secrets = [("fence-node2".to_owned(), differs)].into();
        cluster
            .collected
            .insert("node1".to_owned(), Fact::Known(Collected { at: NOW, secrets, ..Collected::default() }));
        cluster
    };
    assert_eq!(reasons(&with(0), &with(1)), Vec::<String>::new(), "it may be under way");
    assert_eq!(reasons(&with(1), &with(2)), ["FencingSecretDiffers node2"]);
    assert_eq!(reasons(&with(2), &with(3)), Vec::<String>::new(), "told once");
    let mut elsewhere = with(2);
    if let Fact::Known(pacemaker) = &mut elsewhere.pacemaker {
        pacemaker.dc = Some("node2".to_owned());
    }
    assert_eq!(reasons(&with(1), &elsewhere), Vec::<String>::new());
}

#[test]
fn a_certificate_is_told_of_at_each_step() {
    let with = |at: u64, ends: u64| {
        let mut cluster = cluster(at, |_| {});
        let certificates = vec![Certificate { file: "/etc/etcd/server.crt".to_owned(), ends }];
        cluster
            .collected
            .insert("node1".to_owned(), Fact::Known(Collected { at, certificates, ..Collected::default() }));
        cluster
    };
    let ends = NOW + 30 * DAY;
    assert_eq!(changes(Some(&with(NOW - 60, ends)), &with(NOW - 30, ends)), []);
    let first = changes(Some(&with(NOW - 30, ends)), &with(NOW, ends)).remove(0);
    assert_eq!(
        (first.kind, first.message.as_str()),
        (Type::Warning, "the certificate /etc/etcd/server.crt ends in 30 days")
    );
    assert_eq!(changes(Some(&with(NOW, ends)), &with(NOW + 30, ends)), []);
    let last = changes(None, &with(ends + DAY, ends)).remove(0);
    assert_eq!(
        (last.kind, last.message.as_str()),
        (Type::Error, "the certificate /etc/etcd/server.crt ends in 0 days")
    );
}

#[test]
fn that_all_is_well_again_is_told_by_the_controller() {
    let now = cluster(NOW, |_| {});
    assert_eq!(verdict(&now, Some("degraded"), "redundant").unwrap().reason, reason::HEALTHY);
    assert_eq!(verdict(&now, Some("redundant"), "redundant"), None);
    assert_eq!(verdict(&now, None, "redundant"), None);
    assert_eq!(verdict(&now, Some("redundant"), "degraded"), None);
}
