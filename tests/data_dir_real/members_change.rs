//! The commands that change the members, on real etcds: from one voter to three and back, a replacement that is killed
//! after each step, and two commands at once.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tandem::os::clock;

use crate::etcd::{self, Etcd, Place, Version, until};
use crate::members::{cluster, name, tandem, urls};
use crate::scratch;

const PATIENCE: Duration = Duration::from_secs(60);
const UNDER_WAY: &str = "another change is under way";

/// A `tandem member` command that runs. It is killed when this is dropped.
struct Tool {
    child: Child,
    lines: Receiver<String>,
    heard: Vec<String>,
}

impl Tool {
    #[expect(clippy::disallowed_methods, reason = "the test starts the binary as an operator would, and kills it")]
    fn start(words: &[&str], urls: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
        command.arg("member").args(words).args(["--yes", "--timeout", "1m", "--endpoints", urls]).env_clear();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines, heard: Vec::new() }
    }

    /// Waits for a line of the command's output that contains `text`. Returns `None` if the command ends before that.
    fn says(&mut self, text: &str) -> Option<String> {
        let began = Instant::now();
        loop {
            match self.lines.recv_timeout(Duration::from_millis(100)) {
                Ok(line) => {
                    self.heard.push(line.clone());
                    if line.contains(text) {
                        return Some(line);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => assert!(began.elapsed() < PATIENCE, "no '{text}': {:#?}", self.heard),
            }
        }
    }

    /// Waits until the command ends. Returns its exit code and all of its output.
    fn ends(mut self) -> (i32, String) {
        assert_eq!(self.says("\0"), None);
        let mut complaint = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        (self.child.wait().unwrap().code().unwrap(), self.heard.join("\n") + &complaint)
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a command again and again until the lock of a killed one has expired. Returns it once it prints `text`.
fn called_again(words: &[&str], urls: &str, text: &str) -> Tool {
    let began = Instant::now();
    loop {
        let mut tool = Tool::start(words, urls);
        if tool.says(text).is_some() {
            return tool;
        }
        let (code, said) = tool.ends();
        assert!(code == 3 && said.contains(UNDER_WAY) && began.elapsed() < PATIENCE, "{code}: {said}");
        clock::sleep(Duration::from_secs(1));
    }
}

/// Runs `test` with all releases of etcd at the same time, each in its own thread, because the tests mostly wait.
fn each_version_at_once(test: impl Fn(&Version, &Path) + Sync) {
    std::thread::scope(|scope| {
        for version in etcd::versions() {
            let test = &test;
            scope.spawn(move || {
                let root = scratch();
                test(&version, root.path());
            });
        }
    });
}

/// Returns the name and role of each member of the cluster, and the leader's name. A member without a name is called
/// `-`.
fn members(urls: &str) -> (Vec<String>, String) {
    let (_, listed) = tandem(&["list"], urls);
    let word = |member: &Value, key: &str| member[key].as_str().unwrap().to_owned();
    let called = |member: &Value| Some(word(member, "name")).filter(|name| !name.is_empty()).unwrap_or("-".to_owned());
    let all = listed["members"].as_array().unwrap();
    let mut roles: Vec<_> = all.iter().map(|member| format!("{} {}", called(member), word(member, "role"))).collect();
    roles.sort();
    let leader = all.iter().find(|member| member["leader"] == true).map(called).unwrap_or_default();
    (roles, leader)
}

fn voters(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("{name} voter")).collect()
}

fn healthy(urls: &str, count: usize) {
    until("every member to be healthy", || {
        let (_, listed) = tandem(&["list"], urls);
        let all = listed["members"].as_array()?.clone();
        (all.len() == count && all.iter().all(|member| member["healthy"] == true)).then_some(())
    });
}

/// Adds a member with `tandem member add`, and starts it with the settings that the command prints.
fn add(etcds: &mut Vec<Etcd>, version: &Version, root: &Path, called: &str) {
    let place = Place::new(version, root, called);
    let new = format!("{called}={}", place.peer_url);
    let mut tool = Tool::start(&["add", &new], &urls(etcds));
    let initial = tool.says("ETCD_INITIAL_CLUSTER=").unwrap();
    let mut told: Vec<_> = initial.trim().trim_start_matches("ETCD_INITIAL_CLUSTER=").split(',').collect();
    let known: Vec<String> = etcds.iter().map(|etcd| format!("{}={}", name(etcd), etcd.place.peer_url)).collect();
    let mut known: Vec<&str> = known.iter().map(String::as_str).chain([new.as_str()]).collect();
    told.sort_unstable();
    known.sort_unstable();
    assert_eq!(told, known);
    assert!(tool.says("ETCD_INITIAL_CLUSTER_STATE=existing").is_some());
    let places: Vec<&Place> = etcds.iter().map(|etcd| &etcd.place).chain([&place]).collect();
    let etcd = place.start(&places, "existing", &[]);
    etcds.push(etcd);
    let (code, said) = tool.ends();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains(&format!("{called} votes")), "{said}");
}

#[test]
fn one_voter_becomes_two_and_three_and_two_again() {
    each_version_at_once(|version, root| {
        let mut etcds = cluster(version, root, 1);
        add(&mut etcds, version, root, "m2");
        healthy(&urls(&etcds), 2);
        add(&mut etcds, version, root, "m3");
        healthy(&urls(&etcds), 3);
        let all = urls(&etcds);
        assert_eq!(members(&all).0, voters(&["m1", "m2", "m3"]));
        let leader = members(&all).1;
        let (code, said) = Tool::start(&["remove", &leader], &all).ends();
        assert!(code == 3 && said.contains("(M4)"), "{said}");
        wrong_input(&all);
        assert_eq!(members(&all), (voters(&["m1", "m2", "m3"]), leader.clone()), "nothing was changed");
        let (code, said) = Tool::start(&["remove", &leader, "--allow-fewer-voters"], &all).ends();
        assert!(code == 0 && said.contains("leadership is handed over to"), "{said}");
        let left: Vec<&str> = ["m1", "m2", "m3"].into_iter().filter(|name| *name != leader).collect();
        etcds.retain(|etcd| name(etcd) != leader);
        healthy(&urls(&etcds), 2);
        assert_eq!(members(&urls(&etcds)).0, voters(&left));
    });
}

/// Asserts that each command with wrong input ends at once, with one sentence.
fn wrong_input(all: &str) {
    for (words, code, why) in [
        (&["remove", "m7"][..], 1, "no member is called 'm7'"),
        (&["promote", "m7"], 1, "no member is called 'm7'"),
        (&["add", "m1=127.0.0.1:9"], 1, "a member is called m1 already"),
        (&["replace", "m1", "--new", "m1=127.0.0.1:9"], 1, "--new has the name or the address of m1"),
        (&["replace", "m7", "--new", "m9=127.0.0.1:9"], 1, "no member is called 'm7'"),
        (&["replace", "m1"], 2, "type 'tandem member replace OLD --new NAME=ADDRESS'"),
        (&["replace", "m1", "--new", "m9=127.0.0.1:9", "--abort"], 2, "--abort"),
        (&["add", "m9"], 2, "it is not NAME=ADDRESS"),
    ] {
        let (ended, said) = Tool::start(words, all).ends();
        assert!(ended == code && said.contains(why), "{words:?}: {ended}: {said}");
    }
    let (code, said) = Tool::start(&["remove", "m1", "--allow-fewer-voters", "--dry-run"], all).ends();
    assert!(code == 0 && said.contains("yes: remove m1 may be done now"), "{said}");
}

#[test]
fn a_replacement_that_is_killed_after_each_step_and_called_again_ends_the_same() {
    each_version_at_once(|version, root| {
        let mut etcds = cluster(version, root, 3);
        let (all, old) = (urls(&etcds), name(&etcds[0]).to_owned());
        let place = Place::new(version, root, "m4");
        let new = format!("m4={}", place.peer_url);
        let words = ["replace", &old, "--new", &new];
        let others: Vec<&str> = ["m1", "m2", "m3"].into_iter().filter(|name| *name != old).collect();
        let with = |more: &[&str]| voters(&[more, &others].concat());
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };

        drop(called_again(&words, &all, "m4 is listed as a learner"));
        assert_eq!(members(&all).0, sorted([with(&[&old]), vec!["- learner".to_owned()]].concat()));
        let places: Vec<&Place> = etcds.iter().map(|etcd| &etcd.place).chain([&place]).collect();
        let etcd = place.start(&places, "existing", &[]);
        drop(called_again(&words, &all, "m4 votes"));
        assert_eq!(members(&all), (sorted(with(&[&old, "m4"])), old.clone()));
        drop(called_again(&words, &all, "leadership is handed over to"));
        let (listed, leader) = members(&all);
        assert!(listed == sorted(with(&[&old, "m4"])) && leader != old, "{leader}");
        drop(called_again(&words, &all, &format!("{old} is removed")));
        etcds.push(etcd);
        let all = urls(&etcds[1..]);
        assert_eq!(members(&all).0, sorted(with(&["m4"])));
        let (code, said) = Tool::start(&words, &all).ends();
        assert!(code == 0 && said.contains("nothing was left to do"), "{said}");
        healthy(&all, 3);
    });
}

