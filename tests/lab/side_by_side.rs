//! Several labs in parallel, each with a part of the scenarios. Each lab is a process of its own, because some of a
//! lab's names are settings of the whole process.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cluster::up::Wish;
use crate::host;
use crate::host::state::Lab;
use crate::interrupt;
use crate::judge::report::Report;
use crate::sh::Result;

/// The beginnings of a scenario's first and last line.
const BEGINS: &str = "== ";
const ENDS: &str = "-- ";

/// A running lab, and its part of the scenarios.
struct Part {
    lab: String,
    child: Child,
    report: PathBuf,
}

/// Runs the scenarios in that many labs. Each takes every second one (or third, and so on), so that all have about as
/// much to do. It keeps their order, and passes its lab from one scenario to the next, as a run in one lab does.
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

/// Starts a lab of its own. Its output comes through `say`, a whole scenario at once.
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

/// Prints the labs' output until all of them have ended. Ctrl-C reaches them through the terminal; any other end signal
/// is passed on.
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
