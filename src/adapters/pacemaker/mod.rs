//! Pacemaker: the CIB, which is read in one query, its attributes, and Pacemaker's own tools.

pub mod alerts;
pub mod attributes;
pub mod by_hand;
pub mod cib;
mod cib_document;
pub mod configuration;
pub mod crm_mon;
pub mod duration;
pub(crate) mod element;
pub mod erased;
pub mod exit_code;
pub(crate) mod fence_device;
pub mod fence_options;
pub mod fence_update;
pub mod instance;
pub mod layout;
mod maintenance;
pub mod member_change;
pub mod names;
pub mod node_settings;
mod nodes;
pub(crate) mod primitive;
pub mod resource;
pub mod seen;
mod times;
mod wishes;

use self::exit_code::DISCONNECTED;
use crate::adapters::command::{self, Programs};
use crate::adapters::pace::Question;

/// The failure of one of Pacemaker's tools.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Command(#[from] command::Error),
    #[error(
        "Pacemaker is stopped on this node, or is still starting ({tool}: {complaint}): type 'pcs cluster start', or, in the first minute after a boot, \
         'tandem status'"
    )]
    Disconnected { tool: &'static str, complaint: String },
    #[error("{tool} failed ({code}): {complaint}")]
    Tool { tool: &'static str, code: i32, complaint: String },
    /// The failure of a command that the operator can also type.
    #[error("'{command}' failed: {complaint}")]
    ByHand { command: String, complaint: String },
    #[error("the CIB is not understood: {0}")]
    Parse(String),
    #[error(
        "the {option} of {device} is kept by cibsecret, and cannot be read from {path} ({why}): type 'cibsecret sync' on the node that has it"
    )]
    Secret { device: String, option: String, path: String, why: String },
}

fn run(programs: &Programs, tool: &'static str, args: &[&str]) -> Result<String, Error> {
    let output = programs.run(tool, args, Question::Pacemaker)?;
    if output.code == 0 {
        return Ok(output.stdout);
    }
    let complaint = output.complaint().to_owned();
    match output.code {
        DISCONNECTED => Err(Error::Disconnected { tool, complaint }),
        code => Err(Error::Tool { tool, code, complaint }),
    }
}

/// Returns the nodes that Pacemaker's daemons remember, whether they are members or not.
pub fn remembered_nodes(programs: &Programs) -> Result<Vec<String>, Error> {
    let listed = run(programs, "crm_node", &["--list"])?;
    // A line is such as `2 node2 lost`. A node without a name, known by its number only, is omitted.
    let name = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, name, _] => Some(name.to_owned()),
        _ => None,
    };
    Ok(listed.lines().filter_map(name).collect())
}

/// Returns the name of this node in the cluster.
pub fn local_node(programs: &Programs) -> Result<String, Error> {
    Ok(run(programs, "crm_node", &["-n"])?.trim().to_owned())
}
