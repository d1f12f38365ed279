//! etcd in the model: elections, replication, membership, and what a process leaves on its disk when it ends.

mod starts;

use std::cmp::Ordering;

pub use self::starts::run;
use super::log::{self, Conf, Data, Entry, THIRD_VOTER, bit};
use super::reach;
use super::world::{Run, Word, World};
use crate::sim::Sim;

/// Applies the immediate consequences of a move. Members lose a leader that is gone, and entries that both logs hold durably are
/// merged.
pub fn settle(sim: &mut Sim, world: &mut World) {
    for n in 0..2 {
        if std::mem::take(&mut world.nodes[n].torn) && sim.bounds.acks_before_sync {
            tear(sim, world, n);
        }
    }
    for n in 0..2 {
        let conf = applied(sim, world, n);
        let has_a_quorum = conf.has_one_voter() || is_followed(world, n, conf) || sim.is_stood_in_for(world, n);
        let has_a_quorum = has_a_quorum || world.nodes[n].lingers || has_the_third_voter(world, conf);
        let may_lead = conf.votes(world.nodes[n].data.mid) && has_a_quorum;
        if world.nodes[n].etcd == Run::Leader && !may_lead {
            world.nodes[n].etcd = Run::Leaderless;
        }
        let is_alone = conf.votes(world.nodes[n].data.mid) && !conf.has_one_voter() && !is_followed(world, n, conf);
        world.nodes[n].lingers &= world.nodes[n].etcd == Run::Leader && is_alone;
    }
    for n in 0..2 {
        let led = world.etcds_meet()
            && world.nodes[1 - n].etcd == Run::Leader
            && applied(sim, world, 1 - n).lists(world.nodes[n].data.mid);
        if world.nodes[n].etcd == Run::Follower && !led {
            world.nodes[n].etcd = Run::Leaderless;
        }
    }
    for node in &mut world.nodes {
        let is_watched = node.action.is_some_and(|action| sim.stands_in(action));
        node.led |= is_watched && node.etcd.is_led();
    }
    if world.words | world.unheard != 0 && are_one_history(sim, world) {
        world.settle_histories();
    }
    let [a, b] = &mut world.nodes;
    if !sim.bounds.puts_back {
        log::fold(&mut sim.logs, &mut a.data, &mut b.data);
    }
}

/// Returns whether both nodes are voters of one cluster that has a leader, and their logs are equal.
fn are_one_history(sim: &Sim, world: &World) -> bool {
    let Some(leader) = leader(world) else { return false };
    let [leads, follows] = [&world.nodes[leader], &world.nodes[1 - leader]];
    follows.etcd == Run::Follower
        && leads.data.log == follows.data.log
        && leads.data.applied(&sim.logs).conf.votes(follows.data.mid)
}

/// Removes the last write from a sole voter's data after a power cut. Releases that acknowledge a write before they sync it can lose it
/// in this way.
fn tear(sim: &mut Sim, world: &mut World, n: usize) {
    let data = world.nodes[n].data;
    let was_sole = data.applied(&sim.logs).conf.has_one_voter();
    let kept = data.entries(&sim.logs).split_last().map(|(_, kept)| kept.to_vec());
    if let Some(kept) = kept.filter(|_| was_sole && data.commit < data.len(&sim.logs)) {
        world.nodes[n].data.log = sim.logs.id(kept);
    }
}

fn is_followed(world: &World, leader: usize, conf: Conf) -> bool {
    let other = &world.nodes[1 - leader];
    world.etcds_meet() && other.etcd == Run::Follower && conf.votes(other.data.mid)
}

/// Returns whether the third voter is there and votes in the membership `conf`. Such a third voter also acknowledges entries. The model
/// keeps no log of it. A leader that it follows has committed each entry that it takes. A candidate that it votes for has all committed
/// entries ([`what_the_third_voter_knows`]).
pub(in crate::sim) fn has_the_third_voter(world: &World, conf: Conf) -> bool {
    world.third_voter && conf.votes(THIRD_VOTER)
}

/// Brings the third voter back. It soon has the leader's log. So a leader that has it as a voter commits all entries.
pub(in crate::sim) fn third_voter_is_back(sim: &Sim, world: &mut World) -> bool {
    let is_news =
        !std::mem::replace(&mut world.third_voter, true) && (0..2).any(|n| newest(sim, world, n).votes(THIRD_VOTER));
    if let Some(n) = leader(world).filter(|n| has_the_third_voter(world, applied(sim, world, *n))) {
        commit_all(sim, world, n);
    }
    is_news
}

