//! Tests of a refusal that stays the same for long, by a system that reports Off.

use super::notation::check;
use super::*;

/// Returns the history of a system that reports Off, with `count` resets, one every four seconds. The BMC refuses each reset with
/// the failure `refused`.
fn refused_for_long(refused: &str, count: u32) -> String {
    let one = |at: u32| format!("{0}:Off {0}:!{refused} {0}.3:Off", at * 4 + 1);
    (0..count).map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_state_and_a_refusal_that_stay_the_same_are_an_answer() {
    let long = refused_for_long("busy", 9);
    let off = format!("{long} 34.3:Off");
    check(
        Goal::Off,
        &[
            (&off, "34.3", "ask chassis"),
            (&format!("{off} 34.3:~"), "34.3", "already"),
            (&format!("{off} 34.3:~/c"), "34.3", "fail busy; the system says Off, but its chassis /c says On"),
            // A chassis that does not answer proves nothing here.
            (&format!("{off} 34.3:~!busy"), "34.3", "read *"),
            (&format!("{off} 34.3:~!busy 35:Off 35:~!busy 36:Off 36:~!busy 37:Off"), "37", "ask chassis"),
            (&format!("{off} 34.3:~!busy 35:Off 35:~!busy 36:Off 36:~!busy"), "36", "read *"),
            // Too few refusals, too short a time, different refusals, or a request for a retry.
            (&format!("{} 26.3:Off", refused_for_long("busy", 7)), "29.1", "post ForceOff"),
            (&format!("{} 30.3:Off", refused_for_long("busy", 8)), "33.1", "post ForceOff"),
            (&format!("{} 34.3:Off", refused_for_long("busy3", 9)), "37.1", "post ForceOff"),
            (&format!("{} 34.3:Off", refused_for_long("silent", 9)), "37.1", "post ForceOff"),
            (&format!("{} 33:!garbled 34.3:Off 35.3:Off", refused_for_long("busy", 8)), "37.1", "post ForceOff"),
            // The system reported another state meanwhile, or did not answer.
            (&format!("0:On 0:!busy {off}"), "34.3", "ask chassis"),
            (&off.replace("9:Off", "9:On"), "37.1", "post ForceOff"),
            (&off.replace("9:Off", "9:?busy"), "37.1", "post ForceOff"),
            (&off.replace("9:Off", "9:nonsense"), "37.1", "post ForceOff"),
            (&off.replace("9:Off", "9:?unreachable"), "37.1", "post ForceOff"),
        ],
    );
    // The plan waits for an accepted reset as always.
    check(
        Goal::Off,
        &[
            (&format!("0:Off 0:+ {off}"), "37.1", "ask chassis"),
            (&off.replace("9:!busy", "9:+"), "37.1", "post ForceOff"),
        ],
    );
}
