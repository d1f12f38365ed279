//! The questions of all subcommands, and the options by which a script answers them.
//!
//! There are three kinds of question. The first asks for permission to continue, which `--yes` gives. The second asks
//! for a node's name, if something may be lost. `--confirm NODE` gives it, so that a script has to name the node. The
//! third asks for the operator's own evidence, and only an option of that subcommand answers it.

use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use log::LevelFilter;

use super::progress::Progress;
use super::report::Form;
use crate::operate::failure::Failure;
use crate::operate::talk::{self, Talk};
use crate::os::{logging, output};

/// The answers that were given beforehand.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct Answers {
    /// Answers yes to each question whether to continue; without it, the command asks
    #[arg(long)]
    yes: bool,
    /// Answers with this name each question for the name of a node; without it, the command asks
    #[arg(long, value_name = "NODE")]
    confirm: Option<String>,
}

/// Returns whether no question can be asked, because standard input is no terminal and has ended.
pub(super) fn is_at_an_end() -> bool {
    let stdin = io::stdin();
    !stdin.is_terminal() && stdin.lock().fill_buf().is_ok_and(<[u8]>::is_empty)
}

impl Answers {
    pub(super) fn has_name(&self) -> bool {
        self.confirm.is_some()
    }

    /// Returns whether `--yes` was given.
    pub(super) fn has_leave(&self) -> bool {
        self.yes
    }

    /// Returns answers that contain only the name for `--confirm`.
    pub(super) fn confirming(name: Option<String>) -> Self {
        Self { yes: false, confirm: name }
    }
}

/// The dialogue with the operator, in which options may answer questions.
#[derive(Debug)]
pub(super) struct Prompt<'a> {
    answers: &'a Answers,
    /// True if stdout is reserved for one JSON object. If so, the dialogue uses stderr.
    json: bool,
}

impl<'a> Prompt<'a> {
    pub(super) fn new(answers: &'a Answers, form: Form) -> Self {
        Self { answers, json: form.json }
    }

    /// Prints text of the dialogue, such as a warning before a question.
    pub(super) fn tell(&self, lines: impl Display) -> Result<(), Failure> {
        if self.json {
            output::complain(lines);
            return Ok(());
        }
        Ok(output::say(lines)?)
    }

    /// Asks for a name, unless `--confirm` gave one, and checks that it is `name`. The error names what was not typed.
    pub(super) fn name(&self, question: &str, name: &str) -> Result<(), Failure> {
        let answer = match &self.answers.confirm {
            Some(given) => given.clone(),
            None => self.ask(question)?,
        };
        if answer == name {
            return Ok(());
        }
        Err(Failure(format!("nothing was done: '{name}' was not typed")))
    }

    /// Asks for a name as [`Prompt::name`] does, but also accepts `--yes`.
    pub(super) fn name_or_leave(&self, question: &str, name: &str) -> Result<(), Failure> {
        if self.answers.yes { Ok(()) } else { self.name(question, name) }
    }

    /// Asks `question`, unless `--yes` was given. Returns whether the operator answered 'yes'.
    pub(super) fn leave(&self, question: &str) -> Result<bool, Failure> {
        Ok(self.answers.yes || self.ask(question)? == "yes")
    }

    fn ask(&self, question: &str) -> Result<String, Failure> {
        Ok(self.answer(question)?.unwrap_or_default())
    }

    /// Asks `question` and returns the typed line; `None` if the input has ended.
    pub(super) fn answer(&self, question: &str) -> Result<Option<String>, Failure> {
        // If the question cannot be printed, it is not asked.
        let mut talk: Box<dyn Write> = if self.json { Box::new(io::stderr()) } else { Box::new(io::stdout()) };
        write!(talk, "{question}: ")?;
        talk.flush()?;
        let mut answer = String::new();
        let length = io::stdin().lock().read_line(&mut answer)?;
        Ok((length > 0).then(|| answer.trim().to_owned()))
    }
}

impl Talk for Prompt<'_> {
    fn tell(&self, lines: &dyn Display) -> Result<(), Failure> {
        Prompt::tell(self, lines)
    }

    fn name(&self, question: &str, name: &str) -> Result<(), Failure> {
        Prompt::name(self, question, name)
    }

    fn name_or_leave(&self, question: &str, name: &str) -> Result<(), Failure> {
        Prompt::name_or_leave(self, question, name)
    }

    fn leave(&self, question: &str) -> Result<bool, Failure> {
        Prompt::leave(self, question)
    }

    fn progress(&self) -> Box<dyn talk::Progress> {
        Box::new(Progress::new())
    }

    fn log_to_syslog(&self) {
        let tag = "tandem".to_owned();
        logging::init(logging::Settings { tag, stderr: LevelFilter::Off, syslog: LevelFilter::Info, file: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_answers_its_own_kind_of_question_only() {
        let form = Form { json: false };
        let named = Answers { yes: false, confirm: Some("node2".to_owned()) };
        assert!(Prompt::new(&named, form).name("who", "node2").is_ok());
        let other = Prompt::new(&named, form).name("who", "node1").unwrap_err().0;
        assert_eq!(other, "nothing was done: 'node1' was not typed");
        let yes = Answers { yes: true, confirm: None };
        assert!(Prompt::new(&yes, form).leave("may I").unwrap());
    }
}
