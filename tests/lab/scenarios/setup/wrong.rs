//! Wrong input of operators: each gets a sentence and the right exit code, and nothing changes on either node.

use std::time::Duration;

use super::cases::{CASES, Case};
use super::described::{Described, FILE};
use super::snapshot;
use super::typed::{self, Done, HERE, THERE, Typed};
use super::{on_both, seeded};
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::NODES;
use crate::host::state::Lab;
use crate::sh::Result;

/// The beginning of a command line that runs a program with a wrong clock.
const CLOCK: &str = "env LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1 FAKETIME_DONT_FAKE_MONOTONIC=1";
/// The shell command that cleans a node up after each case. It deletes join files, certificates and etcd's data.
const CLEAN: &str = "rm -rf /etc/tandem/*.join /root/*.join /etc/tandem/pki /var/lib/etcd";

/// Runs `tandem setup` and `tandem setup join` with all wrong inputs, and checks that each is refused.
pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut note = |what: &str, done: Result<()>| {
        count += 1;
        if let Err(error) = done {
            println!("   WRONG {what}: {error}");
            wrong.push(format!("{what}: {error}"));
        }
    };
    for case in CASES {
        note(case.what, of_file_and_machines(lab, case));
    }
    note("data on both nodes", data_on_both(lab));
    for (what, clock, words) in CLOCKS {
        note(what, another_time(lab, clock, words));
    }
    for (what, spoil, words) in JOINS {
        note(what, join_file(lab, *spoil, words));
    }
    note("a join file on the node that wrote it", on_the_wrong_node(lab));
    note("a join file whose command has ended", after_its_end(lab));
    println!("   {count} wrong inputs");
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Checks that `work` changes no file on either node.
fn unchanged(lab: &Lab, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let before = snapshot::exact(lab)?;
    let done = work();
    // A command that was killed while it waited could not clean up.
    let _ = on_both(lab, &["sh", "-c", "rm -f /etc/tandem/*.join /root/*.join"]);
    let difference = snapshot::difference(&before, &snapshot::exact(lab)?);
    done?;
    match difference {
        None => Ok(()),
        Some(difference) => Err(format!("something was changed: {difference}").into()),
    }
}

/// Checks that a refused command ended with `code`, printed each of `words`, and no password.
fn refused(what: &str, done: &Done, code: i32, words: &[&str]) -> Result<()> {
    let said = done.said.trim();
    let last = said.lines().last().unwrap_or_default();
    println!("   {what}: {last}");
    done.must_be(code)?;
    match words.iter().find(|word| !said.contains(**word)) {
        Some(word) => Err(format!("it does not say '{word}': {said}").into()),
        None if said.contains("lab-secret") => Err(format!("it tells the password: {said}").into()),
        None => Ok(()),
    }
}

fn of_file_and_machines(lab: &Lab, case: &Case) -> Result<()> {
    let described = Described::default();
    described.write(lab)?;
    let mut text = described.text(lab);
    for (from, to) in case.file {
        if !text.contains(from) {
            return Err(format!("FILE has no '{from}'").into());
        }
        text = text.replacen(from, to, 1);
    }
    host::put(lab, HERE, FILE, &text)?;
    let prepared = [(HERE, case.here), (THERE, case.there)]
        .into_iter()
        .try_for_each(|(node, script)| host::must(lab, node, &["sh", "-c", script]).map(drop));
    let done = prepared.and_then(|()| {
        unchanged(lab, || {
            let line = format!(
                "tandem setup {} --ssh root@{THERE}",
                if case.file_name.is_empty() { FILE } else { case.file_name }
            );
            refused(case.what, &typed::typed(lab, HERE, &line)?, case.code, case.words)
        })
    });
    for node in NODES {
        host::must(
            lab,
            node,
            &["sh", "-c", &format!("{}; {CLEAN}", if case.undo.is_empty() { "true" } else { case.undo })],
        )?;
    }
    done
}

