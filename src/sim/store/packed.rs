//! A state in nine words, the form in which a search keeps millions of them.

#![expect(clippy::inline_always, reason = "a walk over some eighty fields is fast only where it is unrolled")]

use super::hash;
use super::intern::Id;
use crate::decide::Request;
use crate::decide::evidence::{Moment, Operation, PeerAgent, PeerNode};
use crate::sim::model::log::Data;
use crate::sim::model::world::{
    Action, Blind, Bmc, Cib, CibReached, Damage, KeptHistory, Lone, Mode, Newer, Node, Run, Said, Stack, Vars, Wanted,
    Word, World,
};

const WORDS: usize = 9;
/// The width of the number of a stored value, in bits.
const ID_BITS: usize = 16;

/// A whole state in packed form. It does not contain the number of faults that may still happen, nor the number of merged entries.
#[derive(Clone, Copy, Debug, Eq)]
pub struct Packed([u64; WORDS]);

impl PartialEq for Packed {
    fn eq(&self, other: &Self) -> bool {
        hash::are_equal(&self.0, &other.0)
    }
}

/// The packed state of one machine. The last bit is not used.
pub(in crate::sim) type Half = [u64; 4];
const HALF_BITS: usize = 255;
/// The number of bits that a machine's packed form uses in its last word.
const REST: usize = HALF_BITS % 64;
/// The position of the first bit that belongs to neither machine, in the last word but one.
const BETWEEN: usize = 2 * REST - 64;

/// A type with few values. A state contains the number of such a value in a few bits.
trait OneOf: Copy + 'static {
    /// All values of the type, in the order of their numbers.
    const ALL: &'static [Self];

    fn number(self) -> u64;
}

/// Implements [`OneOf`] for an enum. The variants are listed in their order.
macro_rules! one_of {
    ($what:ident: $($variant:ident),*) => {
        impl OneOf for $what {
            const ALL: &'static [Self] = &[$($what::$variant),*];

            #[inline(always)]
            fn number(self) -> u64 {
                self as u64
            }
        }
    };
}

one_of!(PeerNode: Online, Pending, Down, Lost, NeverSeen);
one_of!(PeerAgent: Active, Starting, Stopping, Stopped, NoHistory);
one_of!(Run: Off, Fresh, Leaderless, Follower, Leader);
one_of!(Blind: None, Cib, Note, Disk, Container, OwnEtcd, PeerEtcd, Stranger);
one_of!(Wanted: Running, Standby, Shutdown);
one_of!(Stack: Up, Ended, Killed);
one_of!(KeptHistory: Primarys, Neither, Others);
one_of!(Bmc: Honest, Silent, Anothers);
one_of!(Lone: Looks, OffForLong, Announced, Holds, HeldOff, Ends);
one_of!(Said: Nothing, Alone, Redundant);
one_of!(Damage: None, Hidden, Counted, NotMounted);
one_of!(Request: Start, Stop, Monitor, Probe, Notify, Promote, Demote);
one_of!(Moment: Pre, Post, Outside);
one_of!(Operation: None, Start, Stop, Promote, Demote);

impl OneOf for Word {
    const ALL: &'static [Self] = &[
        Self::None,
        Self::Given { accept_loss: false, node_is_on: false },
        Self::Given { accept_loss: true, node_is_on: false },
        Self::Given { accept_loss: false, node_is_on: true },
        Self::Given { accept_loss: true, node_is_on: true },
        Self::Outdated { accept_loss: false },
        Self::Outdated { accept_loss: true },
    ];

    #[inline(always)]
    fn number(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Given { accept_loss, node_is_on } => 1 + u64::from(accept_loss) + 2 * u64::from(node_is_on),
            Self::Outdated { accept_loss } => 5 + u64::from(accept_loss),
        }
    }
}

impl OneOf for Option<Mode> {
    const ALL: &'static [Self] = &[
        None,
        Some(Mode::Normally),
        Some(Mode::Bootstrap),
        Some(Mode::Force),
        Some(Mode::Join { members: 0 }),
        Some(Mode::Join { members: 1 }),
        Some(Mode::Join { members: 2 }),
        Some(Mode::Join { members: 3 }),
    ];

    #[inline(always)]
    fn number(self) -> u64 {
        match self {
            None => 0,
            Some(Mode::Normally) => 1,
            Some(Mode::Bootstrap) => 2,
            Some(Mode::Force) => 3,
            Some(Mode::Join { members }) => 4 + members as u64,
        }
    }
}

