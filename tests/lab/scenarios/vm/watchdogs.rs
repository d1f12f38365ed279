//! `watchdog-mux` and `fencing-agent`, started by their units, with watchdogs that really reset a machine: `i6300esb` on one
//! virtual machine, `softdog` on the other one.

use std::time::Duration;

use super::machine::{boot_id, booted_anew, order};
use super::neighbours::{self, Neighbours};
use crate::cluster::up::Wish;
use crate::host;
use crate::host::net;
use crate::host::node::{NODES, Node};
use crate::host::state::{self, Lab};
use crate::host::vm::qmp::Resets;
use crate::judge::check::{eventually, must};
use crate::judge::figures;
use crate::sh::{self, Result};

const DRIVERS: [&str; 2] = ["i6300esb", "softdog"];
const MUX: &str = "watchdog-mux";
const AGENT: &str = "fencing-agent";
const MUX_SOCKET: &str = "/run/watchdog-mux.sock";
/// The watchdog time-out of `watchdog-mux`.
const MUX_TIMEOUT: Duration = Duration::from_secs(10);
/// The watchdog time-out of `fencing-agent`.
const AGENT_TIMEOUT: Duration = Duration::from_secs(15);
/// The time for which the group of a `fencing-agent` may lack a majority before its watchdog is no longer fed.
const WINDOW: Duration = Duration::from_secs(3);
/// The interval at which `fencing-agent` feeds its watchdog. A reset may come that much earlier than the time-out.
const AGENT_INTERVAL: Duration = Duration::from_secs(5);
const TOLERANCE: Duration = Duration::from_secs(1);
/// Texts that a unit, or a program that the unit starts, logs if the unit's hardening denies something.
const DENIED: [&str; 5] =
    ["ermission denied", "not permitted", "Read-only file system", "Failed to set up", "Unknown key"];

/// The units with the limits of systemd's exposure score, in tenths. 100 is an unrestricted root.
/// `tests/program/units.rs` checks the same on this machine.
const EXPOSURE: [(&str, u32); 5] =
    [("tandem-collect", 25), ("tandem-certs", 25), ("tandem-lone-boot", 82), (MUX, 36), (AGENT, 36)];

/// A client program of `watchdog-mux`. It reports every 0.2 s, and leaves with `V` when the lab asks it to.
const CLIENT: &str = "import os, socket, time
client = socket.socket(socket.AF_UNIX)
client.connect('/run/watchdog-mux.sock')
while not os.path.exists('/run/lab-leave'):
    client.send(b'\\0')
    time.sleep(0.2)
client.send(b'V')
client.close()
";

/// One of the two virtual machines, with its own watchdog driver.
#[derive(Clone, Copy)]
struct Guest<'a> {
    lab: &'a Lab,
    node: Node,
    driver: &'static str,
}

/// Runs the checks on both virtual machines at the same time, because most of the work is waiting.
pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    exposures(lab)?;
    std::thread::scope(|scope| {
        let guests = NODES
            .into_iter()
            .zip(DRIVERS)
            .map(|(node, driver)| scope.spawn(move || Guest { lab, node, driver }.is_reset_when_it_should()));
        let guests: Vec<_> = guests.collect();
        guests.into_iter().try_for_each(|guest| guest.join().map_err(|_| "a thread panicked")?)
    })
}

/// Checks the exposure scores of the units by the systemd of this Debian release. Other releases' scores differ by a
/// tenth or two.
fn exposures(lab: &Lab) -> Result<()> {
    for (unit, most) in EXPOSURE {
        let (limit, file) = (format!("--threshold={most}"), format!("/usr/lib/systemd/system/{unit}.service"));
        let words = ["systemd-analyze", "security", "--offline=yes", "--no-pager", &limit, &file];
        let done = host::output(lab, NODES[0], &words)?;
        println!("   {}", done.text().lines().last().unwrap_or_default().trim_start_matches("→ "));
        must("a unit may do no more than before", done, |done| done.ok)?;
    }
    Ok(())
}

