//! Before anything is changed: there is room, the new machine's BMC answers, and there is a copy of the data.

use std::time::Duration;

use nix::sys::statvfs::statvfs;

use super::facts::Look;
use super::work::{Took, Work};
use crate::admin::exit::Failure;
use crate::clock;
use crate::cluster;
use crate::etcd::blocking;
use crate::fence::examine::{self, Examined};
use crate::pacemaker::fence_options;
use crate::redfish::select;

/// Beside the copy itself.
const ROOM: u64 = 64 * 1024 * 1024;
/// For a database of etcd's largest, on a slow disk.
const COPY: Duration = Duration::from_secs(600);

impl Work {
    pub(super) fn check(&self, look: &Look) -> Result<Took, Failure> {
        if let Some(new) = &self.change.new {
            self.progress.say(&format!("asks the BMC of {}", new.name));
            let seen = self.examined(look, &new.name)?;
            self.judged(&new.name, &seen)?;
        }
        if self.change.old_is_off
            && let Some(old) = &self.change.old
        {
            self.must_not_run(look, &old.name)?;
        }
        let copy = self.copy(look)?;
        let word = if self.change.old_is_off { "; the old machine is off by an operator's word" } else { "" };
        Ok(Took::Over(format!("{copy}{word}")))
    }

    /// What the BMC of the new node says, by the options that were typed, or by those of its device.
    fn examined(&self, look: &Look, new: &str) -> Result<Examined, Failure> {
        if !self.change.fence.is_empty() {
            return Ok(examine::device(&self.fence_lines(), Some(new), None));
        }
        let Some(device) = look.devices(new).into_iter().next() else {
            return Err(Failure(format!(
                "{new} has no fence device: add --fence ip=ADDRESS --fence username=USER --fence password_file=FILE"
            )));
        };
        let lines = fence_options::read(&self.programs)?.lines_of(&device.resource.id)?;
        Ok(examine::device(&lines, Some(new), device.plugs.get(new).map(String::as_str)))
    }

    /// As the fence agent reads them; those of the fencer itself are not for it.
    fn fence_lines(&self) -> Vec<u8> {
        let own = self.change.fence.iter().filter(|(name, _)| !name.starts_with("pcmk_"));
        own.map(|(name, value)| format!("{name}={value}\n")).collect::<Vec<_>>().concat().into_bytes()
    }

    fn judged(&self, new: &str, seen: &Examined) -> Result<(), Failure> {
        if let Some(why) = &seen.note.failure {
            return Err(Failure(format!(
                "the BMC of {new} does not do: {why}: correct it, or type others with --fence; 'man fence_redfish_rs' has each option"
            )));
        }
        let own = cluster::own_uuid();
        if let (Some(own), Some(theirs)) = (own, &seen.note.uuid)
            && select::same_uuid(&own, theirs)
        {
            let here = &self.change.here.name;
            return Err(Failure(format!(
                "the BMC at {} is that of {here} itself: type the address of {new}'s own with --fence ip=ADDRESS",
                seen.note.address
            )));
        }
        if seen.may_reset == Some(false) {
            return Err(Failure(format!(
                "the account at the BMC of {new} may not reset the machine: give it a role that may"
            )));
        }
        Ok(())
    }

    /// Who is said to be off must not show that it runs.
    fn must_not_run(&self, look: &Look, old: &str) -> Result<(), Failure> {
        let online = look.cluster.pacemaker.known().and_then(|known| known.nodes.iter().find(|node| node.name == old));
        let runs = |how: String| {
            Err(Failure(format!(
                "{old} runs: {how}: 'tandem member replace --abort', and the same without --old-is-off"
            )))
        };
        if online.is_some_and(|node| node.online) {
            return runs("Pacemaker has it online".to_owned());
        }
        match self.power_of(look, old) {
            Some(power) if power == "On" => runs("its BMC says that the power is on".to_owned()),
            _ => Ok(()),
        }
    }

    /// What the BMC of a node that has a device says of its power.
    pub(super) fn power_of(&self, look: &Look, node: &str) -> Option<String> {
        let device = look.devices(node).into_iter().next()?;
        let lines = fence_options::read(&self.programs).ok()?.lines_of(&device.resource.id).ok()?;
        examine::device(&lines, Some(node), device.plugs.get(node).map(String::as_str)).note.power
    }

    /// A copy of the data, where those of the agent are.
    fn copy(&self, look: &Look) -> Result<String, Failure> {
        let context = &look.context;
        let directory = &context.params.backup_location;
        std::fs::create_dir_all(directory)?;
        let details = look.members.as_ref().map(|seen| seen.details.values().filter_map(|one| one.db_bytes).max());
        let bytes = details.ok().flatten().unwrap_or_default();
        let free = statvfs(directory).map_or(u64::MAX, |system| system.blocks_available() * system.fragment_size());
        if free < bytes + ROOM {
            return Err(Failure(format!(
                "{} has {} MB of room, and a copy of the data takes {} MB: make room, or give the resource another backup_location",
                directory.display(),
                free >> 20,
                (bytes + ROOM) >> 20
            )));
        }
        let stamp: String = clock::utc_stamp().replace('T', "-").trim_end_matches('Z').to_owned();
        let path = directory.join(format!("snapshot-{stamp}.db"));
        self.progress.say("takes a snapshot");
        let taken = blocking::snapshot(&context.own_endpoint, context.credentials(), &path, self.end.at_most(COPY));
        match taken {
            Ok(bytes) => Ok(format!("a snapshot of {} MB is {}", bytes.div_ceil(1 << 20), path.display())),
            // An etcd without a leader has its data all the same, and goes on with it once its peer is known to be off.
            Err(error) if self.change.old_is_off => Ok(format!("no snapshot, as etcd waits for its peer: {error}")),
            Err(error) => Err(Failure(format!("no snapshot could be taken: {error}"))),
        }
    }
}
