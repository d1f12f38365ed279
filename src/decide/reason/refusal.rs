//! The words of a refusal: the obstacle, and what resolves it.

use std::fmt;

use super::written::{At, Long, Short};
use super::{LastWritten, Refusal, grant, megabytes};
use crate::decide::evidence::{LogPosition, Obstacle};

/// Short and long sentence of one refusal.
struct Words {
    /// Exit reason. It begins with the command to type, because Pacemaker keeps 127 bytes and cuts off the end. It names the peer
    /// only once, because a node's name may fill half of these bytes.
    short: String,
    /// Full sentence for the log.
    long: String,
}

impl Refusal {
    /// Returns whether the refusal is about data that is lost with a node. An operator may accept that loss by the node's name.
    pub(in crate::decide) fn is_a_loss(&self) -> bool {
        matches!(
            self,
            Self::PeerWentOnAloneAndLostItsData { .. }
                | Self::PeerMayHaveGoneOnAndLostItsData
                | Self::DiskWasPutBack { .. }
        )
    }

    /// Returns whether the refusal asks an operator to choose one of two nodes' data.
    pub(in crate::decide) fn asks_for_a_choice(&self) -> bool {
        matches!(self, Self::HistoriesSplit | Self::DiskWasPutBack { .. })
    }

    /// Returns the exit reason of this refusal, which begins with the command to type.
    pub(super) fn short(&self, peer: &str) -> String {
        self.words(peer).short
    }

    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, peer: &str) -> fmt::Result {
        f.write_str(&self.words(peer).long)
    }

    #[expect(clippy::too_many_lines, reason = "a table of sentences")]
    fn words(&self, peer: &str) -> Words {
        const RESTORE: &str = "if it is gone for good, restore this data with 'etcdutl snapshot restore --skip-hash-check member/snap/db'";
        // `member` goes first: what is moved to a directory that is there ends inside it.
        const BACKUP: &str = "move 'member' away and a backup back ('mv member member-kept && mv member-backup-NUMBER-TIME member'), or restore a snapshot";
        match self {
            Self::CibUnreadable { why } => Words {
                short: format!("see 'pcs status': cannot read the CIB: {why}"),
                long: format!("cannot read the CIB ({why}); will try again"),
            },
            Self::DiskUnreadable { why } => Words {
                short: format!("see 'tandem explain': cannot read the data dir: {why}"),
                long: format!("cannot read the data dir: {why}"),
            },
            Self::NoteUnreadable { why } => Words {
                short: format!(
                    "start {peer}, mv 'tandem-note.json', or 'tandem confirm-recovery': this node's note cannot be read"
                ),
                long: format!(
                    "cannot read the note beside the data ({why}), which says how often this node ran standalone: start {peer}, and move the note away; if {peer} is gone for good, move it away and type 'tandem confirm-recovery' here"
                ),
            },
            Self::HistoriesSplit => Words {
                short: "'crm_attribute -n etcd_primary -v NODE' chooses the data to keep: both nodes ran standalone"
                    .to_owned(),
                long: format!(
                    "this node and {peer} both ran standalone and their histories split: choose one with 'crm_attribute --name etcd_primary --update NODE', and the other's data is kept as a backup"
                ),
            },
            Self::PeerWentOnAloneAndLostItsData { peer_forks } => Words {
                short: format!(
                    "restore {peer}, or 'tandem confirm-recovery --accept-loss': it ran standalone and lost its data"
                ),
                long: format!(
                    "{peer} ran standalone (fork {peer_forks}) and holds no data now: writes since then are only in its backups; restore them there, or confirm the loss with 'tandem confirm-recovery --accept-loss'"
                ),
            },
            Self::PeerMayHaveGoneOnAndLostItsData => Words {
                short: format!(
                    "restore {peer}, or 'tandem confirm-recovery --accept-loss': it may have run alone and lost its data"
                ),
                long: format!(
                    "this node asked to be removed before it stopped, so {peer} may have run standalone, and {peer} holds no data now: put {peer}'s data back, or give up what it may have taken with 'tandem confirm-recovery --accept-loss' here"
                ),
            },
            Self::OnlyNodesDataIsGone => Words {
                short: "mount the data's disk, or 'etcdutl snapshot restore': the recorded cluster's data is not here"
                    .to_owned(),
                long: "a cluster was recorded here and this node, the only one of node_ip_map, holds no data: mount the disk that holds it, restore a snapshot with 'etcdutl snapshot restore', or delete the node attribute cluster_id to begin a new cluster"
                    .to_owned(),
            },
            Self::DiskWasPutBack { here, there: Some(there), reached } => Words {
                short: format!(
                    "'crm_attribute -n etcd_primary -v NODE' chooses: a disk went back: data ends at {} here, {} there",
                    Short(*here),
                    Short(*there),
                ),
                long: format!(
                    "a disk was put back: this node's data ends at {} and {peer}'s at {}, and {}: put the newer data back, or choose one with 'crm_attribute --name etcd_primary --update NODE', and the other's data is kept as a backup",
                    Long(*here),
                    Long(*there),
                    reached.map_or_else(
                        || "one of them knows more of the other's history than the other does".to_owned(),
                        |reached| format!("etcd had reached {}", Long(reached)),
                    ),
                ),
            },
            Self::DiskWasPutBack { here, there: None, reached } => {
                let reached = reached.unwrap_or_default();
                Words {
                    short: format!(
                        "put the newer data back, or 'tandem confirm-recovery --accept-loss': it ends at {}, not {}",
                        Short(*here),
                        Short(reached),
                    ),
                    long: format!(
                        "this node's data ends at {}, and etcd had reached {} with it: its disk was put back, or has lost its end; put the newer data back or start {peer}, or give up what is missing with 'tandem confirm-recovery --accept-loss' here",
                        Long(*here),
                        Long(reached),
                    ),
                }
            }
            Self::CopiedDisk { member } => Words {
                short: format!("'mv member member-copy' where the copy lies: this node and {peer} hold one member"),
                long: format!(
                    "this node's data is of member {member:x}, and so is {peer}'s: one disk is a copy of the other's; on the node that holds the copy type 'mv member member-copy' in its data dir, and it joins anew; if the original is gone, restore this data with 'etcdutl snapshot restore --skip-hash-check member/snap/db'"
                ),
            },
            Self::AnotherClusterAnswers { address } => Words {
                short: format!(
                    "correct node_ip_map with 'pcs resource update': another cluster answers at {address}"
                ),
                long: format!(
                    "the etcd at {address}, which node_ip_map has for {peer}, is of another cluster than {peer}'s own data: correct node_ip_map with 'pcs resource update', or end the etcd that has taken that address"
                ),
            },
            Self::DataOfARecordedClusterIsGone => Words {
                short: "restore one node with 'etcdutl snapshot restore': both lost their data".to_owned(),
                long: "a cluster was recorded here and neither node holds its data: restore a snapshot with 'etcdutl snapshot restore', or delete the node attribute cluster_id on both nodes to begin a new one"
                    .to_owned(),
            },
            Self::NoVotersData => Words {
                short: "move a backup back, see 'tandem explain': neither node holds a voter's data".to_owned(),
                long: format!("neither node holds a voter's data: {BACKUP}"),
            },
            Self::NoProofThatPeerDidNotGoOn { position, written } => {
                let since = At(" since", *position);
                let (reaches, written) = (At(", which reaches", *position), LastWritten(*written));
                Words {
                    short: format!("start {peer}, or 'tandem confirm-recovery': it may have gone on{since}"),
                    long: format!(
                        "{peer} may have gone on without this node's data{reaches}{written}: start {peer} (nothing is lost then), or type 'tandem confirm-recovery' here"
                    ),
                }
            }
            Self::PeerWentOnWithoutUs { position, written } => {
                let after = At(" after", *position);
                let (reaches, written) = (At(", which reaches", *position), LastWritten(*written));
                Words {
                    short: format!("start {peer}, or 'tandem confirm-recovery --accept-loss': it continued{after}"),
                    long: format!(
                        "{peer} is known to have gone on without this node's data{reaches}{written}: start {peer} (nothing is lost then), or give up what it took with 'tandem confirm-recovery --accept-loss'"
                    ),
                }
            }
            Self::ConfirmationIsOutdated { position } => {
                let reaches = At(", which reaches", *position);
                Words {
                    short: format!(
                        "start {peer}, or 'tandem confirm-recovery' again: what was confirmed is about older data"
                    ),
                    long: format!(
                        "this node's data{reaches} has changed since 'tandem confirm-recovery' was typed: start {peer} (nothing is lost then), or type 'tandem confirm-recovery' here once more"
                    ),
                }
            }
            Self::LearnerAlone { position: LogPosition { term, index } } => Words {
                short: format!("start {peer}, or 'etcdutl snapshot restore': this node was only a learner"),
                long: format!(
                    "this node was a learner and its data (to term {term} index {index}) may lack acknowledged writes: start {peer}; {RESTORE}"
                ),
            },
            Self::DepartedAlone { position: LogPosition { term, index } } => Words {
                short: format!("start {peer}, or 'etcdutl snapshot restore': this member left the cluster"),
                long: format!(
                    "this member left the cluster at term {term} index {index} and {peer} continued: start {peer}; {RESTORE}"
                ),
            },
            Self::BlankAlone => Words {
                short: format!("start {peer}, or 'etcdutl snapshot restore': this node holds no data"),
                long: format!(
                    "this node holds no data: start {peer}, which must start first; if it is gone for good, restore a snapshot with 'etcdutl snapshot restore'"
                ),
            },
            Self::BrokenAlone { why } => Words {
                short: format!(
                    "start {peer}, or put a backup back, see 'tandem explain': this node's data dir is broken"
                ),
                long: format!(
                    "this node's data dir is broken ({why}): start {peer}, which must start first; if it is gone for good, {BACKUP}"
                ),
            },
            Self::DatabaseAheadOfLog { last_index, database_index } => Words {
                short: format!("start {peer}, or 'etcdutl snapshot restore': the log's end is lost"),
                long: format!(
                    "the database here reaches index {database_index} and its log ends at {last_index}, as the disk has lost the log's end; a new cluster that is forced from that destroys the log: start {peer}, whose log may have the rest; {RESTORE}"
                ),
            },
            Self::PeerSaysNothing => Words {
                short: format!("see 'pcs status': {peer} has not said what data it holds; does Tandem run there?"),
                long: format!(
                    "{peer} has not said what data it holds, as Tandem does before it starts; see with 'pcs status' why its agent does not start, and whether it is Tandem ('tandem explain' there); will try again"
                ),
            },
            Self::PeerDoesNotServe => Words {
                short: format!("see 'pcs status': waiting for {peer}'s etcd, which must start first"),
                long: format!("waiting for {peer}'s etcd, which must start first; will try again"),
            },
            Self::YieldsToPrimary => Words {
                short: format!("mend etcd's network, see 'tandem status': this node stops for {peer}, the primary"),
                long: format!(
                    "etcd has had no leader for 'partition_patience' while {peer} is up: this node has given its claim up and stops, so that {peer}, the configured primary, runs standalone; mend the network between the two etcds, see 'tandem status'"
                ),
            },
            Self::PrimaryNotReached => Words {
                short: format!("mend etcd's network, see 'tandem status': {peer} runs standalone, out of reach"),
                long: format!(
                    "{peer}, the configured primary, runs standalone since this node lost it, and its etcd is not reached from here: mend the network between the two etcds, see 'tandem status'; this node joins then; will try again"
                ),
            },
            Self::PeerNotConfirmed { why } => Words {
                short: format!("fence it, or 'pcs stonith confirm {peer}' if it is off: it is not confirmed off"),
                long: format!(
                    "{peer} is not confirmed stopped ({why}): fence it, or confirm that it is off with 'pcs stonith confirm {peer}'"
                ),
            },
            Self::EtcdExited { last_words } => Words {
                short: format!("see 'podman logs': etcd exited: {last_words}"),
                long: format!("etcd exited: {last_words}"),
            },
            Self::EtcdDoesNotAnswer { why } => Words {
                short: format!("see 'podman logs': etcd does not answer: {why}"),
                long: format!("etcd does not answer: {why}"),
            },
            Self::ContainerUnknown { why } => Words {
                short: format!("see 'podman ps --all': cannot tell whether etcd runs: {why}"),
                long: format!("cannot tell whether the container runs: {why}"),
            },
            Self::NotAVoterYet => Words {
                short: format!("see 'tandem explain': still a learner, not caught up with {peer}"),
                long: format!("this member is still a learner: it has not caught up with {peer}"),
            },
            Self::NoTimeToGoOn { needed_ms } => {
                let seconds = needed_ms.div_ceil(1_000);
                Words {
                    short: format!("see 'tandem explain': running standalone takes {seconds} s here, a start follows that has them"),
                    long: format!(
                        "running standalone takes {seconds} s on this machine, which this action does not have: the start that follows has them ('tandem explain' shows what was measured; 'pcs resource update etcd op monitor interval=5s timeout=SECONDS' saves the start)"
                    ),
                }
            }
            Self::StillRunning => Words {
                short: "see 'podman ps' and 'podman kill': etcd is still running after SIGKILL".to_owned(),
                long: "etcd is still running after SIGKILL".to_owned(),
            },
            Self::EarlierActionLasts => Words {
                short: "see 'ps -C podman': an earlier action still changes the container".to_owned(),
                long: "an earlier action, or the podman that it left behind, still starts or ends etcd's container: see 'ps -C podman,podman-etcd' and end it"
                    .to_owned(),
            },
            Self::AddressChanged { from, to } => Words {
                short: format!("etcd is restarted: node_ip_map gives this node {to}, and it runs with {from}"),
                long: format!("node_ip_map gives this node {to}, and etcd runs with {from}: Pacemaker restarts it"),
            },
            Self::AskedToGoOn => Words {
                short: format!("etcd is restarted: it has no leader, and is to continue without {peer}"),
                long: format!(
                    "etcd has no leader, and this node was told to continue without {peer}: Pacemaker restarts it, and its start does so"
                ),
            },
            Self::InTheWay { obstacle: Obstacle::StaticPod } => Words {
                short: "see 'crictl ps --label app=etcd': kubelet's static pod still runs etcd".to_owned(),
                long: "kubelet's static pod still runs etcd with our data: see 'crictl ps --label app=etcd'".to_owned(),
            },
            Self::InTheWay { obstacle: Obstacle::PortTaken(port) } => Words {
                short: format!("see 'ss -tlnp sport = {port}': another program listens on port {port}"),
                long: format!("another program listens on port {port}: see 'ss -tlnp sport = {port}' and end it"),
            },
            Self::MachineIsDeleted => Words {
                short: "see 'oc get machines -n openshift-machine-api': this node's is being deleted, it is not added again"
                    .to_owned(),
                long: format!("OpenShift is deleting this node's Machine: it is not added to {peer}'s cluster again"),
            },
            Self::CheckFailed { why } => Words {
                short: format!("see 'podman logs': a check failed: {why}"),
                long: format!("a check that was asked for failed: {why}"),
            },
            Self::NoPermission { user } => Words {
                short: format!("{}: etcd's auth refuses this agent", grant(user.as_deref())),
                long: format!("etcd's auth refuses this agent: {}", grant(user.as_deref())),
            },
            Self::LoneBoot { why } => Words { short: why.short(peer), long: why.long(peer) },
            Self::NoRoomToJoin { needed_bytes, free_bytes } => Words {
                short: format!(
                    "see 'df' and 'tandem data-dir forget': joining needs about {} MB, {} MB are free",
                    megabytes(*needed_bytes),
                    megabytes(*free_bytes),
                ),
                long: format!(
                    "joining needs about {} MB on the data dir's file system and {} MB are free; no backup there is old enough to be deleted: make room; 'tandem data-dir list' names histories that were given up, and 'tandem data-dir forget' deletes one",
                    megabytes(*needed_bytes),
                    megabytes(*free_bytes),
                ),
            },
            Self::PeerLostWhileJoining => Words {
                short: format!(
                    "start {peer}, or put 'member-backup-*' back: it was lost before this node had its data"
                ),
                long: format!(
                    "{peer} was lost before this node had got its data from it: start {peer}; if it is gone for good, {BACKUP}; will try again"
                ),
            },
            Self::PeerServesThoughNotChosen => Words {
                short: format!(
                    "'pcs resource disable' and 'enable' the clone: this data was chosen, but {peer} serves"
                ),
                long: format!(
                    "an operator chose this node's data (etcd_primary), and {peer} serves another history: stop both with 'pcs resource disable' and start them with 'pcs resource enable'"
                ),
            },
        }
    }
}
