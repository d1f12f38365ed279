//! Faults that a seed chooses, one after the other, and their end.

use std::time::Duration;

use super::judge::name_of;
use super::machine::Device;
use super::world::{BOOT, Happening, World};

/// The time from the end of a fault to the next fault. In this time every machine can boot, is fed, and is checked.
const PAUSE: Duration = BOOT.saturating_add(Duration::from_secs(25));

impl World {
    /// Begins a random fault, and schedules its end and the next fault.
    pub(super) fn begin_fault(&mut self) {
        let count = self.options.members;
        let spare = count - (count / 2 + 1);
        let one = self.random.below(count);
        let mut lasts = self.random.between(Duration::from_secs(5), Duration::from_secs(25));
        match self.random.below(9) {
            0 | 1 => {
                let some = self.some(1 + self.random.clone().below(spare));
                self.cut(&some, "a minority is cut off");
            }
            2 if count >= 4 && count.is_multiple_of(2) => {
                let half = self.some(count / 2);
                let reach = self.random.below(4);
                for at in 0..count {
                    let is_first = half.contains(&at);
                    let has_api = (is_first && reach & 1 == 1) || (!is_first && reach & 2 == 2);
                    self.judge.no_api[at] = (!has_api).then_some(self.now);
                }
                self.cut(&half, &format!("two halves, the API server on sides {reach:02b}"));
            }
            3 => {
                self.fault = format!("{} is frozen", name_of(one));
                lasts = Duration::from_secs(3);
                self.machines[one].is_frozen = true;
                self.machines[one].silent_since = Some(self.now);
            }
            4 => {
                self.fault = format!("the agent of {} is killed and starts again", name_of(one));
                self.after(Duration::ZERO, Happening::Kill { at: one });
                self.after(Duration::from_secs(1), Happening::Start { at: one });
            }
            5 => {
                lasts = Duration::from_secs(40);
                self.cut(&[one], "one is cut off, and its agent starts again and again");
                for time in 0..13 {
                    let at = Duration::from_secs(2 + 3 * time);
                    self.after(at, Happening::Kill { at: one });
                    self.after(at + Duration::from_secs(1), Happening::Start { at: one });
                }
            }
            6 => {
                self.fault = format!("{} leaves in order and starts again", name_of(one));
                self.after(Duration::ZERO, Happening::Terminate { at: one });
                self.after(Duration::from_secs(4), Happening::Start { at: one });
                self.after(Duration::from_secs(5) + self.options.delay * 4, Happening::SeesAll);
            }
            7 => {
                lasts = Duration::from_secs(30);
                self.cut(&[one], "one is cut off, and asked to end");
                self.after(self.judge.timing.window + Duration::from_secs(1), Happening::Terminate { at: one });
            }
            _ => {
                self.fault = format!("the links of {} lose most", name_of(one));
                self.judge.lossy = Some(one);
                lasts = Duration::from_secs(60);
            }
        }
        self.log(&format!("fault: {}", self.fault));
        self.settle();
        self.after(lasts, Happening::Undo);
        self.after(lasts + PAUSE, Happening::Fault);
    }

    /// Chooses `wanted` different machines at random.
    fn some(&mut self, wanted: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.options.members).collect();
        (0..wanted).map(|_| all.swap_remove(self.random.below(all.len()))).collect()
    }

    /// Cuts the machines `some` off from all others, and sets their wall clocks back. `what` describes the fault in the
    /// log.
    fn cut(&mut self, some: &[usize], what: &str) {
        let count = self.options.members;
        for at in 0..count {
            for other in (0..count).filter(|other| some.contains(&at) != some.contains(other)) {
                self.judge.cut[at][other] = Some(self.now);
            }
        }
        for at in some {
            self.machines[*at].set_back += Duration::from_secs(60);
        }
        let names: Vec<String> = some.iter().map(|at| name_of(*at)).collect();
        self.fault = format!("{what}: {}", names.join(", "));
        let left = (0..count).map(|at| if some.contains(&at) { 0 } else { some.len() }).collect();
        self.cut_at = (some.len() < count / 2 + count % 2).then_some((self.now, left));
    }

    /// Ends the current fault. Starts the agents that the fault had stopped.
    pub(super) fn end_fault(&mut self) {
        self.log("the fault ends");
        self.judge.lossy = None;
        self.judge.cut.iter_mut().flatten().for_each(|cut| *cut = None);
        self.judge.no_api.fill(None);
        for machine in self.machines.iter_mut().filter(|machine| machine.is_frozen) {
            machine.is_frozen = false;
            machine.silent_since = None;
        }
        self.cut_at = None;
        self.settle();
        self.after(Duration::from_secs(1) + self.options.delay * 4, Happening::SeesAll);
        // These agents ended in order while their machine was cut off, or a crash loop left them down.
        for at in 0..self.options.members {
            if self.machines[at].agent.is_none() && self.machines[at].device == Device::Closed {
                self.after(BOOT, Happening::Start { at });
            }
        }
    }

    /// Counts a `LEFT` event that machine `at` published after a cut. When the machine has published the last expected one, records how
    /// long that took.
    pub(super) fn note_left(&mut self, at: usize) {
        let Some((cut, open)) = &mut self.cut_at else { return };
        if open[at] > 0 {
            open[at] -= 1;
            if open[at] == 0 {
                self.outcome.slowest_left = self.outcome.slowest_left.max(self.now.saturating_sub(*cut));
            }
        }
    }

    /// Asserts that the running machines see each other unless they are cut off. Under loss it asserts nothing, because the network may
    /// then take longer than `fencing-agent` promises.
    pub(super) fn sees_all(&mut self) -> Result<(), String> {
        if self.options.loss > 0 || self.judge.lossy.is_some() {
            return Ok(());
        }
        let is_up = |at: &usize| self.machines[*at].answers();
        let up: Vec<usize> = (0..self.options.members).filter(is_up).collect();
        for at in &up {
            let clock = self.machines[*at].clock(self.now, self.options.mutant);
            let Some(agent) = &self.machines[*at].agent else { continue };
            let members = agent.snapshot(clock).members;
            for other in up.iter().filter(|other| *other != at && self.judge.cut[*at][**other].is_none()) {
                let is_seen =
                    members.iter().any(|member| member.name == self.names[*other] && member.state.is_present());
                if !is_seen {
                    return Err(format!("{} does not see {}, which is there since 1 s", name_of(*at), name_of(*other)));
                }
            }
        }
        Ok(())
    }
}
