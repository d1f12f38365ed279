//! The reason why a request failed: one sentence, and one kind. Only the kind decides the next step.

use std::time::Duration;

/// The kind of a failure, as far as it matters for the next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// No connection: refused, no route, unknown name, or no answer to a connection attempt.
    Unreachable,
    /// The connection broke before the answer was complete.
    Interrupted,
    /// The connection was made, but no complete answer arrived in time.
    Silent,
    /// The certificate cannot be trusted, or TLS is not possible at all. A retry changes nothing.
    Untrusted,
    /// The service is temporarily unavailable (429, 5xx), or asks for a retry: by a header, a known message, or in words.
    /// `retry_after` has the time that it asked for. Zero leaves the time to the agent.
    Busy { retry_after: Option<Duration> },
    /// The credentials were refused in two attempts.
    Unauthorised,
    /// The account may not do this, because of a privilege, a licence, or a password that must be changed first.
    Forbidden,
    /// The resource does not exist.
    Missing,
    /// The request is not possible in the present state, or that state is already reached. The power state shows which.
    WrongState,
    /// The service does not know this reset type.
    ValueRefused,
    /// The service refuses the request without a reason (400, 409). Some services mean a temporary refusal.
    Disliked,
    /// The service requires `If-Match`, or the resource's state has changed.
    Precondition,
    /// Any other refusal.
    Refused,
    /// The answer is not valid Redfish: HTML, broken JSON, or wrong types.
    Garbled,
    /// A redirect that must not be followed: to another host, to plain HTTP, or in a loop.
    ForeignRedirect,
    /// The system is ambiguous, or another one than the configured one.
    WrongSystem,
    /// The BMC's list of systems was read completely. It shows others, and lacks the configured one.
    NoSuchSystem,
}

/// A failed request, with its kind and its sentence.
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

    /// Returns whether the same request may succeed a moment later.
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

    /// Returns whether the failure is an answer of the service. A service that answers is there, but not ready.
    pub fn is_an_answer(&self) -> bool {
        !matches!(self.kind, FailureKind::Unreachable | FailureKind::Interrupted | FailureKind::Silent)
    }
}
