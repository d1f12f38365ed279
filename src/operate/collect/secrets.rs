//! Comparison of OpenShift's BMC Secrets with the fence devices, every five minutes. No secret leaves this process: it only keeps which
//! part differs.

use std::collections::BTreeMap;
use std::thread;

use crate::adapters::command::Programs;
use crate::adapters::pacemaker::fence_options;
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::base::Fact;
use crate::operate::cluster::{Cluster, SecretSeen};
use crate::operate::fencing::update::differences;
use crate::operate::health::fencing::is_ours;

/// Seconds between two comparisons of a fence device with its Secret: five minutes less a margin, because the collector runs about every
/// 30 s.
const EVERY: u64 = 290;

/// Compares each fence device that is due with OpenShift's Secret, and stores the results among this node's own facts in `cluster`.
pub(super) fn compare(programs: &Programs, cluster: &mut Cluster) {
    let now = cluster.at;
    let Fact::Known(configuration) = &cluster.configuration else { return };
    let kubeconfig = super::kubeconfig(configuration);
    let before = cluster.collected.get(&cluster.here).and_then(Fact::known).map(|own| own.secrets.clone());
    let before = before.unwrap_or_default();
    if !kubeconfig.exists() {
        return put(cluster, BTreeMap::new());
    }
    let devices = configuration.fence_devices.iter().filter(|device| is_ours(device) && !device.targets.is_empty());
    let (due, rest): (Vec<&FenceDevice>, Vec<&FenceDevice>) =
        devices.partition(|device| is_due(before.get(&device.resource.id), now));
    let kept = rest.iter().filter_map(|device| before.get_key_value(&device.resource.id));
    let mut found: BTreeMap<String, SecretSeen> = kept.map(|(id, seen)| (id.clone(), seen.clone())).collect();
    if !due.is_empty() {
        let options = fence_options::read(programs);
        let differs = |device: &FenceDevice| match &options {
            Ok(options) => differences(options, device, &kubeconfig),
            Err(error) => Fact::Unknown(error.to_string()),
        };
        let compared: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = due.iter().map(|device| scope.spawn(|| differs(device))).collect();
            let failed = || Fact::Unknown("the question failed".to_owned());
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| failed())).collect()
        });
        for (device, compared) in due.iter().zip(compared) {
            let id = &device.resource.id;
            if let Fact::Unknown(why) = &compared {
                log::info!("{id}: the Secret cannot be compared: {why}");
            }
            found.insert(id.clone(), next(before.get(id), now, compared));
        }
    }
    put(cluster, found);
}

fn put(cluster: &mut Cluster, secrets: BTreeMap<String, SecretSeen>) {
    if let Some(Fact::Known(own)) = cluster.collected.get_mut(&cluster.here) {
        own.secrets = secrets;
    }
}

/// Returns whether the comparison of a device with its Secret is due. It is also due if the clock was set back.
fn is_due(before: Option<&SecretSeen>, now: u64) -> bool {
    before.is_none_or(|before| !(before.at..before.at + EVERY).contains(&now))
}

/// Returns the state after the comparison `compared`. If OpenShift's API did not answer, the earlier differences stay.
fn next(before: Option<&SecretSeen>, now: u64, compared: Fact<Vec<&'static str>>) -> SecretSeen {
    let before = before.cloned().unwrap_or_default();
    match compared {
        Fact::Known(differs) if differs.is_empty() => SecretSeen { at: now, ..SecretSeen::default() },
        Fact::Known(differs) => SecretSeen {
            at: now,
            differs: differs.into_iter().map(str::to_owned).collect(),
            looks: before.looks.saturating_add(1),
        },
        Fact::Absent => SecretSeen { at: now, ..SecretSeen::default() },
        Fact::Unknown(_) | Fact::NotAsked => SecretSeen { at: now, ..before },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the count of comparisons in a row that found a difference, after each of `compared`.
    fn looks(compared: &[Fact<Vec<&'static str>>]) -> Vec<u64> {
        let mut seen: Option<SecretSeen> = None;
        let mut found = Vec::new();
        for (compared, now) in compared.iter().zip((0..).step_by(300)) {
            assert!(is_due(seen.as_ref(), now));
            let after = next(seen.as_ref(), now, compared.clone());
            assert!(!is_due(Some(&after), now + 30), "the next run of the collector is no comparison");
            found.push(after.looks);
            seen = Some(after);
        }
        found
    }

    #[test]
    fn two_comparisons_in_a_row_that_differ_are_counted_in_each_order_of_events() {
        let (same, differs) = (|| Fact::Known(Vec::new()), || Fact::Known(vec!["password"]));
        let (silent, none) = (|| Fact::Unknown("no route".to_owned()), || Fact::Absent);
        for (events, expected) in [
            // The Secret changes first and then the device, between two comparisons or around one.
            (vec![same(), differs(), same()], vec![0, 1, 0]),
            (vec![same(), differs(), differs(), same()], vec![0, 1, 2, 0]),
            // Both change between two comparisons.
            (vec![same(), same()], vec![0, 0]),
            // A difference, and later another one.
            (vec![differs(), same(), differs()], vec![1, 0, 1]),
            // The API fails before, between and after the comparisons.
            (vec![silent(), differs(), differs()], vec![0, 1, 2]),
            (vec![differs(), silent(), differs()], vec![1, 1, 2]),
            (vec![differs(), differs(), silent(), same()], vec![1, 2, 2, 0]),
            // The Secret is deleted and created again.
            (vec![differs(), differs(), none(), differs()], vec![1, 2, 0, 1]),
            (vec![none(), differs(), differs()], vec![0, 1, 2]),
        ] {
            assert_eq!(looks(&events), expected, "{events:?}");
        }
    }

    #[test]
    fn a_clock_that_was_put_back_makes_a_comparison_due() {
        let seen = SecretSeen { at: 1_000, ..SecretSeen::default() };
        assert!(is_due(None, 5) && is_due(Some(&seen), 999) && is_due(Some(&seen), 1_290));
        assert!(!is_due(Some(&seen), 1_000) && !is_due(Some(&seen), 1_289));
    }
}