fn newest(sim: &Sim, world: &World, n: usize) -> Conf {
    world.nodes[n].data.newest(&sim.logs).conf
}

/// Returns the committed part of the other node's log if node `n` lacks some of it; `None` otherwise. Two of three voters have each
/// committed entry, so the third voter has every entry that `n` lacks. The third voter sends these entries to `n` before it votes for
/// `n`.
fn what_the_third_voter_knows(sim: &Sim, world: &World, n: usize) -> Option<Vec<Entry>> {
    let (me, other) = (&world.nodes[n].data, &world.nodes[1 - n].data);
    let committed = &other.entries(&sim.logs)[..usize::from(other.commit)];
    let is_lacking = me.cluster == other.cluster && !me.entries(&sim.logs).starts_with(committed);
    is_lacking.then(|| committed.to_vec())
}

pub(in crate::sim) fn applied(sim: &Sim, world: &World, n: usize) -> Conf {
    world.nodes[n].data.applied(&sim.logs).conf
}

/// Returns the index of the node that leads; `None` if neither leads.
pub fn leader(world: &World) -> Option<usize> {
    (0..2).find(|n| world.nodes[*n].etcd == Run::Leader)
}

/// Returns whether one of the nodes leads and has a learner on one of the two nodes.
pub fn has_learner(sim: &Sim, world: &World) -> bool {
    leader(world).is_some_and(|n| applied(sim, world, n).learners & !bit(THIRD_VOTER) != 0)
}

/// Returns whether an etcd is about to do something that takes less time than any wait of the agent.
pub fn is_busy(sim: &Sim, world: &World) -> bool {
    may_replicate(sim, world)
        || may_learn(sim, world)
        || world.nodes.iter().any(|node| node.lingers)
        || (0..2).any(|n| may_be_elected(sim, world, n) || may_leave(sim, world, n))
}

/// Returns whether entries are on their way between two etcds or to a disk. This takes less time than anything else in the model.
pub fn is_passing(sim: &Sim, world: &World) -> bool {
    may_replicate(sim, world)
        || may_learn(sim, world)
        || (0..2).any(|n| may_persist(sim, world, n) || may_leave(sim, world, n))
}

/// Appends a client's write to the log of the leader. If both nodes lead, clients write to them in turn. Returns false if no client can
/// write.
pub fn write(sim: &mut Sim, world: &mut World) -> bool {
    let Some(number) = (0..sim.bounds.writes).find(|number| world.writes & (1 << number) == 0) else { return false };
    let is_even = world.writes.count_ones() & 1 == 0;
    let mut leaders = (0..2).filter(|n| reach::takes_writes(world, *n));
    let (first, second) = (leaders.next(), leaders.next());
    let Some(n) = second.filter(|_| is_even).or(first) else { return false };
    world.writes |= 1 << number;
    append(sim, world, n, Entry::Write(number));
    true
}

/// Removes a write from both logs if neither has it as an entry of its own. A write in a merged entry (see [`log::fold`]) cannot be lost.
pub fn forget_write(sim: &mut Sim, world: &mut World, number: u8) -> bool {
    let is_loose = |n: usize| world.nodes[n].data.entries(&sim.logs).contains(&Entry::Write(number));
    if is_loose(0) || is_loose(1) {
        return false;
    }
    for node in world.nodes.iter_mut().filter(|node| !node.data.is_blank()) {
        let mut entries = node.data.entries(&sim.logs).to_vec();
        for entry in &mut entries {
            if let Entry::Base { writes, .. } = entry {
                *writes &= !(1 << number);
            }
        }
        node.data.log = sim.logs.id(entries);
    }
    world.acked &= !(1 << number);
    world.writes &= !(1 << number);
    true
}

/// Appends an entry to the log of node `n`, which leads. The entry is committed at once if no answer of the other node is needed.
pub(in crate::sim) fn append(sim: &mut Sim, world: &mut World, n: usize, entry: Entry) {
    world.nodes[n].data.append(&mut sim.logs, entry);
    changed(world, n);
    let conf = applied(sim, world, n);
    if conf.has_one_voter() || sim.is_stood_in_for(world, n) || has_the_third_voter(world, conf) {
        commit_all(sim, world, n);
    }
}

