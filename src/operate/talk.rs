//! The operator's side of a command: lines, questions and progress. The command line implements it, because it has the
//! terminal.

use std::fmt::{Debug, Display};

use super::failure::Failure;

/// The operator that typed a command, or a script in an operator's place.
pub trait Talk: Debug {
    /// Prints lines that belong to a question, or to what was done with its answer.
    fn tell(&self, lines: &dyn Display) -> Result<(), Failure>;

    /// Fails unless the answer to `question` is `name`.
    fn name(&self, question: &str, name: &str) -> Result<(), Failure>;

    /// Fails as [`Talk::name`] does, and takes leave that was given beforehand for the name.
    fn name_or_leave(&self, question: &str, name: &str) -> Result<(), Failure>;

    /// Returns whether the answer to `question` is 'yes'.
    fn leave(&self, question: &str) -> Result<bool, Failure>;

    /// Starts to show how far the command is.
    fn progress(&self) -> Box<dyn Progress>;
}

/// A display of how far a command is.
pub trait Progress: Debug {
    /// Shows what the command does now; shows the same text once.
    fn say(&self, text: &str);

    /// Shows a line that stays.
    fn keep(&self, line: &str);

    /// Takes the display away while `meanwhile` uses the terminal.
    fn pause(&self, meanwhile: &mut dyn FnMut());

    /// Takes the display away.
    fn end(&self);
}
