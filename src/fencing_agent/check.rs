//! `fencing-agent check` explains the configuration without opening a device.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use super::config::refusal::Refusal;
use super::config::{Config, key};
use super::core::{NetworkRule, OnQuorumLoss, Timing};
use super::shell::feeder::{is_socket, mux_timeout};
use super::shell::network::own_interfaces;
use super::shell::start::check_watchdog_of_another;

/// The interval at which `watchdog-mux` feeds its device.
const MUX_INTERVAL: Duration = Duration::from_secs(1);
const MUX_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval of challenges from which on the printed times include it. The defaults are below it in lists of up to 32 members.
const NEGLIGIBLE: Duration = Duration::from_millis(500);

/// Returns the report of `fencing-agent check`, without the last line break. Fails with the first fault of the configuration.
pub(super) fn report(config: &Config, run_dir: &Path) -> Result<String, Refusal> {
    key::read(&config.key_file)?;
    let own = config.own_addresses();
    let interfaces = own_interfaces(&own)?;
    check_watchdog_of_another(config, run_dir)?;
    let timing = Timing::of(config.members.len(), &config.timing);
    let mut text = format!(
        "members: {}, quorum {}\nnode: {} of group {}",
        config.members.len(),
        config.quorum(),
        config.node,
        config.group
    );
    for (address, interface) in own.iter().zip(&interfaces) {
        let _ = write!(text, "\nnetwork: {address} ({interface})");
    }
    if own.len() > 1 {
        let rule = if config.networks == NetworkRule::Any { "any" } else { "all" };
        let _ = write!(text, "\nnetworks: a member is reachable if it answers on {rule} of them");
    }
    let (lower, upper) = timing.suspicion;
    let _ = write!(
        text,
        "\ntimings: gossip {} s, probe {} s, suspicion {} to {} s, window {} s",
        seconds(timing.gossip),
        seconds(timing.probe),
        seconds(lower),
        seconds(upper),
        seconds(timing.window)
    );
    let _ = write!(text, "\n{}", consequence(config, &timing));
    Ok(text)
}

/// Describes what happens to this node after its network was cut.
fn consequence(config: &Config, timing: &Timing) -> String {
    let (device, window) = (&config.watchdog.device, timing.window);
    let shortest = |time: Duration| seconds(after_a_cut(time, timing));
    match config.on_quorum_loss {
        OnQuorumLoss::Notify => {
            return format!(
                "no watchdog: {} s after a cut, local programs see this node and the unreachable leave",
                seconds(window)
            );
        }
        OnQuorumLoss::Wait => return "no watchdog: a cut is in the log and in the metrics alone".to_owned(),
        OnQuorumLoss::Watchdog => {}
    }
    if is_socket(device) {
        let timeout = mux_timeout(&device.with_extension("json")).unwrap_or(MUX_TIMEOUT);
        // The connection is closed at the end of the window, and the multiplexer never feeds again.
        return format!(
            "watchdog: {}\nreset {} to {} s after a cut; an outage below {} s resets nobody",
            device.display(),
            shortest((window + timeout).saturating_sub(MUX_INTERVAL)),
            seconds(window + timeout),
            shortest(window)
        );
    }
    let (timeout, interval) = (config.watchdog.timeout, config.watchdog.interval);
    // The last feeding is between one interval before the end of the window, and that end.
    let earliest = shortest((window + timeout).saturating_sub(interval));
    format!(
        "watchdog: {}, time-out {} s, fed each {} s\nreset {earliest} to {} s after a cut; an outage below {earliest} s resets nobody",
        device.display(),
        seconds(timeout),
        seconds(interval),
        seconds(window + timeout)
    )
}

/// Returns the shortest time from a cut to a consequence that comes `time` after the newest contacts. These may be older than the cut
/// by one interval of challenges. An interval below [`NEGLIGIBLE`] is left out. A longer one is subtracted, and the result is rounded
/// down to a whole second.
fn after_a_cut(time: Duration, timing: &Timing) -> Duration {
    let age = timing.challenge;
    if age < NEGLIGIBLE { time } else { Duration::from_secs(time.saturating_sub(age).as_secs()) }
}

/// Formats a duration in seconds, with decimals only if it is no whole number.
fn seconds(time: Duration) -> String {
    let text = format!("{:.3}", time.as_secs_f64());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fencing_agent::config::{EXAMPLE, Environment};

    fn consequence_of(old: &str, new: &str) -> String {
        assert!(EXAMPLE.contains(old));
        consequence_in(&EXAMPLE.replacen(old, new, 1))
    }

    fn consequence_in(text: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        std::fs::write(&file, text).unwrap();
        let config = Config::read(&file, Environment::default()).unwrap();
        consequence(&config, &Timing::of(config.members.len(), &config.timing))
    }

    /// Returns the example with a list of `count` members.
    fn example_of(count: usize) -> String {
        let members: Vec<String> = (3..=count).map(|at| format!("node{at} = \"192.0.2.{at}\"")).collect();
        EXAMPLE.replacen("node3 = \"192.0.2.3\"", &members.join("\n"), 1)
    }

    #[test]
    fn the_reset_comes_within_window_and_time_out_and_not_before_a_missed_interval() {
        assert_eq!(
            consequence_of("port = 7946", "port = 7946"),
            "watchdog: /dev/watchdog, time-out 15 s, fed each 5 s\nreset 13 to 18 s after a cut; an outage below 13 s resets nobody"
        );
        let long = consequence_of("# window = \"3s\"", "window = \"4500ms\"");
        assert!(long.ends_with("reset 14.5 to 19.5 s after a cut; an outage below 14.5 s resets nobody"), "{long}");
        let mux = consequence_of("device = \"/dev/watchdog\"", "device = \"/nowhere/mux.sock\"");
        assert!(mux.ends_with("reset 12 to 13 s after a cut; an outage below 3 s resets nobody"), "{mux}");
        let notify = consequence_of("on_quorum_loss = \"watchdog\"", "on_quorum_loss = \"notify\"");
        assert!(notify.starts_with("no watchdog: 3 s after a cut"), "{notify}");
    }

    /// Asserts that the age of the newest contacts shortens the times of a long list. With 100 members it is up to 2.75 s.
    #[test]
    fn in_a_long_list_the_contacts_may_be_older_than_the_cut() {
        let few = consequence_in(&example_of(32));
        assert!(few.ends_with("reset 15.65 to 20.65 s after a cut; an outage below 15.65 s resets nobody"), "{few}");
        let many = consequence_in(&example_of(100));
        assert!(many.ends_with("reset 18 to 26 s after a cut; an outage below 18 s resets nobody"), "{many}");
        let mux = example_of(100).replacen("device = \"/dev/watchdog\"", "device = \"/nowhere/mux.sock\"", 1);
        let mux = consequence_in(&mux);
        assert!(mux.ends_with("reset 17 to 21 s after a cut; an outage below 8 s resets nobody"), "{mux}");
    }
}
