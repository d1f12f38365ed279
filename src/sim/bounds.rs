//! The bounds of a search: the numbers of faults and writes, and the rarer things that can happen.

/// The events that a search of the model may use, and the numbers that limit it.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct Bounds {
    pub faults: u8,
    pub writes: u8,
    /// Lets an etcd that lost its leader refuse to answer, as etcd does since 3.5.
    pub silent_without_leader: bool,
    /// Lets an operator set a node to standby, shut it down, and confirm a recovery (`tandem confirm-recovery`).
    pub operators: bool,
    /// Adds a state to the initial ones in which both nodes are blank.
    pub blank: bool,
    /// Lets a power cut take a machine's disk with it.
    pub disks: bool,
    /// Lets an operator unblock the quorum of a node that boots alone (`pcs quorum unblock`). The unblocking costs no
    /// fault.
    pub unblocks: bool,
    /// Lets fencing take longer than the agent waits for a silent etcd.
    pub slow_fencing: bool,
    /// Lets a step of the other node come between any two effects of a node's plan. Without it only faults come there.
    pub fine: bool,
    /// Lets Pacemaker and Corosync end on a node while its etcd runs, and start again in the same boot.
    pub stacks: bool,
    /// Lets a start of etcd survive the agent that began it.
    pub launches: bool,
    /// Lets a power cut leave data that looks whole but from which etcd cannot start.
    pub damage: bool,
    /// Lets the disk of a node's data be missing after a power cut, and be mounted later.
    pub unmounts: bool,
    /// Lets a sole voter acknowledge a write before the write is on disk, as etcd did before 3.5.5 and 3.4.21.
    pub acks_before_sync: bool,
    /// The number of counted failed starts after which Pacemaker starts etcd no more on a node; 0 is no limit. The
    /// number after which the agent treats starts as in vain is not counted: it may be reached at any time.
    pub threshold: u8,
    /// Disables the reduction [`super::reduce::dead_variables`]. The search then has more states, and the same verdict.
    pub keeps_dead: bool,
    /// Keeps the counts of forced new clusters instead of replacing them with ranks. The search then has more states,
    /// and asserts one more invariant ([`super::model::agent::check`]).
    pub counts_forks: bool,
    /// Has Pacemaker run a promotable clone, and promote and demote its instances.
    pub promotable: bool,
    /// Adds states to the initial ones in which the two nodes hold separate histories. Lets an operator choose one of
    /// them (`etcd_primary`).
    pub chooses: bool,
    /// Lets an operator, or a program for the operator, choose the node with the data that counts
    /// (`force_new_cluster`).
    pub tells: bool,
    /// Lets an operator have Pacemaker forget a node that is gone (`pcs cluster node remove`).
    pub forgets: bool,
    /// Lets another controller, or an operator, promote a learner.
    pub others_promote: bool,
    /// Lets an operator remove the voter that follows, with `etcdctl`.
    pub others_remove: bool,
    /// Lets a survivor continue without a restart of its etcd (`recovery=standin`).
    pub vote_proxies: bool,
    /// Adds a third voter outside of the two nodes (`etcd_guest`). It may be lost and come back.
    pub third_voter: bool,
    /// Lets disks be put back to an earlier state, or be copied over the other node's disk. The rules then read log
    /// positions, each log keeps all of its entries, and forced new clusters are counted. Other searches merge the
    /// entries that both logs hold durably, and compare forced new clusters only by rank. The search begins with a
    /// history in which the second voter joined the first.
    pub puts_back: bool,
    /// The number of terms that may begin after the first one in a log. With 0, a leader begins no term. It counts only
    /// with `puts_back`.
    pub terms: u8,
    /// Lets an observation miss one fact: the CIB, the durable state, the data, the container, or either etcd. Also
    /// lets Pacemaker erase a node's record from the CIB.
    pub hides: bool,
    /// Lets the users of etcd lose the connection to a node. A decision of Tandem depends on that only if a primary is
    /// configured.
    pub cuts_users: bool,
    /// Cuts the network between the two etcds while Pacemaker's network works. A decision of Tandem depends on that
    /// only if a primary is configured.
    pub parts_etcd: bool,
    /// The index of the node that is to lead (`configured_primary`). `None` configures no primary.
    pub primary: Option<u8>,
    /// Keeps the primary's history if the nodes hold two (`two_histories=primary`). Lets that parameter differ between
    /// the nodes.
    pub two_histories: bool,
    /// Has a node that boots without its peer ask the peer's BMC (`lone_boot=sole_voter`).
    pub lone_boot: bool,
}

impl Bounds {
    /// Returns the bounds of a search without options: two voters, one write at a time, and an operator. `faults` is
    /// the number of faults in a run.
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

    /// Returns whether rules of this search read the nodes' names. They do if both nodes may be blank, because the
    /// first by name then begins, or if a primary is configured, by its name.
    pub fn names_nodes(&self) -> bool {
        self.blank || self.primary.is_some()
    }

    /// Returns bounds that allow every move that a scenario file can contain.
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
