//! A state: members as small numbers in order, so that states which differ only by names are one.

/// The number of members for which a state has room: five voters, one member that a replacement adds, one that a broken rule adds, and
/// one that was just removed.
pub(super) const PLACES: usize = 8;
/// The number of tools that change the members at the same time.
pub(super) const TOOLS: usize = 2;

/// The state of one member, as bits. The members in a state are sorted by this number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Member(u32);

const THERE: u32 = 1;
const VOTER: u32 = 1 << 1;
const LEADER: u32 = 1 << 2;
const DELETED: u32 = 1 << 3;
/// The bit of a member that was removed, as long as some other member has not applied the removal.
const GONE: u32 = 1 << 4;
/// The bit of the member that the last change of the member list added, promoted or removed.
const RECENT: u32 = 1 << 5;
const CONDITION: u32 = 6;
const STAGE: u32 = 8;
/// The number of the first of `TOOLS` bits. Each bit marks the member that one tool was called for.
const SUBJECT: u32 = 10;
/// The number of the first of `TOOLS` bits. Each bit marks a member that one tool adds.
const NEW: u32 = 12;
/// The number of the first of `TOOLS` bits. Each bit marks the member that one tool is about to change.
const AIM: u32 = 14;

/// The state of a member's machine, and whether a tool can observe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Up,
    Down,
    /// The member is up, and no tool can observe that.
    HiddenUp,
    /// The member is down, and no tool can observe that.
    HiddenDown,
}

/// The part of the cluster's data that a member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Unstarted,
    Behind,
    /// The member had caught up in the last observation, but not in the one before it.
    Near,
    Whole,
}

impl Member {
    pub(super) fn voter(leads: bool) -> Self {
        let member = Self(THERE | VOTER).with_stage(Stage::Whole);
        if leads { member.with(LEADER) } else { member }
    }

    pub(super) fn newcomer(tool: usize) -> Self {
        Self(THERE).with(1 << (NEW + bit(tool)))
    }

    fn with(self, bits: u32) -> Self {
        Self(self.0 | bits)
    }

    fn without(self, bits: u32) -> Self {
        Self(self.0 & !bits)
    }

    fn has(self, bits: u32) -> bool {
        self.0 & bits == bits
    }

    /// Returns whether etcd's member list contains the member.
    pub(super) fn is_listed(self) -> bool {
        self.has(THERE) && !self.has(GONE)
    }

    pub(super) fn is_gone(self) -> bool {
        self.has(GONE)
    }

    pub(super) fn votes(self) -> bool {
        self.is_listed() && self.has(VOTER)
    }

    pub(super) fn was_voter(self) -> bool {
        self.has(VOTER)
    }

    pub(super) fn leads(self) -> bool {
        self.is_listed() && self.has(LEADER)
    }

    pub(super) fn is_deleted(self) -> bool {
        self.has(DELETED)
    }

    pub(super) fn is_recent(self) -> bool {
        self.has(RECENT)
    }

    pub(super) fn condition(self) -> Condition {
        match self.0 >> CONDITION & 3 {
            0 => Condition::Up,
            1 => Condition::Down,
            2 => Condition::HiddenUp,
            _ => Condition::HiddenDown,
        }
    }

    pub(super) fn stage(self) -> Stage {
        match self.0 >> STAGE & 3 {
            0 => Stage::Unstarted,
            1 => Stage::Behind,
            2 => Stage::Near,
            _ => Stage::Whole,
        }
    }

    /// Returns whether the member is up, so that it takes part in elections and commits.
    pub(super) fn lives(self) -> bool {
        matches!(self.condition(), Condition::Up | Condition::HiddenUp) && self.stage() != Stage::Unstarted
    }

    pub(super) fn is_subject(self, tool: usize) -> bool {
        self.has(1 << (SUBJECT + bit(tool)))
    }

    pub(super) fn is_new(self, tool: usize) -> bool {
        self.has(1 << (NEW + bit(tool)))
    }

    pub(super) fn is_aim(self, tool: usize) -> bool {
        self.has(1 << (AIM + bit(tool)))
    }

    pub(super) fn with_condition(self, condition: Condition) -> Self {
        self.without(3 << CONDITION).with((condition as u32) << CONDITION)
    }

    pub(super) fn with_stage(self, stage: Stage) -> Self {
        self.without(3 << STAGE).with((stage as u32) << STAGE)
    }

    pub(super) fn with_leadership(self, leads: bool) -> Self {
        if leads { self.with(LEADER) } else { self.without(LEADER) }
    }

    pub(super) fn as_voter(self) -> Self {
        self.with(VOTER | RECENT)
    }

    pub(super) fn as_gone(self) -> Self {
        self.without(LEADER).with(GONE | RECENT)
    }

    pub(super) fn as_recent(self) -> Self {
        self.with(RECENT)
    }

    pub(super) fn deleted(self) -> Self {
        self.with(DELETED)
    }

    pub(super) fn as_subject(self, tool: usize) -> Self {
        self.with(1 << (SUBJECT + bit(tool)))
    }

    pub(super) fn as_aim(self, tool: usize) -> Self {
        self.with(1 << (AIM + bit(tool)))
    }

