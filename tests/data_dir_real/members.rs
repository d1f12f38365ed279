//! `tandem member list` and `plan` on real etcds of two, three and five members. Each refusal is compared with etcd's
//! own reaction to the same request.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use etcd_client::MemberAddOptions;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::each_version;
use crate::etcd::{Asker, Etcd, Place, Version, until};

/// The time within which `tandem member` must answer, even if an etcd hangs.
const IN_TIME: Duration = Duration::from_secs(6);
const NEW: &str = "m9=http://127.0.0.1:9";

/// Starts a cluster of the voters `m1`, `m2` and so on. Returns the leader first.
pub(crate) fn cluster(version: &Version, root: &Path, count: usize) -> Vec<Etcd> {
    std::fs::create_dir_all(root).unwrap();
    let places: Vec<Place> = (1..=count).map(|number| Place::new(version, root, &format!("m{number}"))).collect();
    let all: Vec<&Place> = places.iter().collect();
    let mut etcds: Vec<Etcd> = places.iter().map(|place| place.start(&all, "new", &[])).collect();
    for etcd in &mut etcds {
        drop(etcd.wait());
    }
    let leader = etcds[0].client().status().unwrap().leader();
    etcds.sort_by_key(|etcd| id(etcd) != leader);
    let urls = urls(&etcds);
    until("every member to be healthy", || {
        let listed = tandem(&["list"], &urls).1;
        let is_healthy = |member: &Value| member["healthy"] == true;
        listed["members"].as_array().is_some_and(|all| all.len() == count && all.iter().all(is_healthy)).then_some(())
    });
    etcds
}

pub(crate) fn id(etcd: &Etcd) -> u64 {
    etcd.client().status().unwrap().header().unwrap().member_id()
}

pub(crate) fn urls(etcds: &[Etcd]) -> String {
    etcds.iter().map(|etcd| etcd.place.client_url.as_str()).collect::<Vec<_>>().join(",")
}

/// Runs `tandem member` with `words`. Returns the exit code and the JSON on stdout. If stdout is no JSON, returns the
/// text on stderr.
#[expect(clippy::disallowed_methods, reason = "the test starts the binary as an operator would")]
pub(crate) fn tandem(words: &[&str], urls: &str) -> (i32, Value) {
    let began = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    let output = command.arg("member").args(words).args(["--json", "--endpoints", urls]).env_clear().output().unwrap();
    assert!(began.elapsed() < IN_TIME, "{words:?}: {:?}", began.elapsed());
    let said = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&output.stderr).into_owned()));
    (output.status.code().unwrap(), said)
}

/// Asserts that `tandem member plan` allows a change if `rule` is empty, and otherwise forbids it by that rule. If it
/// forbids the change, the command for the change itself must refuse it, too.
fn plan(words: &[&str], urls: &str, rule: &str) {
    let (code, said) = tandem(&[&["plan"], words].concat(), urls);
    let (wanted_code, wanted_rule) = if rule.is_empty() { (0, Value::Null) } else { (3, Value::from(rule)) };
    assert_eq!((code, &said["rule"]), (wanted_code, &wanted_rule), "{words:?}: {said:#}");
    if !rule.is_empty() && words[0] != "stop" {
        let (code, said) = tandem(&[words, &["--yes", "--timeout", "0s"]].concat(), urls);
        assert_eq!((code, &said["rule"], &said["done"]), (3, &wanted_rule, &Value::from(false)), "{words:?}: {said:#}");
    }
}

/// Returns whether etcd itself removes the member `id`, when it is asked once.
fn etcd_removes(asker: &mut Asker, id: u64) -> bool {
    asker.runtime.block_on(asker.client.member_remove(id)).is_ok()
}

fn etcd_adds_a_learner(asker: &mut Asker, url: &str) -> bool {
    let options = MemberAddOptions::new().with_is_learner();
    asker.runtime.block_on(asker.client.member_add([url], Some(options))).is_ok()
}

pub(crate) fn name(etcd: &Etcd) -> &str {
    &etcd.place.name
}

/// Asserts the answers of `tandem member list` and `plan` while all members are alive.
fn nobody_is_dead(etcds: &[Etcd], urls: &str) {
    let (count, last) = (etcds.len(), name(&etcds[etcds.len() - 1]));
    let (code, listed) = tandem(&["list"], urls);
    assert_eq!((code, listed["voters_wanted"].as_u64()), (0, u64::try_from(count).ok()), "{listed:#}");
    let leader = format!("{:x}", id(&etcds[0]));
    assert_eq!(listed["leader"], leader.as_str());
    let members = listed["members"].as_array().unwrap();
    let leads = members.iter().filter(|member| member["leader"] == true);
    assert_eq!(leads.map(|member| &member["id"]).collect::<Vec<_>>(), [&Value::from(leader)]);
    for member in members {
        assert!(member["started"] == true && member["index"].is_u64() && member["db_bytes"].is_u64(), "{member:#}");
        assert!(member["node"].is_null() && member["protected"].is_null() && member["role"] == "voter", "{member:#}");
        assert_eq!(member["client_urls"].as_array().unwrap().len(), 1);
    }
    plan(&["stop", last], urls, "");
    plan(&["stop", name(&etcds[0])], urls, "");
    plan(&["remove", last], urls, "M4");
    plan(&["remove", last, "--allow-fewer-voters"], urls, "");
    plan(&["remove", name(&etcds[0]), "--allow-fewer-voters"], urls, "");
    plan(&["replace", last, "--new", NEW], urls, "");
    plan(&["add", NEW], urls, "");
    plan(&["add", NEW, "--voters", &(count - 1).to_string()], urls, "M1");
    let (code, why) = tandem(&["plan", "stop", "m7"], urls);
    assert!(code == 1 && why.as_str().is_some_and(|why| why.contains("no member is called 'm7'")), "{why}");
}

