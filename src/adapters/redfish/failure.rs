//! The reason why a request failed: one sentence, and one kind. Only the kind decides the next step.

use std::time::Duration;

/// The kind of a failed request. The agent's next step depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// There is no connection: it was refused, there is no route, the name is unknown, or nothing answered.
    Unreachable,
    /// The connection broke before the answer was complete.
    Interrupted,
    /// The connection was made, but no complete answer arrived in time.
    Silent,
    /// The BMC's certificate cannot be trusted, or TLS is not possible at all. A retry changes nothing.
    Untrusted,
    /// The BMC is temporarily not available (429, 5xx), or its answer asks for a retry. `retry_after` is the time until that retry: zero if
    /// the BMC names no time, and `None` if the BMC does not ask for a retry.
    Busy { retry_after: Option<Duration> },
    /// The BMC refused the credentials at the first and at the second attempt.
    Unauthorised,
    /// The account may not perform the request because of its privileges, a licence, or a password that must be changed first.
    Forbidden,
    /// The BMC does not have the resource.
    Missing,
    /// The request is not possible in the present power state, or the system is already in the wanted state. Reading the power state shows
    /// which is true.
    WrongState,
    /// The BMC does not know the reset type.
    ValueRefused,
    /// The BMC refused the request without a known reason (400, 409). On some BMCs the refusal is temporary.
    Disliked,
    /// The BMC requires the header `If-Match`, or the resource has changed since its value was read.
    Precondition,
    /// The BMC refused the request for a reason that no other kind covers.
    Refused,
    /// The answer is not valid Redfish: HTML, broken JSON, or wrong types.
    Garbled,
    /// The BMC redirected the request in a way that must not be followed: to another host, to plain HTTP, or in a loop.
    ForeignRedirect,
    /// The configuration fits several systems, or the system is another one than the configured one.
    WrongSystem,
    /// The BMC's complete list of systems has other systems, and lacks the configured one.
    NoSuchSystem,
}

/// A failed request to a BMC: its kind, and a sentence that explains it.
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

    /// Returns whether the BMC has answered. It is then reachable, but it refused the request or is not ready.
    pub fn is_an_answer(&self) -> bool {
        !matches!(self.kind, FailureKind::Unreachable | FailureKind::Interrupted | FailureKind::Silent)
    }
}
