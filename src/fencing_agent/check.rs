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
    let _ = write!(text, "\n{}", consequence(config, timing.window));
    Ok(text)
}

/// Describes what happens to this node after its network was cut.
fn consequence(config: &Config, window: Duration) -> String {
    let device = &config.watchdog.device;
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
            seconds((window + timeout).saturating_sub(MUX_INTERVAL)),
            seconds(window + timeout),
            seconds(window)
        );
    }
    let (timeout, interval) = (config.watchdog.timeout, config.watchdog.interval);
    // The last feeding is between one interval before the end of the window, and that end.
    let earliest = seconds((window + timeout).saturating_sub(interval));
    format!(
        "watchdog: {}, time-out {} s, fed each {} s\nreset {earliest} to {} s after a cut; an outage below {earliest} s resets nobody",
        device.display(),
        seconds(timeout),
        seconds(interval),
        seconds(window + timeout)
    )
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
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        assert!(EXAMPLE.contains(old));
        std::fs::write(&file, EXAMPLE.replacen(old, new, 1)).unwrap();
        let config = Config::read(&file, Environment::default()).unwrap();
        let window = Timing::of(config.members.len(), &config.timing).window;
        consequence(&config, window)
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
}
