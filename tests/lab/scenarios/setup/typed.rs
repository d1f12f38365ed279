//! `tandem setup` as an operator types it: on one node, and then the command that it prints for the other one.

use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::{self, Result};

/// The node on which the operator types the first command. The other node is [`THERE`].
pub const HERE: Node = Node::One;
pub const THERE: Node = Node::Two;
/// The path on the other node to which the join file is copied.
const CARRIED: &str = "/root/carried.join";
const PID: &str = "/run/lab-setup.pid";
/// A time longer than any command of a set-up may take. A command that runs longer hangs.
const LIMIT: Duration = Duration::from_secs(300);

/// The exit code, output and duration of a command that has ended.
#[derive(Clone, Debug)]
pub struct Done {
    /// The shell's exit code. `None` if a signal ended the command.
    pub code: Option<i32>,
    pub said: String,
    pub took: Duration,
}

impl Done {
    pub fn must_be(&self, code: i32) -> Result<()> {
        if self.code == Some(code) {
            return Ok(());
        }
        Err(format!("the exit code should be {code}, and is {:?}: {}", self.code, self.said.trim()).into())
    }
}

/// A command that runs on a node, with its output so far.
pub struct Typed {
    lab: Lab,
    node: Node,
    child: Child,
    said: Arc<Mutex<String>>,
    began: Instant,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Typed {
    /// Starts the command line `line` on a node.
    pub fn begin(lab: &Lab, node: Node, line: &str) -> Result<Self> {
        let script = format!("echo $$ > {PID}; exec 2>&1; exec {line}");
        let mut command = host::command(lab, node, &["sh", "-c", &script])?;
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let said = Arc::new(Mutex::new(String::new()));
        let mut output = child.stdout.take().ok_or("a command without output")?;
        let into = Arc::clone(&said);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0_u8; 4096];
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                into.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
            }
        });
        Ok(Self { lab: lab.clone(), node, child, said, began: Instant::now(), reader: Some(reader) })
    }

    /// Returns the command's output so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether the command has ended.
    pub fn ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Sends SIGKILL to the command's own process on the node. Returns whether the command was still running.
    pub fn kill(&mut self) -> Result<bool> {
        let script = format!("kill -9 $(cat {PID})");
        let killed = host::output(&self.lab, self.node, &["sh", "-c", &script])?;
        if killed.ok || self.ends_soon() {
            return Ok(killed.ok);
        }
        Err(format!("'tandem setup' on {} cannot be killed: {}", self.node, killed.stderr.trim()).into())
    }

    /// Waits for at most two seconds, and returns whether the command has ended by itself.
    pub fn ends_soon(&mut self) -> bool {
        sh::wait_for_quietly(Duration::from_secs(2), Duration::from_millis(20), || self.ended())
    }

    /// Waits until the command has ended. Kills it after [`LIMIT`], and fails then.
    pub fn done(mut self) -> Result<Done> {
        let ended =
            sh::wait_for(&format!("what was typed on {} to end", self.node), LIMIT, Duration::from_millis(30), || {
                self.ended().then_some(())
            });
        if let Err(error) = ended {
            let _ = self.kill();
            return Err(format!("{error}: {}", self.said().trim()).into());
        }
        let took = self.began.elapsed();
        let code = self.child.wait()?.code();
        if let Some(reader) = self.reader.take() {
            // A child that it left behind may hold its output open, and adds nothing to it.
            sh::wait_for_quietly(Duration::from_secs(2), Duration::from_millis(20), || reader.is_finished());
        }
        Ok(Done { code, said: self.said(), took })
    }
}

/// Runs the command line `line` on a node to its end.
pub fn typed(lab: &Lab, node: Node, line: &str) -> Result<Done> {
    Typed::begin(lab, node, line)?.done()
}

/// Returns the path of the join file that `tandem setup` on the first node writes for the other one.
pub fn join_file() -> String {
    format!("/etc/tandem/{THERE}.join")
}

/// Waits until `tandem setup` on the first node has written the join file, and returns the file's contents.
pub fn wait_join_file(lab: &Lab, first: &mut Typed) -> Result<String> {
    let file = join_file();
    let seen =
        sh::wait_for(&format!("{HERE} to write {file}"), Duration::from_secs(60), Duration::from_millis(50), || {
            if first.ended() {
                return Some(None);
            }
            let read = host::output(lab, HERE, &["cat", &file]).ok()?;
            (read.ok && !read.stdout.is_empty()).then_some(Some(read.stdout))
        })?;
    seen.ok_or_else(|| format!("it has ended before it wrote {file}: {}", first.said()).into())
}

/// Writes `content` to the other node as the copied join file, as `scp` would.
pub fn carry(lab: &Lab, content: &str) -> Result<()> {
    host::put(lab, THERE, CARRIED, content)?;
    host::must(lab, THERE, &["chmod", "600", CARRIED]).map(drop)
}

/// Returns the command line of `tandem setup join` for the other node.
pub fn join_line() -> String {
    format!("tandem setup join {CARRIED}")
}

/// Runs the commands of a set-up on both nodes to their ends. Calls `before` while the first node's command waits for
/// the other one.
pub fn two_commands(lab: &Lab, line: &str, before: impl FnOnce() -> Result<()>) -> Result<[Done; 2]> {
    let mut first = Typed::begin(lab, HERE, line)?;
    let content = wait_join_file(lab, &mut first)?;
    carry(lab, &content)?;
    before()?;
    let second = Typed::begin(lab, THERE, &join_line())?;
    let first = first.done()?;
    Ok([first, second.done()?])
}

/// Waits until no `tandem setup` runs on either node. A command notices within a minute that its peer was killed or
/// cut.
pub fn nothing_is_left(lab: &Lab) -> Result<()> {
    for node in crate::host::node::NODES {
        // The brackets keep `pgrep` from finding itself.
        let none = || host::must(lab, node, &["sh", "-c", "! pgrep -f '[t]andem setup'"]).ok().map(drop);
        sh::wait_for(
            &format!("'tandem setup' on {node} to notice its peer's end"),
            Duration::from_secs(60),
            Duration::from_millis(300),
            none,
        )?;
    }
    Ok(())
}
