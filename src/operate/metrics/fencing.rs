//! The metrics of fencing: each device's last monitor, its BMC, and the last test.

use std::collections::{BTreeMap, BTreeSet};
use std::time::UNIX_EPOCH;

use serde::Deserialize;

use super::page::Page;
use crate::adapters::pacemaker::attributes::FENCING_TESTED;
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::base::json;
use crate::operate::cluster::Cluster;
use crate::records::bmc_note::BmcNote;

/// The phase of a fencing test that is a duration. All other phases are times since the request.
const PAUSE: &str = "longest_pause";

/// The result of a finished fencing test. Each line of `/var/lib/tandem/fencing-tests.jsonl` is one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct FencingTest {
    /// The time at which the operator requested the test, in RFC 3339.
    pub at: String,
    pub node: String,
    pub passed: bool,
    /// Seconds from the request until each phase of the test, and the longest pause in the writes; `None` for a phase without a time.
    pub seconds: BTreeMap<String, Option<f64>>,
}

/// Each node's last fencing test, and the time of its last success in seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FencingTests {
    last: BTreeMap<String, FencingTest>,
    passed: BTreeMap<String, u64>,
}

impl FencingTests {
    pub fn read(lines: &str) -> Self {
        let mut tests = Self::default();
        lines.lines().filter_map(|line| json::from_text(line).ok()).for_each(|test| tests.add(test));
        tests
    }

    /// Adds the result of a fencing test. The newest test must be added last.
    fn add(&mut self, test: FencingTest) {
        let at = humantime::parse_rfc3339_weak(&test.at).ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        if let Some(at) = at.filter(|_| test.passed) {
            self.passed.insert(test.node.clone(), at.as_secs());
        }
        self.last.insert(test.node.clone(), test);
    }
}

pub(super) fn tell(page: &mut Page, cluster: &Cluster, tests: &FencingTests) {
    let noted = notes(page, cluster);
    monitors(page, cluster, &noted);
    last_tests(page, cluster, tests);
}

/// Pairs of a node that monitored a fence device, and that device.
type Looked = BTreeSet<(String, String)>;

fn notes(page: &mut Page, cluster: &Cluster) -> Looked {
    let mut looked = Looked::new();
    for (node, collected) in &cluster.collected {
        let mut notes: Vec<&BmcNote> = collected.known().map(|known| known.bmcs.iter().collect()).unwrap_or_default();
        // Several notes may concern one device: the newest wins, because it is written last.
        notes.retain(|note| note.at > 0);
        notes.sort_by_key(|note| note.at);
        for note in notes {
            let device = device_of(cluster, note);
            tell_note(page, &[("node", node), ("device", &device)], note);
            looked.insert((node.clone(), device));
        }
    }
    looked
}

fn tell_note(page: &mut Page, labels: &[(&str, &str)], note: &BmcNote) {
    monitored(page, labels, note.failure.is_none(), Some(note.millis));
    page.time("tandem_fence_monitor_timestamp_seconds", "When the node last monitored the device", labels, note.at);
    if let Some(at) = note.last_success {
        let help = "When the node last monitored the device with success";
        page.time("tandem_fence_monitor_last_success_timestamp_seconds", help, labels, at);
    }
    if let Some(ahead) = note.clock_ahead {
        #[expect(clippy::cast_precision_loss, reason = "no clock is wrong by 2^53 seconds")]
        let ahead = ahead as f64;
        page.value("tandem_bmc_clock_skew_seconds", "The BMC's clock minus the node's", labels, ahead);
    }
    if let Some(ends) = note.certificate_ends {
        let help = "When the certificate that the BMC shows ends";
        page.time("tandem_bmc_certificate_expiry_timestamp_seconds", help, labels, ends);
    }
}

fn monitored(page: &mut Page, labels: &[(&str, &str)], success: bool, millis: Option<u64>) {
    page.flag(
        "tandem_fence_monitor_success",
        "Whether the node's last monitor of the device succeeded",
        labels,
        success,
    );
    if let Some(millis) = millis {
        let help = "How long the node's last monitor of the device took";
        page.value("tandem_fence_monitor_duration_seconds", help, labels, seconds(millis));
    }
}

fn seconds(millis: u64) -> f64 {
    std::time::Duration::from_millis(millis).as_secs_f64()
}

/// Returns the id of the fence device that wrote `note`. If no single device matches, returns the BMC's address.
fn device_of(cluster: &Cluster, note: &BmcNote) -> String {
    let devices = cluster.configuration.known().map(|known| known.fence_devices.as_slice()).unwrap_or_default();
    let same: Vec<&FenceDevice> = devices.iter().filter(|device| has_address(device, &note.address)).collect();
    let last = note.system.rsplit('/').next().unwrap_or_default();
    let names_it = |device: &&&FenceDevice| {
        let plugs = ["plug", "port", "systems_uri"].map(|name| device.resource.parameters.get(name));
        plugs.into_iter().flatten().chain(device.plugs.values()).any(|plug| *plug == note.system || plug == last)
    };
    match same.as_slice() {
        [] => note.address.clone(),
        [only] => only.resource.id.clone(),
        several => several
            .iter()
            .find(names_it)
            .map_or_else(|| format!("{} {last}", note.address), |device| device.resource.id.clone()),
    }
}

fn has_address(device: &FenceDevice, address: &str) -> bool {
    let parameter = |name: &str| device.resource.parameters.get(name).map(String::as_str);
    let Some(ip) = parameter("ip").or_else(|| parameter("ipaddr")) else { return false };
    ip == address || parameter("ipport").is_some_and(|port| format!("{ip}:{port}") == address)
}

