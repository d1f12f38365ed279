//! etcd's alarms, shown where an administrator looks. An alarm is no failure of the member: a restart does not mend it.

use std::collections::BTreeSet;

use crate::decide::evidence::{Etcd, Evidence};
use crate::decide::plan::Effect;
use crate::decide::reason::Health;
use crate::decide::standing;

/// Text before the kind of an alarm in etcd's errors, as in `memberID:10501334649042878790 alarm:NOSPACE`.
const KIND: &str = "alarm:";
const RAISED_BY: &str = "memberID:";

/// Returns the alarms that are raised in etcd, each with the node that raised it; `None` if there are none.
pub(super) fn raised(etcd: &Etcd) -> Option<String> {
    let all: BTreeSet<String> = etcd.alarms.iter().filter_map(|error| described(etcd, error)).collect();
    (!all.is_empty()).then(|| all.into_iter().collect::<Vec<_>>().join(", "))
}

fn described(etcd: &Etcd, error: &str) -> Option<String> {
    let kind = error.split_whitespace().find_map(|word| word.strip_prefix(KIND))?;
    let by = error.split_whitespace().find_map(|word| word.strip_prefix(RAISED_BY));
    let member = by.and_then(|id| id.parse::<u64>().ok());
    let listed = member.and_then(|id| etcd.members.iter().find(|entry| entry.id == id));
    let name = listed.map(|entry| entry.name.clone()).filter(|name| !name.is_empty());
    Some(match name.or_else(|| member.map(|id| format!("member {id:x}"))) {
        Some(name) => format!("{kind} of {name}"),
        None => kind.to_owned(),
    })
}

/// Publishes, in the attribute for alarms, that etcd's auth rejects this agent. etcd serves, but the agent cannot see its state.
pub(super) fn no_permission(evidence: &Evidence) -> Option<Effect> {
    let user = evidence.own_refuses.as_ref()?.user.as_deref();
    let missing = user.map_or_else(|| "AUTH: no CommonName".to_owned(), |user| format!("AUTH: no root role of {user}"));
    let shown = evidence.cib.known()?.own_alarm.as_ref();
    (shown != Some(&missing)).then_some(Effect::SetAlarm(Some(missing)))
}

/// Returns the state of a serving member. If an alarm is raised, it returns the alarm and no other state.
pub(super) fn health(etcd: &Etcd) -> Health {
    match raised(etcd) {
        Some(alarms) => Health::Alarm { alarms },
        None => standing::health(etcd),
    }
}
