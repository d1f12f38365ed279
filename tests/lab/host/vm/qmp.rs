//! QEMU's own report of a reset, with the time on this machine's clock.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::Result;

/// A connection to the QEMU of one virtual machine. It reports the resets that happen after it was made.
#[derive(Debug)]
pub struct Resets {
    from: BufReader<UnixStream>,
}

impl Resets {
    pub fn of(lab: &Lab, node: Node) -> Result<Self> {
        let mut stream = UnixStream::connect(lab.node_dir(node).join("qmp"))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"{\"execute\":\"qmp_capabilities\"}\n")?;
        Ok(Self { from: BufReader::new(stream) })
    }

    /// Waits for the virtual machine's next reset, and returns its time since 1970.
    pub fn next(&mut self, limit: Duration) -> Result<Duration> {
        let began = Instant::now();
        let mut line = Vec::new();
        while began.elapsed() < limit {
            crate::interrupt::check()?;
            match self.from.read_until(b'\n', &mut line) {
                Ok(0) => return Err("QEMU has ended".into()),
                Ok(_) => {
                    if let Some(at) = reset(&line) {
                        return Ok(at);
                    }
                    line.clear();
                }
                // An incomplete line stays in the buffer.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(format!("the machine was not reset within {} s", limit.as_secs()).into())
    }
}

fn reset(line: &[u8]) -> Option<Duration> {
    let event: Value = serde_json::from_slice(line).ok()?;
    if event["event"] != "RESET" {
        return None;
    }
    let time = &event["timestamp"];
    let micros = u32::try_from(time["microseconds"].as_u64()?).ok()?;
    Some(Duration::new(time["seconds"].as_u64()?, micros * 1_000))
}

/// Returns whether QEMU's event of a reset is recognized, and no other event is. The lab's self-test calls it.
pub fn knows_a_reset() -> bool {
    let line = br#"{"timestamp": {"seconds": 1795616240, "microseconds": 250000}, "event": "RESET", "data": {"guest": true, "reason": "guest-reset"}}"#;
    let other = br#"{"timestamp": {"seconds": 1795616240, "microseconds": 250000}, "event": "WATCHDOG", "data": {"action": "reset"}}"#;
    reset(line) == Some(Duration::from_millis(1_795_616_240_250)) && reset(other).is_none() && reset(b"{").is_none()
}
