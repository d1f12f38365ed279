//! The words of a refusal: what stands in the way, and what resolves it.

use std::fmt;

use super::{At, Refusal, megabytes};
use crate::data_dir::LastWritten;
use crate::decide::snapshot::{Obstacle, Position};

impl Refusal {
    /// In as few words as Pacemaker keeps, with what to type.
    #[expect(clippy::too_many_lines, reason = "a table of sentences")]
    pub(super) fn short(&self, peer: &str) -> String {
        match self {
            Self::CibUnreadable { why } => format!("cannot read the CIB: {why}"),
            Self::DiskUnreadable { why } => format!("cannot read the data dir: {why}"),
            Self::MoreThanTwoVoters => "three or more voters: 'etcdctl member remove' all but two".to_owned(),
            Self::HistoriesSplit => {
                format!("{peer} and this node both went on alone: 'crm_attribute -n etcd_primary -v NODE' chooses one")
            }
            Self::PeerWentOnAloneAndLostItsData { .. } => {
                format!(
                    "{peer} went on alone and lost its data: restore it, or 'tandem confirm-recovery --accept-loss'"
                )
            }
            Self::DataOfARecordedClusterIsGone => {
                "both nodes lost their data: restore one with 'etcdutl snapshot restore'".to_owned()
            }
            Self::NoVotersData => {
                "neither node holds a voter's data: move a backup back, see 'tandem explain'".to_owned()
            }
            Self::NoProofThatPeerDidNotGoOn { position, .. } => {
                let since = At(" since", *position);
                format!("{peer} may have gone on{since}: start {peer}, or 'tandem confirm-recovery'")
            }
            Self::PeerWentOnWithoutUs { position, .. } => {
                let after = At(" after", *position);
                format!("{peer} went on alone{after}: start {peer}, or 'tandem confirm-recovery --accept-loss'")
            }
            Self::LearnerAlone { .. } => {
                format!(
                    "this node was only a learner: start {peer}, or restore its data with 'etcdutl snapshot restore'"
                )
            }
            Self::DepartedAlone { .. } => {
                format!(
                    "this member left the cluster: start {peer}, or restore its data with 'etcdutl snapshot restore'"
                )
            }
            Self::BlankAlone => {
                format!("this node holds no data: start {peer}, or restore a snapshot with 'etcdutl snapshot restore'")
            }
            Self::BrokenAlone { .. } => {
                format!("this node's data dir is broken: start {peer}, or put a backup back: see 'tandem explain'")
            }
            Self::PeerSaysNothing => {
                format!("{peer} has not said what data it holds: does Tandem run there? See 'pcs status'")
            }
            Self::PeerDoesNotServe => format!("{peer} is to serve first and does not yet: see 'pcs status'"),
            Self::PeerNotConfirmed { .. } => {
                format!("{peer} is not confirmed off: fence it, or 'pcs stonith confirm {peer}'")
            }
            Self::EtcdExited { last_words } => format!("etcd exited: {last_words}"),
            Self::EtcdDoesNotAnswer { why } => format!("etcd does not answer: {why}"),
            Self::ContainerUnknown { why } => format!("cannot tell whether etcd runs: {why}"),
            Self::NotAVoterYet => format!("still a learner: not caught up with {peer} yet"),
            Self::StillRunning => "etcd does not end: see 'podman ps' and 'podman kill'".to_owned(),
            Self::InTheWay { obstacle: Obstacle::StaticPod } => {
                "kubelet's static pod still runs etcd: see 'crictl ps --label app=etcd'".to_owned()
            }
            Self::InTheWay { obstacle: Obstacle::PortTaken(port) } => {
                format!("another program listens on port {port}: see 'ss -tlnp sport = {port}'")
            }
            Self::MachineIsDeleted => "this node's Machine is being deleted: it is not added to etcd again".to_owned(),
            Self::CheckFailed { why } => format!("a check failed: {why}"),
            Self::NoRoomToJoin { needed_bytes, free_bytes } => {
                format!(
                    "joining needs about {} MB beside 'member', {} MB are free: make room",
                    megabytes(*needed_bytes),
                    megabytes(*free_bytes)
                )
            }
            Self::PeerLostWhileJoining => {
                format!("{peer} was lost before this node had its data: start {peer}, or put 'member-backup-*' back")
            }
            Self::PeerServesThoughNotChosen => {
                format!("this node's data was chosen, but {peer} serves: 'pcs resource disable' and 'enable' the clone")
            }
        }
    }

