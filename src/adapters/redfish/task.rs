//! A task: a service's answer with 202 about work that continues. This module is pure.

use serde_json::Value;

use super::complaint;
use super::failure::{Failure, FailureKind};
use super::quirks::Meaning;

/// The values of `TaskState` for a task that has ended without success.
const FAILED: &[&str] = &["Exception", "Killed", "Cancelled"];

/// Returns the failure of the task in `body`; `None` if it has not failed. A running or completed task proves nothing about the power
/// state.
pub fn failure(path: &str, body: &[u8]) -> Option<Failure> {
    let task: Value = serde_json::from_slice(body).ok()?;
    let said = |key: &str| task.get(key).and_then(Value::as_str);
    let state = said("TaskState")?;
    let in_vain = state == "Completed" && said("TaskStatus") == Some("Critical");
    if !in_vain && !FAILED.contains(&state) {
        return None;
    }
    let complaint = complaint::read(body);
    // The service's message decides the kind. Without a known message the failure may be temporary.
    let kind = complaint.meaning().map_or(FailureKind::Disliked, Meaning::kind);
    let words = complaint.sentence();
    let words = if words.is_empty() { words } else { format!(": {words}") };
    Some(Failure::new(kind, format!("the BMC's task {path} for the reset ended as {state}{words}")))
}

/// Returns the location of the task for an accepted request: from the answer's header, or from the task in its body.
pub fn place(location: Option<&str>, body: &[u8]) -> Option<String> {
    let named = || {
        let task: Value = serde_json::from_slice(body).ok()?;
        task.get("TaskState")?;
        Some(task.get("@odata.id")?.as_str()?.to_owned())
    };
    location.map(str::to_owned).or_else(named)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failed(task: &Value) -> Option<Failure> {
        failure("/t", task.to_string().as_bytes())
    }

    #[test]
    fn only_a_task_that_ended_in_failure_is_a_failure() {
        for state in ["New", "Running", "Pending", "Completed", "Stopping", "unheard-of"] {
            assert_eq!(failed(&json!({"TaskState": state, "TaskStatus": "OK"})), None, "{state}");
        }
        assert_eq!(failed(&json!({"TaskState": 7})), None);
        assert_eq!(failure("/t", b"<html>"), None);
        for task in [json!({"TaskState": "Exception"}), json!({"TaskState": "Completed", "TaskStatus": "Critical"})] {
            assert_eq!(failed(&task).unwrap().kind, FailureKind::Disliked);
        }
    }

    #[test]
    fn the_failure_of_a_task_has_the_tasks_message() {
        let message = json!([{"MessageId": "IDRAC.2.8.PSU501", "Message": "Already off."}]);
        let failure = failed(&json!({"TaskState": "Exception", "Messages": message})).unwrap();
        assert_eq!(failure.kind, FailureKind::WrongState);
        assert_eq!(failure.text, "the BMC's task /t for the reset ended as Exception: Already off (IDRAC.2.8.PSU501)");
    }

    #[test]
    fn it_is_found_by_the_header_or_by_itself() {
        let body = json!({"@odata.id": "/t/1", "TaskState": "New"}).to_string();
        assert_eq!(place(Some("/t/2"), body.as_bytes()).as_deref(), Some("/t/2"));
        assert_eq!(place(None, body.as_bytes()).as_deref(), Some("/t/1"));
        assert_eq!(place(None, br#"{"@odata.id":"/systems/1"}"#), None);
        assert_eq!(place(None, b""), None);
    }
}
