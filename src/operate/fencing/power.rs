//! The power of one node, as the BMC behind its fence devices reports it. No power is touched.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::ask;
use crate::adapters::command::Programs;
use crate::adapters::pace::limits::Limits;
use crate::adapters::pacemaker::configuration;
use crate::adapters::pacemaker::fence_options;
use crate::adapters::pacemaker::seen::{Configuration, FenceDevice};
use crate::base::Fact;
use crate::fence::examine::LONGEST;
use crate::operate::cluster::{Cluster, Power};
use crate::operate::health::fencing::{Answer, is_ours};
use crate::os::clock::Deadline;
use crate::records::bmc_note::BmcNote;

/// What a BMC lacks of a command's patience, so that its session is closed before the command ends.
const FOR_THE_END: Duration = Duration::from_millis(300);

/// Asks the BMCs of the devices that fence `node`, at once.
pub fn of_node(programs: &Programs, resource: &str, node: &str) -> Power {
    let read = configuration::ask(programs, Some(resource), &Limits::patient());
    match read.known() {
        Some(read) => of_devices(programs, &devices_of(&read.configuration, node), node, LONGEST),
        None => Power::Unknown(format!("the fence devices are not known: {}", read.why_unknown())),
    }
}

/// Asks the BMCs of all `nodes` of `cluster` at once, and returns after `patience` at the latest.
pub fn of_nodes(
    programs: &Programs,
    cluster: &Cluster,
    nodes: Vec<String>,
    patience: Duration,
) -> BTreeMap<String, Power> {
    let Fact::Known(configuration) = &cluster.configuration else { return BTreeMap::new() };
    let end = Deadline::after(patience);
    let limit = patience.saturating_sub(FOR_THE_END);
    let asked: Vec<_> = nodes
        .into_iter()
        .map(|node| {
            let (sender, answer) = mpsc::sync_channel(1);
            let devices = devices_of(configuration, &node);
            let (programs, asked) = (programs.clone(), node.clone());
            // A thread that comes too late finds no reader, and ends with the process.
            thread::spawn(move || drop(sender.send(of_devices(&programs, &devices, &asked, limit))));
            (node, answer)
        })
        .collect();
    let silent = || Power::Unknown(format!("no answer within {:.1} s", patience.as_secs_f64()));
    asked
        .into_iter()
        .map(|(node, answer)| (node, answer.recv_timeout(end.left()).unwrap_or_else(|_| silent())))
        .collect()
}

fn of_devices(programs: &Programs, devices: &[FenceDevice], node: &str, limit: Duration) -> Power {
    if devices.is_empty() {
        return Power::Unknown(format!("no fence device of Tandem's is configured for {node}"));
    }
    let options = match fence_options::read(programs) {
        Ok(options) => options,
        Err(error) => return Power::Unknown(format!("the fence devices' options cannot be read: {error}")),
    };
    let options = &Ok(options);
    let answers = thread::scope(|scope| {
        let ask = |device| scope.spawn(move || ask::one_within(limit, device, node, options));
        let asked: Vec<_> = devices.iter().map(ask).collect();
        asked.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<_>>()
    });
    of_answers(answers)
}

/// Returns the devices of our agent that fence `node`.
pub fn devices_of(configuration: &Configuration, node: &str) -> Vec<FenceDevice> {
    let fences_it = |device: &&FenceDevice| device.targets.iter().any(|target| target == node);
    configuration.fence_devices.iter().filter(|device| is_ours(device)).filter(fences_it).cloned().collect()
}

/// Returns what the answers come to: one On is On, because a machine that may run is not given up.
fn of_answers(answers: Vec<Result<Answer, String>>) -> Power {
    let mut power = Power::Unknown("its BMC was not asked".to_owned());
    for answer in answers {
        let said = answer.map_or_else(Power::Unknown, |answer| of_note(answer.note));
        power = match (power, said) {
            (Power::On, _) | (_, Power::On) => Power::On,
            (Power::Off, _) | (_, Power::Off) => Power::Off,
            (_, Power::Unknown(why)) => Power::Unknown(why),
        };
    }
    power
}

/// Returns the power by the note of one BMC.
fn of_note(note: BmcNote) -> Power {
    match (note.failure, note.power.as_deref(), note.chassis_on) {
        (_, Some("On"), _) | (_, _, Some(_)) => Power::On,
        (Some(why), ..) => Power::Unknown(why),
        (None, Some("Off"), None) => Power::Off,
        (None, Some(other), None) => Power::Unknown(format!("its BMC says '{other}'")),
        (None, None, None) => Power::Unknown("its BMC does not say whether the machine is on".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(power: Option<&str>) -> BmcNote {
        BmcNote { power: power.map(str::to_owned), ..BmcNote::default() }
    }

    fn answered(note: BmcNote) -> Result<Answer, String> {
        Ok(Answer { note, ..Answer::default() })
    }

    #[test]
    fn a_chassis_that_says_on_is_on_and_a_silent_bmc_is_not_off() {
        assert_eq!(of_note(note(Some("On"))), Power::On);
        assert_eq!(of_note(note(Some("Off"))), Power::Off);
        assert_eq!(of_note(BmcNote { chassis_on: Some("c1".to_owned()), ..note(Some("Off")) }), Power::On);
        let failed = BmcNote { failure: Some("no route to host".to_owned()), ..note(Some("Off")) };
        assert_eq!(of_note(failed), Power::Unknown("no route to host".to_owned()));
        for unclear in [note(None), note(Some("PoweringOff"))] {
            assert!(matches!(of_note(unclear), Power::Unknown(_)));
        }
    }

    #[test]
    fn one_on_of_several_is_on() {
        let (on, off) = (|| answered(note(Some("On"))), || answered(note(Some("Off"))));
        let silent = || Err("its password cannot be read".to_owned());
        assert_eq!(of_answers(vec![off(), on(), silent()]), Power::On);
        assert_eq!(of_answers(vec![off(), silent()]), Power::Off);
        assert_eq!(of_answers(vec![silent()]), Power::Unknown("its password cannot be read".to_owned()));
        assert!(matches!(of_answers(Vec::new()), Power::Unknown(_)));
    }
}
