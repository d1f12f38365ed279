//! Tests of the settings that decide which node a split leaves: delays, races, the primary.

use super::*;

/// Asserts that the shortest safe delay exceeds the other node's delay by more than the time to Off. With a smaller difference, the two
/// nodes may switch each other off.
#[test]
fn the_least_delay_is_more_than_the_time_to_off_apart_from_the_other_one() {
    let (mut cluster, mut asked) = (healthy(), asked());
    let delays = |cluster: &Cluster, asked: &Asked| check(cluster, asked, None).delays;
    let said = |text: &str| BTreeMap::from([("node1".to_owned(), text.to_owned())]);
    assert_eq!(delays(&cluster, &asked), said("fenced after 10 s; 9 s is the least that 6.2 s to Off allow"));
    let with = |seconds: u64, asked: &mut Asked| {
        let mut cluster = healthy();
        answer(asked).note.millis_to_off = Some(7_000);
        configuration(&mut cluster).fence_devices[0]
            .resource
            .parameters
            .insert("pcmk_delay_base".to_owned(), format!("{seconds}s"));
        check(&cluster, asked, None).findings.iter().any(|finding| finding.id == "delays")
    };
    assert!(with(8, &mut asked) && !with(9, &mut asked), "what is printed as the least is enough, and no less is");
    assert_eq!(delays(&cluster, &asked), said("fenced after 10 s; 9 s is the least that 7.0 s to Off allow"));
    for node in ["node1", "node2"] {
        collected(&mut cluster, node).bmcs.clear();
    }
    for answer in &mut asked.answers {
        answer.note.millis_to_off = Some(700);
    }
    assert_eq!(delays(&cluster, &asked), said("fenced after 10 s; 5 s is the least that 0.7 s to Off allow"));
    for answer in &mut asked.answers {
        answer.note.millis_to_off = None;
    }
    assert!(delays(&cluster, &asked)["node1"].ends_with("'tandem fencing test' does"));
    race(&mut cluster);
    assert_eq!(delays(&cluster, &asked), BTreeMap::new());
}

#[test]
fn two_that_race_need_no_delay() {
    let mut cluster = healthy();
    race(&mut cluster);
    assert_eq!(check(&cluster, &asked(), None).findings, []);
}

#[test]
fn a_race_without_flags_needs_delays() {
    let (mut cluster, mut asked) = (healthy(), asked());
    race(&mut cluster);
    answer(&mut asked).flag = Some(Flag::None("no list".to_owned()));
    let ids = |cluster: &Cluster, asked: &Asked| {
        let checked = check(cluster, asked, None);
        checked.findings.into_iter().map(|one| (one.id, one.command.unwrap_or_default())).collect::<Vec<_>>()
    };
    let update = |device: &str, options: &str| format!("pcs stonith update {device} {options}");
    let found = ids(&cluster, &asked);
    let races =
        ["fence-node1", "fence-node2"].map(|device| ("race-flag", update(device, "race_with= race_preferred=")));
    assert_eq!(found[..2], races);
    assert_eq!(found[2..], [("delays", update("fence-node1", "pcmk_delay_base=22s"))]);
    set(&mut cluster, "pcmk_delay_base", "30s");
    assert_eq!(ids(&cluster, &asked), races, "the delay decides");
    // A flag that was not asked for is no fault.
    answer(&mut asked).flag = None;
    assert_eq!(ids(&cluster, &asked), []);
}

#[test]
fn the_primary_is_the_node_that_a_split_leaves() {
    let found = |primary: &str, plant: fn(&mut Cluster)| {
        let (mut cluster, asked) = (healthy(), asked());
        plant(&mut cluster);
        let etcd = configuration(&mut cluster).etcd.as_mut().unwrap();
        etcd.parameters.insert("configured_primary".to_owned(), primary.to_owned());
        let findings = check(&cluster, &asked, None).findings.into_iter();
        findings.map(|one| (one.id, one.command.unwrap_or_default())).collect::<Vec<_>>()
    };
    let against = |command: &str| vec![("delays-against-primary", command.to_owned())];
    let swapped =
        "pcs stonith update fence-node2 pcmk_delay_base=10s && pcs stonith update fence-node1 pcmk_delay_base=1s";
    assert_eq!(found("node2", |_| {}), against(swapped));
    assert_eq!(found("node1", |_| {}), []);
    assert_eq!(found("node3", |_| {}), [], "it is none of the nodes");
    let both =
        "pcs stonith update fence-node2 race_preferred=node2 && pcs stonith update fence-node1 race_preferred=node2";
    assert_eq!(found("node2", race), against(both));
    assert_eq!(found("node1", race), []);
}
