//! The choice of the configured system among a BMC's systems. It is pure and never guesses: an ambiguous choice is refused with a
//! list.

use super::resource::System;
use crate::os::uuid;

/// A member of the BMC's collection of systems.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The path of the member on the BMC.
    pub uri: String,
    /// The system; `None` if the BMC did not show it.
    pub system: Option<System>,
    /// True if the BMC may show an unreadable system a moment later.
    pub may_return: bool,
}

impl Candidate {
    pub fn read(uri: impl Into<String>, system: System) -> Self {
        Self { uri: uri.into(), system: Some(system), may_return: false }
    }

    /// Returns whether `name` identifies the system: by its Id, name, UUID, serial number, URI, or the last part of its URI.
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.trim();
        let path = self.uri.trim_end_matches('/');
        path == name.trim_end_matches('/')
            || path.rsplit('/').next() == Some(name)
            || self.system.as_ref().is_some_and(|system| {
                [&system.id, &system.name, &system.serial]
                    .into_iter()
                    .any(|field| field.as_deref().map(str::trim) == Some(name))
                    || system.uuid.as_deref().is_some_and(|uuid| uuid::same(name, uuid))
            })
    }
}

/// The identification of the system to act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// No identification: the BMC must have exactly one system.
    Any,
    /// A name, id, UUID or URI that the operator has configured.
    Named(String),
    /// The name of the cluster node. Pacemaker's fencer adds it if no plug is configured. The BMC may not know that name.
    Node(String),
}

/// The reason why no system of the BMC could be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotChosen {
    Ambiguous(String),
    /// The choice depends on systems that the BMC did not show. It may show one of them a moment later.
    NotYetClear(String),
    /// The BMC's complete collection has other systems, and lacks the configured one.
    NoSuchSystem(String),
}

/// Chooses the candidate that `wanted` identifies, and returns its index. If `wanted` identifies none, chooses by `uuid`, or takes the only
/// system.
pub fn choose(candidates: &[Candidate], wanted: &Wanted, uuid: Option<&str>) -> Result<usize, NotChosen> {
    // A BMC that is starting lists no systems for a while.
    if candidates.is_empty() {
        return Err(NotChosen::NotYetClear("the BMC lists no system at all".to_owned()));
    }
    match wanted {
        Wanted::Named(name) => match &matching(candidates, name)[..] {
            [one] => Ok(*one),
            [] if candidates.iter().all(|candidate| candidate.system.is_some()) => Err(NotChosen::NoSuchSystem(
                format!("no system here is called '{name}'; set plug to one of: {}", list(candidates)),
            )),
            [] => Err(unclear(
                candidates,
                format!(
                    "no readable system is called '{name}', and {} could not be read; set plug to one of: {}",
                    unreadable(candidates),
                    list(candidates)
                ),
            )),
            _ => Err(NotChosen::Ambiguous(format!(
                "'{name}' fits several systems; set plug to the id of one of: {}",
                list(candidates)
            ))),
        },
        Wanted::Node(name) => match &matching(candidates, name)[..] {
            [one] => Ok(*one),
            _ => the_only_one(candidates, uuid),
        },
        Wanted::Any => the_only_one(candidates, uuid),
    }
}

/// Returns every system with a reset action, and its index among the candidates.
pub fn resettable(candidates: &[Candidate]) -> impl Iterator<Item = (usize, &System)> {
    candidates.iter().enumerate().filter_map(|(at, candidate)| {
        candidate.system.as_ref().filter(|system| system.reset.is_some()).map(|system| (at, system))
    })
}

fn the_only_one(candidates: &[Candidate], uuid: Option<&str>) -> Result<usize, NotChosen> {
    if let Some(uuid) = uuid {
        let fitting: Vec<usize> =
            indices(candidates, |system| system.uuid.as_deref().is_some_and(|theirs| uuid::same(uuid, theirs)));
        if let [one] = fitting[..] {
            return Ok(one);
        }
    }
    let lost = unreadable(candidates);
    let able: Vec<usize> = resettable(candidates).map(|(at, _)| at).collect();
    match (&able[..], candidates.len(), lost.is_empty()) {
        ([one], _, true) => Ok(*one),
        // A lone system without a Reset action may still be read. The reset itself reports the missing action.
        ([], 1, true) => Ok(0),
        // No name was given that could be missing.
        ([], _, true) => {
            Err(NotChosen::Ambiguous(format!("none of the systems offers a Reset action: {}", list(candidates))))
        }
        (_, _, false) => Err(unclear(
            candidates,
            format!(
                "{lost} could not be read, so it is not certain which system is meant; set plug to one of: {}",
                list(candidates)
            ),
        )),
        _ => Err(NotChosen::Ambiguous(format!(
            "the BMC has {} systems that can be reset; set plug (or pcmk_host_map) to one of: {}",
            able.len(),
            list(candidates)
        ))),
    }
}

fn matching(candidates: &[Candidate], name: &str) -> Vec<usize> {
    (0..candidates.len()).filter(|at| candidates[*at].is_called(name)).collect()
}

fn indices(candidates: &[Candidate], fits: impl Fn(&System) -> bool) -> Vec<usize> {
    (0..candidates.len()).filter(|at| candidates[*at].system.as_ref().is_some_and(&fits)).collect()
}

/// Returns the reason why the choice is uncertain, if a system was not readable. The reason is temporary if that system may be readable a
/// moment later.
fn unclear(candidates: &[Candidate], why: String) -> NotChosen {
    let passing = candidates.iter().any(|candidate| candidate.system.is_none() && candidate.may_return);
    if passing { NotChosen::NotYetClear(why) } else { NotChosen::Ambiguous(why) }
}

