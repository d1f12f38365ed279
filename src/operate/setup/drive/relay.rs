//! Sends the messages of a setup to the operators at both nodes.

use std::cell::RefCell;

use crate::operate::failure::Failure;
use crate::operate::setup::channel::Call;
use crate::operate::talk::{self, Progress};

/// The receivers of a setup's messages: the operator at this node and, if `call` is set, the operator at the other
/// node.
#[derive(Debug)]
pub struct Relay<'a> {
    pub progress: &'a dyn Progress,
    pub operator: &'a dyn talk::Talk,
    pub call: Option<&'a Call>,
    pub warnings: &'a RefCell<Vec<String>>,
}

impl super::Talk for Relay<'_> {
    fn progress(&self, text: &str) {
        self.progress.say(text);
        if let Some(call) = self.call {
            call.say(text);
        }
    }

    fn warn(&self, text: &str) {
        self.progress.keep(&format!("warning: {text}"));
        self.warnings.borrow_mut().push(text.to_owned());
    }

    fn confirm(&self, node: &str, fingerprint: &str) -> Result<bool, String> {
        let question = format!(
            "The BMC of {node} shows a certificate that nobody signed, with the SHA-256 fingerprint\n{fingerprint}\n\
             Compare it with what the BMC itself says of its certificate. Type 'yes' if it is the same"
        );
        let mut answer = Ok(false);
        self.progress.pause(&mut || answer = self.operator.leave(&question));
        answer.map_err(|Failure(why)| why)
    }
}
