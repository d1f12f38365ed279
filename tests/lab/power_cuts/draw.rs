//! The draw of a run from its seed. The same seed gives the same run, as far as two machines can repeat it.

mod swap;

use std::time::Duration;

use crate::judge::journals::{BOTH_RETURN, GOES_SECOND, JOINS_NOBODY};
use crate::random::Random;
use crate::sh::{self, Result};
pub use swap::{Both, Copied, NotMounted, Outage, PutBack, Return, Swap, draws_every_swap};

/// The role of a node in etcd at the beginning of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Leader,
    Follower,
}

/// The kinds of runs. `--kind` accepts their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    LeaderCut,
    FollowerCut,
    BothCut,
    SurvivorKilled,
    DiskLost,
    ShutDown,
    PacemakerEnds,
    AgentKilled,
    DiskPutBack,
    DiskCopied,
    NotMounted,
}

pub const KINDS: [Kind; 11] = [
    Kind::LeaderCut,
    Kind::FollowerCut,
    Kind::BothCut,
    Kind::SurvivorKilled,
    Kind::DiskLost,
    Kind::ShutDown,
    Kind::PacemakerEnds,
    Kind::AgentKilled,
    Kind::DiskPutBack,
    Kind::DiskCopied,
    Kind::NotMounted,
];

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::LeaderCut => "leader-cut",
            Self::FollowerCut => "follower-cut",
            Self::BothCut => "both-cut",
            Self::SurvivorKilled => "survivor-killed",
            Self::DiskLost => "disk-lost",
            Self::ShutDown => "shutdown-parted",
            Self::PacemakerEnds => "pacemaker-killed",
            Self::AgentKilled => "agent-killed",
            Self::DiskPutBack => "disk-put-back",
            Self::DiskCopied => "disk-copied",
            Self::NotMounted => "not-mounted",
        }
    }

    pub fn parse(text: &str) -> Result<Self> {
        KINDS.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let names = KINDS.map(Self::name).join(", ");
            format!("there is no kind '{text}' of power cut; type one of {names}").into()
        })
    }

    /// Returns whether the kind needs nothing but control of the machines' power, so that virtual machines can run
    /// it.
    fn is_for_vms(self) -> bool {
        match self {
            Self::LeaderCut | Self::FollowerCut | Self::BothCut | Self::SurvivorKilled => true,
            Self::DiskLost
            | Self::ShutDown
            | Self::PacemakerEnds
            | Self::AgentKilled
            | Self::DiskPutBack
            | Self::DiskCopied
            | Self::NotMounted => false,
        }
    }

    /// Returns an error for a kind that virtual machines do not support.
    pub fn check_for_vms(self) -> Result<()> {
        if self.is_for_vms() {
            return Ok(());
        }
        let names = KINDS.into_iter().filter(|kind| kind.is_for_vms()).map(Self::name).collect::<Vec<_>>().join(", ");
        Err(format!("virtual machines know no {}; type one of {names}, or leave --vm out", self.name()).into())
    }
}

/// The way in which two nodes return after both have lost power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Back {
    /// Both nodes are switched on: `first`, and after the time `apart` the other one.
    Both { first: Role, apart: Duration },
    /// Only the node with this role is switched on, and has to refuse to serve. Then the other one is switched on,
    /// too.
    OneThenTheOther(Role),
    /// Only the node with this role is switched on, and has to refuse to serve. Then an operator gives the other node
    /// up by name.
    OneByConfirmation(Role),
}

/// A failure in which both nodes get a shutdown that hangs, and then lose each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutDown {
    pub first: Role,
    /// The time between the shutdowns of the two nodes.
    pub apart: Duration,
    /// The time from the second shutdown to the partition.
    pub parted: Duration,
    /// True if the BMCs stay reachable during the partition.
    pub bmcs: bool,
    pub lasts: Duration,
}

/// The way in which Pacemaker ends on a node that stays up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Pacemaker ends in good order, while its node is in maintenance. With `cable`, the nodes are parted from then until the other node's
    /// power cut, for at least that time. If `over_alone` is true, the maintenance ends before the other node is back, and otherwise
    /// afterwards.
    Maintenance {
        cable: Option<Duration>,
        over_alone: bool,
    },
    Killed,
}

