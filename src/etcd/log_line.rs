//! What etcd said last: its structured log, read for the one line that explains why it exited.

use serde_json::Value;

/// The most telling of etcd's last lines: the newest of level fatal or panic, else error, else the last line at all.
pub fn most_telling(log: &str) -> Option<String> {
    let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let newest_of = |levels: &[&str]| {
        lines.iter().rev().find_map(|line| {
            let entry: Value = serde_json::from_str(line).ok()?;
            levels.contains(&entry.get("level")?.as_str()?).then(|| sentence(&entry))
        })
    };
    newest_of(&["fatal", "panic", "dpanic"])
        .or_else(|| newest_of(&["error"]))
        .or_else(|| lines.last().map(|line| (*line).to_owned()))
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

    #[test]
    fn plain_text_is_taken_as_it_is() {
        assert_eq!(most_telling("x\n exec: not found \n").as_deref(), Some("exec: not found"));
        assert_eq!(most_telling("\n"), None);
    }
}
