//! The check of an order against the present nodes. It returns the change that is meant, or one sentence with what to type instead.
//! Pure.

use std::net::IpAddr;

use super::change::{Change, Kind, Place};
use crate::decide::members::Newcomer;
use crate::operate::members::step::PairStep;
use crate::operate::setup::cluster::DELAYS;

/// The present nodes, links and fencing delay, against which a typed order is checked.
#[derive(Debug)]
pub(super) struct Known<'a> {
    pub(super) here: &'a str,
    /// The nodes of the resource's `node_ip_map`.
    pub(super) map: Vec<Place>,
    /// Names of the nodes that Pacemaker's cluster has.
    pub(super) nodes: Vec<String>,
    /// This node's addresses on Corosync's links other than the first.
    pub(super) links: Vec<IpAddr>,
    /// The addresses of the node that leaves, on Corosync's links other than the first.
    pub(super) links_of_old: Vec<IpAddr>,
    /// The peer port of the pair's etcd.
    pub(super) peer_port: u16,
    /// The value of `pcmk_delay_base` for the new node's fence device, as [`delay`] returns it; `None` to leave the
    /// option out.
    pub(super) delay: Option<String>,
    pub(super) now: u64,
}

/// The arguments that the operator typed for a member change in a pair.
#[derive(Clone, Debug, Default)]
pub(super) struct Typed {
    pub(super) kind: Option<Kind>,
    pub(super) old: Option<String>,
    pub(super) new: Option<Newcomer>,
    pub(super) fence: Vec<(String, String)>,
    pub(super) links: Vec<IpAddr>,
    pub(super) old_is_off: bool,
}

const PASSWORDS: [&str; 2] = ["password", "passwd"];
const DELAY: &str = "pcmk_delay_base";

