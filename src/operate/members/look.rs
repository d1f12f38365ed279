//! One observation of all members. Each member is asked in parallel with a limit of its own, and the answers become the facts of the
//! rules.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::adapters::etcd::blocking;
use crate::adapters::etcd::client::{Credentials, Endpoint};
use crate::adapters::etcd::members::{Heard, Listed, Said};
use crate::adapters::openshift::machine::PATIENCE as PATIENCE_FOR_MACHINES;
use crate::adapters::openshift::machines::Machines;
use crate::decide::evidence::MemberId;
use crate::decide::members::{Health, MachineState, Member, Membership};
use crate::operate::cluster::{self, Cluster};
use crate::operate::failure::Failure;
use crate::operate::health;
use crate::operate::members::source::{Source, Target, endpoint};
use crate::os::clock::Deadline;

/// Timeout for one member's answer. A healthy member answers sooner.
const PATIENCE: Duration = Duration::from_secs(2);
/// Additional time for the thread that asked a member to hand over the answer.
const AND_A_BIT: Duration = Duration::from_millis(500);

/// The facts about all members that one observation found.
#[derive(Clone, Debug)]
pub struct MembersSeen {
    pub cluster_id: u64,
    /// The etcd key of the member-change lock, which this or another command has taken; `None` if there is no lock.
    pub lock: Option<String>,
    pub membership: Membership,
    /// Further facts about each member, for reports and requests. The rules do not use them.
    pub details: BTreeMap<MemberId, Detail>,
    /// True if the alarm NOSPACE makes etcd refuse every write. A member change cannot take its lock in that case.
    pub no_space: bool,
    /// The reason why the members' Machines could not be read. `None` if they were read, or if no kubeconfig is configured.
    pub machines_unknown: Option<String>,
    /// The reason why the wanted number of voters is unknown; `None` if it is known.
    pub wanted_unknown: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Detail {
    pub client_urls: Vec<String>,
    pub index: Option<u64>,
    pub db_bytes: Option<u64>,
    /// `Some(true)` if a hook delays the deletion of the member's Machine; `None` if the member has no known Machine.
    pub is_protected: Option<bool>,
    /// The endpoint at which this member itself answered; `None` if it did not answer.
    pub endpoint: Option<Endpoint>,
}

impl MembersSeen {
    /// Adds the facts in the properties of the pair's Pacemaker cluster: the member change in progress, and the third voter.
    pub(super) fn beside(&mut self, cluster: &Cluster) {
        self.membership.change = self.membership.change.take().or_else(|| health::change_under_way(cluster));
        let Some(third_voter) = health::third_voter(cluster) else { return };
        self.expect_third_voter();
        let is_it = |member: &&mut Member| member.node.is_none() && member.peer_urls.contains(&third_voter.peer_url);
        self.membership.members.iter_mut().filter(is_it).for_each(|member| member.is_strange = false);
    }

