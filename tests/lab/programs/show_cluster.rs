//! The cluster as this node observes it, printed as JSON. With `publish`, the node's own facts are published first.
//! With `cost`, it prints the elapsed time and the CPU time, including those of the programs that it ran.

#![expect(clippy::print_stdout, reason = "that is what it is for")]

use std::error::Error;
use std::time::Instant;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use tandem::adapters::command::Programs;
use tandem::adapters::pace::limits::Limits;
use tandem::operate::cluster;

fn main() -> Result<(), Box<dyn Error>> {
    let (programs, limits) = (Programs::default(), Limits::default());
    cluster::must_be_root()?;
    let began = Instant::now();
    let mut seen = cluster::look(&programs, None, &limits);
    let took = began.elapsed();
    match std::env::args().nth(1).as_deref() {
        Some("cost") => {
            let spent =
                |who| getrusage(who).map(|usage: Usage| (usage.user_time() + usage.system_time()).num_milliseconds());
            let (own, children) = (spent(UsageWho::RUSAGE_SELF)?, spent(UsageWho::RUSAGE_CHILDREN)?);
            println!("{} ms; {own} ms of CPU time, and {children} ms of the programs", took.as_millis());
            return Ok(());
        }
        Some("publish") => {
            cluster::publish(&programs, &cluster::take_own(&mut seen))?;
            seen = cluster::look(&programs, None, &limits);
        }
        _ => {}
    }
    println!("{}", serde_json::to_string_pretty(&seen)?);
    Ok(())
}
