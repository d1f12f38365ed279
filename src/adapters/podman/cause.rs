//! The cause of a failure in podman's output. podman prints a chain of causes, of which the last one is the most useful.

use crate::adapters::ocf::exit::REASON_LIMIT;

/// The longest text that this agent puts in front of podman's error in an exit reason. Its length reduces the space for the error.
const LONGEST_FRAME: &str = "podman container inspect failed (125): ";
/// The number of digits in the id of a container or layer.
const ID_LENGTH: usize = 64;
/// The number of digits of an id that podman shows in a list.
const SHORT_ID_LENGTH: usize = 12;

/// Returns the part of podman's error that fits into an exit reason: the last causes of its chain. Ids are shortened as in podman's lists.
pub(super) fn root_cause(complaint: &str) -> String {
    let text = with_short_ids(complaint.strip_prefix("Error: ").unwrap_or(complaint));
    let mut rest = text.as_str();
    while let Some((_, cause)) = rest.split_once(": ").filter(|_| rest.len() > REASON_LIMIT - LONGEST_FRAME.len()) {
        rest = cause;
    }
    rest.to_owned()
}

fn with_short_ids(text: &str) -> String {
    let is_end = |c: char| !c.is_ascii_hexdigit();
    let short = |part: &str| match part.trim_end_matches(is_end) {
        id if id.len() == ID_LENGTH => format!("{}{}", &id[..SHORT_ID_LENGTH], &part[ID_LENGTH..]),
        _ => part.to_owned(),
    };
    text.split_inclusive(is_end).map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "e4420f9e941b1e2f398c26adbe9ec3cd67e8a3810f25c8118d63e1e3d9036e27";

    #[test]
    fn an_exit_reason_has_room_for_what_is_wrong() {
        let no_runtime = format!(
            "Error: OCI runtime error: unable to start container \"{ID}\": runc: /usr/sbin/runc-lab: 7: exec: runc: not found"
        );
        assert_eq!(root_cause(&no_runtime), "runc: /usr/sbin/runc-lab: 7: exec: runc: not found");
        let no_layer =
            format!("Error: unable to start container \"{ID}\": mounting storage: readlink /o/{ID}: no such file");
        assert_eq!(root_cause(&no_layer), "mounting storage: readlink /o/e4420f9e941b: no such file");
    }

    #[test]
    fn what_is_short_is_told_whole() {
        assert_eq!(root_cause("Error: creating it: no space left"), "creating it: no space left");
        assert_eq!(root_cause("it said nothing"), "it said nothing");
        assert_eq!(root_cause(""), "");
    }

    #[test]
    fn a_cause_without_parts_is_left_as_it_is() {
        let long = "é".repeat(100);
        assert_eq!(root_cause(&long), long);
    }
}
