//! Why a request did not do what it should, in one sentence and one kind; the kind alone decides what comes next.

use std::time::Duration;

/// What went wrong, as far as it matters for the next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// No connection: refused, no route, unknown name, or no answer to a connection attempt.
    Unreachable,
    /// The connection broke before the answer was complete.
    Interrupted,
    /// Connected, but no complete answer within the time.
    Silent,
    /// The certificate cannot be trusted, or TLS is not possible at all; a retry changes nothing.
    Untrusted,
    /// The service is not able just now (429, 5xx), or asks for patience itself: by a header, by a known message, or in words. Then
    /// `retry_after` has the time, and zero leaves that to us.
    Busy { retry_after: Option<Duration> },
    /// Who we are was not accepted, in two attempts.
    Unauthorised,
    /// We may not do this: privilege, licence, or a password that must be changed first.
    Forbidden,
    /// There is no such resource.
    Missing,
    /// Not possible in the present state, or already in that state: the power state tells which.
    WrongState,
    /// The service does not know this reset type.
    ValueRefused,
    /// The service does not like the request and does not say why (400, 409); some mean "not just now" by it.
    Disliked,
    /// The service wants to know for which state of the resource the request is meant, or that state has changed.
    Precondition,
    /// Any other refusal.
    Refused,
    /// An answer that is not what Redfish promises: HTML, broken JSON, wrong types.
    Garbled,
    /// Never to be followed or trusted: another host, plain HTTP, a redirect loop.
    ForeignRedirect,
    /// The system to act on is ambiguous, or another one than it has to be.
    WrongSystem,
    /// The BMC's list of systems was read completely, it shows others, and the wanted one is not there.
    NoSuchSystem,
}

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    pub kind: FailureKind,
    pub text: String,
}

impl Failure {
    pub fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// Whether the same request may succeed a moment later.
    pub fn is_passing(&self) -> bool {
        matches!(
            self.kind,
            FailureKind::Unreachable
                | FailureKind::Interrupted
                | FailureKind::Silent
                | FailureKind::Busy { .. }
                | FailureKind::Garbled
        )
    }

    /// Whether an answer of the service stands behind it: then somebody is there, only not willing yet.
    pub fn is_an_answer(&self) -> bool {
        !matches!(self.kind, FailureKind::Unreachable | FailureKind::Interrupted | FailureKind::Silent)
    }
}
