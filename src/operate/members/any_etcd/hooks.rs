//! The hooks on the Machines of a change. A learner's Machine gets one before the promotion if others have one, and a removed member's
//! Machine loses it.

use super::super::look::{MembersSeen, machine_names};
use super::super::protect;
use crate::adapters::openshift::machines::Written;
use crate::decide::evidence::MemberId;
use crate::decide::members::Member;
use crate::operate::failure::Failure;
use crate::operate::members::source::Source;

/// Number of times that a command sets the deletion hook of one Machine. If another client removes the hook as often, it does so on
/// purpose.
const TRIES: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Hooks {
    put_on: usize,
    /// The member that is being removed: its id, its name in messages, and the names by which its Machine is found.
    /// `None` if no member is being removed, or if the Machine has no deletion hook.
    leaves: Option<(MemberId, String, Vec<String>)>,
}

impl Hooks {
    /// Returns whether the command may still set the deletion hook of the learner's Machine. It sets the hook at most [`TRIES`] times.
    pub(super) fn may_be_put_on(&self) -> bool {
        self.put_on < TRIES
    }

    /// Sets the deletion hook on the learner's Machine before the learner is promoted. Returns a message for the
    /// operator, or `None` if nothing was written.
    pub(super) fn before_promotion(&mut self, source: &Source, seen: &MembersSeen) -> Result<Option<String>, Failure> {
        let unprotected =
            |member: &&Member| seen.details.get(&member.id).is_some_and(|one| one.is_protected == Some(false));
        let (Some(learner), Some(kubeconfig)) = (seen.membership.learners().find(unprotected), &source.kubeconfig)
        else {
            self.put_on = TRIES;
            return Ok(None);
        };
        let written = protect::hook(kubeconfig, &learner.shown(), &machine_names(learner), true)?;
        // An OpenShift operator sets the hook in its own time, so this is no try.
        self.put_on += usize::from(written.is_some());
        Ok((written == Some(Written::Yes))
            .then(|| format!("the deletion of {}'s Machine waits for it", learner.shown())))
    }

    /// Records that the member `id` is being removed. The deletion hook stays on its Machine until a majority no longer lists the member.
    pub(super) fn leaves(&mut self, id: MemberId, seen: &MembersSeen) {
        let is_protected = seen.details.get(&id).is_some_and(|detail| detail.is_protected == Some(true));
        let member = seen.membership.member(id).filter(|_| is_protected);
        let names = |member: &Member| machine_names(member).iter().map(|&name| name.to_owned()).collect();
        self.leaves = member.map(|member| (id, member.shown(), names(member))).or(self.leaves.take());
    }

