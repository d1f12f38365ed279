//! The figures of the bench, their targets, and the printed table.

use std::collections::BTreeMap;

use super::Contestant;

/// A quantity that the bench measures. The variants are in the order of the printed table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Figure {
    CutToWrite,
    CutToLost,
    CutToBmc,
    CutToFenced,
    FencedToWrite,
    CutReturn,
    HungToWrite,
    HungToLost,
    HungToBmc,
    HungToFenced,
    KilledToWrite,
    KilledToVoters,
    StopGap,
    StopReturn,
    UpgradeGap,
    ImageGap,
    BothToWrite,
    MonitorPrograms,
    MonitorCpu,
    ShortMonitorCpu,
    Lost,
    Failed,
    Load,
}

const FIGURES: [Figure; 23] = [
    Figure::CutToWrite,
    Figure::CutToLost,
    Figure::CutToBmc,
    Figure::CutToFenced,
    Figure::FencedToWrite,
    Figure::CutReturn,
    Figure::HungToWrite,
    Figure::HungToLost,
    Figure::HungToBmc,
    Figure::HungToFenced,
    Figure::KilledToWrite,
    Figure::KilledToVoters,
    Figure::StopGap,
    Figure::StopReturn,
    Figure::UpgradeGap,
    Figure::ImageGap,
    Figure::BothToWrite,
    Figure::MonitorPrograms,
    Figure::MonitorCpu,
    Figure::ShortMonitorCpu,
    Figure::Lost,
    Figure::Failed,
    Figure::Load,
];

/// The target for the time from a power cut to the first write. It is a fifth of the 114 s that the shell agent took. The targets for CPU
/// time derive in a similar way from the 410 ms that the shell agent's `monitor` took.
pub(super) const LOSS_TO_WRITE_S: f64 = 114.0 / 5.0;
const MONITOR_CPU_MS: f64 = 410.0 / 15.0;

impl Figure {
    fn name(self) -> &'static str {
        match self {
            Self::CutToWrite => "power cut of a node: to the next acknowledged write, s",
            Self::HungToWrite => "a node hangs, its BMC says On: to the next acknowledged write, s",
            Self::CutToLost | Self::HungToLost => "    until Pacemaker counts it as lost, s",
            Self::CutToBmc | Self::HungToBmc => "    until its BMC is asked, s",
            Self::CutToFenced | Self::HungToFenced => "    until fencing is confirmed, s",
            Self::FencedToWrite => "    of which after fencing was confirmed, s",
            Self::KilledToWrite => "etcd killed: to the next acknowledged write, s",
            Self::KilledToVoters => "    to two voters again, s",
            Self::StopGap => "graceful stop of a node: longest gap in the writes, s",
            Self::UpgradeGap => "another image by 'tandem upgrade': longest gap, s",
            Self::ImageGap => "    by 'pcs resource' on both at once: longest gap, s",
            Self::CutReturn | Self::StopReturn => "    its return: agent's start to two voters, s",
            Self::BothToWrite => "both cut, both on: later agent's start to first write, s",
            Self::MonitorPrograms => "monitor: programs executed",
            Self::MonitorCpu => "monitor: CPU time, ms",
            Self::ShortMonitorCpu => "    soon after another one, ms",
            Self::Lost => "acknowledged writes lost, all runs",
            Self::Failed => "runs that did not come back",
            Self::Load => "the machine's load after each run",
        }
    }

    /// Returns the target for the median of all runs. `None` if the figure has no target.
    fn target(self) -> Option<f64> {
        Some(match self {
            Self::FencedToWrite => 0.6,
            Self::KilledToWrite | Self::BothToWrite | Self::MonitorPrograms => 3.0,
            Self::CutReturn | Self::StopReturn => 10.0,
            Self::StopGap | Self::UpgradeGap => 0.5,
            Self::MonitorCpu => MONITOR_CPU_MS,
            Self::Lost | Self::Failed => 0.0,
            Self::ShortMonitorCpu => MONITOR_CPU_MS / 5.0,
            // Their targets depend on the token and the race: see [`Sheet::target`].
            Self::CutToWrite
            | Self::HungToWrite
            | Self::CutToLost
            | Self::CutToBmc
            | Self::CutToFenced
            | Self::HungToLost
            | Self::HungToBmc
            | Self::HungToFenced
            | Self::KilledToVoters
            | Self::ImageGap
            | Self::Load => return None,
        })
    }

    /// Returns the largest value that any single run may have. `None` if the target of the median is the only limit.
    fn most(self) -> Option<f64> {
        (self == Self::FencedToWrite).then_some(1.0)
    }

    fn decimals(self) -> usize {
        match self {
            Self::MonitorPrograms | Self::Lost | Self::Failed => 0,
            Self::StopGap | Self::UpgradeGap | Self::FencedToWrite => 2,
            _ => 1,
        }
    }

    /// Returns whether the table shows the sum over all runs. The other figures show the median.
    fn is_sum(self) -> bool {
        matches!(self, Self::Lost | Self::Failed)
    }
}

