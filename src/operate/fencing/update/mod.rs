//! Replaces a BMC's password, user, address or certificate so that the node can be fenced at every moment.
//!
//! A password file gets the new password as its second line, in one rename. It loses the first line once the BMC
//! accepts the second. The CIB changes in one write. Only a staged password is stored before the BMC has accepted it.

mod device;
mod other;
mod race;
mod secret;
mod steps;
mod values;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

pub use self::secret::differences;

use serde::Serialize;
use zeroize::Zeroizing;

use self::steps::Work;
use super::seen;
use crate::adapters::command::Programs;
use crate::operate::failure::Failure;
use crate::operate::node;

/// The arguments of `tandem fencing update`; its help explains each field.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub struct Order {
    pub node: String,
    pub device: Option<String>,
    pub password_file: Option<PathBuf>,
    pub password_stdin: bool,
    pub no_question: bool,
    pub username: Option<String>,
    pub ip: Option<String>,
    pub systems_uri: Option<String>,
    pub ssl_fingerprint: Option<String>,
    pub stage: bool,
    pub change_at_bmc: bool,
    pub from_secret: bool,
    /// Destination for ssh, `[USER@]HOST`, of the other node, on which the same change is made; `None` to change only this node.
    pub ssh: Option<String>,
    /// Time limit for a command on the other node, and for OpenShift's API.
    pub timeout: Duration,
    /// The id of the etcd resource; `None` if the operator named none.
    pub resource: Option<String>,
}

/// The report of `tandem fencing update`: what it changed, and what the operator must do next.
#[derive(Debug, Default, Serialize)]
pub struct Updated {
    pub node: String,
    pub device: String,
    pub done: Vec<String>,
    pub lines: Option<usize>,
    pub old_on: Option<String>,
    pub secret: Option<bool>,
    pub next: Vec<String>,
}

/// The terminal at which `tandem fencing update` was typed.
pub trait Terminal {
    /// Reads at most `limit` bytes of standard input.
    fn input(&self, limit: u64) -> io::Result<Zeroizing<Vec<u8>>>;
    /// Prints `question` and reads a password without echo.
    fn password(&self, question: &str) -> io::Result<Zeroizing<String>>;
}

/// Changes a fence device as `order` describes.
pub fn run(order: &Order, terminal: &dyn Terminal) -> Result<Updated, Failure> {
    let programs = Programs::default();
    let cluster = seen::look(order.resource.as_deref());
    let device = device::find(&programs, &cluster, &order.node, order.device.as_deref())?;
    let new = if order.from_secret {
        secret::read(&node::kubeconfig(order.resource.as_deref())?, &device)?
    } else {
        values::read(order, &device, terminal)?
    };
    if order.from_secret && new.is_nothing() {
        let done =
            vec![format!("{} has what OpenShift's Secret of {} has, and nothing was changed", device.id, device.node)];
        return Ok(Updated { node: device.node, device: device.id, done, secret: Some(true), ..Updated::default() });
    }
    Work::new(order, &programs, &cluster, device, new).run()
}
