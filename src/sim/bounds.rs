//! How far a search goes, and which rarer things can happen in it.

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct Bounds {
    pub faults: u8,
    pub writes: u8,
    /// Whether an etcd that lost its leader gives no answer, as from 3.5 on.
    pub silent_without_leader: bool,
    /// Whether operators act: standby, shutdown, and the confirmed recovery.
    pub operators: bool,
    /// Whether a search begins with two blank nodes, too.
    pub blank: bool,
    /// Whether a power cut may take a machine's disk with it.
    pub disks: bool,
    /// Whether an operator lets a node that boots alone act (`pcs quorum unblock`); that costs no fault.
    pub unblocks: bool,
    /// Whether fencing may take longer than the agent's patience with a silent etcd.
    pub slow_fencing: bool,
    /// Whether steps of the other node can come between any two effects, and not only faults: no atomic steps.
    pub fine: bool,
    /// Whether Pacemaker and Corosync may end on a node while its etcd runs, and start again in the same boot.
    pub stacks: bool,
    /// Whether a start of etcd can outlive its agent.
    pub launches: bool,
    /// Whether a power cut may leave data that looks whole and from which no etcd starts.
    pub damage: bool,
    /// Whether the disk of a node's data may be missing after a power cut, and be mounted later.
    pub unmounts: bool,
    /// Whether a sole voter acknowledges a write before it is on its disk, as etcd did before 3.5.5 and 3.4.21.
    pub acks_before_sync: bool,
    /// After how many failed starts, beyond those that are in vain, Pacemaker starts no more; 0 is never.
    pub threshold: u8,
    /// Whether dead variables are kept ([`super::reduce::dead_variables`]): more states, and the same verdict.
    pub keeps_dead: bool,
    /// Whether forks are counted and not ranked: more states, and one more invariant ([`super::model::agent::check`]).
    pub counts_forks: bool,
    /// Whether Pacemaker runs a promotable clone, whose instances it promotes and demotes.
    pub promotable: bool,
    /// Whether a search begins with two histories, too, and an operator chooses between histories (`etcd_primary`).
    pub chooses: bool,
    /// Lets an operator, or a program for the operator, choose whose data counts (`force_new_cluster`).
    pub tells: bool,
    /// Whether an operator has Pacemaker forget a node that is gone (`pcs cluster node remove`).
    pub forgets: bool,
    /// Whether another controller, or an operator, promotes a learner.
    pub others_promote: bool,
    /// Whether a person removes the voter that follows, with `etcdctl`.
    pub others_remove: bool,
    /// Whether survivors continue without a restart (`recovery=standin`).
    pub vote_proxies: bool,
    /// Whether there is a third voter, outside of the pair (`etcd_guest`), which may be lost and come back.
    pub third_voter: bool,
    /// Whether disks are put back and copied, and positions count: logs are not folded, forks are counted, and a search begins with a
    /// history in which the second voter joined the first.
    pub puts_back: bool,
    /// How many terms begin behind the first one in a log; with 0, leaders begin none. Only where disks are put back.
    pub terms: u8,
    /// Whether a look may not find something out: the CIB, the note, the data, the container, either etcd; and whether Pacemaker may
    /// erase a node's record from the CIB.
    pub hides: bool,
    /// Whether users may lose a node. A decision of Tandem's depends on that only where a node is to lead.
    pub cuts_users: bool,
    /// Whether the two etcds alone may lose each other. A decision of Tandem's depends on that only where a node is to lead.
    pub parts_etcd: bool,
    /// The node that is to lead (`configured_primary`).
    pub primary: Option<u8>,
    /// Whether that node's history continues where two meet (`two_histories=primary`), and the nodes' parameters may differ in that.
    pub two_histories: bool,
    /// Whether a node that boots without its peer asks the peer's BMC (`lone_boot=sole_voter`).
    pub lone_boot: bool,
}

impl Bounds {
    /// The bounds of a search without options: two voters, one write at a time, and an operator.
    pub fn of_search(faults: u8) -> Self {
        Self {
            faults,
            writes: 1,
            silent_without_leader: true,
            operators: true,
            blank: false,
            disks: false,
            unblocks: false,
            slow_fencing: false,
            fine: false,
            stacks: true,
            launches: true,
            damage: false,
            unmounts: false,
            acks_before_sync: false,
            threshold: 0,
            keeps_dead: false,
            counts_forks: false,
            promotable: false,
            chooses: false,
            tells: false,
            forgets: false,
            others_promote: false,
            others_remove: false,
            vote_proxies: true,
            third_voter: false,
            hides: false,
            puts_back: false,
            terms: 0,
            cuts_users: false,
            parts_etcd: false,
            primary: None,
            two_histories: false,
            lone_boot: false,
        }
    }

    /// Returns whether rules read the nodes' names: in which order two blank nodes begin, and which one is to lead.
    pub fn names_nodes(&self) -> bool {
        self.blank || self.primary.is_some()
    }

    /// Returns bounds that no scenario reaches, because it has all that happens.
    pub fn for_scenarios() -> Self {
        Self {
            faults: u8::MAX,
            writes: 7,
            silent_without_leader: true,
            operators: true,
            blank: true,
            disks: true,
            unblocks: true,
            slow_fencing: true,
            fine: true,
            stacks: true,
            launches: true,
            damage: true,
            unmounts: true,
            acks_before_sync: false,
            threshold: 0,
            keeps_dead: true,
            counts_forks: true,
            promotable: false,
            chooses: true,
            tells: true,
            forgets: true,
            others_promote: true,
            others_remove: true,
            vote_proxies: true,
            third_voter: true,
            hides: true,
            puts_back: false,
            terms: 0,
            cuts_users: true,
            parts_etcd: true,
            primary: None,
            two_histories: false,
            lone_boot: false,
        }
    }
}
