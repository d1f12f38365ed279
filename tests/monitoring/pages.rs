//! Pages of metrics: of a healthy cluster, and of changed ones.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use tandem::base::Fact;
use tandem::operate::cluster::{Cluster, Etcd};
use tandem::operate::health::{Health, Verdict, conditions};
use tandem::operate::members::under_way::UnderWay;
use tandem::operate::metrics::{self, Extras, FencingTests};

use crate::states::{AT, NODES, configured, each, healthy, node, on, power_off, seen, stop};

/// A state of the cluster from which the collector renders its metrics.
pub(crate) struct State {
    pub(crate) name: &'static str,
    pub(crate) cluster: Cluster,
    pub(crate) health: Health,
    pub(crate) extras: Extras,
    /// The seconds of each minute in which each node's processors work. A node has two processors.
    pub(crate) work: u64,
    /// True if the collectors keep running, so that the time of the last collection advances.
    pub(crate) collects: bool,
}

impl State {
    pub(crate) fn page(&self) -> String {
        metrics::render(&self.cluster, &self.health, &conditions::of(&self.cluster), &self.extras)
    }

    /// Returns the series that Prometheus would have of both nodes after `minutes` minutes. promtool's time begins in 1970.
    pub(crate) fn series(&self, minutes: u64) -> Vec<Value> {
        let mut series = Vec::new();
        for here in NODES {
            let cluster = Cluster { here: here.to_owned(), ..self.cluster.clone() };
            let page = metrics::render(&cluster, &self.health, &conditions::of(&cluster), &self.extras);
            let instance = format!("instance=\"{here}:9100\",job=\"node\"");
            for line in page.lines().filter(|line| !line.starts_with('#')) {
                let (name, value) = line.rsplit_once(' ').unwrap();
                let labelled = match name.split_once('{') {
                    Some((name, labels)) => format!("{name}{{{instance},{labels}"),
                    None => format!("{name}{{{instance}}}"),
                };
                series.push(json!({ "series": labelled, "values": self.values(name, value, minutes) }));
            }
            for cpu in 0..2 {
                for (mode, seconds) in [("user", self.work), ("idle", 60 - self.work)] {
                    let labels = format!("{instance},cpu=\"{cpu}\",mode=\"{mode}\"");
                    let values = format!("0+{seconds}x{minutes}");
                    series.push(json!({ "series": format!("node_cpu_seconds_total{{{labels}}}"), "values": values }));
                }
            }
        }
        series
    }

    fn values(&self, name: &str, value: &str, minutes: u64) -> String {
        let mut text = value.to_owned();
        if name.contains("_timestamp_seconds") {
            let at: i64 = value.parse().unwrap();
            text = (at - i64::try_from(AT).unwrap()).to_string();
        }
        let each_minute = if name.starts_with("tandem_collection_") && self.collects { 60 } else { 0 };
        write!(text, "+{each_minute}x{minutes}").unwrap();
        text
    }
}

fn good() -> State {
    let cluster = healthy();
    let mut extras = Extras {
        events: [("PacemakerNodeOffline".to_owned(), 3)].into(),
        fencing_tests: FencingTests::read(&format!("{}\n{}\n", tested("node1", 10), tested("node2", 10))),
        ..Extras::default()
    };
    extras.disruptions.see(&conditions::of(&cluster));
    State {
        name: "healthy",
        cluster,
        health: Health { verdict: Verdict::Redundant, since: Some(AT - 90_000), problems: Vec::new() },
        extras,
        work: 12,
        collects: true,
    }
}

/// Returns the record of a fencing test of `node`, `days` days ago.
fn tested(node: &str, days: u64) -> String {
    let at = UNIX_EPOCH + Duration::from_secs(AT - days * 86_400);
    let at = humantime::format_rfc3339_seconds(at).to_string();
    let seconds =
        json!({ "off": 4.5, "writes": 12.0, "longest_pause": 11.2, "member": 95.0, "voter": 110.5, "clean": null });
    json!({ "at": at, "node": node, "passed": true, "seconds": seconds }).to_string()
}

fn changed(name: &'static str, change: fn(&mut State)) -> State {
    let mut state = good();
    state.name = name;
    change(&mut state);
    state
}

pub(crate) fn etcd<'a>(state: &'a mut State, node: &str) -> &'a mut Etcd {
    let Some(Fact::Known(etcd)) = state.cluster.etcd.get_mut(node) else { panic!("{node}'s etcd is not known") };
    etcd
}

fn learner(state: &mut State) {
    state.health.verdict = Verdict::Degraded;
    etcd(state, "node2").learner = true;
    for node in NODES {
        etcd(state, node).members[1].learner = true;
    }
}

fn off(state: &mut State) {
    power_off(&mut state.cluster, "node2");
    state.health.verdict = Verdict::Degraded;
    state.cluster.collected.insert("node2".to_owned(), Fact::Absent);
}

