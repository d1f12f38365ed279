//! What people read: short enough for Pacemaker, and what to type comes first.

use crate::adapters::ocf::exit::{REASON_LIMIT, as_kept};
use crate::decide::evidence::{LogPosition, Obstacle, Version};
use crate::decide::reason::{NoLoneBoot, Reason, Refusal, Wait};

/// Values for the placeholders in a reason's sentence.
struct Holes {
    peer: String,
    /// Text from another program.
    words: String,
    position: LogPosition,
    port: u16,
    bytes: u64,
    /// Time at which the data was last written, in seconds since 1970.
    second: u64,
}

/// Returns the values of a typical OpenShift cluster some months after its installation.
fn ordinary() -> Holes {
    Holes {
        peer: "master-0.ostest.example.com".to_owned(),
        words: "it is lost".to_owned(),
        position: LogPosition { term: 100, index: 100_000_000 },
        port: 2379,
        bytes: 9 << 30,
        second: 1_700_000_000,
    }
}

/// Returns the longest possible values. A DNS label has at most 63 bytes.
fn longest() -> Holes {
    Holes {
        peer: format!("n{}", "é".repeat(31)),
        words: "é".repeat(100),
        position: LogPosition { term: u64::MAX, index: u64::MAX },
        port: u16::MAX,
        bytes: u64::MAX,
        second: u64::MAX,
    }
}

/// Makes a list of rows. It also makes a `match` over every variant, which does not compile if a variant has no row.
macro_rules! rows {
    ($kind:ident: $($variant:ident { $($field:tt: $value:expr),* } => [$($typed:expr),+],)+) => {{
        #[allow(unreachable_patterns, reason = "a variant may have several rows")]
        let _ = |every: $kind| match every { $($kind::$variant { .. } => {})+ };
        vec![$(($kind::$variant { $($field: $value),* }, vec![$($typed.to_owned()),+])),+]
    }};
}

/// Returns the obstacles to a start, each with the commands to type.
fn obstacles(holes: &Holes) -> Vec<(Obstacle, Vec<String>)> {
    rows! { Obstacle:
        StaticPod {} => ["'crictl ps --label app=etcd'"],
        PortTaken { 0: holes.port } => [format!("'ss -tlnp sport = {}'", holes.port)],
    }
}

/// Returns every reason against a lone boot, each with what its text asks the operator to type or to do.
fn lone_boots(holes: &Holes) -> Vec<(NoLoneBoot, Vec<String>)> {
    let Holes { peer, words, bytes, .. } = holes;
    let (why, word) = (|| words.clone(), "'tandem confirm-recovery'");
    let (switch, look) = (format!("switch {peer} on"), format!("look at {peer}"));
    let release = Version { minor: 5, patch: 4 };
    rows! { NoLoneBoot:
        NotWanted {} => ["'pcs resource update RESOURCE lone_boot=sole_voter'"],
        ClusterUnknown { why: why() } => ["'tandem explain'"],
        NoPeer {} => ["'pcs status'"],
        NotWaiting {} => ["'corosync-quorumtool -s'"],
        PeerWasSeen {} => [look, word],
        EtcdRuns {} => ["'tandem explain'"],
        Maintenance {} => ["'pcs property set maintenance-mode=false'"],
        DataUnknown { why: why() } => [switch, word],
        NoData {} => [switch, word],
        OthersVote {} => [switch, word],
        Learner {} => [switch, word],
        Left {} => [switch, word],
        Joins {} => [switch, word],
        ThirdVoter { name: "node3".to_owned() } => [switch, word],
        DatabaseAhead {} => [switch, word],
        NotCommitted {} => [switch, word],
        AnotherMember { member: *bytes } => [switch, word],
        LeftBehind {} => [switch, word],
        PutBack {} => [switch, word],
        Redundant {} => [switch, word],
        NotSaidAlone {} => [switch, word],
        PeerIsNamed {} => [switch, word],
        ReleaseUnknown { why: why() } => [switch, word],
        Release { version: release } => [switch, word],
        NoDevice {} => [switch, word],
        DeviceUnknown { why: why() } => [switch, word],
        NoUuid {} => [switch, word],
        OwnUuid {} => [switch, word],
        AnotherMachine { found: "11111111-2222-3333-4444-555555555555".to_owned() } => [switch, word],
        On {} => [look, word],
        Unclear { says: "PoweringOn".to_owned() } => [look, word],
        Silent { why: why() } => [switch, word],
        OldLook { age_s: 7 } => [switch, word],
    }
}

