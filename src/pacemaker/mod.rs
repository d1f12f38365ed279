//! Pacemaker's side: the CIB read in one query, and the attributes that are written to it.

pub mod attributes;
pub mod cib;
pub mod resource;

use std::time::Duration;

use crate::command;

/// How long one of Pacemaker's tools may take: the CIB's manager answers in milliseconds or is in trouble.
const TOOL_TIMEOUT: Duration = Duration::from_secs(8);

/// One of Pacemaker's tools did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Command(#[from] command::Error),
    #[error("{tool} failed ({code}): {complaint}")]
    Tool { tool: &'static str, code: i32, complaint: String },
    #[error("the CIB is not understood: {0}")]
    Parse(String),
}

fn run(tool: &'static str, args: &[&str]) -> Result<String, Error> {
    let output = command::run(tool, args, TOOL_TIMEOUT)?;
    if output.code == 0 {
        return Ok(output.stdout);
    }
    Err(Error::Tool { tool, code: output.code, complaint: output.complaint().to_owned() })
}

/// The name of this node, as the cluster has it.
pub fn local_node() -> Result<String, Error> {
    Ok(run("crm_node", &["-n"])?.trim().to_owned())
}