impl Known<'_> {
    /// Returns the member change that the arguments describe, or the reason why they are refused. A change in progress is not considered.
    pub(super) fn change(&self, typed: &Typed) -> Result<Change, String> {
        let Some(kind) = typed.kind else {
            return Err("no change is under way: type 'tandem member replace OLD'".to_owned());
        };
        let here = self.place(self.here)?;
        let old = typed.old.as_deref().map(|old| self.old(old)).transpose()?;
        let new = match (kind, &typed.new) {
            (Kind::Remove, _) => None,
            (_, Some(new)) => Some(self.newcomer(new, old.as_ref())?),
            (_, None) => old.clone(),
        };
        if kind == Kind::Add && self.map.len() > 1 && new.as_ref().is_none_or(|new| !self.map.contains(new)) {
            let other = self.other();
            return Err(format!("the pair has two nodes: 'tandem member replace {other}' puts another in its place"));
        }
        let mut change = Change {
            kind,
            here,
            fence: Self::fence(typed, old.as_ref(), new.as_ref())?,
            links: self.links(typed, old.as_ref(), new.as_ref())?,
            old,
            new,
            old_is_off: typed.old_is_off,
            began: self.now,
            log: Vec::new(),
            openshift: None,
        };
        if let Some(delay) = &self.delay
            && !change.fence.is_empty()
            && !change.fence.iter().any(|(name, _)| name == DELAY)
        {
            change.fence.push((DELAY.to_owned(), delay.clone()));
        }
        Ok(change)
    }

    /// Returns whether `last` is a finished change with the same arguments. A repeated command would otherwise fail, because the old node
    /// no longer exists.
    pub(super) fn was_done(&self, typed: &Typed, last: &Change) -> bool {
        let is_last = typed.kind == Some(last.kind) && last.has(PairStep::Verify);
        let is_old = typed.old.as_ref().is_some_and(|old| last.old.as_ref().is_some_and(|was| was.name == *old));
        let is_gone = !self.map.iter().any(|place| typed.old.as_ref() == Some(&place.name));
        let is_new = match (&typed.new, &last.new) {
            (None, None) => true,
            (Some(new), Some(was)) => new.name == was.name && self.map.contains(was),
            _ => false,
        };
        is_last && is_old && is_gone && is_new
    }

    fn other(&self) -> String {
        let other = self.map.iter().find(|place| place.name != self.here);
        other.map_or_else(|| "OLD".to_owned(), |place| place.name.clone())
    }

    fn place(&self, name: &str) -> Result<Place, String> {
        let known = || self.map.iter().map(|place| place.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = self.map.iter().find(|place| place.name == name);
        found.cloned().ok_or_else(|| format!("no node is called '{name}'; there are: {}", known()))
    }

    fn old(&self, name: &str) -> Result<Place, String> {
        let old = self.place(name)?;
        if name == self.here {
            let other = self.other();
            return Err(format!("{name} is this node, which cannot see to its own going: type it on {other}"));
        }
        Ok(old)
    }

    fn newcomer(&self, new: &Newcomer, old: Option<&Place>) -> Result<Place, String> {
        let name = &new.name;
        let Some(address) = self.address(&new.peer_url) else {
            return Err(format!("{name} needs an IP address, as in node_ip_map: type {name}=192.0.2.3"));
        };
        if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter)) {
            return Err(format!("'{name}' is no name of a node: type what 'uname -n' says there"));
        }
        let new = Place { name: name.clone(), address };
        if old == Some(&new) {
            return Err(format!(
                "{name} at {address} is the old node: leave --new out where a new machine takes its name and address"
            ));
        }
        let is_old = |other: &str| old.is_some_and(|old| old.name == other);
        let is_used = self.nodes.contains(name) || self.map.iter().any(|place| place.name == *name);
        let comes_back = old.is_none() && self.map.contains(&new) && !self.nodes.contains(name);
        if is_used && !is_old(name) && !comes_back {
            return Err(format!("the name {name} is in use: give the new machine another one"));
        }
        if let Some(user) = self.map.iter().find(|place| place.address == address && !is_old(&place.name))
            && !comes_back
        {
            let user = &user.name;
            return Err(format!("the address {address} is that of {user}: give the new machine another one"));
        }
        Ok(new)
    }

    /// Returns the address in `https://ADDRESS:PORT`; `None` if the port is not the pair's peer port.
    fn address(&self, peer_url: &str) -> Option<IpAddr> {
        let address: std::net::SocketAddr = peer_url.strip_prefix("https://")?.parse().ok()?;
        (address.port() == self.peer_port).then_some(address.ip())
    }

    /// Returns the new node's addresses on Corosync's links other than the first. Fails unless there is one for each link, because pcs
    /// would fail only after the old node has gone.
    fn links(&self, typed: &Typed, old: Option<&Place>, new: Option<&Place>) -> Result<Vec<IpAddr>, String> {
        let Some(new) = new else { return Ok(Vec::new()) };
        let is_same_place = typed.links.is_empty() && old == Some(new);
        let links = if is_same_place { &self.links_of_old } else { &typed.links };
        let (count, name) = (self.links.len(), &new.name);
        if links.len() != count {
            return Err(match count {
                0 => "Corosync has no further link here: leave --link out".to_owned(),
                _ => format!(
                    "Corosync has {count} more links here: type --link ADDRESS for each, as {name} has it there"
                ),
            });
        }
        let is_used =
            |link: &&IpAddr| self.links.contains(link) || self.map.iter().any(|place| place.address == **link);
        let is_twice = |link: &&IpAddr| **link == new.address || links.iter().filter(|other| other == link).count() > 1;
        match links.iter().find(|link| is_used(link) || is_twice(link)) {
            Some(link) => Err(format!("the address {link} of --link is in use: type another one of {name}")),
            None => Ok(links.clone()),
        }
    }

    fn fence(typed: &Typed, old: Option<&Place>, new: Option<&Place>) -> Result<Vec<(String, String)>, String> {
        let Some(new) = new else { return Ok(Vec::new()) };
        if let Some((name, _)) = typed.fence.iter().find(|(name, _)| PASSWORDS.contains(&name.as_str())) {
            return Err(format!(
                "every user of this machine can read an argument: write the password into a file and type --fence password_file=FILE instead of {name}"
            ));
        }
        let has = |wanted: &str| typed.fence.iter().any(|(name, _)| name == wanted);
        if typed.fence.is_empty() && old.is_some_and(|old| old.name == new.name) {
            return Ok(Vec::new());
        }
        if !has("ip") || !has("password_file") {
            let name = &new.name;
            return Err(format!(
                "{name} cannot be fenced without its BMC: add --fence ip=ADDRESS --fence username=USER --fence password_file=FILE"
            ));
        }
        Ok(typed.fence.clone())
    }
}

