//! The bounds of a search: the numbers of faults and writes, and the rarer things that can happen.

/// The bounds of a search.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct Bounds {
    pub faults: u8,
    pub writes: u8,
    /// Lets an etcd that lost its leader give no answer, as from 3.5 on.
    pub silent_without_leader: bool,
    /// Lets operators act: standby, shutdown, and the confirmed recovery.
    pub operators: bool,
    /// Adds two blank nodes to the initial states.
    pub blank: bool,
    /// Lets a power cut take a machine's disk with it.
    pub disks: bool,
    /// Lets an operator unblock a node that boots alone (`pcs quorum unblock`); that costs no fault.
    pub unblocks: bool,
    /// Lets fencing take longer than the agent waits for a silent etcd.
    pub slow_fencing: bool,
    /// Lets steps of the other node, and not only faults, come between any two effects: no atomic steps.
    pub fine: bool,
    /// Lets Pacemaker and Corosync end on a node while its etcd runs, and start again in the same boot.
    pub stacks: bool,
    /// Lets a start of etcd outlive its agent.
    pub launches: bool,
    /// Lets a power cut leave data that looks whole but from which etcd cannot start.
    pub damage: bool,
    /// Lets the disk of a node's data be missing after a power cut, and be mounted later.
    pub unmounts: bool,
    /// Lets a sole voter acknowledge a write before it is on disk, as etcd did before 3.5.5 and 3.4.21.
    pub acks_before_sync: bool,
    /// The number of failed starts, beyond those in vain, after which Pacemaker starts no more; 0 is no limit.
    pub threshold: u8,
    /// Keeps dead variables ([`super::reduce::dead_variables`]): more states, and the same verdict.
    pub keeps_dead: bool,
    /// Counts forks instead of ranking them: more states, and one more invariant ([`super::model::agent::check`]).
    pub counts_forks: bool,
    /// Has Pacemaker run a promotable clone, and promote and demote its instances.
    pub promotable: bool,
    /// Adds two histories to the initial states, and lets an operator choose between histories (`etcd_primary`).
    pub chooses: bool,
    /// Lets an operator, or a program for the operator, choose the data that counts (`force_new_cluster`).
    pub tells: bool,
    /// Lets an operator have Pacemaker forget a node that is gone (`pcs cluster node remove`).
    pub forgets: bool,
    /// Lets another controller, or an operator, promote a learner.
    pub others_promote: bool,
    /// Lets an operator remove the voter that follows, with `etcdctl`.
    pub others_remove: bool,
    /// Lets survivors continue without a restart (`recovery=standin`).
    pub vote_proxies: bool,
    /// Adds a third voter outside of the pair (`etcd_guest`), which may be lost and come back.
    pub third_voter: bool,
    /// Lets disks be put back and copied, and has positions count. Logs are not folded, forks are counted, and a search
    /// begins with a history in which the second voter joined the first.
    pub puts_back: bool,
    /// The number of terms that may begin after the first one in a log; with 0, a leader begins no term. Only with
    /// `puts_back`.
    pub terms: u8,
    /// Lets an observation miss a fact (the CIB, the note, the data, the container, either etcd), and Pacemaker erase a
    /// node's record from the CIB.
    pub hides: bool,
    /// Lets users lose a node. Only with a primary does a decision of Tandem depend on that.
    pub cuts_users: bool,
    /// Lets the two etcds lose each other while the nodes do not. Only with a primary does a decision of Tandem depend
    /// on that.
    pub parts_etcd: bool,
    /// The node that is to lead (`configured_primary`).
    pub primary: Option<u8>,
    /// Keeps the primary's history where two meet (`two_histories=primary`), and lets the nodes' parameters differ in
    /// that.
    pub two_histories: bool,
    /// Has a node that boots without its peer ask the peer's BMC (`lone_boot=sole_voter`).
    pub lone_boot: bool,
}

impl Bounds {
    /// Returns the bounds of a search without options: two voters, one write at a time, and an operator.
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

    /// Returns whether rules read the nodes' names: the order in which two blank nodes begin, or the primary.
    pub fn names_nodes(&self) -> bool {
        self.blank || self.primary.is_some()
    }

    /// Returns bounds that allow all that a scenario can contain.
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