    /// Removes the deletion hook from the removed member's Machine once a majority confirms the removal. Returns a
    /// message for the operator, or `None` if nothing was done. A failure does not undo the member change.
    pub(super) fn after_removal(&mut self, source: &Source, seen: &MembersSeen) -> Option<String> {
        let is_gone =
            |(id, ..): &mut (MemberId, _, _)| seen.membership.is_confirmed && seen.membership.member(*id).is_none();
        let (_, node, names) = self.leaves.take_if(is_gone)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match protect::hook(source.kubeconfig.as_ref()?, &node, &names, false) {
            Ok(written) => (written == Some(Written::Yes)).then(|| format!("{node}'s Machine may be deleted")),
            Err(Failure(why)) => Some(format!("{why}: 'tandem member unprotect {node}' takes it off")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::kubernetes::kubeconfig::for_server;
    use crate::adapters::openshift::machine::PATIENCE;
    use crate::adapters::openshift::machines::fake_api::FakeApi;
    use crate::adapters::openshift::machines::{Api, Machines};
    use crate::decide::members::{Forbidden, Health, Membership, Next, Wish, Words, next};
    use crate::operate::members::look;
    use crate::operate::members::samples::{source, three_and_a_learner};

    struct World {
        fake_api: FakeApi,
        source: Source,
        dir: tempfile::TempDir,
    }

    impl World {
        /// Creates three voters that have Machines with deletion hooks, and a learner that has a Machine without one.
        fn new(has_operator: bool) -> Self {
            let (fake_api, dir) = (FakeApi::start(has_operator), tempfile::tempdir().unwrap());
            for id in 1..=4 {
                fake_api.add(Api::Machine, &format!("node{id}"), &format!("192.0.2.{id}"));
            }
            fake_api.operator(&["node1", "node2", "node3"]);
            let kubeconfig = Some(for_server(&dir, &fake_api.server));
            Self { fake_api, source: Source { kubeconfig, ..source(false) }, dir }
        }

        fn look(&self) -> MembersSeen {
            let mut seen = three_and_a_learner();
            look::of_machines(&mut seen, Machines::read(&for_server(&self.dir, &self.fake_api.server), PATIENCE));
            for member in &mut seen.membership.members {
                (member.health, member.lag_before) = (Health::Yes, member.lag);
            }
            seen
        }

        fn promotion(&self) -> Next {
            let seen = self.look();
            let learner = seen.membership.learners().next().unwrap().id;
            next(&Membership { wanted: 4, ..seen.membership }, &Wish::Promote(learner), &Words::default())
        }

        fn is_protected(&self, node: &str) -> bool {
            Machines::read(&for_server(&self.dir, &self.fake_api.server), PATIENCE)
                .unwrap()
                .of(&[node])
                .unwrap()
                .unwrap()
                .is_protected()
        }
    }

    #[test]
    fn the_hook_is_on_before_the_promotion() {
        let (world, mut hooks) = (World::new(false), Hooks::default());
        assert!(matches!(world.promotion(), Next::Forbidden(Forbidden::Unprotected { .. })));
        assert!(hooks.may_be_put_on());
        let done = hooks.before_promotion(&world.source, &world.look()).unwrap();
        assert_eq!(done.as_deref(), Some("the deletion of node4's Machine waits for it"));
        assert!(world.is_protected("node4") && matches!(world.promotion(), Next::Step(..)));
    }

    #[test]
    fn who_takes_it_off_again_and_again_is_not_fought_for_ever() {
        let (world, mut hooks) = (World::new(false), Hooks::default());
        let mut looks = 0;
        while hooks.may_be_put_on() {
            hooks.before_promotion(&world.source, &world.look()).unwrap();
            world.fake_api.operator(&["node1", "node2", "node3"]);
            looks += 1;
        }
        assert_eq!((looks, world.fake_api.patches()), (TRIES, TRIES));
        // A Machine that is being deleted gets no hook, and its learner no vote.
        let (world, mut hooks) = (World::new(false), Hooks::default());
        let seen = world.look();
        world.fake_api.delete(Api::Machine, "node4");
        assert_eq!(hooks.before_promotion(&world.source, &seen).unwrap(), None);
        assert!(matches!(world.promotion(), Next::Forbidden(Forbidden::BeingDeleted { .. })));
        assert_eq!(world.fake_api.patches(), 0);
    }

    #[test]
    fn beside_an_operator_nothing_is_written_and_it_has_its_time() {
        let (world, mut hooks) = (World::new(true), Hooks::default());
        for _ in 0..=TRIES {
            assert_eq!(hooks.before_promotion(&world.source, &world.look()).unwrap(), None);
        }
        assert!(hooks.may_be_put_on() && world.fake_api.patches() == 0);
    }

    #[test]
    fn it_is_off_once_the_member_is_gone_and_not_before() {
        let (world, mut hooks) = (World::new(false), Hooks::default());
        let mut seen = world.look();
        let id = seen.membership.members[2].id;
        hooks.leaves(id, &seen);
        assert_eq!(hooks.after_removal(&world.source, &seen), None, "it is listed");
        seen.membership.members.remove(2);
        seen.membership.is_confirmed = false;
        assert_eq!(hooks.after_removal(&world.source, &seen), None, "nobody confirms it");
        assert!(world.is_protected("node3"));
        seen.membership.is_confirmed = true;
        let done = hooks.after_removal(&world.source, &seen);
        assert_eq!(done.as_deref(), Some("node3's Machine may be deleted"));
        assert!(!world.is_protected("node3") && world.is_protected("node1"));
        assert_eq!(hooks.after_removal(&world.source, &seen), None, "once");
        // A failing API is reported.
        let mut seen = world.look();
        hooks.leaves(seen.membership.members.remove(0).id, &world.look());
        world.fake_api.fail(9, "503 Service Unavailable");
        let told = hooks.after_removal(&world.source, &seen).unwrap();
        assert!(told.ends_with("'tandem member unprotect node1' takes it off"), "{told}");
    }
}