/// A failure in which Pacemaker ends on one node while etcd continues, and the other node loses power. Then Pacemaker
/// returns in the same boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacemakerEnds {
    /// The role of the node on which Pacemaker ends.
    pub left: Role,
    pub end: End,
    /// The time from Pacemaker's end to the other node's power cut. If the nodes are parted before the cut, this time
    /// follows the time in [`End::Maintenance`].
    pub after: Duration,
    /// True if an operator grants quorum to the node on which Pacemaker ended, after Pacemaker is started there again.
    pub unblocked: bool,
    /// The time for which the node without power stays off.
    pub away: Duration,
}

/// A failure in which one node loses power, and the agent on the other node is killed in the middle of its recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentKilled {
    pub victim: Role,
    /// The time from the first log line of the recovery to the agent's kill.
    pub after: Duration,
    /// The time by which podman takes longer to launch etcd.
    pub slow: Duration,
    /// True if etcd is stopped on the surviving node after the agent's kill.
    pub stopped: bool,
}

/// The failure that a run causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// The node with this role loses power.
    Cut(Role),
    /// Both nodes lose power: `first`, and after the time `apart` the other one.
    Both {
        first: Role,
        apart: Duration,
        back: Back,
    },
    /// One node loses power, and a moment later the other node's etcd gets SIGKILL.
    SurvivorKilled {
        victim: Role,
        after: Duration,
    },
    /// The node with this role loses power, and etcd's disk with it.
    Disk(Role),
    /// Both nodes lose power at once, and the node with this role also loses etcd's disk.
    BothAndDisk(Role),
    ShutDown(ShutDown),
    PacemakerEnds(PacemakerEnds),
    AgentKilled(AgentKilled),
    /// A node boots with another data dir than it left. A run has this failure only if `--kind` names it.
    Swap(Swap),
}

/// The random choices of one run, all from its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    pub seed: u64,
    pub kind: Kind,
    /// The time for which the writers work before the failure.
    pub before: Duration,
    /// The seconds from the power button to the boot of a host.
    pub boot_delay: u64,
    pub blow: Blow,
}

/// The least boot delay of a fenced node, in seconds. While the other node still counts the fenced node as a member, the notice of the
/// fencing waits for Corosync's next membership. That membership forms after the token's time-out and the consensus (6.6 s). A node that
/// boots earlier belongs to it and receives the notice of its own fencing. Then its Pacemaker ends for good ("allegedly just fenced"). No
/// real machine boots that fast.
const HEARS_OF_ITS_OWN_FENCING: u64 = 8;

impl Draw {
    /// Draws the random choices of a run from `seed`. `only` fixes the [`Kind`] of the run. `confirms` is false for the
    /// shell agent, which has no confirmation by an operator.
    pub fn new(seed: u64, only: Option<Kind>, confirms: bool) -> Self {
        let mut random = Random::new(seed);
        let drawn = match random.below(20) {
            0..4 => Kind::LeaderCut,
            4..7 => Kind::FollowerCut,
            7..13 => Kind::BothCut,
            13..17 => Kind::SurvivorKilled,
            _ => Kind::DiskLost,
        };
        // These kinds come from a separate draw, so that most older seeds keep their meaning; one in four changes.
        let unclean = match Random::new(!seed).below(12) {
            0 => Some(Kind::ShutDown),
            1 => Some(Kind::PacemakerEnds),
            2 => Some(Kind::AgentKilled),
            _ => None,
        };
        // The shell agent logs other lines when it recovers.
        let kind = only.or(unclean.filter(|_| confirms)).unwrap_or(drawn);
        let before = random.up_to(Duration::from_secs(3));
        let boot_delay = random.below(7) + if kind == Kind::ShutDown { HEARS_OF_ITS_OWN_FENCING } else { 0 };
        let blow = match kind {
            Kind::LeaderCut => Blow::Cut(Role::Leader),
            Kind::FollowerCut => Blow::Cut(Role::Follower),
            Kind::BothCut => both(&mut random, confirms),
            Kind::SurvivorKilled => Blow::SurvivorKilled {
                victim: Role::drawn(&mut random),
                // From the moment of the cut to some time after the recovery.
                after: if random.below(2) == 0 { Duration::ZERO } else { random.up_to(Duration::from_secs(14)) },
            },
            Kind::DiskLost if random.below(2) == 0 => Blow::Disk(Role::drawn(&mut random)),
            Kind::DiskLost => Blow::BothAndDisk(Role::drawn(&mut random)),
            Kind::ShutDown => Blow::ShutDown(shut_down(&mut random)),
            Kind::PacemakerEnds => Blow::PacemakerEnds(pacemaker_ends(&mut random)),
            Kind::AgentKilled => Blow::AgentKilled(agent_killed(&mut random)),
            Kind::DiskPutBack => Blow::Swap(Swap::put_back(&mut random)),
            Kind::DiskCopied => Blow::Swap(Swap::copied(&mut random)),
            Kind::NotMounted => Blow::Swap(Swap::not_mounted(&mut random)),
        };
        Self { seed, kind, before, boot_delay, blow }
    }

