//! The state of Corosync's votequorum, from one call of its own tool.

use crate::adapters::command::{Output, Programs};
use crate::adapters::pace::limits::Limits;
use serde::{Deserialize, Serialize};

use crate::base::Fact;

/// The quorum and the membership that Corosync reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quorum {
    pub quorate: bool,
    pub two_node: bool,
    /// True if Corosync still waits to see both nodes for the first time since its start (`wait_for_all`).
    pub waits_for_all: bool,
    pub expected_votes: u32,
    pub total_votes: u32,
    /// The id of this node in Corosync.
    pub node_id: u32,
    /// The ids in Corosync of the nodes in this node's partition.
    pub members: Vec<u32>,
}

/// The arguments of `corosync-quorumtool`: print the status, and addresses in place of names, because names would need a
/// resolver.
const ARGUMENTS: [&str; 2] = ["-s", "-i"];
/// The exit code of `corosync-quorumtool` in a partition without quorum. With this code, too, the tool has printed the status.
const NOT_QUORATE: i32 = 2;
/// The text in the output of `corosync-quorumtool` if Corosync does not answer.
const NO_COROSYNC: &str = "Cannot initialize";

/// Asks Corosync for its quorum and membership. The result is `Absent` if Corosync does not answer.
pub fn ask(programs: &Programs, limits: &Limits) -> Fact<Quorum> {
    match programs.run("corosync-quorumtool", &ARGUMENTS, limits.quorum) {
        Ok(output) => read(&output),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

fn read(output: &Output) -> Fact<Quorum> {
    if output.stdout.contains(NO_COROSYNC) || output.stderr.contains(NO_COROSYNC) {
        return Fact::Absent;
    }
    match parse(&output.stdout) {
        Some(quorum) if matches!(output.code, 0 | NOT_QUORATE) => Fact::Known(quorum),
        _ => Fact::Unknown(format!("corosync-quorumtool failed ({}): {}", output.code, output.complaint())),
    }
}

/// Parses the output of `corosync-quorumtool -s`; `None` if a line is missing.
fn parse(text: &str) -> Option<Quorum> {
    let value = |name: &str| {
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(label, _)| label.trim() == name).map(|(_, value)| value.trim()).next()
    };
    let number = |name: &str| value(name)?.split_whitespace().next()?.parse::<u32>().ok();
    let flags: Vec<&str> = value("Flags").unwrap_or_default().split_whitespace().collect();
    let quorate = value("Quorate")? == "Yes";
    let total_votes = number("Total votes")?;
    // Enough votes without quorum means that Corosync waits for all nodes. The flag only shows that this is configured.
    let has_votes = number("Quorum").is_some_and(|needed| total_votes >= needed);
    Some(Quorum {
        quorate,
        two_node: flags.contains(&"2Node"),
        waits_for_all: flags.contains(&"WaitForAll") && has_votes && !quorate,
        expected_votes: number("Expected votes")?,
        total_votes,
        node_id: number("Node ID")?,
        members: members(text),
    })
}

/// Returns the node ids in the table at the end of the output. Its lines are such as `         1          1 10.99.0.1 (local)`.
fn members(text: &str) -> Vec<u32> {
    let table = text.lines().skip_while(|line| !line.trim_start().starts_with("Nodeid")).skip(1);
    // A quorum device has a line with the id 0.
    table.filter_map(|line| line.split_whitespace().next()?.parse().ok()).filter(|id| *id != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = include_str!("../../../tests/data/fixtures/corosync/both.txt");

    fn output(code: i32, stdout: &str, stderr: &str) -> Output {
        Output { code, stdout: stdout.to_owned(), stderr: stderr.to_owned() }
    }

    #[test]
    fn two_nodes_that_see_each_other() {
        let expected = Quorum {
            quorate: true,
            two_node: true,
            waits_for_all: false,
            expected_votes: 2,
            total_votes: 2,
            node_id: 1,
            members: vec![1, 2],
        };
        assert_eq!(read(&output(0, BOTH, "")), Fact::Known(expected));
    }

    #[test]
    fn who_waits_for_all_waits_only_while_it_is_alone_and_has_the_votes() {
        let alone = include_str!("../../../tests/data/fixtures/corosync/waits.txt");
        let Fact::Known(waits) = read(&output(NOT_QUORATE, alone, "")) else { panic!("{alone}") };
        assert!(!waits.quorate && waits.waits_for_all);
        assert_eq!((waits.total_votes, &*waits.members), (1, &[1][..]));
        let survivor = include_str!("../../../tests/data/fixtures/corosync/survivor.txt");
        let Fact::Known(survivor) = read(&output(0, survivor, "")) else { panic!("{survivor}") };
        assert!(survivor.quorate && !survivor.waits_for_all && survivor.total_votes == 1);
        let outvoted = alone.replace("Quorum:           1", "Quorum:           2");
        let Fact::Known(outvoted) = read(&output(NOT_QUORATE, &outvoted, "")) else { panic!("{outvoted}") };
        assert!(!outvoted.quorate && !outvoted.waits_for_all, "votes are missing, and no word helps");
    }

    #[test]
    fn no_corosync_is_absent_and_rubbish_is_unknown() {
        assert_eq!(read(&output(1, "Cannot initialize QUORUM service\n", "")), Fact::Absent);
        assert_eq!(read(&output(1, "", "Cannot initialize CMAP service\n")), Fact::Absent);
        let unknown = Fact::Unknown("corosync-quorumtool failed (1): it said nothing".to_owned());
        assert_eq!(read(&output(1, "", "")), unknown);
        let half = &BOTH[..BOTH.find("Votequorum").unwrap()];
        assert!(matches!(read(&output(0, half, "")), Fact::Unknown(_)));
    }
}