    /// Records that the pair has, or is to have, a third voter, and so three voters in all.
    pub(super) fn expect_third_voter(&mut self) {
        self.membership.third_voter = true;
        self.membership.wanted = 3;
    }
}

/// Returns the endpoint of a healthy voter, preferably the leader; `None` if there is none. Skips the member
/// `except`.
pub(super) fn voter(seen: &MembersSeen, except: Option<MemberId>) -> Option<&Endpoint> {
    let endpoint = |voter: &Member| seen.details.get(&voter.id)?.endpoint.as_ref();
    let healthy = || seen.membership.voters().filter(|voter| voter.is_healthy() && Some(voter.id) != except);
    let leader = healthy().find(|voter| seen.membership.leader == Some(voter.id)).and_then(endpoint);
    leader.or_else(|| healthy().find_map(endpoint))
}

/// Asks all members for their state, and reads their Machines. Fails if no member list could be read.
pub(super) fn look(source: &Source) -> Result<MembersSeen, Failure> {
    let typed = ask_all(&source.endpoints, &source.credentials);
    let reference = reference(&typed).map_err(|Failure(why)| match &source.pair {
        Some(_) => Failure(format!("{why}; see 'tandem status'")),
        None => Failure(why),
    })?;
    let listed = reference.list.clone().unwrap_or_default();
    let mut heard = ask_all(&not_asked_yet(&listed, &typed), &source.credentials);
    heard.extend(typed.iter().cloned());
    let mut seen = assemble(source, &reference, &heard);
    if let Some(kubeconfig) = &source.kubeconfig {
        of_machines(&mut seen, Machines::read(kubeconfig, PATIENCE_FOR_MACHINES));
    }
    Ok(seen)
}

/// Returns the client addresses of the members in `listed` that have not yet answered. All addresses of a member are needed, because
/// several members may advertise the same one.
pub(super) fn not_asked_yet(listed: &[Listed], typed: &[(Endpoint, Heard)]) -> Vec<Endpoint> {
    let known =
        |member: &Listed| typed.iter().any(|(_, heard)| said(heard).is_some_and(|said| said.member_id == member.id));
    let urls = listed.iter().filter(|member| !known(member)).flat_map(|member| &member.client_urls);
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for endpoint in urls.filter_map(|url| endpoint(url).ok()) {
        let is_it = |other: &Endpoint| other.url == endpoint.url;
        if !endpoints.iter().any(is_it) && !typed.iter().any(|(typed, _)| is_it(typed)) {
            endpoints.push(endpoint);
        }
    }
    endpoints
}

/// Asks all members of `target` for their state. For a pair, adds the facts in the properties of its Pacemaker cluster.
pub fn of_target(target: &Target) -> Result<MembersSeen, Failure> {
    let mut source = target.source()?;
    let wanted_unknown = source.ask_how_many().err().map(|Failure(why)| why);
    let mut seen = MembersSeen { wanted_unknown, ..look(&source)? };
    if source.pair.is_some()
        && let Ok(cluster) = cluster::ask(target.resource())
    {
        seen.beside(&cluster);
    }
    Ok(seen)
}

/// Observes all members. If there is a learner, observes them twice, because only two observations show the learner's progress.
pub(super) fn look_twice(source: &Source) -> Result<MembersSeen, Failure> {
    let first = look(source)?;
    if first.membership.learners().next().is_none() {
        return Ok(first);
    }
    crate::os::clock::sleep(Duration::from_secs(1));
    let mut second = look(source)?;
    for member in &mut second.membership.members {
        member.lag_before = first.membership.member(member.id).and_then(|before| before.lag);
    }
    Ok(second)
}

/// Requests the members' state from all endpoints in parallel, so that a hanging endpoint does not delay the others.
fn ask_all(endpoints: &[Endpoint], credentials: &Credentials) -> Vec<(Endpoint, Heard)> {
    let deadline = Deadline::after(PATIENCE + AND_A_BIT);
    let asked: Vec<_> = endpoints
        .iter()
        .map(|endpoint| {
            let (sender, answer) = mpsc::sync_channel(1);
            let (endpoint_, credentials) = (endpoint.clone(), credentials.clone());
            thread::spawn(move || drop(sender.send(blocking::member(&endpoint_, &credentials, PATIENCE))));
            (endpoint.clone(), answer)
        })
        .collect();
    let too_late = || Heard::Unknown("the question took too long".to_owned());
    asked
        .into_iter()
        .map(|(endpoint, answer)| (endpoint, answer.recv_timeout(deadline.left()).unwrap_or_else(|_| too_late())))
        .collect()
}

/// Returns the answer from which the member list is taken. Prefers an answer with a successful linearizable read, and next one that names
/// a leader. Fails if the endpoints belong to two clusters.
fn reference(typed: &[(Endpoint, Heard)]) -> Result<Said, Failure> {
    let said = || typed.iter().filter_map(|(endpoint, heard)| Some((endpoint, said(heard)?)));
    if let Some((first, one)) = said().next()
        && let Some((second, _)) = said().find(|(_, other)| other.cluster_id != one.cluster_id)
    {
        return Err(Failure(format!(
            "{} and {} belong to two clusters: name the endpoints of one",
            first.url, second.url
        )));
    }
    let listing = || said().map(|(_, said)| said).filter(|said| said.list.is_some());
    let confirmed = listing().find(|said| said.confirmed.is_ok());
    let found = confirmed.or_else(|| listing().find(|said| said.leader.is_some())).or_else(|| listing().next());
    found.cloned().ok_or_else(|| {
        let why = |(endpoint, heard): &(Endpoint, Heard)| match heard {
            Heard::Said(_) => format!("{} is a learner", endpoint.url),
            Heard::Nothing(why) | Heard::Unknown(why) => why.clone(),
        };
        let why: Vec<String> = typed.iter().map(why).collect();
        Failure(format!("no member list could be read: {}", why.join("; ")))
    })
}

fn said(heard: &Heard) -> Option<&Said> {
    match heard {
        Heard::Said(said) => Some(said),
        Heard::Nothing(_) | Heard::Unknown(_) => None,
    }
}

/// Returns whether `heard` belongs to `member`: an answer of `member` itself, or a failure at one of its client URLs.
fn is_of(member: &Listed, endpoint: &Endpoint, heard: &Heard) -> bool {
    match said(heard) {
        Some(said) => said.member_id == member.id,
        None => member.client_urls.iter().any(|url| url.trim_end_matches('/') == endpoint.url),
    }
}

/// Builds the facts about the members from their answers. The member rules judge these facts. The member list is that of `reference`.
pub(super) fn assemble(source: &Source, reference: &Said, answers: &[(Endpoint, Heard)]) -> MembersSeen {
    let list = reference.list.clone().unwrap_or_default();
    let of = |member: &Listed| {
        let its = || answers.iter().filter(|(endpoint, heard)| is_of(member, endpoint, heard)).map(|(_, heard)| heard);
        its().find(|heard| said(heard).is_some()).or_else(|| its().next()).or_else(|| at_its_place(member, answers))
    };
    let leader = reference.leader;
    let led_by = leader.and_then(|leader| list.iter().find(|member| member.id == leader));
    let leading = led_by.and_then(&of).and_then(said).map(|said| said.index);
    let mut details = BTreeMap::new();
    let mut members = Vec::new();
    for listed in &list {
        let heard = of(listed);
        let endpoint = answers.iter().find(|(_, answer)| said(answer).is_some_and(|said| said.member_id == listed.id));
        let said = heard.and_then(said).filter(|said| said.member_id == listed.id);
        let node = source.pair.as_ref().and_then(|pair| {
            pair.nodes.iter().find(|(_, url)| listed.peer_urls.contains(url)).map(|(node, _)| node.clone())
        });
        let lag = said.zip(leading).map(|(said, leading)| leading.saturating_sub(said.applied.min(said.index)));
        members.push(Member {
            id: listed.id,
            name: listed.name.clone(),
            peer_urls: listed.peer_urls.clone(),
            is_learner: listed.is_learner,
            health: health(listed, heard, reference),
            lag,
            lag_before: None,
            knows_the_list: said.and_then(|said| said.list.as_ref()).map(|own| is_same(own, &list)),
            machine: MachineState::None,
            is_strange: source.pair.is_some() && node.is_none(),
            node,
        });
        details.insert(
            listed.id,
            Detail {
                client_urls: listed.client_urls.clone(),
                index: said.map(|said| said.index),
                db_bytes: said.map(|said| said.db_bytes),
                is_protected: None,
                endpoint: endpoint.map(|(endpoint, _)| endpoint.clone()),
            },
        );
    }
    let voters = members.iter().filter(|member| !member.is_learner).count();
    let membership = Membership {
        members,
        leader,
        is_confirmed: reference.confirmed.is_ok(),
        wanted: source.wanted.unwrap_or(voters),
        is_pair: source.pair.is_some(),
        change: others_change(source, reference),
        promote_max_lag: source.promote_max_lag,
        uses_hooks: false,
        third_voter: false,
    };
    let lock = reference.change.as_ref().map(|lock| lock.key.clone());
    let (cluster_id, no_space) = (reference.cluster_id, reference.has_no_space);
    MembersSeen { cluster_id, lock, membership, details, no_space, machines_unknown: None, wanted_unknown: None }
}

/// Returns the holder of another command's member-change lock; `None` if this command has the lock, because its own change is no
/// obstacle.
fn others_change(source: &Source, reference: &Said) -> Option<String> {
    let lock = reference.change.as_ref()?;
    (source.own_lock.as_ref() != Some(&lock.key)).then(|| lock.holder.clone())
}

/// Returns the answer from a client URL of `member`, even if another server gave it; `None` if no client URL was
/// asked.
fn at_its_place<'a>(member: &Listed, heard: &'a [(Endpoint, Heard)]) -> Option<&'a Heard> {
    let is_its = |endpoint: &Endpoint| member.client_urls.iter().any(|url| url.trim_end_matches('/') == endpoint.url);
    heard.iter().find(|(endpoint, _)| is_its(endpoint)).map(|(_, heard)| heard)
}

