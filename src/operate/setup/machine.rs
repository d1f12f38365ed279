//! The requests to a node and the one function that performs them. It runs in the process that drives the setup, and at
//! the other end of the channel.

use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::action::Action;
use super::apply;
use super::bmc::{self, Looked};
use super::description::Description;
use super::local::{self, Found, Question, Secret};
use super::node::ports::{self, Listeners, Port};
use super::node::{self, Facts};
use crate::adapters::command::Programs;

/// A request of the setup to a node, which answers with an [`Answer`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// A request for the facts about the machine.
    Look,
    /// A request to listen on these ports until [`Request::Quiet`]. A port that another program holds is skipped.
    Listen(Vec<Port>),
    Quiet,
    /// A request to try to reach `ports` of the other node. The answer contains the ports that could not be reached. A port in `whoever`
    /// counts as reached if any program responds. Any other port must be answered by a test listener.
    Closed {
        ports: Vec<Port>,
        whoever: Vec<Port>,
    },
    /// A request for the state of the BMC of `node`. `lines` are the fence agent's options with the password.
    Bmc {
        node: String,
        lines: Secret,
    },
    Find(Question),
    Apply(Action),
    /// A request to show this progress to the operator at the node. It also shows that the sender is alive.
    Ping(String),
    /// The last request, with whether the setup ended well. `text` is the result for the operator.
    End {
        is_well: bool,
        text: String,
    },
}

/// The answer of a node to a [`Request`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Answer {
    Facts(Box<Facts>),
    Closed(Vec<Port>),
    Bmc(Box<Looked>),
    Found(Box<Found>),
    Done,
    Failed(String),
    /// The node still works on the request, and another answer follows.
    Working,
}

/// A node that answers setup's requests: this one, or one at the other end of a connection.
pub trait Machine {
    /// Returns the node's name.
    fn name(&self) -> &str;

    /// Sends a request and returns the node's answer. An error means that the node can no longer be reached.
    fn ask(&self, request: Request) -> Result<Answer, String>;

    fn look(&self) -> Result<Facts, String> {
        match self.ask(Request::Look)? {
            Answer::Facts(facts) => Ok(*facts),
            other => Err(self.odd(&other)),
        }
    }

    fn closed(&self, ports: &[Port], whoever: &[Port]) -> Result<Vec<Port>, String> {
        match self.ask(Request::Closed { ports: ports.to_vec(), whoever: whoever.to_vec() })? {
            Answer::Closed(closed) => Ok(closed),
            other => Err(self.odd(&other)),
        }
    }

    fn bmc(&self, node: &str, lines: &Secret) -> Result<Looked, String> {
        match self.ask(Request::Bmc { node: node.to_owned(), lines: lines.clone() })? {
            Answer::Bmc(looked) => Ok(*looked),
            other => Err(self.odd(&other)),
        }
    }

    fn find(&self, question: &Question) -> Result<Found, String> {
        match self.ask(Request::Find(question.clone()))? {
            Answer::Found(found) => Ok(*found),
            other => Err(self.odd(&other)),
        }
    }

    /// Sends a request for which the node answers only that it succeeded or failed.
    fn done(&self, request: Request) -> Result<(), String> {
        match self.ask(request)? {
            Answer::Done => Ok(()),
            Answer::Failed(why) => Err(format!("{}: {why}", self.name())),
            other => Err(self.odd(&other)),
        }
    }

    fn odd(&self, answer: &Answer) -> String {
        match answer {
            Answer::Failed(why) => format!("{}: {why}", self.name()),
            _ => format!("{} answered something else than it was asked: install the same Tandem on both", self.name()),
        }
    }
}

/// This machine, as it answers setup's requests.
#[derive(Debug)]
pub struct Here {
    programs: Programs,
    description: Description,
    at: usize,
    /// True in a dry run, in which this machine refuses every change.
    is_dry: bool,
    listeners: Mutex<Option<Listeners>>,
}

impl Here {
    /// Creates the answering side of this machine, which is the node with the index `at` in the description.
    pub fn new(programs: Programs, description: Description, at: usize, is_dry: bool) -> Self {
        Self { programs, description, at: at.min(1), is_dry, listeners: Mutex::new(None) }
    }

    fn listen(&self, ports: Option<&[Port]>) {
        let address = self.description.nodes[self.at].address;
        if let Ok(mut listeners) = self.listeners.lock() {
            // The old listeners must close first, because they hold the ports.
            drop(listeners.take());
            *listeners = ports.map(|ports| Listeners::open(address, ports));
        }
    }

    /// Carries out a request of the setup on this machine, and returns its answer.
    pub fn answer(&self, request: Request) -> Answer {
        let (here, other) = (&self.description.nodes[self.at], &self.description.nodes[1 - self.at]);
        match request {
            Request::Look => Answer::Facts(Box::new(node::look(&self.programs, &self.description, here))),
            Request::Listen(ports) => {
                self.listen(Some(&ports));
                Answer::Done
            }
            Request::Quiet => {
                self.listen(None);
                Answer::Done
            }
            Request::Closed { ports, whoever } => Answer::Closed(ports::closed(other.address, &ports, &whoever)),
            Request::Bmc { node, lines } => Answer::Bmc(Box::new(bmc::look(&lines, &node, self.description.race))),
            Request::Find(question) => Answer::Found(Box::new(local::look(&self.programs, &question))),
            Request::Apply(_) if self.is_dry => {
                Answer::Failed("nothing is changed with --dry-run: type it without".to_owned())
            }
            Request::Apply(action) if !apply::is_of_setup(&action, &self.description) => {
                Answer::Failed("that is no change of a setup: install the same Tandem on both".to_owned())
            }
            Request::Apply(action) => {
                apply::apply(&self.programs, &action).map_or_else(Answer::Failed, |()| Answer::Done)
            }
            Request::Ping(_) | Request::End { .. } => Answer::Done,
        }
    }
}

impl Machine for Here {
    fn name(&self) -> &str {
        &self.description.nodes[self.at].name
    }

    fn ask(&self, request: Request) -> Result<Answer, String> {
        Ok(self.answer(request))
    }
}
