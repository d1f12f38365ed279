//! The draw of runs in which a node boots with another data dir than it left.

use std::time::Duration;

use super::{Blow, Draw, Kind, Role, s};
use crate::random::Random;

/// The data dir with which a node boots, instead of what it left there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    PutBack(PutBack),
    Copied(Copied),
    NotMounted(NotMounted),
}

/// A swap in which the node boots with an older copy of its own data dir.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutBack {
    pub node: Role,
    /// True if the other node is in standby during the copy, so that the copied node is the sole voter.
    pub sole: bool,
    /// True if etcd runs during the copy, on a frozen host. Otherwise etcd is stopped for it.
    pub running: bool,
    /// The time for which the lab waits before it copies the data dir.
    pub at: Duration,
    /// The time from the moment at which both members vote again after the copy until the node's outage.
    pub after: Duration,
    pub outage: Outage,
    /// True if the state of Tandem, Pacemaker and Corosync is copied and put back as well.
    pub whole: bool,
}

/// A swap in which the node boots with a copy of the other node's data dir.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    pub from: Role,
    /// True if the copy includes Tandem's own files and the backups. Otherwise the node keeps its own ones.
    pub own_files: bool,
    /// The outage of the node that gets the copy.
    pub outage: Outage,
}

/// A swap in which the node boots once with an empty data dir, because etcd's disk is not mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotMounted {
    pub node: Role,
    /// True if etcd ran on its own disk before the boot without this disk, so that the node has a record of the
    /// mount. Otherwise the mount is set up right before that boot.
    pub known: bool,
    /// The outage before the boot without etcd's disk.
    pub outage: Outage,
    /// The time for which the node runs without its disk while the other node serves, and the outage after that.
    /// `None` if the node boots without its peer. In that case the node is cut at once, and both nodes boot.
    pub next: Option<(Duration, Outage)>,
}

/// An outage of the node that gets other data, and its return. This node goes off first, so that the other node's
/// data dir holds every acknowledged write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// True if Pacemaker is shut down before the power is cut.
    pub in_good_order: bool,
    /// The outage of the other node as well. `None` if the other node serves meanwhile.
    pub both: Option<Both>,
}

/// The outage of the other node, and the return of both nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Both {
    pub apart: Duration,
    pub back: Return,
}

/// The way in which both nodes return from an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    Together {
        first: Role,
        apart: Duration,
    },
    /// The node with the swapped data boots before the other one. With `quorum`, an operator grants it quorum. Then
    /// its Pacemaker fences the other node and starts etcd.
    Alone {
        quorum: bool,
    },
}

impl Draw {
    fn swap(&self) -> Option<Swap> {
        if let Blow::Swap(swap) = self.blow { Some(swap) } else { None }
    }
}

impl Swap {
    pub(super) fn put_back(random: &mut Random) -> Self {
        let (node, sole, running) = (Role::drawn(random), random.below(2) == 0, random.below(3) > 0);
        let at = random.up_to(Duration::from_secs(2));
        let after = Duration::from_secs(1) + random.up_to(Duration::from_secs(4));
        let outage = Outage::drawn(random);
        // A whole machine that is put back and granted quorum would have no state that contradicts its data.
        let whole = random.below(3) == 0 && !outage.grants_quorum();
        Self::PutBack(PutBack { node, sole, running, at, after, outage, whole })
    }

    pub(super) fn copied(random: &mut Random) -> Self {
        let (from, own_files) = (Role::drawn(random), random.below(2) == 0);
        Self::Copied(Copied { from, own_files, outage: Outage::drawn(random) })
    }

    pub(super) fn not_mounted(random: &mut Random) -> Self {
        let (node, outage) = (Role::drawn(random), Outage::drawn(random));
        let stays = Duration::from_secs(1) + random.up_to(Duration::from_secs(20));
        let next = Outage::drawn(random);
        let known = random.below(2) > 0;
        Self::NotMounted(NotMounted { node, known, outage, next: (!outage.is_alone()).then_some((stays, next)) })
    }

    fn outage(self) -> Outage {
        match self {
            Self::PutBack(draw) => draw.outage,
            Self::Copied(draw) => draw.outage,
            Self::NotMounted(draw) => draw.outage,
        }
    }

    pub(super) fn words(self) -> String {
        match self {
            Self::PutBack(draw) => draw.words(),
            Self::Copied(draw) => draw.words(),
            Self::NotMounted(draw) => draw.words(),
        }
    }
}

impl Outage {
    /// Draws an outage. In three of four draws both nodes go off. In half of these, the node with the swapped data
    /// boots before the other one, and in half of those with quorum.
    fn drawn(random: &mut Random) -> Self {
        let in_good_order = random.below(2) == 0;
        // From no time at all to the time in which a survivor runs standalone and takes writes.
        let longest = if random.below(2) == 0 { Duration::from_secs(1) } else { Duration::from_secs(14) };
        let apart = random.up_to(longest);
        let back = match random.below(4) {
            0 => Return::Alone { quorum: false },
            1 => Return::Alone { quorum: true },
            _ => Return::Together { first: Role::drawn(random), apart: random.up_to(Duration::from_secs(4)) },
        };
        Self { in_good_order, both: (random.below(4) > 0).then_some(Both { apart, back }) }
    }

