//! A state: two nodes with their agents, and two BMCs with their marks.

use crate::fence::race::{Race, Site};

/// A mark session of one node that is open on a BMC, and that the node's running agent does not know. A fence agent opens a mark
/// session to show the other node's agent that it is about to send a reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Left {
    #[default]
    None,
    /// A mark session that the running agent requested. It is open, but the answer to the request was lost.
    Now,
    /// A mark session of an agent that has ended.
    Before,
}

/// The mark sessions that one node has open on one BMC. A fence agent opens a mark session to show the other node's agent that it is
/// about to send a reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Marks {
    pub(super) known: bool,
    pub(super) left: Left,
}

impl Marks {
    pub(super) fn any(self) -> bool {
        self.known || self.left != Left::None
    }

    /// Returns these mark sessions as they are after the agent that opened them has ended without closing them.
    fn orphaned(self) -> Self {
        Self { known: false, left: if self.any() { Left::Before } else { Left::None } }
    }
}

/// The BMC of one node, with the mark sessions (see [`Marks`]) that the fence agents of both nodes have opened on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bmc {
    /// The open mark sessions on this BMC, by the node that opened them.
    pub(super) marks: [Marks; 2],
    /// The open mark sessions before the last change. They are in a list of sessions that is outdated.
    pub(super) stale: [Marks; 2],
    /// True if a reset of this BMC's node was sent. The reset may take effect at any time.
    pub(super) has_reset: bool,
    /// True if the agent that sent this reset decided by the end of a wait. False if it decided by the lists of sessions.
    pub(super) by_wait: bool,
    pub(super) habits: Habits,
}

/// The traits of a BMC that never change in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Habits {
    /// True if the BMC's list of sessions shows mark sessions.
    pub(super) lists: bool,
    /// True if the BMC performs the requests of its own node's agent, but answers them after the agent has stopped waiting.
    pub(super) is_late: bool,
}

impl Bmc {
    pub(super) fn change(&mut self, node: usize, change: impl FnOnce(&mut Marks)) {
        let before = self.marks;
        change(&mut self.marks[node]);
        if self.marks != before {
            self.stale = before;
        }
    }
}

/// The state of the fence agent that runs on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Agent {
    /// The agent was not called, or has ended.
    Idle,
    /// The agent takes part in a race. `seen` is only for a broken rule. It is true for each BMC on which the other node had a mark
    /// session when this agent was called.
    Races { race: Race, seen: [bool; 2] },
    /// The agent has sent a reset, and has no proof yet that the reset worked.
    Resets,
    /// The agent ends, and closes its mark sessions.
    Ends,
}

/// The state of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) lives: bool,
    pub(super) agent: Agent,
    /// True for each of the two BMCs that the node reaches.
    pub(super) reaches: [bool; 2],
    /// The number of times that the node's agent has waited for `race_delay`. It is 0 in a search that does not count them.
    pub(super) delays: u8,
    /// The number of waits for `race_delay` that the other node began during this node's longer wait. A node without a vote waits
    /// longer. It is 0 in a search that does not count them.
    pub(super) waits_within: u8,
}

/// A state of the race. Node 0 is the preferred one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) nodes: [Node; 2],
    pub(super) bmcs: [Bmc; 2],
    /// The number of faults that may still happen.
    pub(super) faults: u8,
}

/// Returns the index of the node with the BMC that is `site` for an agent on `node`.
pub(super) fn place(node: usize, site: Site) -> usize {
    match site {
        Site::Target => 1 - node,
        Site::Own => node,
    }
}

impl World {
    /// Returns a state in which both nodes run and no agent was called. `reach`, `lists` and `late` are sets of bits: the BMCs that
    /// each node reaches, the BMCs that list sessions, and the BMCs that answer too late.
    pub(super) fn new(reach: u8, lists: u8, late: u8, faults: u8) -> Self {
        let works = |bits: u8, at: usize| bits & (1 << at) != 0;
        let node = |at: usize| Node {
            lives: true,
            agent: Agent::Idle,
            reaches: [works(reach, 2 * at), works(reach, 2 * at + 1)],
            delays: 0,
            waits_within: 0,
        };
        let bmc = |at: usize| Bmc {
            marks: [Marks::default(); 2],
            stale: [Marks::default(); 2],
            has_reset: false,
            by_wait: false,
            habits: Habits { lists: works(lists, at), is_late: works(late, at) },
        };
        Self { nodes: [node(0), node(1)], bmcs: [bmc(0), bmc(1)], faults }
    }

    pub(super) fn reaches(&self, node: usize, site: Site) -> bool {
        self.nodes[node].reaches[place(node, site)]
    }

    /// Returns whether the BMC at `site` answers an agent on `node` later than the agent waits.
    pub(super) fn is_late(&self, node: usize, site: Site) -> bool {
        site == Site::Own && self.bmcs[node].habits.is_late
    }

    pub(super) fn with_agent(mut self, node: usize, agent: Agent) -> Self {
        self.nodes[node].agent = agent;
        self
    }

    /// Ends the agent of `node`. Its mark sessions stay open on the BMCs.
    pub(super) fn orphaned(mut self, node: usize) -> Self {
        for bmc in &mut self.bmcs {
            bmc.change(node, |marks| *marks = marks.orphaned());
        }
        self.with_agent(node, Agent::Idle)
    }

    /// Closes the mark session of `node` on the BMC at `site`, if the node reaches that BMC. If not, the session stays open.
    pub(super) fn lowered(mut self, node: usize, site: Site) -> Self {
        let reaches = self.reaches(node, site);
        self.bmcs[place(node, site)].change(node, |marks| {
            if marks.known && !reaches {
                marks.left = Left::Now;
            }
            marks.known = false;
        });
        self
    }

    /// Gives fixed values to two parts of the state that no later move reads. States that differ only in these parts then count as one.
    ///
    /// The parts are the mark sessions in an outdated list, once no fault may happen any more, and the BMCs that a node reaches, once
    /// the node is off.
    pub(super) fn reduced(mut self) -> Self {
        if self.faults == 0 {
            self.bmcs.iter_mut().for_each(|bmc| bmc.stale = bmc.marks);
        }
        for node in self.nodes.iter_mut().filter(|node| !node.lives) {
            node.reaches = [true; 2];
        }
        self
    }

    pub(super) fn has_mark(&self, node: usize) -> bool {
        self.bmcs.iter().any(|bmc| bmc.marks[node].any())
    }

    /// Returns whether one node is off, and no reset of the other node is still to take effect.
    pub(super) fn is_decided(&self) -> bool {
        (0..2).any(|node| self.nodes[node].lives && !self.nodes[1 - node].lives && !self.bmcs[node].has_reset)
    }

    pub(super) fn are_both_off(&self) -> bool {
        self.nodes.iter().all(|node| !node.lives)
    }
}