/// Marks the operator's confirmation on node `n` as outdated, because the data has changed since the confirmation.
fn changed(world: &mut World, n: usize) {
    if let Word::Given { accept_loss, node_is_on: _ } = world.nodes[n].word {
        world.nodes[n].word = Word::Outdated { accept_loss };
    }
}

/// Commits all entries of node `n`, which leads, and acknowledges their writes to clients.
fn commit_all(sim: &Sim, world: &mut World, n: usize) {
    let data = &mut world.nodes[n].data;
    data.commit = data.len(&sim.logs);
    if data.newest(&sim.logs).conf.votes(THIRD_VOTER) {
        // If a node ends here, the third voter has the entries: see `what_the_third_voter_knows`.
        data.durable = data.commit;
    }
    world.acked |= data.applied(&sim.logs).writes;
}

/// Returns whether the log of `shorter` is the beginning of the log of `longer`.
fn is_prefix(sim: &Sim, shorter: Data, longer: Data) -> bool {
    shorter.log == longer.log || longer.entries(&sim.logs).starts_with(shorter.entries(&sim.logs))
}

/// Returns whether the leader has entries to send to the other member.
fn may_replicate(sim: &Sim, world: &World) -> bool {
    let Some(n) = leader(world) else { return false };
    let (leads, other) = (&world.nodes[n].data, &world.nodes[1 - n].data);
    if !world.etcds_meet() || !world.nodes[1 - n].etcd.is_on() || leads.cluster != other.cluster {
        return false;
    }
    let conf = applied(sim, world, n);
    let is_current = world.nodes[1 - n].etcd == Run::Follower
        && leads.log == other.log
        && (leads.commit == leads.len(&sim.logs) || !conf.votes(other.mid));
    // Entries that only a former leader has may have to give way: with a third voter, and to a leader of a later term.
    let may_differ = has_had_a_third_voter(sim, world) || other.term(&sim.logs) < leads.term(&sim.logs);
    conf.lists(other.mid) && !is_current && (may_differ || is_prefix(sim, *other, *leads))
}

/// Returns whether either log has the third voter as a voter. If so, each of the logs may have entries that the other one lacks.
fn has_had_a_third_voter(sim: &Sim, world: &World) -> bool {
    (0..2).any(|n| newest(sim, world, n).votes(THIRD_VOTER))
}

/// Sends the leader's entries to the other member. That member becomes a follower of the leader, or stays one.
pub fn replicate(sim: &mut Sim, world: &mut World) -> bool {
    let Some(n) = leader(world).filter(|_| may_replicate(sim, world)) else { return false };
    let conf = applied(sim, world, n);
    let other = world.nodes[1 - n].data;
    if conf.started & bit(other.mid) == 0 && conf.learners & bit(other.mid) != 0 {
        append(sim, world, n, Entry::Started(other.mid));
    }
    let Data { log, folded, .. } = world.nodes[n].data;
    let node = &mut world.nodes[1 - n];
    node.data.folded = folded;
    if node.data.log != log {
        node.data.log = log;
        node.data.commit = node.data.commit.min(node.data.len(&sim.logs));
        node.data.durable = node.data.commit;
        changed(world, 1 - n);
    }
    world.nodes[1 - n].etcd = Run::Follower;
    if conf.votes(other.mid) {
        commit_all(sim, world, n);
    }
    true
}

/// Returns the commit index that the follower of `leader` will have once the leader has sent its own commit index.
fn heard(sim: &Sim, world: &World, leader: usize) -> u8 {
    let follower = &world.nodes[1 - leader].data;
    world.nodes[leader].data.commit.min(follower.len(&sim.logs)).max(follower.commit)
}

/// Returns whether the follower has yet to receive its leader's commit index, or to write it to disk.
fn may_learn(sim: &Sim, world: &World) -> bool {
    let Some(n) = leader(world).filter(|n| world.nodes[1 - n].etcd == Run::Follower) else { return false };
    let (follower, known) = (&world.nodes[1 - n].data, heard(sim, world, n));
    if !is_prefix(sim, *follower, world.nodes[n].data) {
        return false;
    }
    follower.commit != known || follower.durable != known
}

