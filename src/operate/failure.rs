//! Failures of the operator's domain: a sentence, with what to type instead.

/// The reason why a command did not do something, and what to type instead, in one sentence.
#[derive(Debug)]
pub struct Failure(pub String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}
