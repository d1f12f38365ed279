use zeroize::Zeroizing;

use super::*;
use crate::operate::setup::found_file::FoundFile;
use crate::operate::setup::node::judge::tests::{described, well};

fn secret(text: &str) -> Secret {
    Secret(Zeroizing::new(text.to_owned()))
}

/// Returns the report of a node on which every step is done.
fn whole(description: &Description, token: bool) -> Found {
    let file = |text: &str| FoundFile { mode: 0o600, digest: digest(text.as_bytes()), certificates: None };
    let files = description.nodes.iter().zip(["one", "two"]);
    let mut files: Files = files.map(|(node, text)| (node.bmc.password_file.clone(), file(text))).collect();
    if token {
        files.insert(PathBuf::from(TOKEN), file("token"));
    }
    let unit = Unit { is_there: true, is_active: true, is_enabled: true };
    let units = [PCSD, COLLECTOR, RENEWAL, LONE_BOOT].map(|name| (name.to_owned(), unit)).into();
    Found { files, has_image: true, units, accepts_token: true, ..Found::default() }
}

fn of(
    description: &Description,
    at: usize,
    change: impl FnOnce(&mut Wanted<'_>, &mut Facts, &mut Found),
) -> Vec<SetupStep> {
    let mut wanted = Wanted {
        description,
        at,
        certificates: State::Done,
        passwords: [secret("one"), secret("two")],
        token: Some(secret("token")),
        keeps_token: at == 0,
        is_half_made: false,
    };
    let (mut facts, mut found) = (well(&description.nodes[at]).facts, whole(description, at == 0));
    change(&mut wanted, &mut facts, &mut found);
    steps(&wanted, &facts, &found)
}

/// Returns the id of the only step that is not done, with its commands. `change` modifies a node on which all steps are
/// done.
fn left(at: usize, change: impl FnOnce(&mut Wanted<'_>, &mut Facts, &mut Found)) -> (String, Vec<String>) {
    let described = described();
    let steps = of(&described, at, change);
    let mut open = steps.into_iter().filter(|step| step.state != State::Done);
    let step = open.next().expect("nothing is to do");
    assert!(open.next().is_none(), "two steps are to do");
    let actions = match step.state {
        State::ToDo(actions) | State::Differs { actions, .. } => actions.iter().map(ToString::to_string).collect(),
        State::Refused(why) => vec![why],
        State::Done => Vec::new(),
    };
    (step.id, actions)
}

#[test]
fn a_node_that_has_everything_is_left_alone() {
    let described = described();
    for at in [0, 1] {
        let steps = of(&described, at, |_, _, _| {});
        assert!(steps.iter().all(|step| step.state == State::Done && step.on == described.nodes[at].name), "{steps:?}");
        assert_eq!(steps.len(), 6);
    }
    assert!(
        of(&described, 1, |_, _, found| {
            found.units.remove(COLLECTOR);
        })
        .iter()
        .all(|step| step.state == State::Done)
    );
}

/// Asserts that the unit for the lone boot is enabled only if the description allows it. An enabled unit counts as done
/// although it is inactive, because it ends as soon as there is quorum.
#[test]
fn the_lone_boot_is_enabled_where_the_description_allows_it() {
    let mut described = described();
    let typed = |described: &Description, is_enabled: bool| {
        let steps = of(described, 1, |_, _, found| {
            let unit = Unit { is_there: true, is_active: false, is_enabled };
            found.units.insert(LONE_BOOT.to_owned(), unit);
        });
        let units = steps.into_iter().find(|step| step.id == "units-node2").unwrap();
        match units.state {
            State::ToDo(actions) => actions.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    };
    assert!(typed(&described, false).is_empty(), "nothing is enabled that was not asked for");
    described.lone_boot = true;
    assert_eq!(typed(&described, false), ["systemctl enable tandem-lone-boot.service"]);
    assert!(typed(&described, true).is_empty());
}

#[test]
fn what_is_missing_is_done_with_the_words_that_are_shown() {
    type Change = fn(&mut Wanted<'_>, &mut Facts, &mut Found);
    let cases: &[(usize, Change, &str, &[&str])] = &[
        (0, |_, _, found| found.has_image = false, "image-node1", &["podman pull registry.example.com/etcd:v3.5"]),
        (
            1,
            |_, _, found| found.units.get_mut(COLLECTOR).unwrap().is_enabled = false,
            "units-node2",
            &["systemctl enable --now tandem-collect.timer"],
        ),
        (
            0,
            |_, _, found| found.units.get_mut(RENEWAL).unwrap().is_active = false,
            "units-node1",
            &["systemctl enable --now tandem-certs.timer"],
        ),
        (1, |_, facts, _| facts.corosync = Corosync::Example, "blank-node2", &["pcs cluster destroy --force"]),
        (
            1,
            |_, _, found| drop(found.files.remove(std::path::Path::new("/etc/tandem/node1-bmc.password"))),
            "passwords-node2",
            &["write /etc/tandem/node1-bmc.password (mode 600): the password of node1's BMC"],
        ),
        (
            1,
            |_, _, found| found.accepts_token = false,
            "pcsd-node2",
            &[
                "write /etc/tandem/pcsd-token (mode 600): the token by which the two pcsds get to know each other",
                "pcs pcsd accept_token /etc/tandem/pcsd-token",
                "rm -f /etc/tandem/pcsd-token",
            ],
        ),
        (
            0,
            |_, _, found| found.units.get_mut(PCSD).unwrap().is_active = false,
            "pcsd-node1",
            &["systemctl enable --now pcsd"],
        ),
        (
            1,
            |_, _, found| *found.units.get_mut(PCSD).unwrap() = Unit::default(),
            "pcsd-node2",
            &["node2: systemd knows no pcsd: install pcs there"],
        ),
    ];
    for (at, change, id, actions) in cases {
        let (found, typed) = left(*at, change);
        assert_eq!((found.as_str(), typed.iter().map(String::as_str).collect::<Vec<_>>().as_slice()), (*id, *actions));
    }
}

#[test]
fn a_pcsd_whose_key_a_power_cut_has_emptied_makes_another() {
    let remove = "rm -f /var/lib/pcsd/pcsd.crt /var/lib/pcsd/pcsd.key";
    let (_, typed) = left(0, |_, _, found| {
        found.has_empty_pcsd_pair = true;
        found.units.get_mut(PCSD).unwrap().is_active = false;
    });
    assert_eq!(typed, [remove, "systemctl enable --now pcsd"]);
    // A pcsd that runs has its pair in memory, whatever the disk has.
    let running = of(&described(), 0, |_, _, found| found.has_empty_pcsd_pair = true);
    assert!(running.iter().all(|step| step.state == State::Done), "{running:?}");
}

#[test]
fn a_killed_run_leaves_nothing_behind_that_the_next_one_does_not_take_up() {
    // Killed between `accept_token` and `rm`: the token's file is removed.
    let (id, typed) = left(1, |_, _, found| {
        found
            .files
            .insert(PathBuf::from(TOKEN), FoundFile { mode: 0o600, digest: digest(b"token"), certificates: None });
    });
    assert_eq!((id.as_str(), typed.as_slice()), ("pcsd-node2", &["rm -f /etc/tandem/pcsd-token".to_owned()][..]));
    // A half-made cluster is removed if the other node lacks it. A complete one stays, and so does one with resources.
    let ours = |facts: &mut Facts| facts.corosync = Corosync::Cluster("tandem".to_owned());
    let (id, _) = left(0, |wanted, facts, _| {
        ours(facts);
        wanted.is_half_made = true;
    });
    assert_eq!(id, "blank-node1");
    let described = described();
    assert!(of(&described, 0, |_, facts, _| ours(facts)).iter().all(|step| step.state == State::Done));
    let kept = of(&described, 0, |wanted, facts, _| {
        ours(facts);
        wanted.is_half_made = true;
        facts.cib = Cib::Known { cluster: Some("tandem".to_owned()), resources: 1 };
    });
    assert!(kept.iter().all(|step| step.state == State::Done));
}

#[test]
fn another_password_differs_and_one_that_others_can_read_is_closed() {
    let described = described();
    let path = &described.nodes[0].bmc.password_file;
    let steps = of(&described, 1, |_, _, found| found.files.get_mut(path).unwrap().digest.clear());
    let state = &steps.iter().find(|step| step.id == "passwords-node2").unwrap().state;
    assert!(
        matches!(state, State::Differs { differences, .. } if differences[0].there == "another password"),
        "{state:?}"
    );
    let (_, typed) = left(0, |_, _, found| found.files.get_mut(path).unwrap().mode = 0o644);
    assert_eq!(typed, ["chmod 600 /etc/tandem/node1-bmc.password"]);
    let shown = format!("{steps:?}");
    assert!(!shown.contains("\"one\"") && !shown.contains(&digest(b"one")), "{shown}");
}
