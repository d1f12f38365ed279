//! The first node's command.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use super::told::Told;
use super::{First, Platform, ssh, voters};
use crate::adapters::command::Programs;
use crate::admin::exit::Exit;
use crate::admin::progress::Progress;
use crate::admin::prompt::Prompt;
use crate::admin::report::show;
use crate::operate::cluster;
use crate::operate::failure::Failure;
use crate::operate::setup::channel::{self, Call, Patience, by_hand, connect, join_file};
use crate::operate::setup::description::Description;
use crate::operate::setup::drive::{self, Begun, Drive, Refusal, Relay, Shown, Standing, Wish};
use crate::operate::setup::file;
use crate::operate::setup::machine::{Here, Machine};
use crate::operate::setup::node;
use crate::operate::setup::openshift;
use crate::operate::talk::Progress as _;
use crate::os::clock::{self, Deadline};
use crate::os::output::{complain, say};
use crate::os::regular_file;

/// For the other node's last words.
const GOOD_BYE: Duration = Duration::from_secs(10);

pub(super) fn run(first: &First) -> Result<Exit, Failure> {
    if first.example {
        say(file::EXAMPLE.trim_end())?;
        return Ok(Exit::Done);
    }
    let Some(mut description) = described(first) else { return Ok(Exit::Usage) };
    cluster::must_be_root()?;
    let asked = told_by_the_api(first, &mut description)?;
    let Some(at) = node::is_described(&description) else {
        let names = description.nodes.each_ref().map(|node| format!("{} ({})", node.name, node.address));
        return Err(Failure(format!(
            "this machine is neither {}: type it on one of them, or correct {}",
            names.join(" nor "),
            first.file.display()
        )));
    };
    let progress = Progress::new();
    let told = told(first, description, at, asked, &progress);
    progress.end();
    show(&told?, first.form)
}

/// What OpenShift's API tells, where its operator's words are wanted.
fn told_by_the_api(first: &First, description: &mut Description) -> Result<Option<openshift::Asked>, Failure> {
    if first.platform == Platform::Plain {
        return Ok(None);
    }
    let asked = openshift::ask(&first.kubeconfig, description);
    asked.map(Some).map_err(|faults| Failure(faults.join("\ntandem: ")))
}

/// The description; none where it is wrong, which was said.
fn described(first: &First) -> Option<Description> {
    let path = first.file.display();
    let text = match regular_file::text_of_at_most(&first.file, file::LIMIT) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            complain(format_args!("{path} is not there: 'tandem setup --example > {path}' writes one to be filled in"));
            return None;
        }
        Err(error) => {
            complain(format_args!("{path} cannot be read: {error}: 'tandem setup --example' prints one that can"));
            return None;
        }
    };
    let faults = match file::read(&text) {
        Ok(description) => return Some(description),
        Err(faults) => faults,
    };
    for fault in faults {
        complain(format_args!("{path}:{fault}"));
    }
    None
}

fn told(
    first: &First,
    description: Description,
    at: usize,
    asked: Option<openshift::Asked>,
    progress: &Progress,
) -> Result<Told, Failure> {
    let programs = Programs::default();
    let [node, other] = [at, 1 - at].map(|at| description.nodes[at].name.clone());
    let here = Here::new(programs.clone(), description.clone(), at, first.dry_run);
    let mut told = Told {
        node: node.clone(),
        other: other.clone(),
        dry_run: first.dry_run,
        redundant: None,
        steps: Vec::new(),
        warnings: Vec::new(),
        faults: Vec::new(),
        next: None,
    };
    progress.say("looks at this machine");
    let begun = match drive::begin(&programs, &description, &here) {
        Ok(begun) => begun,
        Err(Refusal(faults)) => return Ok(Told { faults, ..told }),
    };
    let (call, there) = reach(first, &programs, &description, at, &begun, progress)?;
    let warnings = RefCell::default();
    let prompt = Prompt::new(&first.answers, first.form);
    let talk = Relay { progress, operator: &prompt, call: call.as_ref(), warnings: &warnings };
    let wish = Wish { is_dry: first.dry_run, changes: first.change };
    let driven = Drive::new(&programs, description, at, &here, wish, &talk)
        .of_openshift(asked)
        .run(&begun, call.as_ref().map(|call| call as &dyn Machine));
    match driven {
        Ok(steps) => {
            told.steps = steps;
            last(&mut told, first, progress);
        }
        Err((Refusal(faults), steps)) => (told.faults, told.steps) = (faults, steps),
    }
    told.warnings = warnings.into_inner();
    if let Some(call) = call {
        let is_well = told.faults.is_empty();
        let text = if is_well { "two voters".to_owned() } else { format!("see what it says on {node}") };
        call.end(is_well, &text);
    }
    if let Some(there) = there {
        there.wait(GOOD_BYE);
    }
    Ok(told)
}