    /// Draws the random choices of a run for virtual machines, as [`Draw::new`] does. If virtual machines cannot run
    /// the drawn [`Kind`], cuts the power of both nodes instead, because the lab controls nothing but their power. All
    /// times are stretched by the machines' slowness.
    pub fn for_vms(seed: u64, only: Option<Kind>) -> Self {
        let drawn = Self::new(seed, only, true);
        let draw = if drawn.kind.is_for_vms() { drawn } else { Self::new(seed, Some(Kind::BothCut), true) };
        Self { before: sh::patience(draw.before), boot_delay: 0, blow: draw.blow.stretched(), ..draw }
    }

    /// Describes the failure of the run.
    pub fn words(&self) -> String {
        match self.blow {
            Blow::Cut(role) => format!("{} cut", role.word()),
            Blow::SurvivorKilled { victim, after } => {
                format!("{} cut, the other's etcd killed {} later", victim.word(), s(after))
            }
            Blow::Disk(role) => format!("{} cut, its disk lost", role.word()),
            Blow::BothAndDisk(role) => format!("both cut at once, the {}'s disk lost", role.word()),
            Blow::Both { first, apart, back } => {
                let cut = format!("{} cut, the other {} later", first.word(), s(apart));
                let back = match back {
                    Back::Both { first, apart } => format!("both on, {} {} earlier", first.word(), s(apart)),
                    Back::OneThenTheOther(role) => format!("{} on alone, then both", role.word()),
                    Back::OneByConfirmation(role) => format!("{} on alone, the other given up", role.word()),
                };
                format!("{cut}; {back}")
            }
            Blow::ShutDown(draw) => draw.words(),
            Blow::PacemakerEnds(draw) => draw.words(),
            Blow::AgentKilled(draw) => draw.words(),
            Blow::Swap(draw) => draw.words(),
        }
    }
}

impl Blow {
    /// Returns the errors that programs rightly log during this failure.
    pub fn errors(self) -> &'static [&'static str] {
        match self {
            // The BMC of the node that is given up is unreachable: for its fence device, and for Pacemaker, which tries
            // to fence it.
            Self::Both { back: Back::OneByConfirmation(_), .. } => {
                &[JOINS_NOBODY, GOES_SECOND, "no route to it", "Operation 'reboot'"]
            }
            Self::Both { .. } => BOTH_RETURN,
            Self::SurvivorKilled { .. } => &[JOINS_NOBODY],
            _ => &[],
        }
    }

    fn stretched(self) -> Self {
        match self {
            Self::Both { first, apart, back } => {
                let back = match back {
                    Back::Both { first, apart } => Back::Both { first, apart: sh::patience(apart) },
                    back => back,
                };
                Self::Both { first, apart: sh::patience(apart), back }
            }
            Self::SurvivorKilled { victim, after } => Self::SurvivorKilled { victim, after: sh::patience(after) },
            blow => blow,
        }
    }
}

