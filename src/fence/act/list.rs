//! The list of systems behind a BMC.

use super::{Actor, Ending, none_to_reset};
use crate::adapters::redfish::discovery::Pointer;
use crate::adapters::redfish::failure::{Failure, FailureKind};
use crate::adapters::redfish::quirks::PowerWord;
use crate::adapters::redfish::resource::Power;
use crate::adapters::redfish::select::{self, Candidate, Wanted};
use crate::fence::plan::{Event, FenceStep, Goal, Moment};

impl Actor<'_> {
    pub(super) fn list(&mut self, with_status: bool) -> Result<Ending, Failure> {
        let candidates = self.candidates()?;
        let separator = &self.config.separator;
        let mut lines = Vec::new();
        for (at, system) in select::resettable(&candidates) {
            let uri = candidates.get(at).map_or("", |candidate| candidate.uri.trim_end_matches('/'));
            let id = system.id.clone().unwrap_or_else(|| uri.rsplit('/').next().unwrap_or_default().to_owned());
            let name = system.name.clone().unwrap_or_else(|| id.clone());
            let mut line = format!("{id}{separator}{name}");
            if with_status {
                line.push_str(separator);
                line.push_str(word_for_list(&system.power));
            }
            // Each system has one line, whatever characters its name has.
            lines.push(
                line.chars().map(|character| if character.is_control() { ' ' } else { character }).collect::<String>(),
            );
        }
        if lines.is_empty() { Err(none_to_reset()) } else { Ok(Ending::success(lines.join("\n"))) }
    }

    pub(super) fn candidates(&mut self) -> Result<Vec<Candidate>, Failure> {
        let pointer = self.config.systems.first().cloned().unwrap_or_else(|| Pointer {
            redfish_uri: self.config.redfish_uri.clone(),
            systems_uri: None,
            wanted: Wanted::Any,
            uuid: None,
            confirm_missing: false,
        });
        let plan = self.plan(Goal::Know, Vec::new());
        let mut history = Vec::new();
        let began = self.deadline.elapsed();
        loop {
            let failure = match self.bmc.list(&pointer) {
                Ok(candidates) => return Ok(candidates),
                Err(failure) => failure,
            };
            let now = self.deadline.elapsed().saturating_sub(began);
            let event = Event::Unread(failure);
            self.missed(&history, &event);
            history.push(Moment { at: now, event });
            match plan.next(&history, now) {
                FenceStep::Read { not_before } => self.deadline.sleep(not_before.saturating_sub(now)),
                FenceStep::Fail(failure) => return Err(failure),
                FenceStep::Post { .. } | FenceStep::AskChassis | FenceStep::Done(_) | FenceStep::GiveWay => {
                    return Err(Failure::new(FailureKind::Refused, "nothing to do"));
                }
            }
        }
    }
}

fn word_for_list(power: &Power) -> &'static str {
    match power {
        Power::Known(PowerWord::Off, _) => "OFF",
        Power::Known(PowerWord::On, _) => "ON",
        _ => "UNKNOWN",
    }
}
