//! The bounds of a search: the numbers of faults and writes, and the rarer things that can happen.

/// The events that may happen in a search of the model, and the numbers that limit the search.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct Bounds {
    pub faults: u8,
    pub writes: u8,
    /// Lets an etcd that lost its leader refuse to answer, as etcd does since 3.5.
    pub silent_without_leader: bool,
    /// Lets an operator set a node to standby, shut it down, and confirm a recovery (`tandem confirm-recovery`).
    pub operators: bool,
    /// Adds an initial state in which both nodes are blank.
    pub blank: bool,
    /// Lets a power cut destroy a machine's disk, too.
    pub disks: bool,
    /// Lets an operator unblock the quorum of a node that boots alone (`pcs quorum unblock`). This does not count as a fault.
    pub unblocks: bool,
    /// Lets fencing take longer than the agent waits for an etcd that does not answer.
    pub slow_fencing: bool,
    /// Lets the other node take a step between any two effects of a node's plan. Without this, only faults can happen between two
    /// effects.
    pub fine: bool,
    /// Lets Pacemaker and Corosync end on a node while its etcd runs, and start again in the same boot.
    pub stacks: bool,
    /// Lets a start of etcd survive the agent that began it.
    pub launches: bool,
    /// Lets a power cut leave data that looks complete, but from which etcd cannot start.
    pub damage: bool,
    /// Lets the disk of a node's data be missing after a power cut, and be mounted later.
    pub unmounts: bool,
    /// Lets a sole voter acknowledge a write before the write is on disk, as etcd did before 3.5.5 and 3.4.21.
    pub acks_before_sync: bool,
    /// The number of counted failed starts after which Pacemaker no longer starts etcd on a node; 0 means no limit.
    ///
    /// The agent gives up its claim to run standalone after several failed starts. The model does not count these starts: the agent may
    /// give up the claim in any stop that is half of a restart.
    pub threshold: u8,
    /// Disables the reduction [`super::reduce::dead_variables`]. The search then has more states, and comes to the same verdict.
    pub keeps_dead: bool,
    /// Keeps the numbers of forced new clusters, which the search otherwise replaces with ranks. The search then has more states, and
    /// asserts one more invariant ([`super::model::agent::check`]).
    pub counts_forks: bool,
    /// Lets Pacemaker run a promotable clone, and promote and demote its instances.
    pub promotable: bool,
    /// Adds initial states in which the two nodes hold different histories. Lets an operator choose one of them (`etcd_primary`).
    pub chooses: bool,
    /// Lets an operator or another program choose the node with the data that is kept (`force_new_cluster`).
    pub tells: bool,
    /// Lets an operator make Pacemaker forget a node that is gone (`pcs cluster node remove`).
    pub forgets: bool,
    /// Lets another controller, or an operator, promote a learner.
    pub others_promote: bool,
    /// Lets an operator remove the voter that does not lead, with `etcdctl`.
    pub others_remove: bool,
    /// Lets a survivor continue without a restart of its etcd (`recovery=standin`).
    pub vote_proxies: bool,
    /// Adds a third voter outside of the two nodes (`etcd_guest`). It may be lost and come back.
    pub third_voter: bool,
    /// Lets a disk be put back to an earlier state, or be replaced by a copy of the other node's disk. The search begins with a history
    /// in which the second voter joined the first.
    ///
    /// The rules then read log positions, each log keeps all of its entries, and forced new clusters are counted. Other searches merge
    /// the entries that both logs hold durably, and compare forced new clusters only by rank.
    pub puts_back: bool,
    /// The number of terms that may begin in a log after its first one. With 0, no leader begins a term. It has an effect only with
    /// `puts_back`.
    pub terms: u8,
    /// Lets an observation miss one fact: the CIB, the durable state, the data, the container, or either etcd. Also
    /// lets Pacemaker erase a node's record from the CIB.
    pub hides: bool,
    /// Lets the users of etcd lose their connection to a node. Tandem's decisions depend on this connection only if a primary is
    /// configured.
    pub cuts_users: bool,
    /// Lets the network between the two etcds fail while Pacemaker's network works. Tandem handles such a partition only if a primary
    /// is configured.
    pub parts_etcd: bool,
    /// The index of the node that is to lead (`configured_primary`); `None` if no primary is configured.
    pub primary: Option<u8>,
    /// Keeps the primary's history if the nodes hold different histories (`two_histories=primary`). Also lets the value of this
    /// parameter differ between the nodes.
    pub two_histories: bool,
    /// Lets a node that boots without its peer ask the peer's BMC (`lone_boot=sole_voter`).
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

    /// Returns whether the rules of this search read the nodes' names. They do if both nodes may be blank, because the node with the
    /// first name then begins a new cluster. They also do if a primary is configured, because a parameter names it.
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