impl OneOf for Newer {
    const ALL: &'static [Self] = &[Self::Equal, Self::Of(0), Self::Of(1), Self::Diverged];

    #[inline(always)]
    fn number(self) -> u64 {
        match self {
            Self::Equal => 0,
            Self::Of(node) => 1 + u64::from(node),
            Self::Diverged => 3,
        }
    }
}

impl OneOf for Option<u8> {
    const ALL: &'static [Self] = &[None, Some(0), Some(1)];

    #[inline(always)]
    fn number(self) -> u64 {
        self.map_or(0, |node| 1 + u64::from(node))
    }
}

impl Packed {
    /// Returns the packed form of `world`.
    pub fn of(world: &World) -> Self {
        Self::join([half(&world.nodes[0]), half(&world.nodes[1])], between(world))
    }

    /// Returns the packed form of a state, made of the packed forms of its two machines and of the rest of the state.
    pub(in crate::sim) fn join([one, other]: [Half; 2], between: u64) -> Self {
        Self([
            one[0],
            one[1],
            one[2],
            one[3] | other[0] << REST,
            other[0] >> (64 - REST) | other[1] << REST,
            other[1] >> (64 - REST) | other[2] << REST,
            other[2] >> (64 - REST) | other[3] << REST,
            other[3] >> (64 - REST) | between << BETWEEN,
            between >> (64 - BETWEEN),
        ])
    }

    /// Returns the unpacked state. Its number of faults that may still happen is 0.
    pub fn world(&self) -> World {
        let words = &self.0;
        let last = |word: u64| word & ((1 << REST) - 1);
        let one = [words[0], words[1], words[2], last(words[3])];
        let other = |word: usize| words[word] >> REST | words[word + 1] << (64 - REST);
        let other = [other(3), other(4), other(5), last(other(6))];
        // All packed fields are filled in below.
        let mut world = World::BLANK;
        for (node, words) in world.nodes.iter_mut().zip([one, other]) {
            Bits::<true> { words, at: 0 }.node(node);
        }
        Bits::<true> { words: [words[7] >> BETWEEN | words[8] << (64 - BETWEEN), 0, 0, 0], at: 0 }.between(&mut world);
        world
    }

    /// Returns the fingerprint of the packed state.
    pub(in crate::sim) fn digest(&self) -> u64 {
        hash::hash(&self.0)
    }
}

/// Returns the packed form of a machine.
pub(in crate::sim) fn half(node: &Node) -> Half {
    let mut bits = Bits::<false> { words: [0; 4], at: 0 };
    bits.node(&mut node.clone());
    assert!(bits.at <= HALF_BITS, "a machine takes {} bits", bits.at);
    bits.words
}

/// Returns the packed form of all fields of `world` except `nodes`.
pub(in crate::sim) fn between(world: &World) -> u64 {
    let mut bits = Bits::<false> { words: [0; 4], at: 0 };
    bits.between(&mut world.clone());
    bits.words[0]
}

/// A row of bits with fields at fixed places. The same code reads and writes the fields, and the compiler knows each place.
struct Bits<const READS: bool> {
    words: Half,
    at: usize,
}

impl<const READS: bool> Bits<READS> {
    #[inline(always)]
    fn bits(&mut self, width: usize, value: u64) -> u64 {
        let (word, shift) = (self.at / 64, self.at % 64);
        let split = shift + width > 64;
        self.at += width;
        if READS {
            let low = self.words[word] >> shift;
            let high = if split { self.words[word + 1] << (64 - shift) } else { 0 };
            return (low | high) & ((1 << width) - 1);
        }
        assert!(value >> width == 0, "a state does not fit into its packed form");
        self.words[word] |= value << shift;
        if split {
            self.words[word + 1] |= value >> (64 - shift);
        }
        value
    }

    #[inline(always)]
    fn flag(&mut self, flag: &mut bool) {
        *flag = self.bits(1, (*flag).into()) != 0;
    }

    #[inline(always)]
    fn small(&mut self, width: usize, value: &mut u8) {
        *value = u8::try_from(self.bits(width, (*value).into())).unwrap_or_default();
    }

    #[inline(always)]
    fn id(&mut self, id: &mut Id) {
        *id = Id::try_from(self.bits(ID_BITS, (*id).into())).unwrap_or_default();
    }

    #[inline(always)]
    fn one_of<T: OneOf>(&mut self, value: &mut T) {
        let width = (usize::BITS - (T::ALL.len() - 1).leading_zeros()) as usize;
        if READS {
            *value = T::ALL[usize::try_from(self.bits(width, 0)).unwrap_or_default()];
        } else {
            self.bits(width, value.number());
        }
    }