fn s(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

impl ShutDown {
    fn words(self) -> String {
        let bmcs = if self.bmcs { "the BMCs within reach" } else { "the BMCs away" };
        let (first, apart) = (self.first.word(), s(self.apart));
        format!(
            "{first} asked to shut down, the other {apart} later; parted {} after that for {}, {bmcs}",
            s(self.parted),
            s(self.lasts)
        )
    }
}

impl PacemakerEnds {
    fn words(self) -> String {
        let end = match self.end {
            End::Killed => "killed".to_owned(),
            End::Maintenance { cable, over_alone } => {
                let cable = cable.map_or(String::new(), |time| format!(", its cable out for {}", s(time)));
                let over = if over_alone { "over alone" } else { "over together" };
                format!("ended in maintenance ({over}){cable}")
            }
        };
        let unblocked = if self.unblocked { " and quorum" } else { "" };
        format!(
            "Pacemaker on the {} {end}, the other cut {} later; Pacemaker back{unblocked}, the other after {}",
            self.left.word(),
            s(self.after),
            s(self.away)
        )
    }
}

impl AgentKilled {
    fn words(self) -> String {
        let stopped = if self.stopped { ", etcd stopped then" } else { "" };
        format!(
            "{} cut, the other's agent killed {} into its recovery, podman {} slower{stopped}",
            self.victim.word(),
            s(self.after),
            s(self.slow)
        )
    }
}

/// Draws a shutdown of both nodes. The partition comes before or after the stops have begun, and lasts for 12 to 24 s. A monitor runs
/// every 5 s.
fn shut_down(random: &mut Random) -> ShutDown {
    ShutDown {
        first: Role::drawn(random),
        apart: random.up_to(Duration::from_secs(3)),
        parted: random.up_to(Duration::from_secs(6)),
        bmcs: random.below(2) == 0,
        lasts: Duration::from_secs(12) + random.up_to(Duration::from_secs(12)),
    }
}

/// Draws the way in which Pacemaker ends. Half of the draws use maintenance. After a kill the node is fenced within
/// seconds, unless the other node loses power first.
fn pacemaker_ends(random: &mut Random) -> PacemakerEnds {
    let left = Role::drawn(random);
    let end = if random.below(2) == 0 {
        // From no time at all to the time in which a node runs standalone and takes writes.
        let cable = (random.below(2) == 0).then(|| Duration::from_secs(4) + random.up_to(Duration::from_secs(14)));
        End::Maintenance { cable, over_alone: random.below(3) > 0 }
    } else {
        End::Killed
    };
    PacemakerEnds {
        left,
        end,
        after: random.up_to(Duration::from_secs(5)),
        unblocked: random.below(3) > 0,
        away: Duration::from_secs(15) + random.up_to(Duration::from_secs(15)),
    }
}

/// Draws the moment of the agent's kill. A recovery takes a second. With a slow podman, most of it is the launch of
/// etcd.
fn agent_killed(random: &mut Random) -> AgentKilled {
    let slow = if random.below(2) == 0 { Duration::ZERO } else { random.up_to(Duration::from_secs(8)) };
    let victim = Role::drawn(random);
    AgentKilled { victim, after: random.up_to(Duration::from_millis(900) + slow), slow, stopped: random.below(2) == 0 }
}

/// Draws the power cuts of both nodes. In half of the draws they are at most three seconds apart, so that no node has
/// noticed the first cut. The other half spreads over detection, fencing, recovery and the first time in which a node
/// runs standalone.
fn both(random: &mut Random, confirms: bool) -> Blow {
    let longest = if random.below(2) == 0 { Duration::from_secs(3) } else { Duration::from_secs(14) };
    let first = Role::drawn(random);
    let apart = random.up_to(longest);
    let back = match random.below(if confirms { 4 } else { 3 }) {
        0 | 1 => Back::Both { first: Role::drawn(random), apart: random.up_to(Duration::from_secs(4)) },
        2 => Back::OneThenTheOther(Role::drawn(random)),
        _ => Back::OneByConfirmation(Role::drawn(random)),
    };
    Blow::Both { first, apart, back }
}

impl Role {
    fn drawn(random: &mut Random) -> Self {
        if random.below(2) == 0 { Self::Leader } else { Self::Follower }
    }

    pub fn other(self) -> Self {
        match self {
            Self::Leader => Self::Follower,
            Self::Follower => Self::Leader,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Follower => "follower",
        }
    }
}