/// Asserts that a dead member of five is replaced although the command is killed between the two steps. The dead member
/// is removed first, because etcd itself adds no member next to it.
#[test]
fn a_dead_one_of_five_is_replaced_and_may_be_cut_off_once_it_is_gone() {
    each_version_at_once(|version, root| {
        let mut etcds = cluster(version, root, 5);
        let mut dead = etcds.pop().unwrap();
        dead.kill();
        let (all, old) = (urls(&etcds), name(&dead).to_owned());
        let place = Place::new(version, root, "m6");
        let new = format!("m6={}", place.peer_url);
        let words = ["replace", &old, "--new", &new];
        drop(called_again(&words, &all, &format!("{old} is removed")));
        assert_eq!(members(&all).0.len(), 4, "it goes before its replacement is listed");
        let (code, said) = Tool::start(&["replace", "m7", "--new", &new], &all).ends();
        assert!(code == 1 && said.contains("where it is removed already"), "{said}");
        let (code, said) = Tool::start(&["remove", &old], &all).ends();
        assert!(code == 0 && said.contains("nothing was left to do"), "{said}");
        let tool = called_again(&words, &all, "m6 is listed as a learner");
        let places: Vec<&Place> = etcds.iter().map(|etcd| &etcd.place).chain([&place]).collect();
        let _etcd = place.start(&places, "existing", &[]);
        let (code, said) = tool.ends();
        assert!(code == 0 && said.contains("m6 votes"), "{said}");
    });
}