/// Returns whether two member lists have the same member ids with the same learner flags, in any order.
fn is_same(one: &[Listed], other: &[Listed]) -> bool {
    let sorted = |list: &[Listed]| {
        let mut all: Vec<(MemberId, bool)> = list.iter().map(|member| (member.id, member.is_learner)).collect();
        all.sort_unstable();
        all
    };
    sorted(one) == sorted(other)
}

fn health(listed: &Listed, heard: Option<&Heard>, reference: &Said) -> Health {
    let said = match heard {
        Some(Heard::Said(said)) => said,
        Some(Heard::Nothing(why)) => return Health::No(why.clone()),
        Some(Heard::Unknown(why)) => return Health::Unknown(why.clone()),
        None if listed.name.is_empty() => return Health::No("it has never started".to_owned()),
        None => return Health::Unknown("it tells no address for clients".to_owned()),
    };
    let no = |why: &str| Health::No(why.to_owned());
    match said.leader {
        _ if said.cluster_id != reference.cluster_id => no("another cluster answers at its address"),
        _ if said.member_id != listed.id => no("another member answers at its address"),
        _ if said.is_corrupt => no("etcd raises the alarm CORRUPT"),
        None => no("it has no leader"),
        leader if leader != reference.leader => no("it follows another leader"),
        Some(_) => match &said.confirmed {
            Err(why) if !listed.is_learner => Health::No(format!("no majority confirmed a read: {why}")),
            _ => Health::Yes,
        },
    }
}