    #[expect(clippy::too_many_lines, reason = "a table of sentences")]
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, peer: &str) -> fmt::Result {
        const RESTORE: &str = "if it is gone for good, restore this data with 'etcdutl snapshot restore --skip-hash-check member/snap/db'";
        // `member` goes first: what is moved to a directory that is there ends inside it.
        const BACKUP: &str = "move 'member' away and a backup back ('mv member member-kept && mv member-backup-NUMBER-TIME member'), or restore a snapshot";
        match self {
            Self::CibUnreadable { why } => write!(f, "cannot read the CIB ({why}); will try again"),
            Self::DiskUnreadable { why } => write!(f, "cannot read the data dir: {why}"),
            Self::MoreThanTwoVoters => {
                write!(
                    f,
                    "the data names three or more voters; this agent keeps two: remove the others with 'etcdctl member remove' first"
                )
            }
            Self::HistoriesSplit => {
                write!(
                    f,
                    "this node and {peer} both went on alone and their histories split: choose one with 'crm_attribute --name etcd_primary --update NODE', and the other's data is kept as a backup"
                )
            }
            Self::PeerWentOnAloneAndLostItsData { peer_forks } => {
                write!(
                    f,
                    "{peer} went on alone (fork {peer_forks}) and holds no data now: writes since then are only in its backups; restore them there, or confirm the loss with 'tandem confirm-recovery --accept-loss'"
                )
            }
            Self::DataOfARecordedClusterIsGone => {
                write!(
                    f,
                    "a cluster was recorded here and neither node holds its data: restore a snapshot with 'etcdutl snapshot restore', or delete the node attribute cluster_id on both nodes to begin a new one"
                )
            }
            Self::NoVotersData => {
                write!(f, "neither node holds a voter's data: {BACKUP}")
            }
            Self::NoProofThatPeerDidNotGoOn { position, written } => {
                let (reaches, written) = (At(", which reaches", *position), LastWritten(*written));
                write!(
                    f,
                    "{peer} may have gone on without this node's data{reaches}{written}: start {peer} (nothing is lost then), or type 'tandem confirm-recovery' here"
                )
            }
            Self::PeerWentOnWithoutUs { position, written } => {
                let (reaches, written) = (At(", which reaches", *position), LastWritten(*written));
                write!(
                    f,
                    "{peer} is known to have gone on without this node's data{reaches}{written}: start {peer} (nothing is lost then), or give up what it took with 'tandem confirm-recovery --accept-loss'"
                )
            }
            Self::LearnerAlone { position: Position { term, index } } => {
                write!(
                    f,
                    "this node was a learner and its data (to term {term} index {index}) may lack acknowledged writes: start {peer}; {RESTORE}"
                )
            }
            Self::DepartedAlone { position: Position { term, index } } => {
                write!(
                    f,
                    "this member left the cluster at term {term} index {index} and {peer} went on: start {peer}; {RESTORE}"
                )
            }
            Self::BlankAlone => write!(
                f,
                "this node holds no data: start {peer}, which is to serve first; if it is gone for good, restore a snapshot with 'etcdutl snapshot restore'"
            ),
            Self::BrokenAlone { why } => {
                write!(
                    f,
                    "this node's data dir is broken ({why}): start {peer}, which is to serve first; if it is gone for good, {BACKUP}"
                )
            }
            Self::PeerSaysNothing => {
                write!(
                    f,
                    "{peer} has not said what data it holds, as Tandem does before it starts; see with 'pcs status' why its agent does not start, and whether it is Tandem ('tandem explain' there); will try again"
                )
            }
            Self::PeerDoesNotServe => write!(f, "{peer} is to serve first and does not yet; will try again"),
            Self::PeerNotConfirmed { why } => {
                write!(
                    f,
                    "{peer} is not confirmed stopped ({why}): fence it, or confirm that it is off with 'pcs stonith confirm {peer}'"
                )
            }
            Self::EtcdExited { last_words } => write!(f, "etcd exited: {last_words}"),
            Self::EtcdDoesNotAnswer { why } => write!(f, "etcd does not answer: {why}"),
            Self::ContainerUnknown { why } => write!(f, "cannot tell whether the container runs: {why}"),
            Self::NotAVoterYet => write!(f, "this member is still a learner: it has not caught up with {peer}"),
            Self::StillRunning => write!(f, "etcd does not end"),
            Self::InTheWay { obstacle: Obstacle::StaticPod } => {
                write!(f, "kubelet's static pod still runs etcd with our data: see 'crictl ps --label app=etcd'")
            }
            Self::InTheWay { obstacle: Obstacle::PortTaken(port) } => {
                write!(f, "another program listens on port {port}: see 'ss -tlnp sport = {port}' and end it")
            }
            Self::MachineIsDeleted => {
                write!(f, "OpenShift is deleting this node's Machine: it is not added to {peer}'s cluster again")
            }
            Self::CheckFailed { why } => write!(f, "a check that was asked for failed: {why}"),
            Self::NoRoomToJoin { needed_bytes, free_bytes } => {
                write!(
                    f,
                    "joining needs about {} MB on the data dir's file system and {} MB are free; no backup there is old enough to be deleted: make room",
                    megabytes(*needed_bytes),
                    megabytes(*free_bytes)
                )
            }
            Self::PeerLostWhileJoining => {
                write!(
                    f,
                    "{peer} was lost before this node had got its data from it: start {peer}; if it is gone for good, {BACKUP}; will try again"
                )
            }
            Self::PeerServesThoughNotChosen => {
                write!(
                    f,
                    "an operator chose this node's data (etcd_primary), and {peer} serves another history: stop both with 'pcs resource disable' and start them with 'pcs resource enable'"
                )
            }
        }
    }
}
