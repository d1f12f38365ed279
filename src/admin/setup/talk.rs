//! Progress, warnings and the one question, on stderr where stdout is for the answer.

use std::cell::RefCell;
use std::time::Duration;

use indicatif::ProgressBar;

use crate::admin::prompt::Prompt;
use crate::operate::setup::drive;
use crate::os::output::complain;

const TICK: Duration = Duration::from_millis(200);

/// How far it is: a line that changes on a terminal, a line for each change elsewhere.
#[derive(Debug)]
pub(in crate::admin) struct Progress {
    bar: ProgressBar,
    last: RefCell<String>,
}

impl Progress {
    pub(in crate::admin) fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(TICK);
        Self { bar, last: RefCell::default() }
    }

    pub(in crate::admin) fn say(&self, text: &str) {
        if text.is_empty() || self.last.replace(text.to_owned()) == text {
            return;
        }
        if self.bar.is_hidden() {
            complain(format_args!("tandem: {text}"));
        } else {
            self.bar.set_message(text.to_owned());
        }
    }

    /// A line that stays.
    pub(in crate::admin) fn keep(&self, text: &str) {
        self.bar.suspend(|| complain(text));
    }

    pub(in crate::admin) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// Talks with whoever typed the command, and with whoever watches at the other end.
pub(in crate::admin) struct Talk<'a> {
    pub(in crate::admin) progress: &'a Progress,
    pub(in crate::admin) prompt: Prompt<'a>,
    pub(in crate::admin) call: Option<&'a crate::operate::setup::channel::Call>,
    pub(in crate::admin) warnings: &'a RefCell<Vec<String>>,
}

impl drive::Talk for Talk<'_> {
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
        self.progress.bar.suspend(|| self.prompt.leave(&question)).map_err(|failure| failure.0)
    }
}
