//! The BMCs behind the peer's fence devices: the power that each reports, and the machine that it belongs to. Nothing here switches the
//! power.

use std::time::Duration;

use crate::adapters::command::Programs;
use crate::adapters::pace::limits::Limits;
use crate::adapters::pacemaker::seen::{Configuration, FenceDevice};
use crate::adapters::pacemaker::{attributes, configuration};
use crate::base::Fact;
use crate::decide::evidence::{PeerBmc, Power};
use crate::operate::fencing::power;
use crate::operate::health::fencing::Answer;
use crate::os::uuid;

/// The state of a node's machine as its BMC reports it at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub power: Seen,
    /// The UUID that the BMC reports for the machine; `None` if it reports none.
    pub found: Option<String>,
    pub by_device: Option<String>,
    pub by_agent: Option<String>,
    /// The times at which the BMCs last reset the machine, in the BMCs' own notation. The list has a time from each BMC that reports one.
    pub resets: Vec<String>,
}

/// The power of the machine in one report of its BMC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    On,
    Unclear(String),
    Off,
    Silent(String),
}

impl Answered {
    /// Returns this report as evidence for `decide`. `off` is the time for which the machine has been off, and the time since its last
    /// Off report.
    pub(super) fn fact(&self, off: Option<(Duration, Duration)>) -> PeerBmc {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let power = match &self.power {
            Seen::On => Power::On,
            Seen::Unclear(says) => Power::Unclear { says: says.clone() },
            Seen::Silent(why) => Power::Silent { why: why.clone() },
            Seen::Off => {
                let (lasted, age) = off.unwrap_or_default();
                Power::Off { for_ms: millis(lasted), age_ms: millis(age) }
            }
        };
        let (found, by_device, by_agent) = (self.found.clone(), self.by_device.clone(), self.by_agent.clone());
        PeerBmc { power, found, by_device, by_agent }
    }

    /// Returns whether the machine is off, and its UUID proves that it is the peer.
    pub(super) fn is_proven_off(&self) -> bool {
        let names: Vec<&String> = [&self.by_device, &self.by_agent].into_iter().flatten().collect();
        let is_its_own = !names.is_empty() && names.iter().all(|name| Some(*name) == self.found.as_ref());
        self.power == Seen::Off && is_its_own
    }

    /// Ranks this report among those of several BMCs. A report that may come from a running machine ranks highest.
    fn weight(&self) -> u8 {
        match self.power {
            Seen::On => 4,
            Seen::Unclear(_) => 3,
            Seen::Off if self.is_proven_off() => 1,
            Seen::Off => 2,
            Seen::Silent(_) => 0,
        }
    }
}

/// Queries the BMCs of the devices that fence `node`, in parallel and within `limit`. Returns `Absent` if no device of `fence_redfish_rs`
/// fences `node`.
pub(super) fn ask(programs: &Programs, resource: &str, node: &str, limit: Duration) -> Fact<Answered> {
    let read = configuration::ask(programs, Some(resource), &Limits::patient());
    let Some(read) = read.known() else {
        return Fact::Unknown(format!("the fence devices are not known: {}", read.why_unknown()));
    };
    let devices = power::devices_of(&read.configuration, node);
    let answers = match power::answers(programs, &devices, node, limit) {
        Ok(answers) => answers,
        Err(why) => return Fact::Unknown(why),
    };
    let judged = devices.iter().zip(answers).map(|(device, answer)| judge(&read.configuration, device, node, answer));
    together(judged).map_or(Fact::Absent, Fact::Known)
}

/// Combines the reports of several BMCs into the report with the highest [`Answered::weight`], with the resets of
/// all. Returns `None` if there are no reports.
fn together(answers: impl IntoIterator<Item = Answered>) -> Option<Answered> {
    answers.into_iter().reduce(|one, other| {
        let (mut chosen, left) = if other.weight() > one.weight() { (other, one) } else { (one, other) };
        chosen.resets.extend(left.resets);
        chosen
    })
}

