//! The messages in an answer's body that is not the requested resource. This module is pure.

use std::time::Duration;

use serde_json::Value;

use super::failure::FailureKind;
use super::quirks::{self, Meaning};

/// The messages in the body of a BMC's refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Complaint {
    /// The values of `MessageId`, in the order of the body.
    pub ids: Vec<String>,
    /// The texts of the messages, most informative first.
    pub words: Vec<String>,
}

/// The greatest number of messages that are read. A body may have thousands.
const MESSAGES_READ: usize = 16;

/// Reads the body of a refusal. A body without messages gives an empty result.
///
/// BMCs differ: the list may be an object, keys may begin with a capital letter, and messages may be next to `error`. One BMC sends two
/// JSON documents in a row, of which the first counts.
pub fn read(body: &[u8]) -> Complaint {
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let Some(Ok(document)) = serde_json::Deserializer::from_slice(text).into_iter::<Value>().next() else {
        return Complaint::default();
    };
    let mut complaint = Complaint::default();
    let error = get(&document, "error");
    for holder in [error, Some(&document)].into_iter().flatten() {
        for key in ["@Message.ExtendedInfo", "Messages"] {
            match get(holder, key) {
                Some(Value::Array(messages)) => {
                    messages.iter().take(MESSAGES_READ).for_each(|message| complaint.add(message));
                }
                Some(message @ Value::Object(_)) => complaint.add(message),
                _ => {}
            }
        }
    }
    if let Some(general) = error {
        complaint.push_id(get(general, "code"));
        complaint.push_words(get(general, "message"));
    }
    complaint
}

impl Complaint {
    /// Returns the meaning of the messages by the table of known ones; `None` if no message is known. The first row of the table that
    /// occurs decides.
    pub fn meaning(&self) -> Option<Meaning> {
        self.row().map(|row| row.meaning)
    }

    /// Returns the kind of failure for an answer with these messages and this `status`.
    ///
    /// A status of 401 always counts as refused credentials, because the login depends on it. Otherwise a known message overrides the
    /// status, because BMCs send the same fault with 400, 403, 409 or 500.
    ///
    /// A refusal that asks for a retry, by the header `Retry-After` or in its message, counts as busy whatever its status is.
    pub fn kind(&self, status: u16, retry_after: Option<Duration>) -> FailureKind {
        if status == 401 {
            return FailureKind::Unauthorised;
        }
        match self.meaning().filter(|meaning| *meaning != Meaning::Success).map(Meaning::kind) {
            Some(FailureKind::Busy { .. }) => FailureKind::Busy { retry_after: retry_after.or(Some(Duration::ZERO)) },
            Some(kind) => kind,
            None if self.asks_for_patience() => FailureKind::Busy { retry_after: retry_after.or(Some(Duration::ZERO)) },
            None if retry_after.is_some() => FailureKind::Busy { retry_after },
            None => quirks::status_kind(status),
        }
    }

    /// Returns whether a message that is not in the table asks for a retry, by its id or in its text.
    fn asks_for_patience(&self) -> bool {
        let asks = |text: &String, words: &[&str]| {
            let text = text.to_ascii_lowercase();
            words.iter().any(|word| text.contains(word))
        };
        self.ids.iter().any(|id| asks(id, quirks::PATIENCE_IN_IDS))
            || self.words.iter().any(|words| asks(words, quirks::PATIENCE_IN_WORDS))
    }

    /// Returns one line with the text of the first message, and the hint for that message in [`quirks::MESSAGES`]. The line is empty if
    /// there are no messages.
    pub fn sentence(&self) -> String {
        let words = self.words.first().map_or("", |words| words.trim()).trim_end_matches('.');
        let id = self.ids.first().map_or("", String::as_str);
        let hint = self.row().map_or("", |row| row.hint);
        let said = match (words, id) {
            ("", id) => id.to_owned(),
            (words, "") => words.to_owned(),
            (words, id) => format!("{words} ({id})"),
        };
        match (said.as_str(), hint) {
            (_, "") => said,
            ("", hint) => hint.to_owned(),
            (said, hint) => format!("{said}; {hint}"),
        }
    }

    fn row(&self) -> Option<&'static quirks::KnownMessage> {
        quirks::MESSAGES
            .iter()
            .find(|row| self.ids.iter().any(|id| quirks::known_message(id).is_some_and(|known| known.id == row.id)))
    }

    fn add(&mut self, message: &Value) {
        self.push_id(get(message, "MessageId"));
        self.push_words(get(message, "Message"));
    }

    fn push_id(&mut self, id: Option<&Value>) {
        if let Some(id) = id.and_then(Value::as_str).filter(|id| !id.is_empty()) {
            self.ids.push(id.to_owned());
        }
    }

    fn push_words(&mut self, words: Option<&Value>) {
        if let Some(words) = words.and_then(Value::as_str).filter(|words| !words.trim().is_empty()) {
            self.words.push(words.to_owned());
        }
    }
}

