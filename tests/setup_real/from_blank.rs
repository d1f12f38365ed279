//! From blank hosts to the described cluster, and from each intermediate state.

use std::time::Duration;

use tandem::operate::setup::step::{SetupStep, State};

use crate::variants::{Variant, all, blank, commands, typed};
use crate::workshop::{Workshop, in_namespaces};

fn is_done(steps: &[SetupStep]) -> bool {
    steps.iter().all(|step| step.state == State::Done)
}

/// Returns the commands that set up a cluster from blank hosts. The first two authenticate the nodes, and make and start the
/// cluster.
fn from_blank(variant: &Variant) -> Vec<Vec<String>> {
    commands(&variant.steps(&blank()))
}

/// The descriptions that are tried each day; `make nightly` tries the others, too.
const DAILY: [&str; 2] = ["promotable", "openshift"];

#[test]
fn the_commands_make_what_was_described_and_go_on_from_wherever_they_were_cut_off() {
    in_namespaces(
        module_path!(),
        "the_commands_make_what_was_described_and_go_on_from_wherever_they_were_cut_off",
        || from_each_prefix(all().into_iter().filter(|variant| DAILY.contains(&variant.name))),
    );
}

#[test]
#[ignore = "two minutes of pcs: `make nightly` runs it"]
fn nightly_the_commands_of_the_other_descriptions_go_on_from_wherever_they_were_cut_off() {
    in_namespaces(
        module_path!(),
        "nightly_the_commands_of_the_other_descriptions_go_on_from_wherever_they_were_cut_off",
        || from_each_prefix(all().into_iter().filter(|variant| !DAILY.contains(&variant.name)).chain([racing()])),
    );
}

/// Returns a description of fence devices that race. An IPv6 address in `race_with` has brackets. With a `race_delay` of
/// 40 s the fencer needs longer time-outs, which are two more options.
fn racing() -> Variant {
    let ipv6 = all().into_iter().find(|variant| variant.name == "ipv6").unwrap();
    let mut racing = Variant { name: "race", ..ipv6 };
    racing.description.race = true;
    racing.description.fencing_delay = Duration::from_secs(40);
    racing
}

/// Asserts that the commands for each variant, cut off after any of them, are continued by the remaining ones.
fn from_each_prefix(variants: impl Iterator<Item = Variant>) {
    for variant in variants {
        let workshop = Workshop::blank(variant.name);
        let all = from_blank(&variant);
        assert!(
            all[0].starts_with(&["pcs".into(), "host".into()]) && all[1].starts_with(&["pcs".into(), "cluster".into()])
        );
        workshop.run(&all[0]);
        workshop.run(&all[1]);
        for (done, next) in all.iter().enumerate().skip(2) {
            // The remaining commands are the same ones, so a run that continues from here ends in the same state. The
            // wait for devices is left out once they run.
            let waits = |words: &&Vec<String>| words[0] == "crm_resource";
            let left: Vec<String> = commands(&variant.steps(&workshop.facts(&variant)))
                .iter()
                .filter(|words| !waits(words))
                .map(|words| typed(words))
                .collect();
            let expected: Vec<String> =
                all[done..].iter().filter(|words| !waits(words)).map(|words| typed(words)).collect();
            assert_eq!(left, expected, "{}, after {done} commands", variant.name);
            workshop.run(next);
        }
        let steps = variant.steps(&workshop.facts(&variant));
        assert!(is_done(&steps), "{}: {steps:#?}", variant.name);
    }
}

#[test]
fn the_openshift_words_make_what_the_operators_words_make() {
    in_namespaces(module_path!(), "the_openshift_words_make_what_the_operators_words_make", inner_openshift);
}

fn inner_openshift() {
    must_be_what_the_operator_makes(&all().into_iter().find(|variant| variant.is_openshift).unwrap());
}

/// Asserts that our commands configure the same cluster as those of OpenShift's etcd operator. The test runs the operator's
/// commands as it types them, and only the password is different.
pub(crate) fn must_be_what_the_operator_makes(variant: &Variant) {
    let operators = Workshop::blank("operators");
    for line in [
        "pcs cluster setup TNF node1 addr=10.99.0.1 node2 addr=10.99.0.2",
        "pcs property set start-failure-is-fatal=false",
        "pcs resource create kubelet systemd:kubelet op start timeout=180s start-delay=15s clone meta interleave=true \
         migration-threshold=60",
        "pcs stonith create node1_redfish fence_redfish username=admin password=PASSWORD ip=10.98.0.101 ipport=443 \
         systems_uri=/redfish/v1/Systems/1 pcmk_host_list=node1 pcmk_delay_base=10s ssl_insecure=0",
        "pcs stonith create node2_redfish fence_redfish username=admin password=PASSWORD ip=10.98.0.102 ipport=443 \
         systems_uri=/redfish/v1/Systems/1 pcmk_host_list=node2 pcmk_delay_base=1s ssl_insecure=0",
        "pcs resource create etcd ocf:heartbeat:podman-etcd node_ip_map=node1:10.99.0.1;node2:10.99.0.2 \
         drop_in_dependency=true clone interleave=true notify=true meta migration-threshold=60",
        "pcs constraint order kubelet-clone then etcd-clone",
        "pcs constraint colocation add etcd-clone with kubelet-clone",
    ] {
        operators.type_in(line);
    }
    let steps = variant.steps(&operators.facts(variant));
    assert!(is_done(&steps), "{steps:#?}");

    let ours = Workshop::blank("ours");
    for words in from_blank(variant) {
        ours.run(&words);
    }
    let but_the_password = |lines: Vec<String>| -> Vec<String> {
        lines.into_iter().filter(|line| !line.contains("name=\"password")).collect()
    };
    assert_eq!(but_the_password(ours.said()), but_the_password(operators.said()));
    let without_its_id = |conf: String| -> Vec<String> {
        conf.lines().filter(|line| !line.contains("cluster_uuid")).map(str::to_owned).collect()
    };
    assert_eq!(without_its_id(ours.corosync_conf()), without_its_id(operators.corosync_conf()));
}
