//! A check of how a BMC shows that another client is at work. Two sessions prove it by searching for each other in its list.

use serde::{Deserialize, Serialize};

use super::failure::{Failure, FailureKind};
use super::mark::{MarkBoard, Marks, same};

/// The prefix of the `Context` of the two sessions that this check opens. No fence agent takes such a session for one that announces a
/// reset.
const PROOF: &str = "tandem-fencing-check";

/// The property by which one agent's session on a BMC is visible to another agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// The BMC shows another client's session with its `Context`.
    SessionWithContext,
    /// The BMC shows another client's session without its `Context`, and only with its user.
    SessionWithoutContext,
    /// The BMC does not show another client's session, for the reason in the field.
    None(String),
}

impl std::fmt::Display for Flag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SessionWithContext => f.write_str("a session with its Context"),
            Self::SessionWithoutContext => f.write_str("a session, shown without its Context"),
            Self::None(why) => write!(f, "none ({why})"),
        }
    }
}

/// Opens two sessions on one BMC, and checks in the second one how the BMC lists the first one. Deletes both sessions.
pub fn prove([one, other]: [&mut MarkBoard; 2]) -> Flag {
    let proven = look(one, other);
    one.lower();
    other.lower();
    proven.unwrap_or_else(|failure| Flag::None(failure.to_string()))
}

fn look(one: &mut MarkBoard, other: &mut MarkBoard) -> Result<Flag, Failure> {
    one.raise(&format!("{PROOF} 1"))?;
    other.raise(&format!("{PROOF} 2"))?;
    let Marks { ours, others, .. } = other.read()?;
    let missing = |why: &str| Failure::new(FailureKind::Missing, why);
    if !ours {
        return Err(missing("its list of sessions does not show a session that was just opened"));
    }
    let path = one.path().ok_or_else(|| missing("the BMC does not name the place of a session"))?;
    let seen = others.iter().find(|session| same(&session.path, &path));
    let seen = seen.ok_or_else(|| missing("its list of sessions does not show the sessions of another client"))?;
    let is_kept = seen.context.as_deref().is_some_and(|context| context.starts_with(PROOF));
    Ok(if is_kept { Flag::SessionWithContext } else { Flag::SessionWithoutContext })
}