/// Sends the leader's commit index to the follower.
pub fn learn(sim: &Sim, world: &mut World) -> bool {
    let Some(n) = leader(world).filter(|_| may_learn(sim, world)) else { return false };
    let known = heard(sim, world, n);
    let follower = &mut world.nodes[1 - n].data;
    (follower.commit, follower.durable) = (known, known);
    // In the meantime the leader has written it to disk, too.
    world.nodes[n].data.durable = world.nodes[n].data.commit;
    true
}

/// Returns whether node `n` is a sole voter that has not written its commit index to disk.
fn may_persist(sim: &Sim, world: &World, n: usize) -> bool {
    let node = &world.nodes[n];
    node.etcd == Run::Leader && node.data.durable < node.data.commit && applied(sim, world, n).has_one_voter()
}

/// Writes a sole voter's commit index to its disk, as etcd does with its next record.
pub fn persist(sim: &Sim, world: &mut World, n: usize) -> bool {
    let may = may_persist(sim, world, n);
    let data = &mut world.nodes[n].data;
    data.durable = if may { data.commit } else { data.durable };
    may
}

/// Returns whether node `n` would win an election now.
fn may_be_elected(sim: &Sim, world: &World, n: usize) -> bool {
    let me = &world.nodes[n];
    if !matches!(me.etcd, Run::Fresh | Run::Leaderless) {
        return false;
    }
    let conf = elects(sim, world, n);
    conf.votes(me.data.mid)
        && (conf.has_one_voter()
            || gets_the_peers_vote(sim, world, n, conf)
            || gets_the_third_voters_vote(world, n, conf))
}

/// Returns the membership by which node `n` is elected. This is the one that `n` has applied, with one exception.
///
/// A third voter may know that its own promotion is committed, while a node has the promotion only in its log. With that node's vote,
/// the third voter could lead, and would send the node its commit index. In the model the node leads in the third voter's place.
fn elects(sim: &Sim, world: &World, n: usize) -> Conf {
    let is_known = (0..2).any(|n| applied(sim, world, n).votes(THIRD_VOTER));
    let newest = newest(sim, world, n);
    if is_known && has_the_third_voter(world, newest) { newest } else { applied(sim, world, n) }
}

fn gets_the_peers_vote(sim: &Sim, world: &World, n: usize, conf: Conf) -> bool {
    let (me, other) = (&world.nodes[n], &world.nodes[1 - n]);
    // Of two logs with entries of their own, the one with the committed entries is newer. Between two voters, such logs
    // come from a vote proxy's vote.
    let lacks = || world.acked & other.data.newest(&sim.logs).writes & !me.data.newest(&sim.logs).writes;
    let has_more =
        || if conf.votes(THIRD_VOTER) { what_the_third_voter_knows(sim, world, n).is_none() } else { lacks() == 0 };
    let is_newer = || has_had_a_third_voter(sim, world) && !is_prefix(sim, me.data, other.data) && has_more();
    world.etcds_meet()
        && matches!(other.etcd, Run::Fresh | Run::Leaderless)
        && conf.votes(other.data.mid)
        && other.data.cluster == me.data.cluster
        && match me.data.term(&sim.logs).cmp(&other.data.term(&sim.logs)) {
            Ordering::Less => false,
            Ordering::Equal => is_prefix(sim, other.data, me.data) || is_newer(),
            Ordering::Greater => true,
        }
}

/// Returns whether node `n` gets the third voter's vote. The third voter does not vote for `n` while the other node leads with its
/// vote.
fn gets_the_third_voters_vote(world: &World, n: usize, conf: Conf) -> bool {
    has_the_third_voter(world, conf) && world.nodes[1 - n].etcd != Run::Leader
}