/// Adds the facts about the members' Machines to `seen`, or the reason why reading them failed.
pub(super) fn of_machines(seen: &mut MembersSeen, read: Result<Machines, String>) {
    let machines = match read {
        Ok(machines) => machines,
        Err(why) => {
            seen.machines_unknown = Some(why.clone());
            seen.membership.members.iter_mut().for_each(|member| member.machine = MachineState::Unknown(why.clone()));
            return;
        }
    };
    if !machines.is_of_use() {
        return;
    }
    for member in &mut seen.membership.members {
        let machine = match machines.of(&machine_names(member)) {
            Ok(Some(machine)) => machine,
            Ok(None) => continue,
            Err(why) => {
                member.machine = MachineState::Unknown(why);
                continue;
            }
        };
        let is_protected = machine.is_protected();
        seen.membership.uses_hooks |= is_protected;
        seen.details.entry(member.id).or_default().is_protected = Some(is_protected);
        member.machine =
            if machine.is_being_deleted() { MachineState::BeingDeleted } else { MachineState::Stays { is_protected } };
    }
}

/// Returns the names by which a Machine may know the member's node: the node's name, the etcd name and the peer addresses.
pub(super) fn machine_names(member: &Member) -> Vec<&str> {
    let named = member.node.as_deref().into_iter().chain(Some(member.name.as_str()).filter(|name| !name.is_empty()));
    named.chain(member.peer_urls.iter().filter_map(|url| host_of(url))).collect()
}

fn host_of(url: &str) -> Option<&str> {
    let (host, _) = url.split_once("://")?.1.rsplit_once(':')?;
    Some(host.trim_start_matches('[').trim_end_matches(']'))
}
