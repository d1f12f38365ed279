//! `tandem member promote` in a pair. It waits for the agent, which promotes by itself.

use std::time::Duration;

use super::facts::Look;
use crate::operate::failure::Failure;
use crate::operate::members::changed::Changed;
use crate::operate::members::judge::{self, Wanted};
use crate::operate::members::order::Terms;
use crate::os::clock::Deadline;

const OFTEN: Duration = Duration::from_secs(1);

pub(super) fn run(node: &str, terms: &Terms) -> Result<Changed, Failure> {
    let end = Deadline::after(if terms.dry_run { Duration::ZERO } else { terms.timeout });
    loop {
        let look = Look::at_all(terms, None)?;
        let seen = look.members?;
        let planned = judge::plan(&Wanted::Promote(node.to_owned()), &seen, None)?;
        let is_named = |member: &&crate::decide::members::Member| member.shown() == node;
        let votes = seen.membership.voters().any(|member| is_named(&member));
        if votes || end.has_passed() {
            let seconds = end.elapsed().as_secs();
            let done = Changed::done("promote", node, Some(&seen.membership), Vec::new(), seconds);
            if votes {
                return Ok(done);
            }
            let because = planned.because.unwrap_or_else(|| format!("the agent promotes {node} with its next monitor"));
            return Ok(Changed {
                done: false,
                rule: planned.rule.or(Some("M7")),
                because: Some(because),
                instead: Some("wait: in a pair the agent promotes; 'tandem member list' shows it".to_owned()),
                ..done
            });
        }
        end.sleep(OFTEN);
    }
}