    // Each of these walks names every field of its value, so that a field that is left out does not compile. Without
    // that, two states that differ only by it would become one.

    #[inline(always)]
    fn between(&mut self, world: &mut World) {
        // The machines are packed by themselves. The number of faults that are left is kept next to the state.
        let World {
            nodes: _,
            link,
            joined,
            lagging,
            newer,
            acked,
            given_up,
            words,
            unheard,
            writes,
            faults: _,
            tampered,
            third_voter,
            lost_to_users,
            delay_over,
            etcd_parted,
            kept,
            bmc,
            lone,
        } = world;
        self.flag(tampered);
        self.flag(link);
        self.flag(joined);
        self.flag(third_voter);
        self.one_of(lagging);
        self.one_of(newer);
        for set in [acked, given_up, writes] {
            self.small(8, set);
        }
        for nodes in [words, unheard] {
            self.small(2, nodes);
        }
        for flag in lost_to_users.iter_mut().chain(delay_over).chain([etcd_parted]) {
            self.flag(flag);
        }
        for kept in kept {
            self.one_of(kept);
        }
        for n in 0..2 {
            self.one_of(&mut bmc[n]);
            self.one_of(&mut lone[n]);
        }
    }

    #[inline(always)]
    fn node(&mut self, node: &mut Node) {
        let Node {
            on,
            quorum,
            cib,
            data,
            etcd,
            forces,
            note,
            memory,
            word,
            action,
            failed,
            unclean,
            wanted,
            asked,
            stack,
            launching,
            torn,
            failures,
            damage,
            promoted,
            blind,
            led,
            lingers,
            erased,
        } = node;
        for flag in [on, quorum, forces, failed, unclean, asked, torn, promoted, led, lingers, erased] {
            self.flag(flag);
        }
        self.one_of(stack);
        self.one_of(damage);
        self.one_of(launching);
        self.small(2, failures);
        self.one_of(wanted);
        self.one_of(blind);
        self.one_of(word);
        self.one_of(etcd);
        self.id(note);
        self.id(memory);
        self.cib(cib);
        self.data(data);
        let mut is_some = action.is_some();
        self.flag(&mut is_some);
        let mut inner = action.unwrap_or(NO_ACTION);
        self.action(&mut inner);
        *action = is_some.then_some(inner);
    }

    #[inline(always)]
    fn data(&mut self, data: &mut Data) {
        let Data { mid, cluster, log, commit, durable, folded: _ } = data;
        self.small(4, mid);
        self.id(log);
        for byte in [cluster, commit, durable] {
            self.small(8, byte);
        }
    }

    #[inline(always)]
    fn cib(&mut self, cib: &mut Cib) {
        let Cib { machine, agent, record, standalone, lineage, recorded, score, told, primary, reached, said } = cib;
        for n in 0..2 {
            self.one_of(&mut machine[n]);
            self.one_of(&mut agent[n]);
            self.id(&mut record[n]);
            for flags in [&mut *recorded, &mut *score, &mut *told] {
                self.flag(&mut flags[n]);
            }
        }
        self.one_of(standalone);
        self.one_of(primary);
        for (forks, by) in lineage {
            self.small(8, forks);
            self.small(2, by);
        }
        let CibReached { forks, term, index, is_redundant } = reached;
        self.small(4, forks);
        self.small(3, term);
        self.small(6, index);
        self.flag(is_redundant);
        self.one_of(said);
    }

    #[inline(always)]
    fn action(&mut self, action: &mut Action) {
        let Action { request, notify, progress, plan } = action;
        self.one_of(request);
        self.id(progress);
        let Vars { given, moment, operation, active, start, stop, in_vain } = notify;
        self.flag(given);
        self.flag(in_vain);
        self.one_of(moment);
        self.one_of(operation);
        for set in [active, start, stop] {
            self.small(2, set);
        }
        let mut is_some = plan.is_some();
        self.flag(&mut is_some);
        let (mut number, mut done) = plan.unwrap_or_default();
        self.id(&mut number);
        self.small(8, &mut done);
        *plan = is_some.then_some((number, done));
    }
}

const NO_ACTION: Action = Action {
    request: Request::Start,
    notify: Vars {
        given: false,
        in_vain: false,
        moment: Moment::Outside,
        operation: Operation::None,
        active: 0,
        start: 0,
        stop: 0,
    },
    progress: 0,
    plan: None,
};
