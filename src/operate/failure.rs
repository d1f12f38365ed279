//! Failures of the operator's domain: a sentence, with what to type instead.

/// A sentence with the reason why something was not done, and what to type instead.
#[derive(Debug)]
pub struct Failure(pub String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}