impl Guest<'_> {
    fn is_reset_when_it_should(self) -> Result<()> {
        self.multiplexer().map_err(|error| format!("{}, {MUX}: {error}", self.node))?;
        let neighbours = Neighbours::start(self.lab, self.node)?;
        let done = self.agent().and_then(|()| self.agent_of_the_multiplexer());
        drop(neighbours);
        done.map_err(|error| {
            format!("{}, {AGENT}: {error}\n{}", self.node, Neighbours::logs(self.lab, self.node)).into()
        })
    }

    /// Checks `watchdog-mux`. A step of the clock, a clean leave and an orderly stop must reset nothing, and a killed
    /// client must cause a reset.
    fn multiplexer(self) -> Result<()> {
        self.start_multiplexer()?;
        self.client()?;
        self.survives_steps_of_the_clock()?;
        self.must(&["touch", "/run/lab-leave"])?;
        eventually("the client has left", || self.clients(), |count| *count == Some(0))?;
        self.lives_on(MUX_TIMEOUT)?;
        self.must(&["systemctl", "stop", MUX])?;
        self.stopped(MUX, MUX_TIMEOUT)?;
        self.must(&["rm", "/run/lab-leave"])?;
        self.must(&["systemctl", "start", MUX])?;
        self.client()?;
        self.reset_within("a client of watchdog-mux is killed", MUX_TIMEOUT, || {
            self.must(&["sh", "-c", "kill -9 $(cat /run/lab-client)"])
        })?;
        self.last_boot_ended_with(MUX, &["feeding ended: ", "closed without V; reset in at most 10 s"])
    }

    /// Sets the wall clock back by an hour, and forward again. A multiplexer that counted by it would not feed after the
    /// first step, and would count its client as silent after the second one.
    fn survives_steps_of_the_clock(self) -> Result<()> {
        for step in ["-1 hour", "+1 hour"] {
            self.must(&["date", &format!("--set={step}")])?;
            self.lives_on(MUX_TIMEOUT)?;
            must("the client is still there", self.clients(), |count| *count == Some(1))?;
        }
        Ok(())
    }

    /// Checks `fencing-agent` with a watchdog device of its own. An orderly stop must reset nothing. A machine that
    /// is cut off must be reset, and the next start must log the reason.
    fn agent(self) -> Result<()> {
        self.only_driver(true)?;
        self.configure("/dev/watchdog")?;
        self.must(&[AGENT, "check"])?;
        self.start_agent()?;
        self.must(&["systemctl", "stop", AGENT])?;
        self.stopped(AGENT, WINDOW + AGENT_TIMEOUT)?;
        self.start_agent()?;
        let took = self.reset_within("fencing-agent is cut off", WINDOW + AGENT_TIMEOUT, || {
            net::set_cluster_cable(self.lab, self.node, false)
        })?;
        must("no reset comes before the window and a time-out", took, |took| {
            *took + AGENT_INTERVAL + TOLERANCE >= WINDOW + AGENT_TIMEOUT
        })?;
        net::set_cluster_cable(self.lab, self.node, true)?;
        self.last_boot_ended_with(AGENT, &["quorum lost: 1 of 3 reachable, 2 needed; reset in at most 15 s"])?;
        self.only_driver(true)?;
        self.start_agent()?;
        self.knows_why("quorum lost: 1 of 3 reachable, 2 needed")?;
        self.must(&["systemctl", "stop", AGENT])?;
        self.must(&["rm", "-f", "/run/lab-leave"])
    }

    /// Checks `fencing-agent` as a client of `watchdog-mux`. Both virtual machines are cut off. On one of them
    /// `fencing-agent` is killed before. Each of these must cause a reset.
    fn agent_of_the_multiplexer(self) -> Result<()> {
        self.configure(MUX_SOCKET)?;
        if self.node == NODES[0] {
            self.start_multiplexer()?;
            self.start_agent()?;
            self.reset_within("fencing-agent, a client of watchdog-mux, is killed", MUX_TIMEOUT, || {
                self.must(&["sh", "-c", "kill -9 $(systemctl show --value --property=MainPID fencing-agent)"])
            })?;
            self.last_boot_ended_with(MUX, &["feeding ended: fencing-agent", "closed without V"])?;
        }
        self.start_multiplexer()?;
        self.start_agent()?;
        self.reset_within("fencing-agent, a client of watchdog-mux, is cut off", WINDOW + MUX_TIMEOUT, || {
            net::set_cluster_cable(self.lab, self.node, false)
        })?;
        net::set_cluster_cable(self.lab, self.node, true)?;
        self.last_boot_ended_with(MUX, &["feeding ended: fencing-agent", "closed without V"])?;
        if self.node == NODES[1] {
            self.start_multiplexer()?;
            self.start_agent()?;
            self.knows_why("quorum lost")?;
            self.reboots_in_order()?;
        }
        Ok(())
    }

    /// Checks a reboot. `fencing-agent` must leave first, so that `watchdog-mux` has no client any more and disarms
    /// the device.
    fn reboots_in_order(self) -> Result<()> {
        let boot = boot_id(self.lab, self.node)?;
        order(self.lab, self.node, "systemctl reboot")?;
        booted_anew(self.lab, self.node, &boot)?;
        self.last_boot_ended_with(AGENT, &["disarmed: "])?;
        self.last_boot_ended_with(MUX, &["client left: fencing-agent"])?;
        self.last_boot_ended_with(MUX, &["disarmed: /dev/watchdog"])
    }

    fn must(self, words: &[&str]) -> Result<()> {
        host::must(self.lab, self.node, words).map(drop)
    }

    fn said(self, words: &[&str]) -> String {
        host::said(self.lab, self.node, words)
    }

    /// Unloads all watchdog drivers. Then loads the one of this virtual machine if `is_loaded` is true.
    fn only_driver(self, is_loaded: bool) -> Result<()> {
        for driver in DRIVERS {
            self.must(&["modprobe", "--remove", driver])?;
        }
        // The kernel removes the directory of watchdogs with the last one.
        let left = self.said(&["sh", "-c", "ls /sys/class/watchdog 2> /dev/null"]);
        must("no watchdog is left", left, |said| said.trim().is_empty())?;
        if is_loaded { self.must(&["modprobe", self.driver]) } else { Ok(()) }
    }

    /// Starts `watchdog-mux` with the driver that its settings file names.
    fn start_multiplexer(self) -> Result<()> {
        self.only_driver(false)?;
        let setting = format!("WATCHDOG_MODULE={}\n", self.driver);
        host::put(self.lab, self.node, "/etc/default/watchdog-mux", &setting)?;
        self.must(&["sync"])?;
        self.must(&["systemctl", "start", MUX])?;
        self.must(&[MUX, "status"])?;
        self.is_denied_nothing(MUX)
    }

    fn client(self) -> Result<()> {
        host::put(self.lab, self.node, "/run/lab-client.py", CLIENT)?;
        let line = "setsid python3 /run/lab-client.py < /dev/null > /dev/null 2>&1 & echo $! > /run/lab-client";
        self.must(&["sh", "-c", line])?;
        eventually("there is a client", || self.clients(), |count| *count == Some(1)).map(drop)
    }

    fn clients(self) -> Option<usize> {
        let status: serde_json::Value = serde_json::from_str(&self.said(&[MUX, "status", "--json"])).ok()?;
        Some(status["clients"].as_array()?.len())
    }

    fn configure(self, device: &str) -> Result<()> {
        let (config, key) = neighbours::own(self.node, device);
        host::put(self.lab, self.node, "/etc/tandem/fencing-agent.toml", &config)?;
        host::put(self.lab, self.node, "/etc/tandem/fencing-agent.key", key)?;
        self.must(&["chmod", "0600", "/etc/tandem/fencing-agent.key"])?;
        self.must(&["sync"])
    }

    /// Starts `fencing-agent` by its unit, and waits until it feeds its device.
    fn start_agent(self) -> Result<()> {
        self.must(&["systemctl", "start", AGENT])?;
        let status = || self.said(&[AGENT, "status", "--json"]);
        let is_fed = |said: &String| {
            let status: serde_json::Value = serde_json::from_str(said).unwrap_or_default();
            status["armed"] == true && status["fed"] == true
        };
        eventually("it is armed and fed", status, is_fed)?;
        self.is_denied_nothing(AGENT)
    }

    /// Checks that the watchdog device is inactive after an orderly stop of `unit`, and that no reset follows within
    /// `time`.
    fn stopped(self, unit: &str, time: Duration) -> Result<()> {
        let state = self.said(&["cat", "/sys/class/watchdog/watchdog0/state"]);
        must("the device was disarmed", state, |state| state.trim() == "inactive")?;
        let result = self.said(&["systemctl", "show", "--value", "--property=Result", unit]);
        must("the unit ended well", result, |result| result.trim() == "success")?;
        self.is_denied_nothing(unit)?;
        self.lives_on(time)
    }

    /// Checks that the virtual machine is not reset within `time` and a little more.
    fn lives_on(self, time: Duration) -> Result<()> {
        let boot = boot_id(self.lab, self.node)?;
        std::thread::sleep(time + 2 * TOLERANCE);
        must("it was not reset", boot_id(self.lab, self.node)?, |now| *now == boot).map(drop)
    }

    /// Causes a failure by `strike`, and waits for the virtual machine's reset and the boot after it. Returns the
    /// longest time that can have passed from the failure to the reset.
    fn reset_within(self, what: &str, limit: Duration, strike: impl FnOnce() -> Result<()>) -> Result<Duration> {
        let boot = boot_id(self.lab, self.node)?;
        let mut resets = Resets::of(self.lab, self.node)?;
        let before = state::since_epoch();
        strike()?;
        let after = state::since_epoch();
        self.lab.event(&format!("{}: {what}", self.node));
        let reset = resets.next(sh::patience(limit))?;
        let took = reset.saturating_sub(before);
        figures::print(format!("{}: {what}: reset after {:.1} s", self.driver, took.as_secs_f64()));
        must("the reset came in time", reset.saturating_sub(after), |took| *took <= limit + TOLERANCE)?;
        booted_anew(self.lab, self.node, &boot)?;
        Ok(took)
    }

    /// Checks the journal of the boot that a reset ended. One line of `program` must contain all `words`.
    fn last_boot_ended_with(self, program: &str, words: &[&str]) -> Result<()> {
        let words_of_journal = ["journalctl", "--boot=-1", "--no-pager", "--quiet", "-t", program];
        let has_line = |said: &String| said.lines().any(|line| words.iter().all(|word| line.contains(word)));
        must("the reason was on disk before the reset", self.said(&words_of_journal), has_line).map(drop)
    }

    fn knows_why(self, reason: &str) -> Result<()> {
        let journal = self.said(&["journalctl", "--boot", "--no-pager", "--quiet", "-t", AGENT]);
        let line = format!("last boot ended unfed: {reason}");
        must("the next start reports why", journal, |said| said.contains(&line)).map(drop)
    }

    /// Checks that a unit's own hardening denies nothing to it, or to programs that it starts.
    fn is_denied_nothing(self, unit: &str) -> Result<()> {
        is_denied_nothing(self.lab, self.node, unit)
    }
}

/// Checks that a unit's messages since the boot show no denial by its own hardening.
pub(super) fn is_denied_nothing(lab: &Lab, node: Node, unit: &str) -> Result<()> {
    let words = ["journalctl", "--boot", "--no-pager", "--quiet", "--unit", unit];
    let journal = host::must(lab, node, &words)?;
    must(&format!("{unit} is denied nothing"), journal, |said| !DENIED.iter().any(|words| said.contains(words)))?;
    Ok(())
}
