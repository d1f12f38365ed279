//! The line on stderr that shows the progress of a command.

use std::cell::RefCell;
use std::time::Duration;

use indicatif::ProgressBar;

use crate::operate::talk;
use crate::os::output::complain;

const TICK: Duration = Duration::from_millis(200);

/// The progress of a command on stderr. On a terminal, a single line shows the latest text. Elsewhere, each new text is printed on a line
/// of its own.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    last: RefCell<String>,
}

impl Progress {
    pub(super) fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(TICK);
        Self { bar, last: RefCell::default() }
    }
}

impl talk::Progress for Progress {
    fn say(&self, text: &str) {
        if text.is_empty() || self.last.replace(text.to_owned()) == text {
            return;
        }
        if self.bar.is_hidden() {
            complain(format_args!("tandem: {text}"));
        } else {
            self.bar.set_message(text.to_owned());
        }
    }

    fn keep(&self, line: &str) {
        self.bar.suspend(|| complain(line));
    }

    fn pause(&self, meanwhile: &mut dyn FnMut()) {
        self.bar.suspend(meanwhile);
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}
