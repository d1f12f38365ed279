//! The end of a change: who votes, and that both have the same.

use std::time::Duration;

use super::facts::Look;
use super::work::{Took, Work};
use crate::admin::exit::Failure;
use crate::admin::member::words::Shared;
use crate::decide::may_stop::{Answer, may_stop};
use crate::etcd::blocking;
use crate::etcd::maintenance::Hash;
use crate::health;
use crate::resource::context::Context;

/// A large database takes its time.
const HASH: Duration = Duration::from_secs(60);
/// The new one may lack a moment.
const TRIES: usize = 5;
const AGAIN: Duration = Duration::from_millis(500);

impl Work {
    pub(super) fn verify(&self, look: &Look, _: &Shared) -> Result<Took, Failure> {
        let Some(new) = &self.change.new else {
            let seen = look.seen(&self.change);
            let here = &self.change.here.name;
            return Ok(if seen.serves_alone {
                Took::Over(format!("{here} is the only voter, and takes writes"))
            } else {
                Took::Waits(format!("waits until {here} serves alone"))
            });
        };
        let nodes = [&self.change.here.name, &new.name];
        for node in nodes {
            match may_stop(&health::outlook(&look.cluster, node)) {
                Answer::Yes => {}
                Answer::No(_) | Answer::Unknown(_) => {
                    let wrong = Self::problems(look);
                    let wrong = if wrong.is_empty() { String::new() } else { format!(" ({wrong})") };
                    return Ok(Took::Waits(format!("waits until either node could go on alone{wrong}")));
                }
            }
        }
        if !look.is_fenced_from(nodes[0], nodes[1]) {
            let why = look.device_failure(nodes[0]).map(|why| format!(": {why}")).unwrap_or_default();
            return Ok(Took::Waits(format!("waits until {} runs the fence device of {}{why}", nodes[1], nodes[0])));
        }
        self.progress.say("compares the data of both");
        let (revision, [here, there]) = hashes(&look.context)?;
        if here == there {
            return Ok(Took::Over(format!(
                "{} and {} vote, and have the same at revision {revision} (HashKV {:08x})",
                nodes[0], nodes[1], here.hash
            )));
        }
        Err(Failure(format!(
            "the data of {} and {} differ at revision {revision}: 'pcs node standby {}', and see docs/operate/recovery.md",
            nodes[0], nodes[1], nodes[1]
        )))
    }
}

/// Both at one revision, where their histories begin at one, too.
fn hashes(context: &Context) -> Result<(i64, [Hash; 2]), Failure> {
    let Some(peer) = &context.peer_endpoint else { return Err(Failure("there is no second node".to_owned())) };
    let credentials = context.credentials();
    let mut last = String::new();
    for _ in 0..TRIES {
        let revision = blocking::revision(&context.own_endpoint, credentials, HASH)?;
        let ask = |endpoint| blocking::hash(endpoint, credentials, revision, HASH);
        match (ask(&context.own_endpoint), ask(peer)) {
            (Ok(here), Ok(there)) if can_be_compared(here, there) => return Ok((revision, [here, there])),
            (Ok(_), Ok(_)) => "they are compacted at different revisions".clone_into(&mut last),
            (Err(error), _) | (_, Err(error)) => last = error.to_string(),
        }
        crate::clock::sleep(AGAIN);
    }
    Err(Failure(format!("the data of both could not be compared: {last}: 'tandem member replace' tries again")))
}

/// What is compacted elsewhere has another hash, and the same data.
fn can_be_compared(here: Hash, there: Hash) -> bool {
    here.compact_revision == there.compact_revision
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_compared_where_their_histories_begin_at_one_revision() {
        let hash = |hash, compact_revision| Hash { hash, compact_revision };
        assert!(can_be_compared(hash(1, 5), hash(2, 5)) && !can_be_compared(hash(1, 5), hash(1, 6)));
    }
}