    fn settled(self) -> Self {
        if self.has(GONE) { Self::default() } else { self.without(RECENT) }
    }

    fn unaimed(self, tool: usize) -> Self {
        self.without(1 << (AIM + bit(tool)))
    }

    fn under_the_other_tools_name(self) -> Self {
        const FIRST: u32 = 1 << SUBJECT | 1 << NEW | 1 << AIM;
        Self(self.0 & !(FIRST | FIRST << 1) | (self.0 & FIRST) << 1 | self.0 >> 1 & FIRST)
    }

    /// Clears the bits by which `tool` has marked the member, because a tool that is done does not need them.
    fn forgotten(self, tool: usize) -> Self {
        let of_tool = 1 << bit(tool);
        self.without(of_tool << SUBJECT | of_tool << NEW | of_tool << AIM)
    }
}

fn bit(tool: usize) -> u32 {
    u32::from(tool != 0)
}

/// The task that a tool is called for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Errand {
    #[default]
    None,
    Stop,
    Remove,
    Promote,
    Replace,
    Add,
}

/// The progress of a tool with its task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Phase {
    #[default]
    Idle,
    /// The tool holds the lock, and observes the members next.
    Locked,
    /// The tool has observed that it may add a learner, and adds it next. The following three variants are the same for a promotion,
    /// for a hand-over of leadership, and for a removal.
    Adds,
    Promotes,
    HandsOver,
    Removes,
    /// The tool was killed, or has refused its task. An operator may call it again.
    Stopped,
    Done,
}

impl Phase {
    pub(super) fn has_step(self) -> bool {
        matches!(self, Self::Adds | Self::Promotes | Self::HandsOver | Self::Removes)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Tool {
    pub(super) errand: Errand,
    pub(super) phase: Phase,
    /// True if an operator allowed the tool to leave fewer voters than are wanted.
    pub(super) word: bool,
    /// True if only that permission of an operator allows the tool's next step.
    pub(super) uses_word: bool,
}

/// The whole state of the model of member changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct World {
    pub(super) members: [Member; PLACES],
    pub(super) tools: [Tool; TOOLS],
    pub(super) lock: Option<u8>,
    pub(super) wanted: u8,
    /// The number of faults of members that may still happen in this run.
    pub(super) faults: u8,
    /// The number of times that a tool may still be killed in this run.
    pub(super) crashes: u8,
    /// The number of newcomers' Machines that may still be deleted in this run.
    pub(super) deletions: u8,
}

impl World {
    pub(super) fn new(voters: u8, wanted: u8, faults: u8) -> Self {
        let mut world = Self { wanted, faults, crashes: 1, deletions: 1, ..Self::default() };
        for (at, place) in world.members.iter_mut().take(usize::from(voters)).enumerate() {
            *place = Member::voter(at == 0);
        }
        world.in_order()
    }

    pub(super) fn listed(&self) -> impl Iterator<Item = Member> {
        self.members.into_iter().filter(|member| member.is_listed())
    }

    pub(super) fn voters(&self) -> usize {
        self.listed().filter(|member| member.votes()).count()
    }

    pub(super) fn living_voters(&self) -> usize {
        self.listed().filter(|member| member.votes() && member.lives()).count()
    }

    /// Returns the number of living voters that hold all data.
    pub(super) fn copies(&self) -> usize {
        self.listed().filter(|member| member.votes() && member.lives() && member.stage() == Stage::Whole).count()
    }

    /// Returns whether a tool was called to replace `member`.
    pub(super) fn is_to_be_replaced(&self, member: Member) -> bool {
        (0..TOOLS).any(|tool| member.is_subject(tool) && self.tools[tool].errand == Errand::Replace)
    }

    pub(super) fn is_settled(&self) -> bool {
        !self.members.iter().any(|member| member.is_recent())
    }

    /// Returns whether a tool has observed the members, and has not yet acted on that. As long as this is true, members have no faults,
    /// and only tools move.
    pub(super) fn acts(&self) -> bool {
        self.tools.iter().any(|tool| tool.phase.has_step())
    }

    pub(super) fn with_member(mut self, at: usize, member: Member) -> Self {
        self.members[at] = member;
        self
    }

    pub(super) fn with_tool(mut self, tool: usize, change: impl FnOnce(&mut Tool)) -> Self {
        change(&mut self.tools[tool]);
        self
    }

    pub(super) fn settled(mut self) -> Self {
        self.members = self.members.map(Member::settled);
        self
    }

    pub(super) fn unaimed(mut self, tool: usize) -> Self {
        self.members = self.members.map(|member| member.unaimed(tool));
        self
    }

    pub(super) fn forgotten(mut self, tool: usize) -> Self {
        self.members = self.members.map(|member| member.forgotten(tool));
        self
    }

    /// Returns the state that represents this one, and all others that differ only in the names of members or tools.
    pub(super) fn in_order(mut self) -> Self {
        if self.tools[0] > self.tools[1] {
            self.tools.swap(0, 1);
            self.lock = self.lock.map(|holder| 1 - holder);
            self.members = self.members.map(Member::under_the_other_tools_name);
        }
        self.members.sort_unstable();
        self
    }
}
