//! The power of one node, as the BMC of its fence devices reports it. Only [`switch_on`] changes it, and nothing here
//! switches off.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::{ask, no_device};
use crate::adapters::command::Programs;
use crate::adapters::pace::limits::Limits;
use crate::adapters::pacemaker::configuration;
use crate::adapters::pacemaker::fence_options;
use crate::adapters::pacemaker::seen::{Configuration, FenceDevice};
use crate::base::Fact;
use crate::fence::act::Ending;
use crate::fence::examine::{self, LONGEST};
use crate::operate::cluster::{Cluster, Power};
use crate::operate::failure::Failure;
use crate::operate::health::fencing::{Answer, is_ours};
use crate::os::clock::Deadline;
use crate::records::bmc_note::BmcNote;

/// Time reserved for closing a BMC's session. It is subtracted from a command's time limit to get the time limit for querying the BMC.
const FOR_THE_END: Duration = Duration::from_millis(300);

/// Returns the power of `node`, from the BMCs of all devices that fence it. Queries the BMCs in parallel.
pub fn of_node(programs: &Programs, resource: &str, node: &str) -> Power {
    let read = configuration::ask(programs, Some(resource), &Limits::patient());
    match read.known() {
        Some(read) => of_devices(programs, &devices_of(&read.configuration, node), node, LONGEST),
        None => Power::Unknown(format!("the fence devices are not known: {}", read.why_unknown())),
    }
}

/// Returns the power of each of `nodes`, from their BMCs. Queries all BMCs in parallel. Returns after `patience` at the latest.
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
            // A thread that answers too late finds no receiver. It ends with the process.
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

/// A node's power as the BMC of one fence device reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub device: String,
    pub address: String,
    pub power: Power,
}

/// Returns the power of `node` as the BMC of each device that fences `node` reports it.
pub fn of_each(programs: &Programs, configuration: &Configuration, node: &str) -> Result<Vec<Said>, Failure> {
    let devices = some_devices_of(configuration, node)?;
    let answers = answers(programs, &devices, node, LONGEST).map_err(Failure)?;
    let said = |(device, answer): (&FenceDevice, Result<Answer, String>)| {
        let address = device.resource.parameters.get("ip").cloned().unwrap_or_default();
        let power = answer.map_or_else(Power::Unknown, |answer| of_note(answer.note));
        Said { device: device.resource.id.clone(), address, power }
    };
    Ok(devices.iter().zip(answers).map(said).collect())
}

/// The result of switching a node on through one fence device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switched {
    pub device: String,
    /// True if the node was already on, false if the device switched it on. The error is the reason why On is not proven.
    pub was_on: Result<bool, String>,
}

/// Switches `node` on through each device that fences it, one after the other. Each device proves that the node is on.
pub fn switch_on(programs: &Programs, configuration: &Configuration, node: &str) -> Result<Vec<Switched>, Failure> {
    let devices = some_devices_of(configuration, node)?;
    let options = &fence_options::read(programs)?;
    let switch = |device: &FenceDevice| {
        let lines = options.lines_of(&device.resource.id).map_err(|error| error.to_string())?;
        let plug = device.plugs.get(node).map(String::as_str);
        let ended = examine::switch_on(&lines, node, plug).map_err(|error| error.to_string())?;
        Ok(ended == Ending::already_on())
    };
    // Sequential, because two devices may lead to one machine, which must be switched on once.
    Ok(devices.iter().map(|one| Switched { device: one.resource.id.clone(), was_on: switch(one) }).collect())
}

fn some_devices_of(configuration: &Configuration, node: &str) -> Result<Vec<FenceDevice>, Failure> {
    let devices = devices_of(configuration, node);
    if devices.is_empty() {
        return Err(no_device(node));
    }
    Ok(devices)
}

fn of_devices(programs: &Programs, devices: &[FenceDevice], node: &str, limit: Duration) -> Power {
    if devices.is_empty() {
        return Power::Unknown(format!("no fence device of Tandem's is configured for {node}"));
    }
    answers(programs, devices, node, limit).map_or_else(Power::Unknown, of_answers)
}

/// Queries the BMCs of `devices` about `node`, in parallel and within `limit`. Returns the answers in the order of `devices`.
pub(crate) fn answers(
    programs: &Programs,
    devices: &[FenceDevice],
    node: &str,
    limit: Duration,
) -> Result<Vec<Result<Answer, String>>, String> {
    let options =
        fence_options::read(programs).map_err(|error| format!("the fence devices' options cannot be read: {error}"))?;
    let options = &Ok(options);
    Ok(thread::scope(|scope| {
        let ask = |device| scope.spawn(move || ask::one_within(limit, false, device, node, options));
        let asked: Vec<_> = devices.iter().map(ask).collect();
        let failed = || Err("the question failed".to_owned());
        asked.into_iter().map(|thread| thread.join().unwrap_or_else(|_| failed())).collect()
    }))
}

/// Returns the devices of `fence_redfish_rs` that fence `node`.
pub(crate) fn devices_of(configuration: &Configuration, node: &str) -> Vec<FenceDevice> {
    let fences_it = |device: &&FenceDevice| device.targets.iter().any(|target| target == node);
    configuration.fence_devices.iter().filter(|device| is_ours(device)).filter(fences_it).cloned().collect()
}

fn of_answers(answers: Vec<Result<Answer, String>>) -> Power {
    together(answers.into_iter().map(|answer| answer.map_or_else(Power::Unknown, |answer| of_note(answer.note))))
}

/// Combines the reports of several devices about one node. A single On wins over Off, because a node that may still run must not count as
/// lost.
pub fn together(answers: impl IntoIterator<Item = Power>) -> Power {
    let none = Power::Unknown("its BMC was not asked".to_owned());
    answers.into_iter().fold(none, |power, said| match (power, said) {
        (Power::On, _) | (_, Power::On) => Power::On,
        (Power::Off, _) | (_, Power::Off) => Power::Off,
        (_, Power::Unknown(why)) => Power::Unknown(why),
    })
}

/// Returns a node's power from the last result of one BMC.
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

    fn answered(note: BmcNote) -> Answer {
        Answer { note, ..Answer::default() }
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
        let (on, off) = (|| Ok(answered(note(Some("On")))), || Ok(answered(note(Some("Off")))));
        let silent = || Err("its password cannot be read".to_owned());
        assert_eq!(of_answers(vec![off(), on(), silent()]), Power::On);
        assert_eq!(of_answers(vec![off(), silent()]), Power::Off);
        assert_eq!(of_answers(vec![silent()]), Power::Unknown("its password cannot be read".to_owned()));
        assert!(matches!(of_answers(Vec::new()), Power::Unknown(_)));
    }
}
