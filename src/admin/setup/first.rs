//! The first node's part of `tandem setup`.

use std::cell::RefCell;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use super::told::Told;
use super::{First, Platform, ssh};
use crate::adapters::command::Programs;
use crate::admin::exit::Exit;
use crate::admin::progress::Progress;
use crate::admin::prompt::Prompt;
use crate::admin::report::show;
use crate::admin::voters;
use crate::operate::cluster;
use crate::operate::failure::Failure;
use crate::operate::setup::channel::{self, Call, Patience, by_hand, connect, join_file};
use crate::operate::setup::description::Description;
use crate::operate::setup::drive::{self, Begun, Drive, Refusal, Relay, Shown, Standing, Wish};
use crate::operate::setup::file;
use crate::operate::setup::machine::{Here, Machine};
use crate::operate::setup::node;
use crate::operate::setup::openshift;
use crate::operate::setup::price;
use crate::operate::talk::Progress as _;
use crate::os::clock::{self, Deadline};
use crate::os::output::{complain, say};
use crate::os::regular_file;

/// Longest time to wait for the end of the other node's command, after the last message to it.
const GOOD_BYE: Duration = Duration::from_secs(10);

pub(super) fn run(first: &First) -> Result<Exit, Failure> {
    if first.example && first.write {
        return write_example(&first.file);
    }
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

/// Writes an example description of a cluster to `path`. Fails if a file is already there.
fn write_example(path: &Path) -> Result<Exit, Failure> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure(format!("{} is there already: correct that one, or move it aside first", path.display()))
        }
        _ => Failure(format!("{} cannot be written: {error}", path.display())),
    };
    // The packages create the directory. A binary that was installed by itself does not.
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty() && !directory.exists())
    {
        DirBuilder::new().mode(0o700).create(directory).map_err(failed)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(file::EXAMPLE.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    let path = path.display();
    let typed = if path.to_string() == file::PATH { String::new() } else { format!(" {path}") };
    say(format_args!(
        "{path} is written: fill in names, addresses, BMCs and the image, then type 'tandem setup{typed}'"
    ))?;
    Ok(Exit::Done)
}

/// Completes the description of the cluster from OpenShift's API, and returns the API's answer. Without `--platform openshift`, queries
/// nothing and returns `None`.
fn told_by_the_api(first: &First, description: &mut Description) -> Result<Option<openshift::Asked>, Failure> {
    if first.platform == Platform::Plain {
        return Ok(None);
    }
    let asked = openshift::ask(&first.kubeconfig, description);
    asked.map(Some).map_err(|faults| Failure(faults.join("\ntandem: ")))
}

/// Reads the description of the cluster. Prints its faults and returns `None` if it is invalid.
fn described(first: &First) -> Option<Description> {
    let path = first.file.display();
    let text = match regular_file::text_of_at_most(&first.file, file::LIMIT) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            complain(format_args!(
                "{path} is not there: 'tandem setup --example --write {path}' writes one to be filled in"
            ));
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
        price: Some(price::of(&description)),
        next: None,
    };
    progress.say("looks at this machine");
    let begun = match drive::begin(&programs, &description, &here) {
        Ok(begun) => begun,
        Err(Refusal(faults)) => return Ok(Told { faults, ..told }),
    };
    if needs_the_other(first, &begun) {
        let faults = drive::faults_here(&description, at, &begun.facts, asked.is_some());
        if !faults.is_empty() {
            return Ok(Told { faults, ..told });
        }
    }
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

/// Waits for two voters, and adds the result and the next commands to the report.
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
            told.next = Some(next(&told.node, &told.other));
        }
        _ => told.next = Some("'tandem setup' without --dry-run".to_owned()),
    }
}

/// Returns what the operator should do once there are two voters.
fn next(node: &str, other: &str) -> String {
    format!(
        "'tandem fencing test {other}' proves that it can be fenced, at a time that you choose; then on {other} the same with {node}\n\
         alerts for Prometheus: 'tandem metrics rules' prints them; 'tandem metrics' prints what they are about\n\
         dashboard for Grafana: /usr/share/tandem/grafana/tandem.json"
    )
}

/// Returns the last step of the report, "two voters". In a dry run, the step contains the problems that keep two
/// members from voting. Otherwise, these problems are faults of the whole run.
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
        "two voters: not within {} s; 'tandem status' shows how it continues, and 'tandem setup' may be typed again",
        patience.as_secs()
    )
}

/// Returns whether `tandem setup join` must run on the other node. False if the cluster is already formed, and in a dry run without
/// ssh.
fn needs_the_other(first: &First, begun: &Begun) -> bool {
    !(begun.is_formed || first.dry_run && first.ssh.is_none())
}

type Reached = (Option<Call>, Option<ssh::There>);

/// Connects to `tandem setup join` on the other node. ssh starts that command, or the operator types it. Returns the connection, and
/// the command that ssh runs. Both are `None` if the other node is not needed.
fn reach(
    first: &First,
    programs: &Programs,
    description: &Description,
    at: usize,
    begun: &Begun,
    progress: &Progress,
) -> Result<Reached, Failure> {
    let other = description.nodes[1 - at].name.as_str();
    if begun.is_formed && first.ssh.is_some() {
        progress.keep(&format!("the cluster is there, so nothing is typed on {other}"));
    }
    if !needs_the_other(first, begun) {
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
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_end_names_the_test_of_fencing_the_alerts_and_the_dashboard() {
        let next = next("node1", "node2");
        for words in ["tandem fencing test node2", "tandem metrics rules", "/usr/share/tandem/grafana/tandem.json"] {
            assert!(next.contains(words), "{next}");
        }
    }

    #[test]
    fn an_example_is_written_for_root_alone_and_never_over_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tandem/cluster.toml");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(write_example(&path).map_err(|failure| failure.0), Ok(Exit::Done));
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert!(file::read(&std::fs::read_to_string(&path).unwrap()).is_ok());
        std::fs::write(&path, "mine").unwrap();
        let why = write_example(&path).unwrap_err().0;
        assert!(why.ends_with("is there already: correct that one, or move it aside first"), "{why}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        assert!(write_example(&dir.path().join("a/b/c")).unwrap_err().0.contains("cannot be written"));
    }

    #[test]
    fn a_dry_run_tells_what_it_misses_with_the_step() {
        let missing = Err(vec!["node2's etcd is a learner: wait".to_owned(), "node1 cannot be fenced".to_owned()]);
        let step = two_voters("node1", Some(&missing), true);
        assert_eq!(step.why.as_deref(), Some("node2's etcd is a learner: wait; node1 cannot be fenced"));
        assert_eq!(step.state, Standing::ToDo);
        // Without a dry run, missing voters are a fault, and are printed as one.
        assert_eq!(two_voters("node1", Some(&missing), false).why, None);
        let step = two_voters("node1", Some(&Ok(())), true);
        assert_eq!((step.state, step.why), (Standing::Done, None));
    }
}