fn judge(configuration: &Configuration, device: &FenceDevice, node: &str, answer: Result<Answer, String>) -> Answered {
    let (power, reported, last_reset) = match answer {
        Err(why) => (Seen::Silent(why), None, None),
        Ok(Answer { note, .. }) => {
            let power = match (note.failure, note.power.as_deref(), note.chassis_on) {
                (_, Some("On"), _) | (_, _, Some(_)) => Seen::On,
                (Some(why), ..) => Seen::Silent(why),
                (None, Some("Off"), None) => Seen::Off,
                (None, Some(other), None) => Seen::Unclear(other.to_owned()),
                (None, None, None) => Seen::Silent("it does not say whether the machine is on".to_owned()),
            };
            (power, note.uuid, note.last_reset)
        }
    };
    let found = reported.filter(|reported| uuid::is_valid(reported)).map(|uuid| uuid.to_ascii_lowercase());
    let published = configuration.permanent.get(node).and_then(|all| all.get(attributes::SYSTEM_UUID));
    let named = |name: Option<&String>| {
        let name = name.filter(|name| uuid::is_valid(name))?.to_ascii_lowercase();
        // From here on, the UUIDs of one machine are equal as text, even if one side writes them in another byte order.
        Some(found.clone().filter(|found| uuid::same(found, &name)).unwrap_or(name))
    };
    let (by_device, by_agent) = (named(device.resource.parameters.get("system_uuid")), named(published));
    let is_anothers =
        found.is_some() && [&by_device, &by_agent].into_iter().flatten().any(|name| Some(name) != found.as_ref());
    let power = match power {
        // The BMC did answer: the fence agent refuses a machine with another UUID than the device's.
        Seen::Silent(why) if is_anothers => Seen::Unclear(why),
        power => power,
    };
    Answered { power, found, by_device, by_agent, resets: last_reset.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::bmc_note::BmcNote;

    const OWN: &str = "4c4c4544-0032-3510-8054-b4c04f303158";
    const SWAPPED: &str = "44454C4C-3200-1035-8054-B4C04F303158";
    const OTHER: &str = "7a4e1000-0000-4000-8000-0000000000ff";

    fn note(power: &str) -> BmcNote {
        BmcNote { power: Some(power.to_owned()), uuid: Some(OWN.to_owned()), ..BmcNote::default() }
    }

    fn of(note: BmcNote, by_device: Option<&str>, by_agent: Option<&str>) -> Answered {
        let (mut configuration, mut device) = (Configuration::default(), FenceDevice::default());
        if let Some(uuid) = by_agent {
            let published = [(attributes::SYSTEM_UUID.to_owned(), uuid.to_owned())].into();
            configuration.permanent.insert("node2".to_owned(), published);
        }
        if let Some(uuid) = by_device {
            device.resource.parameters.insert("system_uuid".to_owned(), uuid.to_owned());
        }
        judge(&configuration, &device, "node2", Ok(Answer { note, ..Answer::default() }))
    }

    #[test]
    fn only_off_of_the_very_machine_is_proven() {
        for (by_device, by_agent) in
            [(Some(OWN), None), (None, Some(OWN)), (Some(OWN), Some(OWN)), (Some(SWAPPED), None), (None, Some(SWAPPED))]
        {
            assert!(of(note("Off"), by_device, by_agent).is_proven_off(), "{by_device:?} {by_agent:?}");
        }
        for (by_device, by_agent) in
            [(None, None), (Some(OTHER), None), (None, Some(OTHER)), (Some(OWN), Some(OTHER)), (Some(OTHER), Some(OWN))]
        {
            assert!(!of(note("Off"), by_device, by_agent).is_proven_off(), "{by_device:?} {by_agent:?}");
        }
        for blank in [None, Some("00000000-0000-0000-0000-000000000000"), Some("x")] {
            let note = BmcNote { uuid: blank.map(str::to_owned), ..note("Off") };
            assert!(!of(note, Some(OWN), None).is_proven_off(), "{blank:?}");
        }
    }

    #[test]
    fn a_chassis_that_says_on_is_on_and_a_bmc_that_fails_is_silent() {
        assert_eq!(of(note("On"), Some(OWN), None).power, Seen::On);
        let chassis = BmcNote { chassis_on: Some("c1".to_owned()), ..note("Off") };
        assert_eq!(of(chassis, Some(OWN), None).power, Seen::On);
        assert_eq!(of(note("PoweringOff"), Some(OWN), None).power, Seen::Unclear("PoweringOff".to_owned()));
        assert!(matches!(of(BmcNote { power: None, ..note("Off") }, Some(OWN), None).power, Seen::Silent(_)));
        let failed = BmcNote { failure: Some("no route to host".to_owned()), ..note("Off") };
        assert_eq!(of(failed.clone(), Some(OWN), None).power, Seen::Silent("no route to host".to_owned()));
        assert!(matches!(of(failed, Some(OTHER), None).power, Seen::Unclear(_)), "another machine's answers");
        let unread = judge(&Configuration::default(), &FenceDevice::default(), "node2", Err("no password".to_owned()));
        assert_eq!(unread.power, Seen::Silent("no password".to_owned()));
    }

    #[test]
    fn of_several_answers_the_one_that_may_be_of_a_running_machine_counts() {
        let off = || of(note("Off"), Some(OWN), None);
        let another = || of(note("Off"), Some(OTHER), None);
        let silent = || of(BmcNote { power: None, ..note("Off") }, Some(OWN), None);
        let power = |answers: Vec<Answered>| together(answers).map(|one| (one.power.clone(), one.is_proven_off()));
        assert_eq!(power(vec![off(), of(note("On"), Some(OWN), None), off()]), Some((Seen::On, false)));
        assert_eq!(power(vec![off(), of(note("Paused"), Some(OWN), None)]).map(|seen| seen.1), Some(false));
        assert_eq!(power(vec![off(), another()]), Some((Seen::Off, false)));
        assert_eq!(power(vec![silent(), off()]), Some((Seen::Off, true)));
        assert!(matches!(power(vec![silent()]), Some((Seen::Silent(_), false))));
        assert_eq!(power(Vec::new()), None);
    }
}
