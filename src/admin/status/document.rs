//! All facts of `tandem status`, as `--json` prints them. The table for people is made from the same.

use std::fmt::{self, Display};

use serde::{Serialize, Serializer};

use crate::adapters::corosync::conf::Detection;
use crate::adapters::pacemaker::seen::{FenceDevice, Fencing};
use crate::base::Fact;
use crate::operate::cluster::{self, Cluster, Etcd, Power};
use crate::operate::health::words::rfc3339;
use crate::operate::health::{self, Health, Problem, Verdict, view};

/// A time in seconds since 1970. In JSON and as text it is RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time(pub(super) u64);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&rfc3339(self.0))
    }
}

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&rfc3339(self.0))
    }
}

/// The status of the cluster, as `tandem status` prints it.
#[derive(Debug, Serialize)]
pub(in crate::admin) struct Status {
    pub(super) at: Time,
    pub(super) here: String,
    pub(super) resource: Option<String>,
    pub(super) verdict: Verdict,
    pub(super) since: Option<Time>,
    pub(super) voters: Option<usize>,
    pub(super) writes: Option<bool>,
    pub(super) problems: Vec<Problem>,
    pub(super) cluster: Overall,
    pub(super) nodes: Vec<Node>,
}

/// The part of the status that is the same for both nodes.
#[derive(Debug, Serialize)]
pub(super) struct Overall {
    /// True if Pacemaker runs on the node that the status was asked on; `None` if unknown.
    pub(super) pacemaker_running: Option<bool>,
    pub(super) quorum: Option<bool>,
    pub(super) waits_for_peer: Option<bool>,
    pub(super) votes: Option<u32>,
    pub(super) expected_votes: Option<u32>,
    pub(super) token_millis: Option<u64>,
    pub(super) lost_after_millis: Option<u64>,
    pub(super) maintenance: Option<bool>,
    pub(super) stonith_enabled: Option<bool>,
    pub(super) dc: Option<String>,
    /// The node with etcd's leader; `None` if there is no leader. `primary` is the configured primary; `None` if none is configured.
    pub(super) leader: Option<String>,
    pub(super) primary: Option<String>,
    pub(super) two_histories: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) online: Option<bool>,
    pub(super) standby: Option<bool>,
    pub(super) maintenance: Option<bool>,
    pub(super) pending: Option<bool>,
    pub(super) unclean: Option<bool>,
    /// True if Corosync has the node in the partition of the node that the status was asked on; `None` if unknown.
    pub(super) in_partition: Option<bool>,
    /// The node's power as its BMC reports it; `None` if the BMC was not queried.
    pub(super) power: Option<PowerSeen>,
    pub(super) etcd: Served,
    pub(super) fence_devices: Option<Vec<Device>>,
    pub(super) last_fencing: Option<LastFencing>,
    pub(super) certificates: Option<Vec<Certificate>>,
    pub(super) versions: Versions,
    pub(super) collected: Option<Time>,
    pub(super) free_bytes: Option<u64>,
    pub(super) size_bytes: Option<u64>,
    pub(super) moved_aside: Option<Vec<MovedAside>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PowerSeen {
    On,
    Off,
    Unknown,
}

impl PowerSeen {
    fn of(power: &Power) -> Self {
        match power {
            Power::On => Self::On,
            Power::Off => Self::Off,
            Power::Unknown(_) => Self::Unknown,
        }
    }
}

/// The status of a node's etcd. Unknown values are `None`.
#[derive(Debug, Default, Serialize)]
pub(super) struct Served {
    pub(super) role: Option<Role>,
    pub(super) why_unknown: Option<String>,
    pub(super) cluster_id: Option<String>,
    pub(super) member_id: Option<String>,
    pub(super) leader: Option<String>,
    pub(super) term: Option<u64>,
    pub(super) index: Option<u64>,
    pub(super) lag: Option<u64>,
    pub(super) db_bytes: Option<u64>,
    pub(super) db_in_use_bytes: Option<u64>,
    pub(super) quota_bytes: Option<u64>,
    pub(super) alarms: Option<Vec<String>>,
    pub(super) reads: Option<bool>,
    pub(super) answer_millis: Option<u64>,
    /// Expiry of the certificate that etcd presents; `None` if unknown.
    pub(super) certificate_ends: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    Leader,
    Voter,
    Learner,
    Stopped,
}