/// Asserts the answers of `tandem member plan` while a learner is listed that never starts. It must forbid a second learner. The first one
/// can be removed at once.
fn a_learner_waits(etcds: &[Etcd], urls: &str) {
    const URL: &str = "http://127.0.0.1:10";
    let mut asker = etcds[0].client();
    let learner = until("a learner to be listed", || {
        let added = asker.client.member_add([URL], Some(MemberAddOptions::new().with_is_learner()));
        asker.runtime.block_on(added).ok().map(|added| added.member().unwrap().id())
    });
    until("every member to know it", || (tandem(&["plan", "remove", URL], urls).0 == 0).then_some(()));
    plan(&["add", NEW], urls, "M2");
    assert!(!etcd_adds_a_learner(&mut asker, "http://127.0.0.1:9"), "etcd refuses a second learner");
    plan(&["promote", URL], urls, "M7");
    let promoted = asker.runtime.block_on(asker.client.member_promote(learner));
    assert!(promoted.is_err(), "etcd promotes nobody that never started");
    plan(&["stop", name(&etcds[1])], urls, "M14");
    asker.remove(learner);
}

/// Kills the last member, and asserts the answers of `tandem member plan` after that. `removes` is true if etcd itself would then remove a
/// healthy member.
fn one_is_dead(etcds: &mut [Etcd], urls: &str, rule: &str, removes: bool) {
    let last = etcds.len() - 1;
    etcds[last].kill();
    let (dead, healthy) = (name(&etcds[last]), name(&etcds[1]));
    let (code, listed) = tandem(&["list"], urls);
    let of = |name: &str| {
        let members = listed["members"].as_array().unwrap().iter();
        members.clone().find(|member| member["name"] == name).unwrap()
    };
    assert!(code == 0 && of(dead)["healthy"] == false && of(dead)["index"].is_null(), "{listed:#}");
    assert!(of(dead)["why"].as_str().is_some_and(|why| why.contains("refused")), "{listed:#}");
    assert_eq!(of(healthy)["healthy"], true);
    plan(&["stop", healthy], urls, "M14");
    plan(&["stop", dead], urls, "");
    plan(&["remove", dead], urls, "");
    plan(&["remove", healthy, "--allow-fewer-voters"], urls, rule);
    plan(&["replace", dead, "--new", NEW], urls, "");
    plan(&["replace", healthy, "--new", NEW], urls, "M3");
    plan(&["add", NEW], urls, "M3");
    let mut asker = etcds[0].client();
    assert!(!etcd_adds_a_learner(&mut asker, "http://127.0.0.1:9"), "etcd adds nobody beside a dead one either");
    assert_eq!(etcd_removes(&mut asker, id(&etcds[1])), removes, "etcd and a healthy member beside a dead one");
}

#[test]
fn of_three_and_five_members_each_wish_is_judged_with_and_without_a_dead_one() {
    each_version(|version, root| {
        for (count, rule, removes) in [(3, "M5", false), (5, "M6", true)] {
            let mut etcds = cluster(version, &root.join(count.to_string()), count);
            let urls = urls(&etcds);
            nobody_is_dead(&etcds, &urls);
            a_learner_waits(&etcds, &urls);
            one_is_dead(&mut etcds, &urls, rule, removes);
        }
    });
}

#[test]
fn of_two_members_neither_may_go_and_etcd_lets_the_healthy_one_go() {
    each_version(|version, root| {
        let etcds = cluster(version, &root.join("a"), 2);
        let all = urls(&etcds);
        plan(&["stop", name(&etcds[1])], &all, "M14");
        plan(&["remove", name(&etcds[1])], &all, "M4");
        plan(&["remove", name(&etcds[1]), "--allow-fewer-voters"], &all, "");
        let (mut asker, follower) = (etcds[0].client(), id(&etcds[1]));
        until("etcd itself to let it go", || etcd_removes(&mut asker, follower).then_some(()));

        let mut etcds = cluster(version, &root.join("b"), 2);
        let all = urls(&etcds);
        let dead = id(&etcds[1]);
        etcds[1].kill();
        until("the leader to step down", || {
            let (_, listed) = tandem(&["list"], &all);
            listed["leader"].is_null().then_some(())
        });
        plan(&["remove", name(&etcds[1])], &all, "M5");
        plan(&["add", NEW], &all, "M11");
        plan(&["stop", name(&etcds[1])], &all, "M14");
        assert!(!etcd_removes(&mut etcds[0].client(), dead), "no majority commits it");
    });
}

/// Asserts that a member that hangs counts as unhealthy, and delays no command. Its kernel accepts connections, but its
/// process does not answer.
#[test]
fn a_member_that_hangs_is_not_healthy_and_keeps_nobody_waiting() {
    each_version(|version, root| {
        let etcds = cluster(version, root, 3);
        etcds[2].signal(Signal::SIGSTOP);
        let (code, listed) = tandem(&["list"], &urls(&etcds));
        let hung =
            listed["members"].as_array().unwrap().iter().find(|member| member["name"] == name(&etcds[2])).unwrap();
        assert!(code == 0 && hung["healthy"] == false, "{listed:#}");
        assert!(hung["why"].as_str().is_some_and(|why| why.contains("gave no answer within")), "{listed:#}");
        plan(&["stop", name(&etcds[1])], &urls(&etcds), "M14");
        plan(&["remove", name(&etcds[2])], &urls(&etcds), "");
        etcds[2].signal(Signal::SIGCONT);
    });
}