/// Returns `pcmk_delay_base` for a new fence device. It is the value of the old device, or else a value that differs
/// enough from that of the node that stays (`here`).
pub(super) fn delay(old: Option<&str>, here: Option<&str>) -> String {
    use crate::adapters::pacemaker::duration::millis;
    if let Some(old) = old {
        return old.to_owned();
    }
    let waits = here.and_then(millis).unwrap_or_default();
    DELAYS[usize::from(waits >= 5_000)].to_owned()
}

/// Fails if the change in progress may not continue on the node `here`. `asked` is the order that was typed now, if it names a change.
pub(super) fn under_way(existing: &Change, asked: Option<&Change>, here: &str) -> Result<(), String> {
    let what = existing.what();
    if asked.is_some_and(|asked| !existing.is_same(asked)) {
        return Err(format!(
            "another change is under way: {what}: 'tandem member replace' continues with it, 'tandem member replace --abort' takes it back"
        ));
    }
    if existing.here.name == here { Ok(()) } else { Err(format!("{what}, by {}: type it there", existing.here.name)) }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::place;
    use super::*;

    fn known() -> Known<'static> {
        Known {
            here: "node1",
            map: vec![place("node1", 1), place("node2", 2)],
            nodes: vec!["node1".to_owned(), "node2".to_owned()],
            links: Vec::new(),
            links_of_old: Vec::new(),
            peer_port: 2380,
            delay: Some("1s".to_owned()),
            now: 7,
        }
    }

    fn new(name: &str, address: &str) -> Newcomer {
        Newcomer { name: name.to_owned(), peer_url: format!("https://{address}:2380") }
    }

    fn fence() -> Vec<(String, String)> {
        [("ip", "192.0.2.103"), ("password_file", "/etc/p")].map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec()
    }

    fn replace(old: &str, new: Option<Newcomer>, fence: Vec<(String, String)>) -> Result<Change, String> {
        let typed = Typed { kind: Some(Kind::Replace), old: Some(old.to_owned()), new, fence, ..Typed::default() };
        known().change(&typed)
    }

    #[test]
    fn what_is_meant_becomes_a_change() {
        let change = replace("node2", Some(new("node3", "192.0.2.3")), fence()).unwrap();
        assert_eq!((change.old.clone(), change.new.clone()), (Some(place("node2", 2)), Some(place("node3", 3))));
        assert!(change.fence.contains(&("pcmk_delay_base".to_owned(), "1s".to_owned())));
        assert_eq!(change.words(), "node2 is replaced by node3, by node1 since 1970-01-01 00:00:07Z");
        let same = replace("node2", None, Vec::new()).unwrap();
        assert!(same.keeps_name() && same.fence.is_empty());
        assert!(
            replace("node2", Some(new("node3", "192.0.2.2")), fence()).is_ok(),
            "the old one's address is free then"
        );
        let waits = |fence: &[(String, String)]| {
            fence.iter().filter(|(name, _)| name == DELAY).map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        let delayed = fence().into_iter().chain([(DELAY.to_owned(), "7s".to_owned())]).collect();
        assert_eq!(waits(&replace("node2", None, delayed).unwrap().fence), ["7s"], "what was typed counts");
        assert!(replace("node2", Some(new("node2", "192.0.2.9")), fence()).is_ok());
    }

    #[test]
    fn each_wrong_word_has_its_sentence() {
        let on_another_port = Newcomer { peer_url: "https://192.0.2.3:2381".to_owned(), ..new("node3", "") };
        let sentences = [
            (replace("node9", None, Vec::new()), "no node is called 'node9'; there are: node1, node2"),
            (replace("node1", None, Vec::new()), "type it on node2"),
            (replace("node2", Some(new("node2", "192.0.2.2")), fence()), "is the old node: leave --new out"),
            (replace("node2", Some(new("node1", "192.0.2.3")), fence()), "the name node1 is in use"),
            (replace("node2", Some(new("node3", "192.0.2.1")), fence()), "the address 192.0.2.1 is that of node1"),
            (replace("node2", Some(new("node3", "host.example")), fence()), "needs an IP address"),
            (replace("node2", Some(on_another_port), fence()), "needs an IP address"),
            (replace("node2", Some(new("node;3", "192.0.2.3")), fence()), "no name of a node"),
            (replace("node2", Some(new("node3", "192.0.2.3")), Vec::new()), "add --fence ip=ADDRESS"),
            (replace("node2", None, fence()[..1].to_vec()), "add --fence ip=ADDRESS"),
            (replace("node2", None, fence()[1..].to_vec()), "add --fence ip=ADDRESS"),
            (
                replace("node2", None, vec![("passwd".to_owned(), "hunter2".to_owned())]),
                "every user of this machine can read an argument",
            ),
        ];
        for (answer, words) in sentences {
            let why = answer.unwrap_err();
            assert!(why.contains(words) && !why.contains("hunter2"), "{why}");
        }
        let add =
            Typed { kind: Some(Kind::Add), new: Some(new("node3", "192.0.2.3")), fence: fence(), ..Typed::default() };
        assert!(known().change(&add).unwrap_err().contains("'tandem member replace node2'"));
        let alone = Known { map: vec![place("node1", 1)], nodes: vec!["node1".to_owned()], ..known() };
        assert!(alone.change(&add).is_ok());
        assert!(known().change(&Typed::default()).unwrap_err().contains("no change is under way"));
    }

    #[test]
    fn one_that_was_in_the_pair_comes_back_to_its_own_place_alone() {
        let nodes = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let add = |known: &Known<'_>, name: &str, address: &str| {
            let new = Some(new(name, address));
            known.change(&Typed { kind: Some(Kind::Add), new, fence: fence(), ..Typed::default() })
        };
        let left = Known { nodes: nodes(&["node1"]), ..known() };
        assert_eq!(add(&left, "node2", "192.0.2.2").unwrap().new, Some(place("node2", 2)));
        let remembered = Known { map: vec![place("node1", 1)], ..known() };
        // A node that replaces another must be neither of the two in the map, whatever Pacemaker knows.
        let nobody = Known { nodes: Vec::new(), ..known() };
        let (kind, old) = (Some(Kind::Replace), Some("node2".to_owned()));
        let by_here = Typed { kind, old, new: Some(new("node1", "192.0.2.1")), fence: fence(), ..Typed::default() };
        for (answer, name) in [
            (add(&left, "node2", "192.0.2.9"), "node2"),
            (add(&known(), "node2", "192.0.2.2"), "node2"),
            (add(&remembered, "node2", "192.0.2.2"), "node2"),
            (nobody.change(&by_here), "node1"),
        ] {
            let why = answer.unwrap_err();
            assert!(why.starts_with(&format!("the name {name} is in use")), "{why}");
        }
    }

    #[test]
    fn a_new_machine_has_an_address_on_each_link_or_nothing_is_begun() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let linked = Known { links: vec![ip("198.51.100.1")], links_of_old: vec![ip("198.51.100.2")], ..known() };
        let change = |known: &Known<'_>, new: Option<Newcomer>, links: &[&str]| {
            let (kind, old) = (Some(Kind::Replace), Some("node2".to_owned()));
            let links = links.iter().map(|link| ip(link)).collect();
            let fence = if new.is_some() { fence() } else { Vec::new() };
            known.change(&Typed { kind, old, new, fence, links, ..Typed::default() }).map(|change| change.links)
        };
        let node3 = || Some(new("node3", "192.0.2.3"));
        assert_eq!(change(&linked, node3(), &["198.51.100.3"]), Ok(vec![ip("198.51.100.3")]));
        assert_eq!(change(&linked, None, &[]), Ok(vec![ip("198.51.100.2")]), "a new machine at the same addresses");
        assert_eq!(change(&linked, None, &["198.51.100.9"]), Ok(vec![ip("198.51.100.9")]), "what was typed counts");
        assert_eq!(change(&known(), node3(), &[]), Ok(Vec::new()));
        let two = Known { links: vec![ip("198.51.100.1"), ip("203.0.113.1")], ..known() };
        let twice = change(&two, node3(), &["198.51.100.3", "198.51.100.3"]);
        assert!(twice.unwrap_err().contains("198.51.100.3 of --link is in use"));
        for (answer, words) in [
            (change(&linked, node3(), &[]), "Corosync has 1 more links here: type --link ADDRESS"),
            (change(&linked, node3(), &["198.51.100.3", "203.0.113.3"]), "Corosync has 1 more links here"),
            (change(&Known { links_of_old: Vec::new(), ..linked }, None, &[]), "Corosync has 1 more links here"),
            (change(&known(), node3(), &["198.51.100.3"]), "Corosync has no further link here"),
        ] {
            assert!(answer.clone().unwrap_err().starts_with(words), "{answer:?}");
        }
        let linked = || Known { links: vec![ip("198.51.100.1")], ..known() };
        for used in ["198.51.100.1", "192.0.2.1", "192.0.2.3"] {
            assert!(change(&linked(), node3(), &[used]).unwrap_err().contains("is in use"), "{used}");
        }
    }

    #[test]
    fn what_was_done_is_told_from_a_slip_of_the_pen() {
        use super::super::change::Entry;
        let typed =
            |kind, old: &str, new| Typed { kind: Some(kind), old: Some(old.to_owned()), new, ..Typed::default() };
        let over = |mut change: Change| {
            change.log.push(Entry { at: 0, step: PairStep::Verify, what: String::new() });
            change
        };
        let alone = || Known { map: vec![place("node1", 1)], ..known() };
        let remove = || typed(Kind::Remove, "node2", None);
        let removed = known().change(&remove()).unwrap();
        assert!(alone().was_done(&remove(), &over(removed.clone())));
        assert!(!alone().was_done(&remove(), &removed), "it was taken back");
        assert!(!known().was_done(&remove(), &over(removed.clone())), "it is there again");
        assert!(!alone().was_done(&typed(Kind::Remove, "node9", None), &over(removed.clone())));
        assert!(!alone().was_done(&typed(Kind::Replace, "node2", None), &over(removed.clone())), "that was a removal");
        let replace = || Typed { fence: fence(), ..typed(Kind::Replace, "node2", Some(new("node3", "192.0.2.3"))) };
        assert!(!alone().was_done(&replace(), &over(removed)));
        let replaced = over(known().change(&replace()).unwrap());
        let with = |map: Vec<Place>| Known { map, ..known() };
        assert!(with(vec![place("node1", 1), place("node3", 3)]).was_done(&replace(), &replaced));
        assert!(!alone().was_done(&replace(), &replaced), "the new one is gone meanwhile");
        let by_another = typed(Kind::Replace, "node2", Some(new("node4", "192.0.2.3")));
        assert!(!with(vec![place("node1", 1), place("node3", 3)]).was_done(&by_another, &replaced));
        let same = over(known().change(&typed(Kind::Replace, "node2", None)).unwrap());
        assert!(!known().was_done(&typed(Kind::Replace, "node2", None), &same), "another new machine of its name");
    }

    #[test]
    fn another_change_is_not_gone_on_with() {
        let one = replace("node2", Some(new("node3", "192.0.2.3")), fence()).unwrap();
        let other = replace("node2", None, Vec::new()).unwrap();
        assert!(under_way(&one, Some(&other), "node1").unwrap_err().contains("node2 is replaced by node3"));
        assert!(under_way(&one, Some(&one.clone()), "node1").is_ok() && under_way(&one, None, "node1").is_ok());
        // The file was copied from another node, or this node was renamed.
        assert!(under_way(&one, None, "node2").unwrap_err().contains("by node1: type it there"));
        for other in [
            Change { kind: Kind::Remove, ..one.clone() },
            Change { here: place("node4", 4), ..one.clone() },
            Change { old: Some(place("node4", 4)), ..one.clone() },
            Change { new: Some(place("node4", 4)), ..one.clone() },
            Change { links: vec!["198.51.100.3".parse().unwrap()], ..one.clone() },
        ] {
            assert!(under_way(&one, Some(&other), "node1").is_err(), "{other:?}");
        }
    }

    #[test]
    fn two_devices_never_wait_alike() {
        assert_eq!(
            [delay(Some("7s"), Some("1s")), delay(None, Some("10s")), delay(None, Some("1s"))],
            ["7s", "1s", "10s"]
        );
        assert_eq!(delay(None, None), "10s");
    }
}
