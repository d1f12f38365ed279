//! Manual changes are detected value by value, and the commands of `--change` revert them, and nothing else.

use std::collections::BTreeMap;

use tandem::operate::setup::step::{Difference, SetupStep, State};

use crate::variants::{Variant, all, blank, commands, words};
use crate::workshop::{Workshop, in_namespaces};

/// A command that changes a cluster, and the differences that `tandem setup` must report after it. A difference is the
/// object, its present value, and the described one.
type Change = (&'static str, &'static [(&'static str, &'static str, &'static str)]);

const FENCING: &[Change] = &[
    ("pcs stonith update fence-node1 ip=10.98.0.9", &[("fence-node1: ip", "10.98.0.9", "10.98.0.101")]),
    ("pcs stonith update fence-node1 username=root", &[("fence-node1: username", "root", "admin")]),
    (
        "pcs stonith update fence-node2 systems_uri=/redfish/v1/Systems/7",
        &[("fence-node2: systems_uri", "/redfish/v1/Systems/7", "/redfish/v1/Systems/1")],
    ),
    (
        "pcs stonith update fence-node1 system_uuid=",
        &[("fence-node1: system_uuid", "", "4c4c4544-0042-3010-8052-b4c04f4c5831")],
    ),
    (
        "pcs stonith update fence-node1 password_file=/root/password",
        &[("fence-node1: password_file", "/root/password", "/etc/tandem/bmc-node1.password")],
    ),
    ("pcs stonith update fence-node1 pcmk_host_list=node2", &[("fence-node1: pcmk_host_list", "node2", "node1")]),
    ("pcs stonith update fence-node1 pcmk_delay_base=1s", &[("fence-node1: pcmk_delay_base", "1s", "10s")]),
    ("pcs stonith update fence-node2 pcmk_delay_base=", &[("fence-node2: pcmk_delay_base", "", "1s")]),
    (
        "pcs stonith update fence-node2 password=hunter2",
        &[("fence-node2: password", "in the CIB", "in the password file")],
    ),
    (
        "pcs stonith update fence-node2 ip=10.98.0.9 username=root",
        &[("fence-node2: ip", "10.98.0.9", "10.98.0.102"), ("fence-node2: username", "root", "admin")],
    ),
];

const REST: &[Change] = &[
    ("pcs property set stonith-enabled=false", &[("cluster: stonith-enabled", "false", "true")]),
    ("pcs property set start-failure-is-fatal=true", &[("cluster: start-failure-is-fatal", "true", "false")]),
    ("pcs property set load-threshold=80%", &[("cluster: load-threshold", "80%", "1000%")]),
    ("pcs property set priority-fencing-delay=5s", &[("cluster: priority-fencing-delay", "5s", "15s")]),
    (
        "pcs resource update etcd node_ip_map=node1:10.99.0.1;node2:10.99.0.7",
        &[("etcd: node_ip_map", "node1:10.99.0.1;node2:10.99.0.7", "node1:10.99.0.1;node2:10.99.0.2")],
    ),
    ("pcs resource update etcd image=etcd:v3.6", &[("etcd: image", "etcd:v3.6", "registry.example.com/etcd:v3.5")]),
    (
        "pcs resource update etcd trusted_ca_file=/etc/ca.crt",
        &[("etcd: trusted_ca_file", "/etc/ca.crt", "/etc/tandem/pki/ca.crt")],
    ),
    ("pcs resource update etcd cert_file=/etc/c.crt", &[("etcd: cert_file", "/etc/c.crt", "/etc/tandem/pki/etcd.crt")]),
    ("pcs resource update etcd key_file=/etc/c.key", &[("etcd: key_file", "/etc/c.key", "/etc/tandem/pki/etcd.key")]),
    ("pcs resource meta etcd migration-threshold=3", &[("etcd: migration-threshold", "3", "60")]),
    ("pcs resource meta etcd priority=", &[("etcd: priority", "", "1")]),
    ("pcs resource meta etcd-clone promoted-max=1", &[("etcd-clone: promoted-max", "1", "2")]),
    ("pcs resource meta etcd-clone interleave=false", &[("etcd-clone: interleave", "false", "true")]),
    ("pcs resource meta etcd-clone notify=", &[("etcd-clone: notify", "", "true")]),
    ("pcs resource meta etcd-clone promotable=", &[("etcd-clone: clone", "plain", "promotable")]),
];

const OF_CERTIFICATES: &[Change] = &[
    ("pcs resource update etcd data_dir=", &[("etcd: data_dir", "/var/lib/etcd", "/srv/etcd")]),
    (
        "pcs resource update etcd etcd_settings=heartbeat-interval=100",
        &[("etcd: etcd_settings", "heartbeat-interval=100", "heartbeat-interval=200;election-timeout=2000")],
    ),
    ("pcs resource update etcd lone_boot=never", &[("etcd: lone_boot", "never", "sole_voter")]),
];

const OF_OPENSHIFT: &[Change] = &[
    (
        "pcs resource update kubelet op start timeout=60s start-delay=15s",
        &[("kubelet: start timeout", "60000ms", "180s")],
    ),
    (
        "pcs resource update kubelet op start timeout=180s start-delay=1s",
        &[("kubelet: start start-delay", "1000ms", "15s")],
    ),
    ("pcs resource meta kubelet migration-threshold=3", &[("kubelet: migration-threshold", "3", "60")]),
    ("pcs resource meta kubelet interleave=false", &[("kubelet: interleave", "false", "true")]),
    ("pcs resource update etcd drop_in_dependency=false", &[("etcd: drop_in_dependency", "false", "true")]),
    ("pcs stonith update node1_redfish ssl_insecure=1", &[("node1_redfish: ssl_insecure", "1", "0")]),
];

const COROSYNC: &[Change] = &[
    ("pcs cluster config update totem token=5000", &[("corosync: token", "5000", "1000")]),
    ("pcs cluster config update totem token=", &[("corosync: token", "3000", "1000")]),
    (
        "pcs cluster config update crypto cipher=aes128 hash=md5",
        &[("corosync: crypto_cipher", "aes128", "aes256"), ("corosync: crypto_hash", "md5", "sha256")],
    ),
];

fn made(variant: &Variant) -> Workshop {
    let workshop = Workshop::blank(variant.name);
    for words in commands(&variant.steps(&blank())) {
        workshop.run(&words);
    }
    workshop
}

fn differing(steps: &[SetupStep]) -> Vec<&Difference> {
    let differences = steps.iter().filter_map(|step| match &step.state {
        State::Differs { differences, .. } => Some(differences),
        _ => None,
    });
    differences.flatten().collect()
}

/// Returns the commands with which `tandem setup --change` undoes the reported differences.
fn changes(steps: &[SetupStep]) -> Vec<Vec<String>> {
    let actions = steps.iter().filter_map(|step| match &step.state {
        State::Differs { actions, .. } => Some(actions),
        _ => None,
    });
    actions.flatten().map(words).collect()
}

fn check(variant: &Variant, made: &Workshop, changed: &[Change]) {
    for (line, expected) in changed {
        let workshop = made.copy("changed");
        workshop.type_in(line);
        let steps = variant.steps(&workshop.facts(variant));
        let shown = differing(&steps);
        let shown: Vec<_> = shown.iter().map(|one| (&*one.what, &*one.there, &*one.described)).collect();
        assert_eq!(shown, *expected, "{}: {line}", variant.name);
        assert_eq!(commands(&steps), Vec::<Vec<String>>::new(), "{line}: nothing is missing");
        for words in changes(&steps) {
            workshop.run(&words);
        }
        assert_eq!(workshop.said(), made.said(), "{}: {line}", variant.name);
        let steps = variant.steps(&workshop.facts(variant));
        assert!(steps.iter().all(|step| step.state == State::Done), "{line}: {steps:#?}");
    }
}

fn variant(name: &str) -> Variant {
    all().into_iter().find(|variant| variant.name == name).unwrap()
}

#[test]
fn a_changed_device_is_seen_and_changed_back() {
    in_namespaces(module_path!(), "a_changed_device_is_seen_and_changed_back", || {
        let variant = variant("promotable");
        check(&variant, &made(&variant), FENCING);
    });
}

#[test]
#[ignore = "a minute of pcs: `make nightly` runs it"]
fn nightly_a_changed_property_or_resource_is_seen_and_changed_back() {
    in_namespaces(module_path!(), "nightly_a_changed_property_or_resource_is_seen_and_changed_back", || {
        let promotable = variant("promotable");
        check(&promotable, &made(&promotable), REST);
        let plain = variant("plain");
        let changed: &[Change] = &[(
            "pcs resource meta etcd-clone promotable=true promoted-max=2",
            &[("etcd-clone: clone", "promotable", "plain")],
        )];
        check(&plain, &made(&plain), changed);
    });
}

#[test]
#[ignore = "a minute of pcs: `make nightly` runs it"]
fn nightly_what_only_some_descriptions_say_is_compared_too() {
    in_namespaces(module_path!(), "nightly_what_only_some_descriptions_say_is_compared_too", || {
        for (name, changed) in [("certificates", OF_CERTIFICATES), ("openshift", OF_OPENSHIFT), ("ipv6", COROSYNC)] {
            let variant = variant(name);
            check(&variant, &made(&variant), changed);
        }
    });
}

/// Asserts that another spelling of a value is no difference, and that an operator's additions are left alone.
#[test]
fn what_means_the_same_and_what_was_added_is_left_alone() {
    in_namespaces(module_path!(), "what_means_the_same_and_what_was_added_is_left_alone", || {
        let variant = variant("promotable");
        let workshop = made(&variant);
        for line in [
            "pcs stonith update fence-node1 pcmk_delay_base=10 system_uuid=4C4C4544-0042-3010-8052-B4C04F4C5831",
            "pcs stonith update fence-node1 power_timeout=40 pcmk_reboot_timeout=90s",
            "pcs stonith update fence-node2 pcmk_host_list= pcmk_host_map=node2:1",
            "pcs property set stonith-enabled=yes priority-fencing-delay=15 no-quorum-policy=stop",
            "pcs resource update etcd node_ip_map=node2:10.99.0.2;node1:10.99.0.1 etcd_settings=heartbeat-interval=200",
            "pcs resource update etcd data_dir=/var/lib/etcd oom=-500",
            "pcs resource meta etcd resource-stickiness=100",
            "pcs resource meta etcd-clone interleave=1",
            "pcs resource create client ocf:pacemaker:Dummy clone interleave=true",
            "pcs constraint order etcd-clone then client-clone",
            "pcs constraint location client-clone prefers node1=50",
        ] {
            workshop.type_in(line);
        }
        let steps = variant.steps(&workshop.facts(&variant));
        assert!(steps.iter().all(|step| step.state == State::Done), "{steps:#?}");
    });
}

/// Asserts that a missing object is made again, and is not reported as a difference. The same step may also report a difference.
#[test]
fn what_was_taken_away_is_made_again() {
    in_namespaces(module_path!(), "what_was_taken_away_is_made_again", || {
        let mut ready: BTreeMap<&str, Workshop> = BTreeMap::new();
        for (name, lines, missing) in [
            (
                "promotable",
                &[
                    "pcs constraint delete location-fence-node2-node2--INFINITY",
                    "pcs stonith update fence-node2 ip=10.98.0.9",
                ][..],
                &["pcs constraint location fence-node2 avoids node2"][..],
            ),
            (
                "promotable",
                &["pcs property unset stonith-enabled", "pcs property set start-failure-is-fatal=true"],
                &["pcs property set stonith-enabled=true"],
            ),
            ("promotable", &["pcs stonith disable fence-node1"], &["pcs stonith enable fence-node1"]),
            ("plain", &["pcs resource unclone etcd"], &["pcs resource clone etcd meta interleave=true notify=true"]),
            ("plain", &["pcs resource disable etcd-clone"], &["pcs resource enable etcd"]),
            (
                "openshift",
                &["pcs constraint delete order-kubelet-clone-etcd-clone-mandatory"],
                &["pcs constraint order kubelet-clone then etcd-clone"],
            ),
            (
                "openshift",
                &["pcs constraint delete colocation-etcd-clone-kubelet-clone-INFINITY"],
                &["pcs constraint colocation add etcd-clone with kubelet-clone"],
            ),
        ] {
            let variant = variant(name);
            let made = ready.entry(name).or_insert_with(|| made(&variant));
            let workshop = made.copy("changed");
            for line in lines {
                workshop.type_in(line);
            }
            let steps = variant.steps(&workshop.facts(&variant));
            let to_do = commands(&steps);
            let shown: Vec<String> = to_do.iter().map(|words| words.join(" ")).collect();
            assert_eq!(shown, missing, "{lines:?}");
            for words in to_do.iter().chain(&changes(&steps)) {
                workshop.run(words);
            }
            assert_eq!(workshop.said(), made.said(), "{lines:?}");
        }
    });
}
