//! Tests of systems that are off before the first reset.

use super::super::*;
use super::notation::check;

#[test]
fn what_is_off_already_gets_a_reset_all_the_same() {
    check(
        Goal::Off,
        &[
            ("0:Off", "0", "post ForceOff"),
            ("0:Off 1:Off", "1", "post ForceOff"),
            // The state does not show that the BMC holds the button, so the plan waits until that is over.
            ("0:Off 0:+ 0.3:Off", "0.3", "read 5"),
            ("0:Off 0:+ 0.3:Off 1.3:Off", "1.3", "read 5"),
            ("0:Off 0:+ 0.3:Off 5:Off", "5", "already"),
            // The BMC knows its host after all.
            ("0:Off 0:+ 0.3:On 0.6:Off 1.6:Off", "1.6", "by us"),
            // The BMC itself reports that the system is off already. The refused reset takes no time.
            ("0:Off 0:!state", "0", "read 1"),
            ("0:Off 0.4:!state", "0.4", "read 1"),
            ("0:Off 1.2:!state", "1.2", "read 1.2"),
            ("0:Off 0:!state 1:Off", "1", "ask chassis"),
            ("0:Off 0:!state 1:Off 1:~", "1", "already"),
            ("0:Off 0:!state 0.9:Off", "0.9", "read 1"),
            // The reading before was of another state, or the reset was postponed or lost. A second passes from the next reading
            // on.
            ("0:On 0:!state", "0", "read 0.1"),
            ("0:On 0:!state 0.3:Off", "0.3", "read 1.3"),
            ("0:Off 0:!silent 0.3:Off", "0.3", "read 0.5"),
            // A postponed or lost reset is repeated.
            ("0:Off 0:!busy 0.3:Off", "0.3", "read 0.5"),
            ("0:Off 0:!busy 0.3:Off 1.3:Off", "1.3", "post ForceOff"),
            ("0:Off 0:!reset 0.3:Off 1.3:Off", "1.3", "post ForceOff"),
            ("0:Off 0:!silent 0.3:Off 1.3:Off", "1.3", "post ForceOff"),
            ("0:Off 0:!400 0.3:Off 1.3:Off", "1.3", "read 2"),
            ("0:Off 0:!400 2:Off", "2", "post ForceOff"),
            ("49:Off 49:!busy 50:Off", "50", "fail Timed out waiting to power OFF: the last reset failed (busy)*"),
            // The system is missing, so there is nothing to reset and nothing that runs.
            ("0:Gone", "0", "read 1"),
            ("0:Gone 1:Gone", "1", "already"),
            ("0:Gone 1:Off", "1", "post ForceOff"),
        ],
    );
}

#[test]
fn a_refusal_for_any_other_reason_is_taken_unless_the_chassis_is_on() {
    for refused in ["!403", "!405", "!404", "!value"] {
        check(
            Goal::Off,
            &[
                (&format!("0:Off 0:{refused} 0.3:Off"), "0.3", "read 1.3"),
                (&format!("0:Off 0:{refused} 0.3:Off 1.3:Off"), "1.3", "ask chassis"),
                (&format!("0:Off 0:{refused} 0.3:Off 1.3:Off 1.3:~"), "1.3", "already"),
                (
                    &format!("0:Off 0:{refused} 0.3:Off 1.3:Off 1.3:~/c"),
                    "1.3",
                    &format!("fail {}; the system says Off, but its chassis /c says On", &refused[1..]),
                ),
                // A system that is on still fails at once.
                (&format!("0:On 0:{refused} 0.3:On"), "0.3", &format!("fail {}", &refused[1..])),
            ],
        );
    }
    check(Goal::Off, &[("0:Off 0:!400 2:Off 2:!400 4:Off 4:!400 4.3:Off 5.3:Off", "5.3", "ask chassis")]);
}
