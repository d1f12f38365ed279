//! This node in a rotation: observes both etcds and restarts its own.

use std::time::Duration;

use super::here::Here;
use crate::adapters::etcd::blocking;
use crate::adapters::etcd::client::Endpoint;
use crate::adapters::pacemaker::attributes;
use crate::adapters::podman;
use crate::base::Fact;
use crate::decide::evidence::Etcd;
use crate::operate::certs::pki::rotation::{Look, Other, Site};
use crate::os::clock::Deadline;
use crate::os::output;

/// Timeout of one query to an etcd.
const QUESTION: Duration = Duration::from_secs(3);
/// Longest time until a restarted etcd serves. OpenShift waits equally long, because an etcd with much data starts
/// slowly.
const SERVES_AGAIN: Duration = Duration::from_secs(300);
const LOOKS: Duration = Duration::from_millis(300);
/// Longest time for etcd to stop by itself before podman kills it.
const GRACE: Duration = Duration::from_secs(30);

pub(crate) struct ThisNode<'a> {
    pub(crate) here: &'a Here,
}

impl Site for ThisNode<'_> {
    fn look(&mut self) -> Look {
        let own = self.here.own_seen().map(|seen| seen.summary());
        let other = match self.here.peer() {
            None => Other::None,
            Some(peer) => peer.seen.map_or_else(Other::Unseen, |seen| Other::Seen(seen.summary())),
        };
        Look { own, other, may_restart: self.may_restart() }
    }

    fn restart(&mut self) -> Result<(), String> {
        restart(self.here)
    }

    fn about_to(&mut self, what: &str) -> Result<(), String> {
        output::complain(format_args!("{what}: it is changed now"));
        Ok(())
    }
}

impl ThisNode<'_> {
    pub(crate) fn may_restart(&self) -> Result<(), String> {
        let own = self.asked(&self.here.context.own_endpoint)?;
        let other = self.here.context.peer_endpoint.as_ref();
        both_go_on(&own, || other.map(|endpoint| self.asked(endpoint)))
    }

    fn asked(&self, endpoint: &Endpoint) -> Result<Etcd, String> {
        match blocking::observe(endpoint, self.here.context.credentials(), QUESTION).etcd {
            Fact::Known(etcd) => Ok(etcd),
            unknown => Err(format!("{} does not answer: {}", endpoint.url, unknown.why_unknown())),
        }
    }
}

/// Checks that both etcds will serve after a restart of this node's etcd, `own`. Every voter must serve now, and no
/// learner may be waiting for its promotion.
fn both_go_on(own: &Etcd, other: impl FnOnce() -> Option<Result<Etcd, String>>) -> Result<(), String> {
    if !own.is_voter_with_leader() {
        return Err("this node's etcd is to be a voter with a leader first".to_owned());
    }
    if own.members.iter().any(|member| member.is_learner) {
        return Err("a learner is there: it is to be a voter first".to_owned());
    }
    if own.voters().count() < 2 {
        return Ok(());
    }
    match other() {
        None => Ok(()),
        Some(Ok(other)) if other.is_voter_with_leader() => Ok(()),
        Some(_) => Err("no restart here before the other node's etcd serves, as none would be left".to_owned()),
    }
}

/// Restarts etcd on this node. Announces the restart to the agents first: an announced restart keeps etcd's member in the member
/// list, and Pacemaker's monitor waits for etcd. If this command is interrupted, the agent's next `start` withdraws the announcement.
pub(crate) fn restart(here: &Here) -> Result<(), String> {
    let Here { context, node, .. } = here;
    let failed = |error: crate::adapters::pacemaker::Error| error.to_string();
    attributes::announce_restart(&context.programs, node).map_err(failed)?;
    let restarted = podman::restart(&context.programs, &context.params.name, GRACE).map_err(|error| error.to_string());
    let serves = restarted.and_then(|()| serves_again(here));
    attributes::tell(&context.programs, node, &crate::decide::plan::Notice::RestartDone).map_err(failed)?;
    serves
}

/// Withdraws the announcement of an interrupted restart. If the announcement stayed, a stop would leave this node's
/// member in etcd's member list.
pub(crate) fn take_back(here: &Here) {
    let taken = attributes::tell(&here.context.programs, &here.node, &crate::decide::plan::Notice::RestartDone);
    if let Err(error) = taken {
        log::warn!("the announcement of etcd's restart cannot be withdrawn: {error}");
    }
}