/// Two voters, and what to type then.
fn last(told: &mut Told, first: &First, progress: &Progress) {
    let patience = if first.dry_run { voters::A_LOOK } else { voters::PATIENCE };
    progress.say("waits for two voters");
    let is_made =
        told.steps.iter().all(|step| matches!(step.state, Standing::Done | Standing::Made | Standing::Differs));
    let found = if first.dry_run && !is_made { None } else { Some(voters::wait(patience)) };
    told.redundant = found.as_ref().map(Result::is_ok);
    told.steps.push(two_voters(&told.node, found.as_ref(), first.dry_run));
    match found {
        Some(Err(why)) if !first.dry_run => {
            told.faults.push(not_yet(patience));
            told.faults.extend(why);
        }
        Some(Ok(())) => {
            told.next = Some(format!(
                "'tandem fencing test {}' proves that it can be fenced, at a time that you choose; then on {} the same with {}",
                told.other, told.other, told.node
            ));
        }
        _ => told.next = Some("'tandem setup' without --dry-run".to_owned()),
    }
}

/// What a dry run misses is told with the step; otherwise it is a fault.
fn two_voters(node: &str, found: Option<&Result<(), Vec<String>>>, is_dry: bool) -> Shown {
    let missed = found.and_then(|found| found.as_ref().err()).filter(|_| is_dry);
    Shown {
        id: "voters".to_owned(),
        title: "two voters".to_owned(),
        on: node.to_owned(),
        state: if matches!(found, Some(Ok(()))) { Standing::Done } else { Standing::ToDo },
        commands: vec!["tandem status --wait-for redundant".to_owned()],
        differences: Vec::new(),
        why: missed.map(|missed| missed.join("; ")),
    }
}

fn not_yet(patience: Duration) -> String {
    format!(
        "two voters: not within {} s; 'tandem status' says how it goes on, and 'tandem setup' may be typed again",
        patience.as_secs()
    )
}

type Reached = (Option<Call>, Option<ssh::There>);

/// The other node, where it has to be asked: its command runs there, or somebody types it.
fn reach(
    first: &First,
    programs: &Programs,
    description: &Description,
    at: usize,
    begun: &Begun,
    progress: &Progress,
) -> Result<Reached, Failure> {
    let other = description.nodes[1 - at].name.as_str();
    if begun.is_formed {
        if first.ssh.is_some() {
            progress.keep(&format!("the cluster is there, so nothing is typed on {other}"));
        }
        return Ok((None, None));
    }
    if first.dry_run && first.ssh.is_none() {
        return Ok((None, None));
    }
    let (join, credentials) = join_file::make(description, at, first.dry_run, clock::wall_seconds())?;
    let address = SocketAddr::new(description.nodes[1 - at].address, channel::port(description));
    match &first.ssh {
        Some(target) => {
            progress.say(&format!("types 'tandem setup join' on {target}"));
            let there = ssh::begin(programs, target, &join.text()?, first.timeout);
            let patience = Patience { leftover: Patience::LEFTOVER, ..Patience::default() };
            let end = Deadline::after(first.timeout);
            let call = connect(other, address, &credentials, patience, end, || there.still())?;
            Ok((Some(call), Some(there)))
        }
        None => Ok((Some(by_hand(&join, other, address, &credentials, first.timeout, progress)?), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_tells_what_it_misses_with_the_step() {
        let missing = Err(vec!["node2's etcd is a learner: wait".to_owned(), "node1 cannot be fenced".to_owned()]);
        let step = two_voters("node1", Some(&missing), true);
        assert_eq!(step.why.as_deref(), Some("node2's etcd is a learner: wait; node1 cannot be fenced"));
        assert_eq!(step.state, Standing::ToDo);
        // Elsewhere it is a fault, and told as one.
        assert_eq!(two_voters("node1", Some(&missing), false).why, None);
        let step = two_voters("node1", Some(&Ok(())), true);
        assert_eq!((step.state, step.why), (Standing::Done, None));
    }
}
