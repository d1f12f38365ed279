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

/// The text with which the first line of a scenario's output begins. The last line begins with [`ENDS`].
const BEGINS: &str = "== ";
const ENDS: &str = "-- ";

/// One of several labs that run at the same time, with the process that runs its share of the scenarios.
struct Part {
    lab: String,
    child: Child,
    report: PathBuf,
}

/// Runs the scenarios in `jobs` labs at the same time. With two labs, each lab takes every second scenario, and with
/// three labs every third one, so that all labs have about as much to do. A lab keeps its scenarios' order, and
/// passes its hosts from one scenario to the next.
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

/// Starts a process that runs the scenarios `names` in `lab`. It sends its output through `say`, one whole scenario
/// at a time.
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

/// Prints the labs' output until all of them have ended. Ctrl-C reaches the labs' processes through the terminal. The
/// lab passes any other end signal on to them.
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
