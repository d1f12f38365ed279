//! The words of a refusal: what stands in the way, and what resolves it.

use std::fmt;

use super::written::At;
use super::{LastWritten, Refusal, grant, megabytes};
use crate::decide::evidence::{LogPosition, Obstacle};

impl Refusal {
    /// In as few words as Pacemaker keeps: what to type comes first, as the end is what is cut off, and the peer is named
    /// once, as its name may fill half of it.
    #[expect(clippy::too_many_lines, reason = "a table of sentences")]
    pub(super) fn short(&self, peer: &str) -> String {
        match self {
            Self::CibUnreadable { why } => format!("see 'pcs status': cannot read the CIB: {why}"),
            Self::DiskUnreadable { why } => format!("see 'tandem explain': cannot read the data dir: {why}"),
            Self::NoteUnreadable { .. } => {
                format!(
                    "start {peer}, mv 'tandem-note.json', or 'tandem confirm-recovery': this node's note cannot be read"
                )
            }
            Self::HistoriesSplit => {
                "'crm_attribute -n etcd_primary -v NODE' chooses the data to keep: both nodes went on alone".to_owned()
            }
            Self::PeerWentOnAloneAndLostItsData { .. } => {
                format!(
                    "restore {peer}, or 'tandem confirm-recovery --accept-loss': it went on alone and lost its data"
                )
            }
            Self::DataOfARecordedClusterIsGone => {
                "restore one node with 'etcdutl snapshot restore': both lost their data".to_owned()
            }
            Self::NoVotersData => {
                "move a backup back, see 'tandem explain': neither node holds a voter's data".to_owned()
            }
            Self::NoProofThatPeerDidNotGoOn { position, .. } => {
                let since = At(" since", *position);
                format!("start {peer}, or 'tandem confirm-recovery': it may have gone on{since}")
            }
            Self::PeerWentOnWithoutUs { position, .. } => {
                let after = At(" after", *position);
                format!("start {peer}, or 'tandem confirm-recovery --accept-loss': it went on{after}")
            }
            Self::ConfirmationIsOutdated { .. } => {
                format!("start {peer}, or 'tandem confirm-recovery' again: what was confirmed is about older data")
            }
            Self::LearnerAlone { .. } => {
                format!("start {peer}, or 'etcdutl snapshot restore': this node was only a learner")
            }
            Self::DepartedAlone { .. } => {
                format!("start {peer}, or 'etcdutl snapshot restore': this member left the cluster")
            }
            Self::BlankAlone => format!("start {peer}, or 'etcdutl snapshot restore': this node holds no data"),
            Self::BrokenAlone { .. } => {
                format!("start {peer}, or put a backup back, see 'tandem explain': this node's data dir is broken")
            }
            Self::DatabaseAheadOfLog { .. } => {
                format!("start {peer}, or 'etcdutl snapshot restore': the log's end is lost")
            }
            Self::PeerSaysNothing => {
                format!("see 'pcs status': {peer} has not said what data it holds; does Tandem run there?")
            }
            Self::PeerDoesNotServe => format!("see 'pcs status': {peer} is to serve first and does not yet"),
            Self::PeerNotConfirmed { .. } => {
                format!("fence it, or 'pcs stonith confirm {peer}' if it is off: it is not confirmed off")
            }
            Self::EtcdExited { last_words } => format!("see 'podman logs': etcd exited: {last_words}"),
            Self::EtcdDoesNotAnswer { why } => format!("see 'podman logs': etcd does not answer: {why}"),
            Self::ContainerUnknown { why } => format!("see 'podman ps --all': cannot tell whether etcd runs: {why}"),
            Self::NotAVoterYet => format!("see 'tandem explain': still a learner, not caught up with {peer}"),
            Self::StillRunning => "see 'podman ps' and 'podman kill': etcd does not end".to_owned(),
            Self::EarlierActionLasts => "see 'ps -C podman': an earlier action still changes the container".to_owned(),
            Self::InTheWay { obstacle: Obstacle::StaticPod } => {
                "see 'crictl ps --label app=etcd': kubelet's static pod still runs etcd".to_owned()
            }
            Self::InTheWay { obstacle: Obstacle::PortTaken(port) } => {
                format!("see 'ss -tlnp sport = {port}': another program listens on port {port}")
            }
            Self::MachineIsDeleted => {
                "see 'oc get machines -n openshift-machine-api': this node's is being deleted, it is not added again"
                    .to_owned()
            }
            Self::CheckFailed { why } => format!("see 'podman logs': a check failed: {why}"),
            Self::NoPermission { user } => format!("{}: etcd's auth refuses this agent", grant(user.as_deref())),
            Self::NoRoomToJoin { needed_bytes, free_bytes } => {
                format!(
                    "see 'df' and make room beside 'member': joining needs about {} MB, {} MB are free",
                    megabytes(*needed_bytes),
                    megabytes(*free_bytes)
                )
            }
            Self::PeerLostWhileJoining => {
                format!("start {peer}, or put 'member-backup-*' back: it was lost before this node had its data")
            }
            Self::PeerServesThoughNotChosen => {
                format!("'pcs resource disable' and 'enable' the clone: this data was chosen, but {peer} serves")
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
            Self::NoteUnreadable { why } => {
                write!(
                    f,
                    "cannot read the note beside the data ({why}), which says how often this node went on alone: start {peer}, and move the note away; if {peer} is gone for good, move it away and type 'tandem confirm-recovery' here"
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
            Self::ConfirmationIsOutdated { position } => {
                let reaches = At(", which reaches", *position);
                write!(
                    f,
                    "this node's data{reaches} has changed since 'tandem confirm-recovery' was typed: start {peer} (nothing is lost then), or type 'tandem confirm-recovery' here once more"
                )
            }
            Self::LearnerAlone { position: LogPosition { term, index } } => {
                write!(
                    f,
                    "this node was a learner and its data (to term {term} index {index}) may lack acknowledged writes: start {peer}; {RESTORE}"
                )
            }
            Self::DepartedAlone { position: LogPosition { term, index } } => {
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
            Self::DatabaseAheadOfLog { last_index, database_index } => {
                write!(
                    f,
                    "the database here reaches index {database_index} and its log ends at {last_index}, as the disk has lost the log's end; a new cluster that is forced from that destroys the log: start {peer}, whose log may have the rest; {RESTORE}"
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
            Self::EarlierActionLasts => write!(
                f,
                "an earlier action, or the podman that it left behind, still starts or ends etcd's container: see 'ps -C podman,podman-etcd' and end it"
            ),
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
            Self::NoPermission { user } => {
                write!(f, "etcd's auth refuses this agent: {}", grant(user.as_deref()))
            }
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
