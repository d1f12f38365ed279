//! The checks before a change: there is space, the new machine's BMC answers, and a copy of the data exists.

use std::time::Duration;

use nix::sys::statvfs::statvfs;

use super::facts::Look;
use super::work::{Took, Work};
use crate::adapters::etcd::blocking;
use crate::adapters::pacemaker::fence_options;
use crate::fence::examine::{self, Examined};
use crate::operate::failure::Failure;
use crate::os::clock;
use crate::os::dmi;
use crate::os::uuid;

/// Disk space in bytes that must be free in addition to the snapshot's size.
const ROOM: u64 = 64 * 1024 * 1024;
/// Timeout of a snapshot of etcd's largest database, on a slow disk.
const COPY: Duration = Duration::from_secs(600);

impl Work {
    pub(super) fn check(&self, look: &Look) -> Result<Took, Failure> {
        if self.change.openshift.is_some() {
            self.check_objects(look)?;
        } else if let Some(new) = &self.change.new {
            self.progress.say(&format!("asks the BMC of {}", new.name));
            let seen = self.examined(look, &new.name)?;
            if let Some(why) = fault(&new.name, &self.change.here.name, dmi::system_uuid().as_deref(), &seen) {
                return Err(Failure(why));
            }
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

    /// Reads the state of the new node's BMC, with the typed fence options, or with those of its existing device.
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

    /// Returns the typed fence options in the fence agent's input format, without the `pcmk_` options of Pacemaker's fencer.
    fn fence_lines(&self) -> Vec<u8> {
        let own = self.change.fence.iter().filter(|(name, _)| !name.starts_with("pcmk_"));
        own.map(|(name, value)| format!("{name}={value}\n")).collect::<Vec<_>>().concat().into_bytes()
    }

    /// Fails if the node `old` runs, although the operator has declared it off.
    fn must_not_run(&self, look: &Look, old: &str) -> Result<(), Failure> {
        let online = look.cluster.pacemaker.known().and_then(|known| known.nodes.iter().find(|node| node.name == old));
        let is_online = online.is_some_and(|node| node.online);
        match runs(old, is_online, || self.power_of(look, old)) {
            Some(why) => Err(Failure(why)),
            None => Ok(()),
        }
    }

    /// Returns the power state that the BMC of `node` reports; `None` if it reports none. On proves that the node
    /// runs, but Off is no proof that it is off.
    fn power_of(&self, look: &Look, node: &str) -> Option<String> {
        let device = look.devices(node).into_iter().next()?;
        let lines = fence_options::read(&self.programs).ok()?.lines_of(&device.resource.id).ok()?;
        examine::device(&lines, Some(node), device.plugs.get(node).map(String::as_str)).note.power
    }

    /// Takes a snapshot of etcd's data into the resource's `backup_location`. Returns a message with the snapshot's path.
    fn copy(&self, look: &Look) -> Result<String, Failure> {
        let context = &look.context;
        let directory = &context.params.backup_location;
        std::fs::create_dir_all(directory)?;
        let details = look.members.as_ref().map(|seen| seen.details.values().filter_map(|one| one.db_bytes).max());
        let bytes = details.ok().flatten().unwrap_or_default();
        let free = statvfs(directory).map_or(u64::MAX, |system| system.blocks_available() * system.fragment_size());
        if let Some(why) = lacks_room(&directory.display().to_string(), free, bytes) {
            return Err(Failure(why));
        }
        let stamp: String = clock::utc_stamp().replace('T', "-").trim_end_matches('Z').to_owned();
        let path = directory.join(format!("snapshot-{stamp}.db"));
        self.progress.say("takes a snapshot");
        let taken = blocking::snapshot(&context.own_endpoint, context.credentials(), &path, self.end.at_most(COPY));
        match taken {
            Ok(bytes) => Ok(format!("a snapshot of {} MB is {}", bytes.div_ceil(1 << 20), path.display())),
            // An etcd without a leader still has its data, and serves again once Pacemaker knows that its peer is off.
            Err(error) if self.change.old_is_off => Ok(format!("no snapshot, as etcd waits for its peer: {error}")),
            Err(error) => Err(Failure(format!("no snapshot could be taken: {error}"))),
        }
    }
}

/// Returns the reason why the node `here` cannot use the BMC of the node `new`; `None` if it can. `own` is the system
/// UUID of `here`.
fn fault(new: &str, here: &str, own: Option<&str>, seen: &Examined) -> Option<String> {
    if let Some(why) = &seen.note.failure {
        return Some(format!(
            "the BMC of {new} does not do: {why}: correct it, or type others with --fence; 'man fence_redfish_rs' has each option"
        ));
    }
    if let Some((own, theirs)) = own.zip(seen.note.uuid.as_deref())
        && uuid::same(own, theirs)
    {
        return Some(format!(
            "the BMC at {} is that of {here} itself: type the address of {new}'s own with --fence ip=ADDRESS",
            seen.note.address
        ));
    }
    let is_in_vain = seen.may_reset == Some(false);
    is_in_vain.then(|| format!("the account at the BMC of {new} may not reset the machine: give it a role that may"))
}

/// Returns the evidence that the node `old` runs although the operator has declared it off; `None` if there is none.
fn runs(old: &str, is_online: bool, power: impl FnOnce() -> Option<String>) -> Option<String> {
    let how = if is_online {
        "Pacemaker has it online"
    } else if power().is_some_and(|power| power == "On") {
        "its BMC says that the power is on"
    } else {
        return None;
    };
    Some(format!("{old} runs: {how}: 'tandem member replace --abort', and the same without --old-is-off"))
}

fn lacks_room(directory: &str, free: u64, bytes: u64) -> Option<String> {
    let needed = bytes.saturating_add(ROOM);
    (free < needed).then(|| {
        format!(
            "{directory} has {} MB of room, and a copy of the data takes {} MB: make room, or give the resource another backup_location",
            free >> 20,
            needed >> 20
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::change::{Change, Kind};
    use super::super::fake_node1::{Node1, parts};
    use super::super::plan::tests::{change, place};
    use super::*;
    use crate::operate::health::samples;
    use crate::operate::members::look::Detail;
    use crate::records::bmc_note::BmcNote;

    const OWN: &str = "7a4e1000-0000-4000-8000-000000000001";
    const OTHERS: &str = "7a4e1000-0000-4000-8000-000000000003";

    fn removed() -> Change {
        change(Kind::Remove, Some(place("node2", 2)), None)
    }

    fn refused(work: &Work, look: &Look) -> String {
        work.check(look).unwrap_err().0
    }

    #[test]
    fn nothing_begins_beside_a_bmc_that_does_not_do_or_where_the_old_machine_runs() {
        let node1 = Node1::new();
        let healthy = node1.look(samples::read("healthy"));
        let mut added = change(Kind::Add, None, Some(place("node3", 3)));
        added.fence =
            [("username", "u"), ("pcmk_delay_base", "1s")].map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec();
        let work = node1.work(added.clone(), "");
        assert!(refused(&work, &healthy).starts_with("the BMC of node3 does not do: "), "{}", refused(&work, &healthy));
        assert_eq!(work.fence_lines(), b"username=u\n", "the agent knows no option of the fencer's");
        added.fence.clear();
        assert!(refused(&node1.work(added, ""), &healthy).starts_with("node3 has no fence device"));
        let work = node1.work(Change { old_is_off: true, ..removed() }, "");
        assert!(refused(&work, &healthy).starts_with("node2 runs: Pacemaker has it online"));
        assert!(node1.typed().is_empty());
    }

    #[test]
    fn nothing_begins_without_a_copy_of_the_data_but_where_etcd_waits_for_its_peer() {
        let node1 = Node1::new();
        let mut look = node1.look(samples::read("healthy"));
        let work = node1.work(removed(), "");
        assert!(refused(&work, &look).starts_with("no snapshot could be taken: "));
        look.members.as_mut().unwrap().details.insert(1, Detail { db_bytes: Some(1 << 62), ..Detail::default() });
        assert!(refused(&work, &look).contains("make room"));
        look.members.as_mut().unwrap().details.clear();
        parts(&mut look.cluster).0.nodes.iter_mut().for_each(|node| node.online = node.name != "node2");
        let took = node1.work(Change { old_is_off: true, ..removed() }, "").check(&look).unwrap();
        let Took::Over(what) = &took else { panic!("{took:?}") };
        assert!(what.starts_with("no snapshot, as etcd waits for its peer: "), "{what}");
        assert!(what.ends_with("; the old machine is off by an operator's word"), "{what}");
    }

    #[test]
    fn a_bmc_that_could_not_fence_the_new_machine_is_none() {
        let seen = |note: BmcNote, may_reset| Examined { note, may_reset, ..Examined::default() };
        let well = || BmcNote { uuid: Some(OTHERS.to_owned()), ..BmcNote::default() };
        let told = |seen: &Examined| fault("node3", "node1", Some(OWN), seen).unwrap_or_default();
        assert_eq!(told(&seen(well(), Some(true))), "");
        assert_eq!(told(&seen(BmcNote::default(), None)), "", "what it does not tell is no fault");
        let silent = BmcNote { failure: Some("timed out".to_owned()), ..well() };
        assert!(told(&seen(silent, None)).contains("the BMC of node3 does not do: timed out"));
        let own = BmcNote { uuid: Some(OWN.to_uppercase()), ..BmcNote::default() };
        assert!(told(&seen(own, Some(true))).contains("is that of node1 itself"), "it would fence the node that stays");
        assert!(told(&seen(well(), Some(false))).contains("may not reset the machine"));
    }

    #[test]
    fn nobodys_word_makes_a_machine_off_that_runs() {
        let told = |is_online, power: Option<&str>| runs("node2", is_online, || power.map(str::to_owned));
        assert!(told(true, Some("Off")).unwrap().contains("Pacemaker has it online"));
        assert!(told(false, Some("On")).unwrap().contains("its BMC says that the power is on"));
        assert_eq!((told(false, Some("Off")), told(false, None)), (None, None), "a dead BMC is what the word is for");
    }

    #[test]
    fn a_copy_that_would_fill_the_disk_is_not_begun() {
        assert_eq!(lacks_room("/b", 100 + ROOM, 100), None);
        assert!(lacks_room("/b", 99 + ROOM, 100).unwrap().starts_with("/b has 64 MB of room"));
    }
}