/// The figures of one agent, with the value that each run measured.
pub(super) struct Sheet {
    pub(super) of: Contestant,
    values: BTreeMap<Figure, Vec<f64>>,
    /// The figures that were added since the last call of [`Self::newest`].
    newest: Vec<Figure>,
    /// The target for the whole outage after the loss of a node, in seconds.
    loss_target: f64,
}

impl Sheet {
    pub(super) fn new(of: Contestant, loss_target: f64) -> Self {
        Self { of, values: BTreeMap::new(), newest: Vec::new(), loss_target }
    }

    fn target(&self, figure: Figure) -> Option<f64> {
        match figure {
            Figure::CutToWrite | Figure::HungToWrite => Some(self.loss_target),
            other => other.target(),
        }
    }

    pub(super) fn add(&mut self, figure: Figure, value: f64) {
        self.values.entry(figure).or_default().push(value);
        self.newest.push(figure);
    }

    /// Adds an infinite time for `figure`, because the event did not occur within the time that the bench waits.
    pub(super) fn add_never(&mut self, figure: Figure) {
        self.add(figure, f64::INFINITY);
    }

    /// Returns the figures added since this function was last called, as text.
    pub(super) fn newest(&mut self) -> String {
        let last = |figure: &Figure| self.values.get(figure).and_then(|values| values.last()).copied().unwrap_or(0.0);
        let words: Vec<String> = self.newest.iter().map(|figure| format!("{figure:?} {:.2}", last(figure))).collect();
        self.newest.clear();
        words.join(", ")
    }

    fn value(&self, figure: Figure) -> Option<f64> {
        let values = self.values.get(&figure);
        if figure.is_sum() {
            return Some(values.map_or(0.0, |values| values.iter().sum()));
        }
        let mut values = values?.clone();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    fn cell(&self, figure: Figure) -> String {
        let Some(value) = self.value(figure) else { return "-".to_owned() };
        let digits = figure.decimals();
        if figure.is_sum() {
            return format!("{value:.digits$}");
        }
        let values = self.values.get(&figure).map(Vec::as_slice).unwrap_or_default();
        let never = values.iter().filter(|value| value.is_infinite()).count();
        if value.is_infinite() {
            return format!("no, {never} of {} runs", values.len());
        }
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        // A run without this event has no figure, and is shown as the greatest one.
        let most = if never > 0 { "never".to_owned() } else { format!("{most:.digits$}") };
        format!("{value:.digits$} ({least:.digits$}-{most})")
    }

    fn misses(&self, figure: Figure) -> bool {
        let most = self.values.get(&figure).into_iter().flatten().copied().fold(0.0, f64::max);
        figure.most().is_some_and(|limit| most > limit)
            || self.value(figure).zip(self.target(figure)).is_some_and(|(value, target)| value > target)
    }

    /// Returns the number of figures that miss their target.
    pub(super) fn missed(&self) -> usize {
        FIGURES.iter().filter(|figure| self.misses(**figure)).count()
    }
}

/// Prints the median, the least and the greatest value of each figure for each agent, next to the target.
pub(super) fn print(sheets: &[Sheet]) {
    let heads: Vec<String> = sheets.iter().map(|sheet| format!("{:>22}", sheet.of.word())).collect();
    println!();
    println!("  {:<58}{}{:>9}", "median (least-most)", heads.concat(), "target");
    for figure in FIGURES {
        let cells: Vec<String> = sheets.iter().map(|sheet| format!("{:>22}", sheet.cell(figure))).collect();
        let tandem = sheets.iter().find(|sheet| sheet.of == Contestant::VoteProxy);
        let missed = if tandem.is_some_and(|sheet| sheet.misses(figure)) { "  MISSED" } else { "" };
        let target = sheets
            .first()
            .and_then(|sheet| sheet.target(figure))
            .map_or_else(String::new, |target| format!("<= {target:.*}", usize::from(target.fract() > 0.0)));
        println!("  {:<58}{}{target:>9}{missed}", figure.name(), cells.concat());
    }
    println!();
}
