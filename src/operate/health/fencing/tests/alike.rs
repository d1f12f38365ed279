//! Tests that `tandem status` and this check report a fault that both see as one problem.

use super::*;
use crate::operate::health::problems::{IDS, IDS_OF_THE_CHECK};
use crate::operate::health::{assess, bmc, samples};

/// The ids of the problems that both `tandem status` and `tandem fencing check` report.
const SHARED: &[&str] = &[
    "pacemaker-stopped",
    "pacemaker-starting",
    "pacemaker-unknown",
    "cib-unknown",
    "quorum-unknown",
    "waits-for-peer",
    "no-quorum",
    "stonith-disabled",
    "node-unclean",
    "node-stop-failed",
    "node-offline",
    "node-pending",
    "fence-device-missing",
    "fence-device-disabled",
    "fence-device-blocked",
    "fence-device-failed",
    "fence-device-stopped",
    "fence-device-unmanaged",
    "bmc-check-failed",
    "bmc-other-machine",
    "bmc-contradiction",
    "bmc-says-off",
    "password-copies",
    "password-staged",
    "fencing-secret-differs",
    "collector-missing",
    "collector-stale",
    "collector-unknown",
    "certificate-ended",
    "certificate-ends-soon",
    "certificate-ends",
];

/// Returns whether a problem of `tandem status` is one that this check reports as well. Of the problems with certificates, it reports
/// only those with certificates of BMCs.
fn is_shared(problem: &Problem) -> bool {
    SHARED.contains(&problem.id) && (problem.device.is_some() || !problem.id.starts_with("certificate-"))
}

/// Returns the parts of a problem that both commands print alike.
fn told(problem: &Problem) -> (&str, Severity, Option<&str>, Option<&str>, &str) {
    (problem.id, problem.severity, problem.node.as_deref(), problem.device.as_deref(), &problem.text)
}

/// Asserts that the faults that both commands see have the same id, severity and sentence in both. Returns the ids of these faults.
fn compare(name: &str, cluster: &Cluster, asked: &Asked) -> Vec<&'static str> {
    let (seen, checked) = (assess(cluster).problems, check(cluster, asked, None).findings);
    for problem in seen.iter().filter(|problem| is_shared(problem)) {
        let alike = checked.iter().any(|other| told(other) == told(problem));
        assert!(alike, "{name}: the status has\n{problem:?}\nand the check\n{checked:#?}");
    }
    for problem in checked.iter().filter(|problem| IDS.contains(&problem.id)) {
        assert!(is_shared(problem), "{name}: {} is not in the list above", problem.id);
        let same =
            |other: &&Problem| (other.id, &other.node, &other.device) == (problem.id, &problem.node, &problem.device);
        if let Some(other) = seen.iter().find(same) {
            assert_eq!(told(other), told(problem), "{name}");
        }
    }
    seen.iter().filter(|problem| is_shared(problem)).map(|problem| problem.id).collect()
}

/// Publishes the answers of the BMCs as results of this node's fence devices, because `tandem status` reads these results. A device with
/// invalid options leaves no result.
fn publish(cluster: &mut Cluster, asked: &Asked) {
    let answers = asked.answers.iter().filter(|answer| !answer.misconfigured);
    cluster.own_notes = answers.map(|answer| answer.note.clone()).collect();
}

#[test]
fn a_fault_that_both_see_has_one_id_one_severity_and_one_sentence() {
    let mut compared = Vec::new();
    for (id, _, _, plant) in PLANTED {
        let (mut cluster, mut asked) = (healthy(), asked());
        plant(&mut cluster, &mut asked);
        publish(&mut cluster, &asked);
        compared.extend(compare(id, &cluster, &asked));
    }
    let missing: Vec<&&str> = SHARED.iter().filter(|id| !compared.contains(*id)).collect();
    assert!(missing.is_empty(), "no fault is planted that both see as {missing:?}");
}

#[test]
fn both_see_the_same_in_every_sample() {
    for (name, cluster) in samples::all().into_iter().chain(samples::captured()) {
        let devices = cluster.configuration.known().map(|known| known.fence_devices.as_slice()).unwrap_or_default();
        let answers = devices.iter().filter_map(|device| {
            let (_, note) = bmc::checked(&cluster, device).filter(|(node, _)| *node == cluster.here)?;
            let (device, target) = (device.resource.id.clone(), device.targets.first()?.clone());
            Some(Answer { device, target, note: note.clone(), ..Answer::default() })
        });
        compare(&name, &cluster, &Asked { answers: answers.collect(), ..Asked::default() });
    }
}

/// Asserts that [`IDS_OF_THE_CHECK`] or [`SHARED`] contains each id that a test plants. Also asserts that a test plants each id of
/// [`IDS_OF_THE_CHECK`].
#[test]
fn each_id_of_the_check_is_in_a_list() {
    for (id, ..) in PLANTED {
        assert!(IDS_OF_THE_CHECK.contains(id) || SHARED.contains(id), "{id}");
    }
    // The tests of delays plant a race without a flag.
    let is_planted = |id: &str| id == "race-flag" || PLANTED.iter().any(|(planted, ..)| *planted == id);
    let missing: Vec<&&str> = IDS_OF_THE_CHECK.iter().filter(|id| !is_planted(id)).collect();
    assert!(missing.is_empty(), "nothing plants {missing:?}");
}

/// Asserts that a problem with a BMC's certificate begins with the text of `tandem status`. It ends with the fingerprint that only this
/// check saw.
#[test]
fn what_only_the_check_saw_comes_last() {
    let (mut cluster, mut asked) = (healthy(), asked());
    answer(&mut asked).note.failure = Some("the certificate is not the pinned one".to_owned());
    publish(&mut cluster, &asked);
    let find = |problems: Vec<Problem>| problems.into_iter().find(|one| one.id == "bmc-check-failed").unwrap().text;
    let (seen, checked) = (find(assess(&cluster).problems), find(check(&cluster, &asked, None).findings));
    assert_eq!(checked, seen + "; it shows the fingerprint AB:CD: compare it at the BMC itself");
}