fn unreadable(candidates: &[Candidate]) -> String {
    let lost: Vec<&str> = candidates
        .iter()
        .filter(|candidate| candidate.system.is_none())
        .map(|candidate| candidate.uri.as_str())
        .collect();
    lost.join(", ")
}

/// Lists the systems for an error text: what an operator can type for each, and how they differ.
fn list(candidates: &[Candidate]) -> String {
    let all: Vec<String> = candidates.iter().map(describe).collect();
    all.join(", ")
}

fn describe(candidate: &Candidate) -> String {
    let segment = candidate.uri.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let Some(system) = &candidate.system else { return format!("{segment} (not readable)") };
    let id = system.id.as_deref().unwrap_or(segment);
    let mut facts: Vec<String> = Vec::new();
    if let Some(name) = system.name.as_deref().filter(|name| *name != id) {
        facts.push(format!("name '{name}'"));
    }
    if let Some(uuid) = &system.uuid {
        facts.push(format!("UUID {uuid}"));
    }
    if system.reset.is_none() {
        facts.push("no Reset action".to_owned());
    }
    if facts.is_empty() { id.to_owned() } else { format!("{id} ({})", facts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn candidate(id: &str, uuid: &str, resets: bool) -> Candidate {
        let actions = if resets { json!({"#ComputerSystem.Reset": {"target": "/t"}}) } else { json!({}) };
        let system = System::read(&json!({
            "Id": id, "Name": format!("name of {id}"), "UUID": uuid, "SerialNumber": "shared",
            "PowerState": "On", "Actions": actions
        }));
        Candidate::read(format!("/redfish/v1/Systems/{id}"), system.unwrap())
    }

    const ONE: &str = "11111111-2222-3333-4444-555555555555";
    const TWO: &str = "66666666-7777-8888-9999-aaaaaaaaaaaa";

    fn two_hosts() -> Vec<Candidate> {
        vec![candidate("Node0", ONE, true), candidate("Node1", TWO, true)]
    }

    #[test]
    fn a_single_system_needs_no_name_and_ignores_the_nodes() {
        let one = [candidate("1", ONE, true)];
        assert_eq!(choose(&one, &Wanted::Any, None), Ok(0));
        assert_eq!(choose(&one, &Wanted::Node("node1".into()), None), Ok(0));
        assert!(choose(&one, &Wanted::Named("node1".into()), None).is_err(), "a name that was given must fit");
    }

    #[test]
    fn several_systems_are_refused_with_a_list() {
        for wanted in [Wanted::Any, Wanted::Node("node1".into())] {
            let Err(NotChosen::Ambiguous(said)) = choose(&two_hosts(), &wanted, None) else { panic!("{wanted:?}") };
            assert!(said.contains("Node0") && said.contains("Node1") && said.contains("plug"), "{said}");
        }
    }

    #[test]
    fn a_system_is_found_by_its_id_name_uuid_or_path() {
        let two = two_hosts();
        for name in [
            "Node1",
            "name of Node1",
            TWO,
            &TWO.to_uppercase(),
            "/redfish/v1/Systems/Node1",
            "/redfish/v1/Systems/Node1/",
        ] {
            assert_eq!(choose(&two, &Wanted::Named(name.to_owned()), None), Ok(1), "{name}");
        }
        assert_eq!(choose(&two, &Wanted::Node("Node1".into()), None), Ok(1));
        let Err(NotChosen::Ambiguous(_)) = choose(&two, &Wanted::Named("shared".into()), None) else { panic!() };
        let Err(NotChosen::NoSuchSystem(_)) = choose(&two, &Wanted::Named("Node2".into()), None) else { panic!() };
    }

    #[test]
    fn the_uuid_selects_where_nothing_else_does() {
        assert_eq!(choose(&two_hosts(), &Wanted::Any, Some(TWO)), Ok(1));
        assert_eq!(choose(&two_hosts(), &Wanted::Named("Node0".into()), Some(TWO)), Ok(0), "the check comes later");
    }

    #[test]
    fn the_only_system_that_can_be_reset_is_meant() {
        let board = [candidate("System_0", ONE, true), candidate("HGX_Baseboard_0", TWO, false)];
        assert_eq!(choose(&board, &Wanted::Any, None), Ok(0));
        assert_eq!(choose(&board[1..], &Wanted::Any, None), Ok(0));
        let none = [candidate("a", ONE, false), candidate("b", TWO, false)];
        let Err(NotChosen::Ambiguous(_)) = choose(&none, &Wanted::Any, None) else { panic!() };
    }

    #[test]
    fn an_empty_list_says_nothing_about_any_system() {
        for wanted in [Wanted::Any, Wanted::Named("Node1".into()), Wanted::Node("node1".into())] {
            for uuid in [None, Some(ONE)] {
                let Err(NotChosen::NotYetClear(_)) = choose(&[], &wanted, uuid) else { panic!("{wanted:?}") };
            }
        }
    }

    #[test]
    fn a_system_that_could_not_be_read_is_not_excluded() {
        let mut systems = two_hosts();
        systems[1].system = None;
        assert!(choose(&systems, &Wanted::Any, None).is_err());
        assert_eq!(choose(&systems, &Wanted::Named("Node0".into()), None), Ok(0));
        assert_eq!(choose(&systems, &Wanted::Named("Node1".into()), None), Ok(1), "its URI names it");
        let Err(NotChosen::Ambiguous(_)) = choose(&systems, &Wanted::Named("Node2".into()), None) else { panic!() };
        systems[1].may_return = true;
        for wanted in [Wanted::Any, Wanted::Named("Node2".into()), Wanted::Node("node1".into())] {
            let Err(NotChosen::NotYetClear(_)) = choose(&systems, &wanted, None) else { panic!("{wanted:?}") };
        }
    }
}