#[test]
fn of_two_commands_at_once_one_is_refused_and_a_lost_lock_ends_a_change() {
    each_version_at_once(|version, root| {
        let etcds = cluster(version, root, 3);
        let all = urls(&etcds);
        let places = ["m4", "m5"].map(|name| Place::new(version, root, name));
        let words = places.each_ref().map(|place| format!("{}={}", place.name, place.peer_url));
        let mut tools = words.each_ref().map(|new| Tool::start(&["add", new], &all));
        let won = usize::from(tools[0].says("is listed as a learner").is_none());
        let [first, second] = tools;
        let (mut winner, loser) = if won == 0 { (first, second) } else { (second, first) };
        let (code, said) = loser.ends();
        assert!(code == 3 && said.contains("(M9)") && said.contains("'tandem member add m"), "{said}");
        if won == 1 {
            assert!(winner.says("is listed as a learner").is_some());
        }
        assert_eq!(members(&all).0.len(), 4);

        let mut asker = etcds[0].client();
        let key = asker.keys("tandem/member-change/").pop().unwrap();
        let lease = i64::from_str_radix(key.rsplit('/').next().unwrap(), 16).unwrap();
        asker.runtime.block_on(asker.client.lease_revoke(lease)).unwrap();
        let (code, said) = winner.ends();
        assert!(code == 1 && said.contains("the lock of this change was lost"), "{said}");

        // The other holder of the lock may also have it from etcd's own lock service.
        let held = asker.runtime.block_on(asker.client.lock("tandem/member-change", None)).unwrap();
        let learner = &places[won].peer_url;
        let (code, said) = Tool::start(&["remove", learner], &all).ends();
        assert!(code == 3 && said.contains("another program has the lock"), "{said}");
        asker.runtime.block_on(asker.client.unlock(held.key())).unwrap();
        let (code, said) = Tool::start(&["remove", learner], &all).ends();
        assert_eq!(code, 0, "{said}");
        assert_eq!(members(&all).0, voters(&["m1", "m2", "m3"]));
        assert!(asker.keys("tandem/member-change/").is_empty(), "the lock was given back");
    });
}
