//! The operator's side of a command: lines, questions and progress. The command line implements it, because it has the
//! terminal.

use std::fmt::{Debug, Display};

use super::failure::Failure;

/// The terminal at which an operator reads and answers, or a script that answers in advance.
pub trait Talk: Debug {
    /// Prints lines that explain a question, or report what followed from its answer.
    fn tell(&self, lines: &dyn Display) -> Result<(), Failure>;

    /// Asks `question`, and fails unless the answer is `name`.
    fn name(&self, question: &str, name: &str) -> Result<(), Failure>;

    /// Asks `question`, and fails unless the answer is `name`. An approval given in advance, such as `--yes`, replaces
    /// the answer.
    fn name_or_leave(&self, question: &str, name: &str) -> Result<(), Failure>;

    /// Asks `question`, and returns whether the answer is 'yes'.
    fn leave(&self, question: &str) -> Result<bool, Failure>;

    /// Starts the display of the command's progress.
    fn progress(&self) -> Box<dyn Progress>;

    /// Sends the command's log messages to syslog from now on.
    fn log_to_syslog(&self);
}

/// A display of a running command's progress.
pub trait Progress: Debug {
    /// Shows what the command does now. A text that is already shown is not repeated.
    fn say(&self, text: &str);

    /// Shows a line that stays in the output.
    fn keep(&self, line: &str);

    /// Hides the progress display while `meanwhile` uses the terminal.
    fn pause(&self, meanwhile: &mut dyn FnMut());

    /// Removes the progress display.
    fn end(&self);
}

#[cfg(test)]
pub(crate) mod fake_operator {
    //! An operator that types nothing, with answers given beforehand.

    use super::{Debug, Display, Failure, Progress, Talk};

    /// A fake operator that answers as the options `--yes` and `--confirm NODE` do.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Operator {
        pub(crate) yes: bool,
        pub(crate) confirm: Option<&'static str>,
    }

    impl Talk for Operator {
        fn tell(&self, _: &dyn Display) -> Result<(), Failure> {
            Ok(())
        }

        fn name(&self, _: &str, name: &str) -> Result<(), Failure> {
            if self.confirm == Some(name) {
                return Ok(());
            }
            Err(Failure(format!("nothing was done: '{name}' was not typed")))
        }

        fn name_or_leave(&self, question: &str, name: &str) -> Result<(), Failure> {
            if self.yes { Ok(()) } else { self.name(question, name) }
        }

        fn leave(&self, _: &str) -> Result<bool, Failure> {
            Ok(self.yes)
        }

        fn progress(&self) -> Box<dyn Progress> {
            Box::new(Unseen)
        }

        fn log_to_syslog(&self) {}
    }

    /// A progress display that shows nothing.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Unseen;

    impl Progress for Unseen {
        fn say(&self, _: &str) {}

        fn keep(&self, _: &str) {}

        fn pause(&self, meanwhile: &mut dyn FnMut()) {
            meanwhile();
        }

        fn end(&self) {}
    }
}