/// Returns the member `key` of a JSON object. The case of the key's letters does not matter.
fn get<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    object.as_object()?.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_list_and_an_object_alike() {
        let list = br#"{"error":{"code":"Base.1.0.GeneralError","message":"A general error",
            "@Message.ExtendedInfo":[{"MessageId":"IDRAC.2.8.PSU501","Message":"Already on."}]}}"#;
        let complaint = read(list);
        assert_eq!(complaint.meaning(), Some(Meaning::WrongState));
        assert_eq!(complaint.sentence(), "Already on (IDRAC.2.8.PSU501)");
        let object =
            br#"{"Error":{"@message.extendedinfo":{"MessageID":"Base.1.8.InsufficientPrivilege","message":"No."}}}"#;
        assert_eq!(read(object).kind(403, None), FailureKind::Forbidden);
        assert_eq!(read(object).sentence(), "No (Base.1.8.InsufficientPrivilege); give the user the Operator role");
    }

    #[test]
    fn a_message_decides_over_the_status_but_not_over_401() {
        let ilo = br#"{"error":{"@Message.ExtendedInfo":[{"MessageID":"iLO.0.10.InvalidOperationForSystemState"}]}}"#;
        assert_eq!(read(ilo).kind(400, None), FailureKind::WrongState);
        assert_eq!(read(ilo).kind(401, None), FailureKind::Unauthorised);
        assert_eq!(read(b"").kind(400, None), FailureKind::Disliked);
        assert_eq!(read(b"").kind(405, None), FailureKind::Refused);
        assert_eq!(read(b"").kind(507, None), FailureKind::Busy { retry_after: None });
    }

    #[test]
    fn patience_that_is_asked_for_is_given_whatever_the_status() {
        let said = |id: &str, words: &str| {
            let info = serde_json::json!([{"MessageId": id, "Message": words}]);
            read(serde_json::json!({"error": {"@Message.ExtendedInfo": info}}).to_string().as_bytes())
        };
        let (asked, unasked) = (Some(Duration::ZERO), FailureKind::Disliked);
        for status in [400, 404, 409, 503] {
            for complaint in [
                said("iLO.2.30.ResourceNotReadyRetry", ""),
                said("Base.1.8.ServiceTemporarilyUnavailable", ""),
                said("Vendor.1.0.NotReadyYet", ""),
                said("Vendor.1.0.X", "The data source is starting. Please try again in a minute."),
                said("", "Busy; RETRY the operation later."),
            ] {
                assert_eq!(complaint.kind(status, None), FailureKind::Busy { retry_after: asked }, "{complaint:?}");
            }
        }
        let header = Some(Duration::from_secs(3));
        assert_eq!(read(b"").kind(400, header), FailureKind::Busy { retry_after: header });
        assert_eq!(said("Base.1.8.AccessDenied", "Retry later").kind(403, header), FailureKind::Forbidden);
        assert_eq!(said("Base.1.8.X", "Retry later").kind(401, header), FailureKind::Unauthorised);
        assert_eq!(said("Base.1.8.GeneralError", "A general error").kind(400, None), unasked);
    }

    #[test]
    fn two_documents_one_after_the_other_are_read_as_the_first() {
        let body = br#"{"error":{"message":"no licence"}}{"error":{"message":"again"}}"#;
        assert_eq!(read(body).sentence(), "no licence");
    }

    #[test]
    fn a_body_that_is_no_redfish_error_has_no_complaint() {
        for body in
            [&b""[..], b"<html>", b"null", b"[]", b"{\"error\":7}", b"\xff\xfe", b"{\"error\":{\"message\":[]}}"]
        {
            assert_eq!(read(body), Complaint::default(), "{body:?}");
        }
    }

    #[test]
    fn success_in_an_error_object_is_no_failure_of_its_own() {
        let body =
            br#"{"error":{"code":"iLO.0.10.ExtendedInfo","@Message.ExtendedInfo":[{"MessageId":"Base.1.4.Success"}]}}"#;
        assert_eq!(read(body).meaning(), Some(Meaning::Success));
        assert_eq!(read(body).kind(503, None), FailureKind::Busy { retry_after: None });
    }
}
