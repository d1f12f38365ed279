//! The commands that `tandem status` prints for an operator, typed in a shell on the same host.

use serde_json::Value;

use crate::cluster::asked;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::sh::Result;

/// Returns the command that `tandem status` on `on` prints for the problem `id`. Waits until the problem is reported.
pub fn command_of(lab: &Lab, on: Node, id: &str) -> Result<String> {
    command_that_begins(lab, on, id, "")
}

/// Returns the first command for the problem `id` that begins with `begins`, and waits until there is one. `tandem
/// status` on `on` may report the same problem several times, with different commands.
pub fn command_that_begins(lab: &Lab, on: Node, id: &str, begins: &str) -> Result<String> {
    let what = format!("status on {on} has a command '{begins}' for {id}");
    let found = eventually(&what, || find(lab, on, id, begins), |found| matches!(found, Ok(Some(_))))?;
    found?.ok_or_else(|| what.into())
}

fn find(lab: &Lab, on: Node, id: &str, begins: &str) -> Result<Option<String>> {
    let (_, said) = host::typed(lab, on, "tandem status --json 2> /dev/null")?;
    let document: Value = serde_json::from_str(&said).map_err(|error| format!("{error}: {said}"))?;
    let problems = document["problems"].as_array().cloned().unwrap_or_default();
    let of_id = problems.iter().filter(|problem| problem["id"] == id);
    let mut commands = of_id.filter_map(|problem| problem["command"].as_str());
    Ok(commands.find(|command| command.starts_with(begins)).map(str::to_owned))
}

/// Runs a command line on `on`, and returns its exit code and output. A command line that begins with `ssh NODE` runs
/// directly on that node, because most of the lab's hosts have no sshd.
pub fn types(lab: &Lab, on: Node, command: &str) -> Result<(i32, String)> {
    lab.event(&format!("typed on {on}: {command}"));
    let elsewhere = NODES.into_iter().find_map(|node| Some((node, command.strip_prefix(&format!("ssh {node} "))?)));
    let (on, line) = elsewhere.unwrap_or((on, command));
    host::typed(lab, on, line)
}

/// Runs the command that `tandem status` on `on` prints for the problem `id`, and checks that the problem is gone
/// afterwards.
pub fn mends(lab: &Lab, on: Node, id: &str) -> Result<()> {
    let command = command_of(lab, on, id)?;
    println!("   {id}: {command}");
    let (code, said) = types(lab, on, &command)?;
    must(&format!("'{command}' succeeds on {on}: {said}"), code, |code| *code == 0)?;
    let what = format!("{id} is gone after '{command}'");
    eventually(&what, || asked::ask(lab, on), |answer| answer.as_ref().is_ok_and(|answer| !answer.names(id))).map(drop)
}
