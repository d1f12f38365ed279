//! Several labs at once, each with a part of the scenarios. Each lab is a process of its own, as some of what a lab is
//! called holds for a whole process.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::host;
use crate::interrupt;
use crate::report::Report;
use crate::sh::Result;
use crate::state::Lab;
use crate::up::Wish;

/// What the first line of a scenario begins with, and its last one.
const BEGINS: &str = "== ";
const ENDS: &str = "-- ";

/// One of the labs.
struct Part {
    lab: String,
    child: Child,
    report: PathBuf,
}

/// Runs the scenarios in that many labs. Each takes every other one (every third, and so on), so that they have about as
/// much to do; it keeps their order, and hands its lab on as a run in one lab does.
pub fn run(lab: &Lab, wish: Wish, names: &[&str], jobs: usize) -> Result<Report> {
    let dir = std::env::temp_dir().join(format!("tandem-lab-{}-{}", lab.name, std::process::id()));
    crate::sh::make_dir(&dir)?;
    let done = in_dir(lab, wish, names, jobs, &dir);
    let _ = std::fs::remove_dir_all(&dir);
    done
}

fn in_dir(lab: &Lab, wish: Wish, names: &[&str], jobs: usize, dir: &Path) -> Result<Report> {
    let (say, said) = mpsc::channel();
    let mut parts = Vec::new();
    for number in 0..jobs {
        let of_part: Vec<&str> = names.iter().skip(number).step_by(jobs).copied().collect();
        let part =
            Lab::named(&format!("{}-{}", lab.name, number + 1)).and_then(|lab| begin(&lab, wish, &of_part, dir, &say));
        match part {
            Ok(part) => parts.push(part),
            Err(error) => {
                end(&parts);
                show(&said, say, &mut parts);
                return Err(error);
            }
        }
    }
    show(&said, say, &mut parts);
    interrupt::check()?;
    let mut reports = Vec::new();
    for mut part in parts {
        let status = part.child.wait()?;
        reports.push(Report::load(&part.report).unwrap_or_else(|_| Report {
            besides: vec![format!("lab {} ended without a report: {status}", part.lab)],
            ..Report::default()
        }));
    }
    Ok(Report::join(reports, names))
}

/// Starts a lab of its own; what it prints comes through `say`, a scenario as a whole.
fn begin(lab: &Lab, wish: Wish, names: &[&str], dir: &Path, say: &Sender<Vec<String>>) -> Result<Part> {
    let report = dir.join(&lab.name);
    let mut command = Command::new("/proc/self/exe");
    if wish.hosts == host::Kind::Vm {
        command.arg("--vm");
    }
    command.args(["--name", &lab.name, "run", "--etcd", wish.etcd.number(), "--clone", wish.clone.word()]);
    command.args(["--release", wish.release.number(), "--boot-delay", &wish.boot_delay.to_string()]);
    if wish.restarts {
        command.arg("--restart");
    }
    command.arg("--report").arg(&report).args(names);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let lines = BufReader::new(child.stdout.take().ok_or("a lab without output")?).lines();
    let (say, name) = (say.clone(), lab.name.clone());
    std::thread::spawn(move || {
        let mut block = Vec::new();
        for line in lines.map_while(std::result::Result::ok) {
            if let Some(what) = line.strip_prefix(BEGINS) {
                let scenario = what.split(':').next().unwrap_or_default();
                let _ = say.send(vec![format!(".. {scenario} begins in lab {name}")]);
            }
            let is_last = line.starts_with(ENDS);
            block.push(line);
            if is_last {
                let _ = say.send(std::mem::take(&mut block));
            }
        }
        let _ = say.send(block);
    });
    Ok(Part { lab: lab.name.clone(), child, report })
}

/// Prints what the labs say until all of them have ended. Ctrl-C reaches them with the terminal; any other signal for the
/// lab's end is handed on.
fn show(said: &Receiver<Vec<String>>, say: Sender<Vec<String>>, parts: &mut [Part]) {
    drop(say);
    let mut told = false;
    loop {
        match said.recv_timeout(Duration::from_millis(300)) {
            Ok(block) => block.iter().for_each(|line| println!("{line}")),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        if interrupt::seen() && !told {
            end(parts);
            told = true;
        }
    }
    for part in parts {
        let _ = part.child.wait();
    }
}

fn end(parts: &[Part]) {
    for part in parts {
        if let Ok(pid) = i32::try_from(part.child.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
    }
}