impl Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leader => "leader",
            Self::Voter => "voter",
            Self::Learner => "learner",
            Self::Stopped => "stopped",
        })
    }
}

/// The status of a fence device that fences the node.
#[derive(Debug, Serialize)]
pub(super) struct Device {
    pub(super) id: String,
    pub(super) runs_on: Option<String>,
    pub(super) healthy: Option<bool>,
    pub(super) checked: Option<Time>,
    pub(super) checked_by: Option<String>,
    pub(super) check_millis: Option<u64>,
    pub(super) failure: Option<String>,
    pub(super) last_login: Option<Time>,
}

#[derive(Debug, Serialize)]
pub(super) struct LastFencing {
    pub(super) action: String,
    /// The result of the fencing: `success`, `failed` or `pending`.
    pub(super) result: String,
    pub(super) completed: Option<Time>,
    pub(super) delegate: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Certificate {
    pub(super) file: String,
    pub(super) ends: Time,
}

#[derive(Debug, Serialize)]
pub(super) struct Versions {
    pub(super) tandem: Option<String>,
    pub(super) etcd: Option<String>,
    pub(super) pacemaker: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct MovedAside {
    pub(super) path: String,
    pub(super) since: Time,
    pub(super) bytes: u64,
}

impl Status {
    pub(super) fn of(cluster: &Cluster) -> Self {
        let Health { verdict, since, problems } = health::assess(cluster);
        let configured = cluster.configuration.known().and_then(|known| known.etcd.as_ref());
        Self {
            at: Time(cluster.at),
            here: cluster.here.clone(),
            resource: configured.map(|etcd| etcd.id.clone()),
            verdict,
            since: since.map(Time),
            voters: view::voters(cluster),
            writes: view::writes(cluster),
            problems,
            cluster: overall(cluster),
            nodes: view::names(cluster).into_iter().map(|name| node(cluster, name)).collect(),
        }
    }
}

fn overall(cluster: &Cluster) -> Overall {
    let (pacemaker, quorum) = (cluster.pacemaker.known(), cluster.quorum.known());
    let running = match cluster.pacemaker {
        Fact::Known(_) => Some(true),
        Fact::Absent => Some(false),
        Fact::Unknown(_) | Fact::NotAsked => None,
    };
    Overall {
        pacemaker_running: running,
        quorum: quorum.map(|known| known.quorate).or_else(|| cluster.quorum.is_absent().then_some(false)),
        waits_for_peer: quorum.map(|known| known.waits_for_all && !known.quorate),
        votes: quorum.map(|known| known.total_votes),
        expected_votes: quorum.map(|known| known.expected_votes),
        token_millis: cluster.detection.map(|times| times.token),
        lost_after_millis: cluster.detection.map(Detection::takes),
        maintenance: pacemaker.map(|known| known.maintenance),
        stonith_enabled: pacemaker.map(|known| known.stonith_enabled),
        dc: pacemaker.and_then(|known| known.dc.clone()),
        leader: view::leading(cluster).filter(|(_, etcd)| view::leads(etcd)).map(|(name, _)| name.clone()),
        primary: health::primary(cluster),
        two_histories: health::two_histories(cluster),
    }
}

fn node(cluster: &Cluster, name: String) -> Node {
    let seen = view::node(cluster, &name);
    // A configured node that Pacemaker does not show is not online.
    let missing = cluster.pacemaker.known().is_some() && seen.is_none();
    let collected = view::collected(cluster, &name);
    let members = cluster.quorum.known().map(|known| &known.members);
    let id = seen.and_then(|node| node.id.parse::<u32>().ok());
    Node {
        online: seen.map(|node| node.online).or(missing.then_some(false)),
        standby: seen.map(|node| node.standby),
        maintenance: seen.map(|node| node.maintenance),
        pending: seen.map(|node| node.pending),
        unclean: seen.map(|node| node.unclean),
        in_partition: members.zip(id).map(|(members, id)| members.contains(&id)),
        power: view::power(cluster, &name).map(PowerSeen::of),
        etcd: member(cluster, &name),
        fence_devices: devices(cluster, &name),
        last_fencing: last_fencing(cluster, &name),
        certificates: certificates(cluster, &name),
        versions: versions(cluster, &name),
        collected: collected.map(|known| Time(known.at)),
        free_bytes: collected.and_then(|known| known.free_bytes),
        size_bytes: collected.and_then(|known| known.size_bytes),
        moved_aside: moved_aside(cluster, &name),
        name,
    }
}

fn member(cluster: &Cluster, name: &str) -> Served {
    match view::etcd_fact(cluster, name) {
        Fact::Known(etcd) => running(etcd, view::lag(cluster, name)),
        Fact::Absent => Served { role: Some(Role::Stopped), ..Served::default() },
        // No etcd runs on a machine that is off.
        Fact::Unknown(_) if view::is_down(cluster, name) => Served { role: Some(Role::Stopped), ..Served::default() },
        unknown @ (Fact::Unknown(_) | Fact::NotAsked) => {
            Served { why_unknown: Some(unknown.why_unknown().to_owned()), ..Served::default() }
        }
    }
}

fn running(etcd: &Etcd, lag: Option<u64>) -> Served {
    let role = match etcd {
        etcd if etcd.learner => Role::Learner,
        etcd if view::leads(etcd) => Role::Leader,
        _ => Role::Voter,
    };
    Served {
        role: Some(role),
        why_unknown: None,
        cluster_id: Some(etcd.cluster_id.clone()),
        member_id: Some(etcd.member_id.clone()),
        leader: etcd.leader.clone(),
        term: Some(etcd.term),
        index: Some(etcd.index),
        lag,
        db_bytes: Some(etcd.db_bytes),
        db_in_use_bytes: Some(etcd.db_in_use_bytes),
        quota_bytes: etcd.quota_bytes,
        alarms: Some(etcd.alarms.clone()),
        reads: etcd.reads.known().map(|()| true),
        answer_millis: Some(etcd.millis),
        certificate_ends: etcd.certificate_ends.map(Time),
    }
}

fn devices(cluster: &Cluster, name: &str) -> Option<Vec<Device>> {
    let configured = &cluster.configuration.known()?.fence_devices;
    let fences =
        |device: &&FenceDevice| device.targets.is_empty() || device.targets.iter().any(|target| target == name);
    Some(configured.iter().filter(fences).map(|device| self::device(cluster, device)).collect())
}

fn device(cluster: &Cluster, device: &FenceDevice) -> Device {
    let instance = cluster.pacemaker.known().map(|known| view::instance_of(known, device));
    let checked = health::checked(cluster, device);
    Device {
        id: device.resource.id.clone(),
        runs_on: instance.flatten().and_then(|instance| instance.nodes.first().cloned()),
        healthy: instance.map(|instance| instance.is_some_and(view::is_well)),
        checked: checked.map(|(_, note)| Time(note.at)),
        checked_by: checked.map(|(node, _)| node.to_owned()),
        check_millis: checked.map(|(_, note)| note.millis),
        failure: checked.and_then(|(_, note)| note.failure.clone()),
        last_login: checked.and_then(|(_, note)| note.last_success).map(Time),
    }
}

fn last_fencing(cluster: &Cluster, name: &str) -> Option<LastFencing> {
    let last: &Fencing = cluster.pacemaker.known()?.fencing.iter().find(|fencing| fencing.target == name)?;
    Some(LastFencing {
        action: last.action.clone(),
        result: last.status.clone(),
        completed: last.completed.map(Time),
        delegate: last.delegate.clone(),
    })
}

fn certificates(cluster: &Cluster, name: &str) -> Option<Vec<Certificate>> {
    let files = &view::collected(cluster, name)?.certificates;
    Some(files.iter().map(|one| Certificate { file: one.file.clone(), ends: Time(one.ends) }).collect())
}

fn versions(cluster: &Cluster, name: &str) -> Versions {
    let collected = view::collected(cluster, name);
    let is_here = name == cluster.here;
    let here = cluster.pacemaker.known().filter(|_| is_here).map(|known| known.version.clone());
    Versions {
        tandem: collected
            .map(|known| known.tandem.clone())
            .or_else(|| is_here.then(|| crate::os::version::VERSION.to_owned())),
        etcd: view::etcd(cluster, name).map(|etcd| etcd.version.clone()),
        pacemaker: collected.and_then(|known| known.pacemaker.clone()).or(here),
    }
}

fn moved_aside(cluster: &Cluster, name: &str) -> Option<Vec<MovedAside>> {
    let moved = &view::collected(cluster, name)?.moved_aside;
    let told = |one: &cluster::MovedAside| MovedAside { path: one.path.clone(), since: Time(one.at), bytes: one.bytes };
    Some(moved.iter().map(told).collect())
}
