//! etcd's last log lines, searched for the one that explains its exit.

use serde_json::{Value, json};

use crate::base::json;

/// The beginnings of the line that the Go runtime writes when a program crashes. Stack traces follow the line.
const BREAKDOWNS: [&str; 2] = ["panic: ", "fatal error: "];
/// The texts in the log of an etcd that crashed for another reason than its data: disk space, permissions, memory, ports, or a
/// downgrade.
const AROUND: [&str; 12] = [
    "no space left on device",
    "disk quota exceeded",
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "too many open files",
    "cannot allocate memory",
    "out of memory",
    "address already in use",
    "invalid downgrade",
    "cannot be downgraded",
    "removed from the cluster",
];

/// etcd's warning when it learns from its peers or its log that its member was removed. etcd then exits with code 0.
const REMOVED: &str = "the member has been permanently removed from the cluster";

/// Returns whether etcd ended because its member was removed from the cluster.
pub fn tells_of_a_removal(log: &str) -> bool {
    log.contains(REMOVED)
}

/// Returns whether etcd's log shows a crash for which it gives no other cause than the data.
pub fn breaks_down_over_its_data(log: &str) -> bool {
    let broke_down = log.lines().any(|line| BREAKDOWNS.iter().any(|word| line.trim_start().starts_with(word)));
    let log = log.to_lowercase();
    broke_down && !AROUND.iter().any(|words| log.contains(words))
}

/// Returns the line of etcd's log that explains its end best; `None` if the log is empty. It is the first of these that exists: the newest
/// line of level fatal or panic, the first line of a crash, the newest line of level error or about a removal, the last line.
pub fn most_telling(log: &str) -> Option<String> {
    let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let newest = |counts: &dyn Fn(&Value) -> bool| {
        lines.iter().rev().find_map(|line| {
            let entry: Value = json::from_text(line).ok()?;
            counts(&entry).then(|| sentence(&entry))
        })
    };
    let is_of = |entry: &Value, levels: &[&str]| levels.iter().any(|level| entry.get("level") == Some(&json!(level)));
    newest(&|entry| is_of(entry, &["fatal", "panic", "dpanic"]))
        .or_else(|| breakdown(&lines))
        .or_else(|| newest(&|entry| is_of(entry, &["error"]) || entry.get("error") == Some(&json!(REMOVED))))
        .or_else(|| lines.last().map(|line| (*line).to_owned()))
}

/// Returns the first line of the last crash in etcd's log; `None` without a crash. Only stack traces follow that line.
fn breakdown(lines: &[&str]) -> Option<String> {
    let is_one = |line: &&&str| BREAKDOWNS.iter().any(|word| line.starts_with(word));
    lines.iter().rev().find(is_one).map(|line| (*line).to_owned())
}

fn sentence(entry: &Value) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("error") {
        "" => text("msg").to_owned(),
        error => format!("{}: {error}", text("msg")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fatal_line_beats_later_noise() {
        let log = "{\"level\":\"info\",\"msg\":\"a\"}\n{\"level\":\"fatal\",\"msg\":\"discovery failed\",\"error\":\"member count is unequal\"}\n{\"level\":\"error\",\"msg\":\"late\"}\n";
        assert_eq!(most_telling(log).as_deref(), Some("discovery failed: member count is unequal"));
    }

    /// Asserts that [`most_telling`] returns the line about a removal and not the last line. The log is that of an etcd 3.5 that learnt of
    /// its removal from its peer.
    #[test]
    fn a_removal_beats_how_etcd_ends_after_it() {
        let log = "{\"level\":\"warn\",\"msg\":\"server error\",\"error\":\"the member has been permanently removed from the cluster\"}\n\
            {\"level\":\"warn\",\"msg\":\"data-dir used by this member must be removed\"}\n\
            {\"level\":\"info\",\"msg\":\"successfully notified init daemon\"}\n";
        let told = "server error: the member has been permanently removed from the cluster";
        assert_eq!(most_telling(log).as_deref(), Some(told));
        assert!(tells_of_a_removal(log) && !tells_of_a_removal(DAMAGED));
    }

    /// The log of an etcd 3.4 that found overwritten pages in its database.
    const DAMAGED: &str = "{\"level\":\"info\",\"msg\":\"starting an etcd server\",\"downgrade-check-interval\":\"5s\"}\n\
        panic: freepages: failed to get all reachable pages (page 651: out of bounds: 5)\n\n\
        goroutine 127 [running]:\ngo.etcd.io/bbolt.(*DB).freepages.func2()\n\tgo.etcd.io/bbolt/db.go:1056 +0x99\n";

    #[test]
    fn a_breakdown_is_told_by_its_own_line_and_by_what_it_is_over() {
        let words = most_telling(DAMAGED).unwrap();
        assert_eq!(words, "panic: freepages: failed to get all reachable pages (page 651: out of bounds: 5)");
        assert!(breaks_down_over_its_data(DAMAGED));
        assert!(breaks_down_over_its_data("unexpected fault address 0x7f\nfatal error: fault\n"));
        let none = [
            "panic: failed to open database: open /var/lib/etcd/member/snap/db: Permission denied\n",
            "{\"level\":\"panic\",\"msg\":\"write: no space left on device\"}\npanic: write\n",
            "{\"level\":\"panic\",\"msg\":\"invalid downgrade; server version is lower\"}\npanic: invalid downgrade\n",
            "{\"level\":\"fatal\",\"msg\":\"discovery failed\",\"error\":\"member count is unequal\"}\n",
            // etcd's output for an unknown flag.
            "Only supports debug, info, warn, error, panic: or fatal.\n",
            "",
        ];
        for log in none {
            assert!(!breaks_down_over_its_data(log), "{log}");
        }
    }

    #[test]
    fn plain_text_is_taken_as_it_is() {
        assert_eq!(most_telling("x\n exec: not found \n").as_deref(), Some("exec: not found"));
        assert_eq!(most_telling("\n"), None);
    }
}