/// Makes node `n` the leader if it gets the votes that it needs. Returns whether it does.
pub fn elect(sim: &mut Sim, world: &mut World, n: usize) -> bool {
    if !may_be_elected(sim, world, n) {
        return false;
    }
    let conf = elects(sim, world, n);
    let by_the_peer = !conf.has_one_voter() && gets_the_peers_vote(sim, world, n, conf);
    let by_the_third_voter = has_the_third_voter(world, conf);
    if let Some(entries) = what_the_third_voter_knows(sim, world, n).filter(|_| by_the_third_voter && !by_the_peer) {
        world.nodes[n].data.log = sim.logs.id(entries);
    }
    world.nodes[n].etcd = Run::Leader;
    if by_the_third_voter {
        commit_all(sim, world, n);
    }
    if conf.has_one_voter() {
        if world.words & (1 << n) != 0 {
            let held = world.nodes[n].data.newest(&sim.logs).writes;
            give_up(sim, world, n, held);
        }
        commit_all(sim, world, n);
    } else if by_the_peer {
        world.nodes[1 - n].etcd = Run::Follower;
    }
    begin_term(sim, world, n);
    true
}

/// Appends the entry with which a new leader begins its term. Appends no entry once the log has as many terms as the search allows.
pub(super) fn begin_term(sim: &mut Sim, world: &mut World, n: usize) {
    if world.nodes[n].data.newest(&sim.logs).terms < sim.bounds.terms {
        append(sim, world, n, Entry::Elected);
    }
}

/// Counts acknowledged writes as given up if only the other node holds them, because node `n` continues its own history without them.
/// The writes in `held`, which `n` itself holds, are not given up, whichever node leads later. Writes that only `n` holds are given up
/// only if the other node starts before it could learn that `n` continues.
fn give_up(sim: &Sim, world: &mut World, n: usize, held: u8) {
    // No data has the writes of a disk that is lost.
    let others = if sim.bounds.disks { u8::MAX } else { world.nodes[1 - n].data.newest(&sim.logs).writes };
    world.given_up |= world.acked & others & !held;
}

/// Returns whether both nodes hold data of a voter, and neither node's data lists the other node's member in its cluster.
pub fn have_parted(sim: &Sim, world: &World) -> bool {
    let [one, other] = world.nodes.map(|node| node.data);
    let votes = |data: Data| !data.is_blank() && data.newest(&sim.logs).conf.votes(data.mid);
    let lists =
        |lister: Data, data: Data| lister.cluster == data.cluster && lister.newest(&sim.logs).conf.lists(data.mid);
    votes(one) && votes(other) && !lists(one, other) && !lists(other, one)
}

/// Returns whether the running member of node `n` was removed from the cluster and can learn of its removal.
fn may_leave(sim: &Sim, world: &World, n: usize) -> bool {
    let (me, other) = (&world.nodes[n], &world.nodes[1 - n]);
    if !me.etcd.is_on() {
        return false;
    }
    // An etcd asks only the members that it knows.
    let is_told = || {
        world.etcds_meet()
            && other.etcd == Run::Leader
            && other.data.cluster == me.data.cluster
            && applied(sim, world, n).lists(other.data.mid)
            && !applied(sim, world, 1 - n).lists(me.data.mid)
    };
    let knows = me.data.commit > 0 && !applied(sim, world, n).lists(me.data.mid);
    knows || is_told()
}

/// Ends the running etcd of node `n` if it was removed from the cluster and can learn of its removal. Returns whether it ends.
pub fn leave(sim: &Sim, world: &mut World, n: usize) -> bool {
    let may = may_leave(sim, world, n);
    if may {
        stop(world, n);
    }
    may
}

/// Ends the etcd process of node `n` cleanly. It writes its commit index to disk before it ends.
pub fn stop(world: &mut World, n: usize) {
    let node = &mut world.nodes[n];
    if node.etcd.is_on() {
        node.etcd = Run::Off;
        node.data.durable = node.data.commit;
    }
}

/// Kills the etcd process of node `n`. Data that it had not written to disk is lost.
pub fn kill(world: &mut World, n: usize) {
    let node = &mut world.nodes[n];
    if node.etcd.is_on() {
        node.etcd = Run::Off;
        node.data.commit = node.data.durable;
    }
}

/// Hands leadership from node `n` to the other member.
pub fn hand_over(sim: &mut Sim, world: &mut World, n: usize) -> bool {
    let can = world.nodes[n].etcd == Run::Leader
        && world.nodes[1 - n].etcd == Run::Follower
        && world.nodes[0].data.log == world.nodes[1].data.log;
    if can {
        world.nodes[n].etcd = Run::Follower;
        world.nodes[1 - n].etcd = Run::Leader;
        begin_term(sim, world, 1 - n);
    }
    can
}