fn serves_again(here: &Here) -> Result<(), String> {
    let end = Deadline::after(SERVES_AGAIN);
    let (endpoint, credentials) = (&here.context.own_endpoint, here.context.credentials());
    while !end.has_passed() {
        if let Fact::Known(etcd) = blocking::observe(endpoint, credentials, QUESTION).etcd
            && etcd.leader.is_some()
        {
            return Ok(());
        }
        end.sleep(LOOKS);
    }
    Err(format!("etcd has no leader {} s after its restart: see 'tandem explain'", SERVES_AGAIN.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;
    use crate::agent::resource::context::Context;

    const PARAMETERS: [(&str, &str); 4] = [
        ("image", "etcd:test"),
        ("trusted_ca_file", "/etc/tandem/pki/ca.crt"),
        ("cert_file", "/etc/tandem/pki/etcd.crt"),
        ("key_file", "/etc/tandem/pki/etcd.key"),
    ];

    /// Creates the node node1 of two, with fake tools that record their calls.
    fn node1(dir: &std::path::Path, podman: &str) -> Here {
        let note = format!("echo \"${{0##*/}} $*\" >> {}/called", dir.display());
        fake_program(dir, "crm_attribute", &note);
        let programs = fake_program(dir, "podman", &format!("{note}; {podman}"));
        let context = Context { programs, ..Context::of_test(dir, &PARAMETERS) };
        let other = Some(("node2".to_owned(), "192.0.2.2".parse().unwrap()));
        Here { node: "node1".to_owned(), address: context.own_ip, other, context }
    }

    /// Asserts that the announcement of a restart is withdrawn even if podman fails. Otherwise the next stop would not
    /// remove the member.
    #[test]
    fn a_restart_is_announced_before_and_taken_back_also_where_podman_fails() {
        let dir = tempfile::tempdir().unwrap();
        let why = restart(&node1(dir.path(), "echo 'no such container' >&2; exit 125")).unwrap_err();
        assert!(why.contains("no such container"), "{why}");
        let called = std::fs::read_to_string(dir.path().join("called")).unwrap();
        let lines: Vec<&str> = called.lines().collect();
        assert_eq!(
            lines,
            [
                "crm_attribute --node node1 --lifetime reboot --name restart_no_leave --update true",
                "podman restart --time 30 etcd",
                "crm_attribute --node node1 --lifetime reboot --name restart_no_leave --delete",
            ]
        );
    }

    /// Returns the observed state of an etcd: its own member, the leader, the voters and the learners.
    fn etcd(me: u64, leader: Option<u64>, voters: &[u64], learners: &[u64]) -> Etcd {
        Etcd::of_test(me, leader, voters, learners)
    }

    /// Asserts that an etcd is restarted only if both etcds will serve after the restart. If the other voter were down, the remaining
    /// one would be no majority. A learner that is joining would be reset by the restart.
    #[test]
    fn nobody_restarts_unless_both_go_on_afterwards() {
        let two = || etcd(1, Some(1), &[1, 2], &[]);
        let peer = |leader| move || Some(Ok(etcd(2, leader, &[1, 2], &[])));
        assert_eq!(both_go_on(&two(), peer(Some(1))), Ok(()));
        assert_eq!(both_go_on(&etcd(1, Some(1), &[1], &[]), || Some(Err("silence".to_owned()))), Ok(()), "alone");
        let waits = [
            (both_go_on(&two(), || Some(Err("silence".to_owned()))), "before the other node's etcd serves"),
            (both_go_on(&two(), peer(None)), "before the other node's etcd serves"),
            (both_go_on(&two(), || Some(Ok(etcd(2, Some(1), &[1], &[2])))), "before the other node's etcd serves"),
            (both_go_on(&etcd(1, None, &[1, 2], &[]), peer(Some(2))), "a voter with a leader first"),
            (both_go_on(&etcd(1, Some(2), &[2], &[1]), peer(Some(2))), "a voter with a leader first"),
            (both_go_on(&etcd(1, Some(1), &[1], &[2]), peer(Some(1))), "a learner is there"),
        ];
        for (waits, why) in waits {
            assert!(waits.as_ref().is_err_and(|said| said.contains(why)), "{waits:?} is not: {why}");
        }
    }

    #[test]
    fn whose_certificates_they_are_is_known_by_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let own = node1(dir.path(), "true");
        assert!(own.has_own_ca() && own.must_have_own_ca().is_ok());
        let mut given = PARAMETERS;
        given[2].1 = "/etc/etcd/etcd.crt";
        let given = Here { context: Context::of_test(dir.path(), &given), ..own };
        assert!(!given.has_own_ca());
        let why = given.must_have_own_ca().unwrap_err().0;
        assert!(why.contains("/etc/etcd/etcd.crt is of your own making: type 'tandem certs install'"), "{why}");
    }
}