    fn is_alone(self) -> bool {
        self.both.is_some_and(|both| matches!(both.back, Return::Alone { .. }))
    }

    fn grants_quorum(self) -> bool {
        self.both.is_some_and(|both| both.back == Return::Alone { quorum: true })
    }

    /// Describes an outage of `node`.
    fn words(self, node: Role) -> String {
        let how = format!("the {} is {}", node.word(), if self.in_good_order { "shut down" } else { "cut" });
        let Some(Both { apart, back }) = self.both else { return format!("{how} and back, the other serves") };
        let back = match back {
            Return::Together { first, apart } => format!("both on ({} {} earlier)", first.word(), s(apart)),
            Return::Alone { quorum: false } => "on alone, then both".to_owned(),
            Return::Alone { quorum: true } => "on alone with quorum, then both".to_owned(),
        };
        format!("{how}, the other {} later, {back}", s(apart))
    }
}

impl PutBack {
    fn words(self) -> String {
        let node = self.node.word();
        let votes = if self.sole { "as sole voter" } else { "as one of two voters" };
        let runs = if self.running { "running" } else { "stopped" };
        let whole = if self.whole { "with the state of Tandem and Pacemaker" } else { "alone" };
        format!(
            "the {node}'s data dir copied after {}, {votes}, etcd {runs}; {} later {}, with the copy put back {whole}",
            s(self.at),
            s(self.after),
            self.outage.words(self.node)
        )
    }
}

impl Copied {
    fn words(self) -> String {
        let from = self.from.word();
        let files = if self.own_files { "with" } else { "without" };
        let outage = self.outage.words(self.from.other());
        format!("{outage}, with the {from}'s data dir in place of its own, {files} Tandem's files")
    }
}

impl NotMounted {
    fn words(self) -> String {
        let next = match self.next {
            Some((stays, next)) => format!("{} later {}", s(stays), next.words(self.node)),
            None => "looked at and cut, both on".to_owned(),
        };
        let known = if self.known { "known" } else { "new" };
        format!("{}, its {known} disk not mounted; {next}, its disk mounted", self.outage.words(self.node))
    }
}

/// Returns whether the draws of swapped data dirs are complete. Each variant must be drawn, equal seeds must draw equal
/// variants, and each drawn variant must be one that the lab can judge. A series without `--kind` must not draw a swap.
/// The lab's self-test calls it.
pub fn draws_every_swap() -> bool {
    const SEEDS: u64 = 300;
    let all = |kind: Kind| (0..SEEDS).map(move |seed| Draw::new(seed, Some(kind), true));
    let is_repeated = |draw: &Draw| *draw == Draw::new(draw.seed, Some(draw.kind), true);
    let kinds = [Kind::DiskPutBack, Kind::DiskCopied, Kind::NotMounted];
    let swaps: Vec<Swap> = kinds.into_iter().flat_map(all).filter_map(|draw| draw.swap()).collect();
    let put_back =
        |fits: fn(&PutBack) -> bool| swaps.iter().any(|swap| matches!(swap, Swap::PutBack(draw) if fits(draw)));
    let not_mounted_is =
        |fits: fn(&NotMounted) -> bool| swaps.iter().any(|swap| matches!(swap, Swap::NotMounted(draw) if fits(draw)));
    let not_mounted = |draw: &NotMounted| draw.next.is_none() == draw.outage.is_alone();
    let is_sound = |swap: &Swap| match swap {
        Swap::PutBack(draw) => !(draw.whole && draw.outage.grants_quorum()),
        Swap::NotMounted(draw) => not_mounted(draw),
        Swap::Copied(_) => true,
    };
    let outage = |fits: fn(&Outage) -> bool| {
        let of_kind = |kind: Kind| all(kind).filter_map(|draw| draw.swap()).any(|swap| fits(&swap.outage()));
        kinds.into_iter().all(of_kind)
    };
    swaps.len() == kinds.into_iter().flat_map(all).count()
        && kinds.into_iter().flat_map(all).all(|draw| is_repeated(&draw))
        && swaps.iter().all(is_sound)
        && put_back(|draw| draw.sole && draw.running)
        && put_back(|draw| draw.sole && !draw.running)
        && put_back(|draw| !draw.sole && draw.running)
        && put_back(|draw| !draw.sole && !draw.running)
        && put_back(|draw| draw.whole)
        && not_mounted_is(|draw| draw.known && draw.next.is_some())
        && not_mounted_is(|draw| draw.known && draw.next.is_none())
        && not_mounted_is(|draw| !draw.known)
        && outage(|outage| outage.both.is_none())
        && outage(|outage| outage.grants_quorum())
        && outage(|outage| outage.is_alone() && !outage.grants_quorum())
        && outage(|outage| outage.both.is_some() && !outage.is_alone() && outage.in_good_order)
        && (0..SEEDS).all(|seed| Draw::new(seed, None, true).swap().is_none())
}
