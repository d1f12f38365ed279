//! The recipients of events: the journal, a file, or a URL.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use ring::digest;

use super::post::{Poster, Trust};
use super::shown::{Unknown, shown};
use crate::os::clock::Deadline;
use crate::os::{appended, logging};
use crate::records::events::{Event, Type};

/// A destination of events, after its configured value was parsed.
#[derive(Debug)]
pub enum Recipient {
    Journal,
    File(PathBuf),
    Url(Box<Poster>),
}

impl Recipient {
    /// Parses a recipient's configured value: `journal`, `file:/PATH` or `https://HOST/PATH`.
    pub fn parse(text: &str, trust: &Trust) -> Result<Self, Unknown> {
        let text = text.trim();
        if text == "journal" {
            return Ok(Self::Journal);
        }
        if let Some(path) = text.strip_prefix("file:").map(|path| path.strip_prefix("//").unwrap_or(path)) {
            let is_file = path.starts_with('/') && !path.ends_with('/');
            return if is_file { Ok(Self::File(path.into())) } else { Err(Unknown::Form(shown(text))) };
        }
        if !text.to_ascii_lowercase().starts_with("https://") {
            return Err(Unknown::Form(shown(text)));
        }
        Poster::new(text, trust).map(|poster| Self::Url(Box::new(poster)))
    }

    /// Sends one event to this recipient.
    pub(super) fn send(&mut self, event: &Event, deadline: Deadline) -> Result<(), String> {
        match self {
            Self::Journal => to_journal(event),
            Self::File(path) => to_file(path, event).map_err(|error| format!("{}: {error}", path.display())),
            Self::Url(poster) => poster.send(event, deadline),
        }
    }
}

fn to_journal(event: &Event) -> Result<(), String> {
    let failed = |error: syslog::Error| format!("the journal takes nothing: {error}");
    let mut log = logging::syslog_as("tandem-events").map_err(failed)?;
    let line = format!("{} {}: {}", event.reason, event.node, event.message);
    match event.kind {
        Type::Error => log.err(line),
        Type::Warning => log.warning(line),
        Type::Normal => log.info(line),
    }
    .map_err(failed)
}

fn to_file(path: &Path, event: &Event) -> std::io::Result<()> {
    let mut file = appended::open(path, 0o640)?.file;
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    file.write_all(&line)
}

/// Returns the name of the file with a recipient's progress. The name is a digest, so that two URLs of one host are two recipients.
pub(super) fn file_name(text: &str) -> String {
    let digest = digest::digest(&digest::SHA256, text.trim().as_bytes());
    HEXLOWER.encode(&digest.as_ref()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipient_is_known_by_its_form_and_shown_without_its_secret() {
        let kind = |text| match Recipient::parse(text, &Trust::System) {
            Ok(Recipient::Journal) => "journal".to_owned(),
            Ok(Recipient::File(path)) => path.display().to_string(),
            Ok(Recipient::Url(_)) => "url".to_owned(),
            Err(unknown) => unknown.to_string(),
        };
        assert_eq!(kind("journal"), "journal");
        assert_eq!(kind("file:/var/log/events"), "/var/log/events");
        assert_eq!(kind("file:///var/log/events"), "/var/log/events");
        assert_eq!(kind("https://hooks.example.com/services/SECRET"), "url");
        assert_eq!(kind("https://[fd00::1]:8443/x?y=z"), "url");
        for text in ["", "mail", "file:events", "file:/", "http://h/SECRET", "https://", "https:///x"] {
            let told = kind(text);
            assert!(told.ends_with("is not known: give it as journal, file:/PATH or https://HOST/PATH"), "{told}");
            assert!(!told.contains("SECRET"), "{told}");
        }
        assert_eq!(
            kind("https://u:SECRET@h/"),
            "recipient 'https://h' has a user in it: give a URL without 'USER:PASSWORD@'"
        );
        assert_ne!(file_name("https://h/a"), file_name("https://h/b"));
    }
}