fn down(state: &mut State) {
    off(state);
    node(&mut state.cluster, "node2").unclean = true;
    state.health.verdict = Verdict::Down;
    let etcd = etcd(state, "node1");
    etcd.leader = None;
    etcd.reads = Fact::Unknown("no answer within 2 s".to_owned());
}

fn maintenance(state: &mut State) {
    let seen = seen(&mut state.cluster);
    seen.maintenance = true;
    for instance in &mut seen.resources {
        (instance.maintenance, instance.managed) = (true, false);
    }
}

fn certificate(state: &mut State, days: u64) {
    let Some(Fact::Known(collected)) = state.cluster.collected.get_mut("node2") else { panic!("nothing collected") };
    collected.certificates[0].ends = AT + days * 86_400;
}

fn node_hidden(state: &mut State) {
    state.cluster = Cluster { at: AT, here: "node1".to_owned(), ..Cluster::default() };
    state.health = Health::default();
}

fn hanging_peer(state: &mut State) {
    state.health.verdict = Verdict::Degraded;
    state.cluster.etcd.insert("node2".to_owned(), Fact::Unknown("no answer within 2 s".to_owned()));
}

fn disabled(state: &mut State) {
    each(&mut state.cluster, "etcd").for_each(|etcd| {
        etcd.target_role = Some("Stopped".to_owned());
        stop(etcd);
    });
}

fn second_device_failed(state: &mut State) {
    let cluster = &mut state.cluster;
    let mut second = on(cluster, "node2_redfish", "node1").clone();
    "node2_second".clone_into(&mut second.id);
    second.failed = true;
    seen(cluster).resources.push(second);
    let devices = &mut configured(cluster).fence_devices;
    let mut device = devices[1].clone();
    "node2_second".clone_into(&mut device.resource.id);
    devices.push(device);
}

fn bmc_clock(state: &mut State) {
    let Some(Fact::Known(collected)) = state.cluster.collected.get_mut("node1") else { panic!("nothing collected") };
    collected.bmcs[0].clock_ahead = Some(-3600);
}

fn version(state: &mut State) {
    let Some(Fact::Known(collected)) = state.cluster.collected.get_mut("node2") else { panic!("nothing collected") };
    "0.2.0".clone_into(&mut collected.tandem);
}

fn no_kubelet(state: &mut State) {
    configured(&mut state.cluster).kubelet = None;
    seen(&mut state.cluster).resources.retain(|instance| instance.id != "kubelet");
}

fn change(state: &mut State) {
    let words = "node2 is replaced by node4, by node1 since 2026-11-24 08:00:00Z".to_owned();
    state.extras.member_change = Some(UnderWay { words, since: AT });
}

/// Returns every state of the cluster that the tests use, the healthy one first.
pub(crate) fn all() -> Vec<State> {
    vec![
        good(),
        changed("learner", learner),
        changed("off", off),
        changed("down", down),
        changed("the peer's etcd hangs", hanging_peer),
        changed("nothing known", node_hidden),
        changed("no kubelet", no_kubelet),
        changed("one node", |state| configured(&mut state.cluster).nodes.truncate(1)),
        changed("standby", |state| node(&mut state.cluster, "node2").standby = true),
        changed("node maintenance", |state| node(&mut state.cluster, "node2").maintenance = true),
        changed("cluster maintenance", maintenance),
        changed("unmanaged", |state| each(&mut state.cluster, "etcd").for_each(|etcd| etcd.managed = false)),
        changed("disabled", disabled),
        changed("stopped", |state| stop(on(&mut state.cluster, "etcd", "node2"))),
        changed("failed", |state| on(&mut state.cluster, "etcd", "node2").failed = true),
        changed("no fencing", |state| on(&mut state.cluster, "node2_redfish", "node1").failed = true),
        changed("fencing degraded", second_device_failed),
        changed("never tested", |state| state.extras.fencing_tests = FencingTests::read(&tested("node1", 10))),
        changed("tested long ago", |state| {
            state.extras.fencing_tests =
                FencingTests::read(&format!("{}\n{}", tested("node1", 10), tested("node2", 91)));
        }),
        changed("BMC's clock", bmc_clock),
        changed("alarm", |state| etcd(state, "node1").alarms.push("NOSPACE".to_owned())),
        changed("certificate in a month", |state| certificate(state, 20)),
        changed("certificate in a week", |state| certificate(state, 5)),
        changed("stale", |state| state.collects = false),
        changed("two versions", version),
        changed("busy", |state| state.work = 27),
        changed("member change", change),
    ]
}

pub(crate) fn named(name: &str) -> State {
    all().into_iter().find(|state| state.name == name).unwrap_or_else(|| panic!("no state '{name}'"))
}

/// Returns a state in which every metric of Tandem has a value.
pub(crate) fn full() -> State {
    let mut state = named("learner");
    let mut stopped = state.cluster.clone();
    stop(on(&mut stopped, "etcd", "node2"));
    state.extras.disruptions.see(&conditions::of(&stopped));
    state.extras.disruptions.see(&conditions::of(&state.cluster));
    change(&mut state);
    state
}
