//! The judgement of a change of the members without carrying it out.

use super::judge::{self, Planned, Wanted};
use super::look;
use crate::operate::cluster;
use crate::operate::failure::Failure;
use crate::operate::health;
use crate::operate::members::source::Target;

/// Observes the members, and judges the change `wanted` by the member rules. Changes nothing.
pub fn planned(wanted: &Wanted, target: &Target) -> Result<Planned, Failure> {
    let mut source = target.source()?;
    // The wanted number of voters has no influence on a stop.
    if !matches!(wanted, Wanted::Stop(_)) {
        source.ask_how_many()?;
    }
    let mut seen = match wanted {
        Wanted::Promote(_) | Wanted::Replace { .. } => look::look_twice(&source)?,
        Wanted::Stop(_) | Wanted::Remove { .. } | Wanted::Removed(_) | Wanted::Add(_) => look::look(&source)?,
    };
    if let Wanted::Replace { old, new: Some(new) } = wanted
        && source.wanted.is_none()
    {
        seen.membership.wanted = judge::wanted(&seen.membership, judge::find(&seen.membership, old), new);
    }
    if source.pair.is_none() {
        return judge::plan(wanted, &seen, None);
    }
    let cluster = cluster::ask(target.resource())?;
    seen.beside(&cluster);
    let node = match wanted {
        Wanted::Stop(node) | Wanted::Remove { node, .. } | Wanted::Removed(node) | Wanted::Promote(node) => node,
        Wanted::Replace { old, .. } => old,
        Wanted::Add(_) => return judge::plan(wanted, &seen, None),
    };
    if seen.membership.members.iter().any(|member| member.node.is_none() && judge::is_called(member, node)) {
        return judge::plan(wanted, &seen, None);
    }
    if !health::names(&cluster).contains(node) {
        let known = health::names(&cluster).join(", ");
        return Err(Failure(format!("no node is called '{node}'; there are: {known}")));
    }
    judge::plan(wanted, &seen, Some(&health::outlook(&cluster, node)))
}
