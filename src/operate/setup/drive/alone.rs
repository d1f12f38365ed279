//! Previews the other node's command on that node, without asking the first node and without changes.

use super::{Begun, Refusal, Shown, Standing, begin};
use crate::adapters::command::Programs;
use crate::operate::setup::certificates;
use crate::operate::setup::description::{Certificates, Description};
use crate::operate::setup::local::{self, Found, Secret, Wanted};
use crate::operate::setup::machine::{Here, Machine as _};
use crate::operate::setup::node::{Facts, judge};
use crate::operate::setup::step::State;
use crate::os::clock;

/// The preview of 'tandem setup join' on this node. It asks nothing of the node that drives the setup, and changes
/// nothing.
#[derive(Debug)]
pub struct Alone {
    pub warnings: Vec<String>,
    /// A sentence for each fault of this node.
    pub faults: Vec<String>,
    /// The steps that 'tandem setup join' would perform on this node; empty if the node has a fault.
    pub steps: Vec<Shown>,
}

/// Previews 'tandem setup join' on this machine. The machine is the node with the index `at` in the description.
pub fn alone(programs: &Programs, description: &Description, at: usize, here: &Here) -> Result<Alone, Refusal> {
    let Begun { facts, is_formed } = begin(programs, description, here)?;
    let judge::Judgement { faults, warnings } = judge::one(description, at, &facts, is_formed);
    if !faults.is_empty() {
        return Ok(Alone { warnings, faults, steps: Vec::new() });
    }
    let found = here.find(&local::question(description, None))?;
    if let Some(why) = found.failures.first() {
        return Err(super::locals::unseen(here.name(), why));
    }
    Ok(Alone { warnings, faults, steps: seen_alone(description, at, &facts, &found, is_formed) })
}

/// Returns the steps that this node can judge alone. One more step covers everything that the node which drives the
/// setup sends.
fn seen_alone(description: &Description, at: usize, facts: &Facts, found: &Found, is_formed: bool) -> Vec<Shown> {
    let node = &description.nodes[at];
    let (certificates, brought) = match &description.certificates {
        Certificates::Given { ca, cert, key } => {
            let state = certificates::given(node, [ca, cert, key], &found.files, clock::wall_seconds());
            (Some(state), "passwords and pcsd's token")
        }
        Certificates::Own => (None, "certificates, passwords and pcsd's token"),
        Certificates::OfThePod => (None, "passwords and pcsd's token"),
    };
    let mut looked_at = vec!["image-", "blank-", "units-", "pcsd-"];
    looked_at.extend(certificates.as_ref().map(|_| "certificates-"));
    let wanted = Wanted {
        description,
        at,
        certificates: certificates.unwrap_or(State::Done),
        passwords: <[Secret; 2]>::default(),
        token: None,
        keeps_token: false,
        is_half_made: false,
    };
    let all = local::steps(&wanted, facts, found);
    let mut shown: Vec<Shown> =
        all.iter().filter(|step| looked_at.iter().any(|id| step.id.starts_with(id))).map(Shown::of).collect();
    // A node that is in the cluster has received these already.
    if !is_formed {
        let first = &description.nodes[1 - at].name;
        shown.push(Shown {
            id: format!("from-{first}"),
            title: format!("{brought} of {first}"),
            on: node.name.clone(),
            state: Standing::ToDo,
            commands: vec!["tandem setup join FILE".to_owned()],
            differences: Vec::new(),
            why: Some(format!("{first} brings them, and compares them with what is here then")),
        });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::setup::file;
    use crate::operate::setup::local::Unit;
    use crate::operate::setup::node::Corosync;

    fn found(is_active: bool) -> Found {
        let unit = Unit { is_there: true, is_active, is_enabled: is_active };
        Found { has_image: is_active, units: [("pcsd".to_owned(), unit)].into(), ..Found::default() }
    }

    fn told(shown: &[Shown]) -> Vec<(&str, &str)> {
        shown.iter().map(|step| (step.id.as_str(), step.state.word())).collect()
    }

    #[test]
    fn a_node_tells_what_it_can_know_alone_and_says_who_brings_the_rest() {
        let description = file::read(file::EXAMPLE).unwrap();
        let names = description.nodes.each_ref().map(|node| node.name.as_str());
        let [first, other] = names;
        let example = Facts { corosync: Corosync::Example, ..Facts::default() };
        let shown = seen_alone(&description, 1, &example, &found(false), false);
        let expected = [
            (format!("image-{other}"), "to do"),
            (format!("blank-{other}"), "to do"),
            (format!("units-{other}"), "done"),
            (format!("pcsd-{other}"), "to do"),
            (format!("from-{first}"), "to do"),
        ];
        assert_eq!(told(&shown), expected.each_ref().map(|(id, word)| (id.as_str(), *word)));
        assert!(shown[1].commands == ["pcs cluster destroy --force"] && shown.iter().all(|step| step.on == other));
        assert!(shown[4].title.starts_with("certificates, passwords"), "{}", shown[4].title);
        let shown = seen_alone(&description, 1, &Facts::default(), &found(true), true);
        assert!(shown.iter().all(|step| step.state == Standing::Done), "in the cluster already: {shown:?}");
    }

    #[test]
    fn certificates_of_ones_own_are_looked_at() {
        let mut description = file::read(file::EXAMPLE).unwrap();
        let [ca, cert, key] = ["/ca", "/cert", "/key"].map(Into::into);
        description.certificates = Certificates::Given { ca, cert, key };
        let shown = seen_alone(&description, 1, &Facts::default(), &found(true), false);
        let certificates = shown.iter().find(|step| step.id.starts_with("certificates-")).unwrap();
        assert!(certificates.why.as_ref().is_some_and(|why| why.contains("/ca is not there")), "{certificates:?}");
        assert!(shown.last().unwrap().title.starts_with("passwords and"));
    }
}