fn refusals(holes: &Holes) -> Vec<(Refusal, Vec<String>)> {
    let Holes { peer, words, position, bytes, second, .. } = holes;
    let (reached, last, why) = (*position, Some(*second), || words.clone());
    let start = format!("start {peer}");
    let restore = "'etcdutl snapshot restore'";
    let accept_loss = "'tandem confirm-recovery --accept-loss'";
    let lone_boots = lone_boots(holes).into_iter().map(|(why, typed)| (Refusal::LoneBoot { why }, typed));
    let mut rows = rows! { Refusal:
        LoneBoot { why: NoLoneBoot::NoPeer } => ["'pcs status'"],
        CibUnreadable { why: why() } => ["'pcs status'"],
        DiskUnreadable { why: why() } => ["'tandem explain'"],
        NoteUnreadable { why: why() } => [start, "mv 'tandem-note.json'", "'tandem confirm-recovery'"],
        HistoriesSplit {} => ["'crm_attribute -n etcd_primary -v NODE'"],
        PeerWentOnAloneAndLostItsData { peer_forks: *bytes } => [format!("restore {peer}"), accept_loss],
        PeerMayHaveGoneOnAndLostItsData {} => [format!("restore {peer}"), accept_loss],
        DiskWasPutBack { here: reached, there: Some(reached), reached: None } => ["'crm_attribute -n etcd_primary -v NODE'"],
        DiskWasPutBack { here: reached, there: None, reached: Some(reached) } => ["put the newer data back", accept_loss],
        CopiedDisk { member: *bytes } => ["'mv member member-copy'"],
        AnotherClusterAnswers { address: "https://192.168.100.100:2379".to_owned() } => ["node_ip_map", "'pcs resource update'"],
        OnlyNodesDataIsGone {} => ["mount the data's disk", restore],
        DataOfARecordedClusterIsGone {} => [restore],
        NoVotersData {} => ["move a backup back", "'tandem explain'"],
        NoProofThatPeerDidNotGoOn { position: reached, written: last } => [start, "'tandem confirm-recovery'"],
        PeerWentOnWithoutUs { position: reached, written: last } => [start, accept_loss],
        ConfirmationIsOutdated { position: reached } => [start, "'tandem confirm-recovery'"],
        LearnerAlone { position: reached } => [start, restore],
        DepartedAlone { position: reached } => [start, restore],
        BlankAlone {} => [start, restore],
        BrokenAlone { why: why() } => [start, "put a backup back", "'tandem explain'"],
        DatabaseAheadOfLog { last_index: *bytes, database_index: *bytes } => [start, restore],
        PeerSaysNothing {} => ["'pcs status'"],
        PeerDoesNotServe {} => ["'pcs status'"],
        YieldsToPrimary {} => ["mend etcd's network", "'tandem status'"],
        PrimaryNotReached {} => ["mend etcd's network", "'tandem status'"],
        PeerNotConfirmed { why: why() } => ["fence it", format!("'pcs stonith confirm {peer}'")],
        EtcdExited { last_words: why() } => ["'podman logs'"],
        EtcdDoesNotAnswer { why: why() } => ["'podman logs'"],
        ContainerUnknown { why: why() } => ["'podman ps --all'"],
        NotAVoterYet {} => ["'tandem explain'"],
        EarlierActionLasts {} => ["'ps -C podman'"],
        AddressChanged { from: why(), to: why() } => ["restart"],
        AskedToGoOn {} => ["restart"],
        NoTimeToGoOn { needed_ms: *bytes } => ["'tandem explain'"],
        StillRunning {} => ["'podman ps'", "'podman kill'"],
        NoRoomToJoin { needed_bytes: *bytes, free_bytes: *bytes } => ["'df'", "'tandem data-dir forget'"],
        PeerServesThoughNotChosen {} => ["'pcs resource disable'", "'enable'"],
        PeerLostWhileJoining {} => [start, "put 'member-backup-*' back"],
        InTheWay { obstacle: Obstacle::StaticPod } => ["'crictl"],
        MachineIsDeleted {} => ["'oc get machines -n openshift-machine-api'"],
        CheckFailed { why: why() } => ["'podman logs'"],
        NoPermission { user: Some(peer.clone()) } => [format!("'tandem etcdctl user grant-role {peer} root'")],
    };
    rows.extend(lone_boots);
    rows.extend(obstacles(holes).into_iter().map(|(obstacle, typed)| (Refusal::InTheWay { obstacle }, typed)));
    rows
}

fn reason(refusal: Refusal, holes: &Holes) -> Reason {
    Reason::Refused { refusal, peer: holes.peer.clone() }
}

#[test]
fn what_to_type_comes_first_and_is_kept_whole_whatever_the_names_and_numbers() {
    let holes = longest();
    assert!(holes.peer.len() == 63 && holes.words.len() == 200);
    for (refusal, typed) in refusals(&holes) {
        let sentence = reason(refusal, &holes).short();
        let kept = as_kept(&sentence);
        assert!(kept.len() <= REASON_LIMIT, "{} bytes: {kept}", kept.len());
        let (command, _) = kept.split_once(": ").unwrap_or_else(|| panic!("nothing is to be typed first: {kept}"));
        for words in typed {
            assert!(command.contains(&words), "'{words}' is not at the beginning of: {kept}");
        }
    }
}

#[test]
fn with_ordinary_names_and_numbers_nothing_is_cut() {
    let holes = ordinary();
    for (refusal, _) in refusals(&holes) {
        let sentence = reason(refusal, &holes).short();
        assert_eq!(as_kept(&sentence), sentence, "{} bytes", sentence.len());
    }
}

/// Asserts the reason of a start that runs out of time while it delays a refusal. The reason is that refusal's short text.
#[test]
fn what_is_waited_for_before_failing_is_told_as_shortly() {
    let holes = ordinary();
    for (refusal, _) in refusals(&holes) {
        let waiting = Reason::Waiting(Wait::BeforeFailing { refusal: refusal.clone(), peer: holes.peer.clone() });
        assert_eq!(waiting.short(), reason(refusal, &holes).short());
    }
}

/// Asserts that each text with the request to start the peer also names another way, because a peer cannot be started if its machine is
/// lost.
#[test]
fn where_the_peer_is_to_be_started_there_is_a_way_without_it() {
    let ways = ["restore", "back", "confirm-recovery"];
    let holes = ordinary();
    for (refusal, _) in refusals(&holes) {
        let reason = reason(refusal, &holes);
        for text in [reason.short(), reason.to_string()] {
            let start = format!("start {}", holes.peer);
            let only_the_peer = text.contains(&start) && !ways.iter().any(|words| text.contains(words));
            assert!(!only_the_peer, "{text}");
        }
    }
}