/// Writes the metrics of the last monitor of each fence device that is not in `noted`, from Pacemaker's history of operations.
fn monitors(page: &mut Page, cluster: &Cluster, noted: &Looked) {
    let (Some(seen), Some(configuration)) = (cluster.pacemaker.known(), cluster.configuration.known()) else { return };
    for history in &seen.histories {
        let is_device = configuration.fence_devices.iter().any(|device| device.resource.id == history.resource);
        let place = (history.node.clone(), history.resource.clone());
        let monitors = history.operations.iter().filter(|operation| operation.task == "monitor");
        let last = monitors.max_by_key(|operation| operation.call);
        if let Some(last) = last.filter(|_| is_device && !noted.contains(&place)) {
            let labels = [("node", history.node.as_str()), ("device", history.resource.as_str())];
            monitored(page, &labels, last.rc == 0, last.exec_millis);
        }
    }
}

/// Writes the metrics of each node's last fencing test. `tests` has the tests that this node conducted. The CIB has the last success of
/// each node.
fn last_tests(page: &mut Page, cluster: &Cluster, tests: &FencingTests) {
    let mut passed = tests.passed.clone();
    let permanent = cluster.configuration.known().map(|configuration| &configuration.permanent);
    for (node, attributes) in permanent.into_iter().flatten() {
        if let Some(at) = attributes.get(FENCING_TESTED).and_then(|value| value.parse().ok()) {
            let newest = passed.entry(node.clone()).or_insert(at);
            *newest = at.max(*newest);
        }
    }
    for (node, at) in &passed {
        let help = "When the node's fencing last passed a test";
        page.time("tandem_fencing_test_timestamp_seconds", help, &[("node", node)], *at);
    }
    for (node, test) in &tests.last {
        let labels = [("node", node.as_str())];
        page.flag("tandem_fencing_test_success", "Whether the node's last fencing test passed", &labels, test.passed);
        for (phase, seconds) in test.seconds.iter().filter_map(|(phase, seconds)| Some((phase, (*seconds)?))) {
            if phase == PAUSE {
                let help = "The longest pause in the writes during the node's last fencing test";
                page.value("tandem_fencing_test_pause_seconds", help, &labels, seconds);
                continue;
            }
            let labels = [("node", node.as_str()), ("phase", phase.as_str())];
            let help = "When each phase of the node's last fencing test was reached, since it was asked for";
            page.value("tandem_fencing_test_phase_seconds", help, &labels, seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::pacemaker::seen::{Configuration, Resource};
    use crate::base::Fact;

    fn device(id: &str, parameters: &[(&str, &str)]) -> FenceDevice {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        FenceDevice {
            resource: Resource { id: id.to_owned(), parameters, ..Resource::default() },
            ..FenceDevice::default()
        }
    }

    #[test]
    fn a_note_is_about_the_device_that_has_its_address() {
        let fence_devices = vec![
            device("a", &[("ip", "192.0.2.11")]),
            device("b", &[("ipaddr", "192.0.2.12"), ("ipport", "8443")]),
            device("c1", &[("ip", "192.0.2.13"), ("plug", "1")]),
            device("c2", &[("ip", "192.0.2.13"), ("systems_uri", "/redfish/v1/Systems/2")]),
        ];
        let cluster = Cluster {
            configuration: Fact::Known(Configuration { fence_devices, ..Configuration::default() }),
            ..Cluster::default()
        };
        for (address, system, expected) in [
            ("192.0.2.11", "/redfish/v1/Systems/1", "a"),
            ("192.0.2.12:8443", "/redfish/v1/Systems/1", "b"),
            ("192.0.2.13", "/redfish/v1/Systems/1", "c1"),
            ("192.0.2.13", "/redfish/v1/Systems/2", "c2"),
            ("192.0.2.13", "/redfish/v1/Systems/3", "192.0.2.13 3"),
            ("192.0.2.14", "/redfish/v1/Systems/1", "192.0.2.14"),
        ] {
            let note = BmcNote { address: address.to_owned(), system: system.to_owned(), ..BmcNote::default() };
            assert_eq!(device_of(&cluster, &note), expected);
        }
    }

    #[test]
    fn of_each_nodes_tests_the_last_is_told_and_when_it_last_passed() {
        let tests = FencingTests::read(concat!(
            r#"{"at":"2026-11-01T12:00:00Z","node":"a","passed":true,"seconds":{"off":4.5,"longest_pause":11.0}}"#,
            "\nnonsense\n",
            r#"{"at":"2026-11-02T12:00:00Z","node":"a","passed":false,"why":"not back","seconds":{"off":5.5,"voter":null}}"#,
        ));
        assert_eq!(tests.passed, BTreeMap::from([("a".to_owned(), 1_793_534_400)]));
        assert!(!tests.last["a"].passed);
        let mut page = Page::default();
        last_tests(&mut page, &Cluster::default(), &tests);
        let page = page.text();
        for line in [
            r#"tandem_fencing_test_phase_seconds{node="a",phase="off"} 5.5"#,
            r#"tandem_fencing_test_success{node="a"} 0"#,
            r#"tandem_fencing_test_timestamp_seconds{node="a"} 1793534400"#,
        ] {
            assert!(page.lines().any(|found| found == line), "{line}: {page}");
        }
        assert!(!page.contains("voter") && !page.contains("pause"), "{page}");
    }
}