fn data_on_both(lab: &Lab) -> Result<()> {
    Described::default().write(lab)?;
    for node in NODES {
        seeded::begin(lab, node)?;
    }
    let done = unchanged(lab, || {
        let line = format!("tandem setup {FILE} --ssh root@{THERE}");
        refused("data on both nodes", &typed::typed(lab, HERE, &line)?, 1, &["/var/lib/etcd", "both"])
    });
    on_both(lab, &["sh", "-c", CLEAN])?;
    done
}

/// Wrong clocks of the other node, each with the texts that one of the two commands must print.
const CLOCKS: &[(&str, &str, &[&str])] = &[
    ("a clock that is 30 s ahead", "FAKETIME=+30s", &["clock"]),
    ("a clock that is 5 s behind", "FAKETIME=-5s", &["clock"]),
    ("a join file of yesterday", "FAKETIME=+25h", &["24 h"]),
];

fn another_time(lab: &Lab, clock: &str, words: &[&str]) -> Result<()> {
    Described::default().write(lab)?;
    unchanged(lab, || {
        let mut first = Typed::begin(lab, HERE, &format!("tandem setup {FILE}"))?;
        let content = typed::wait_join_file(lab, &mut first)?;
        typed::carry(lab, &content)?;
        let second = typed::typed(lab, THERE, &format!("{CLOCK} {clock} {}", typed::join_line()))?;
        if !second.said.contains(words[0]) && !first.ended() {
            std::thread::sleep(Duration::from_secs(3));
        }
        let both = if first.ended() { first.done()?.said } else { end(first)? };
        let done = Done { said: format!("{both}{}", second.said), ..second };
        refused(clock, &done, 1, words)
    })
}

fn end(mut first: Typed) -> Result<String> {
    first.kill()?;
    Ok(first.done()?.said)
}

/// A function that damages the contents of a join file on its way to the other node.
type Spoil = fn(&str) -> String;
const JOINS: &[(&str, Spoil, &[&str])] = &[
    ("a join file that was cut", |content| content.chars().take(content.chars().count() / 2).collect(), &["join"]),
    ("an empty join file", |_| String::new(), &["join"]),
    ("something else for a join file", |_| "-----BEGIN CERTIFICATE-----\n".to_owned(), &["join"]),
];

fn join_file(lab: &Lab, spoil: Spoil, words: &[&str]) -> Result<()> {
    Described::default().write(lab)?;
    unchanged(lab, || {
        let mut first = Typed::begin(lab, HERE, &format!("tandem setup {FILE}"))?;
        let content = typed::wait_join_file(lab, &mut first)?;
        typed::carry(lab, &spoil(&content))?;
        let done = typed::typed(lab, THERE, &typed::join_line());
        end(first)?;
        refused("a spoilt join file", &done?, 1, words)
    })
}

fn on_the_wrong_node(lab: &Lab) -> Result<()> {
    Described::default().write(lab)?;
    unchanged(lab, || {
        let mut first = Typed::begin(lab, HERE, &format!("tandem setup {FILE}"))?;
        typed::wait_join_file(lab, &mut first)?;
        // The pid file names the waiting command, so this one is typed without it.
        let (code, said) = host::typed(lab, HERE, &format!("tandem setup join {}", typed::join_file()))?;
        end(first)?;
        let done = Done { code: Some(code), said, took: Duration::ZERO };
        refused("on the node that wrote it", &done, 1, &[THERE.name()])
    })
}

/// Checks that a join file is useless after the first node's command has ended, because the keys are only in that
/// command's memory.
fn after_its_end(lab: &Lab) -> Result<()> {
    Described::default().write(lab)?;
    unchanged(lab, || {
        let mut first = Typed::begin(lab, HERE, &format!("tandem setup {FILE}"))?;
        let content = typed::wait_join_file(lab, &mut first)?;
        end(first)?;
        typed::carry(lab, &content)?;
        let done = typed::typed(lab, THERE, &format!("{} --timeout 5s", typed::join_line()))?;
        refused("after its end", &done, 1, &[HERE.name()])
    })
}
