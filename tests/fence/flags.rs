//! The flag by which one node's agent sees the other's at a BMC: the proofs of `tandem fencing check` on each kind of
//! BMC, and on each captured one.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use serde_json::Value;
use tandem::adapters::redfish::flag::Flag;
use tandem::fence::examine::{self, Examined};

use crate::bmc::agent::Call;
use crate::bmc::model::{Access, SESSIONS};
use crate::bmc::{Fault, Misbehaviour, Server, SessionsAre, World, at_once};
use crate::captured::{CAPTURED, capture};

fn examined(server: &Server, plug: Option<&str>) -> Examined {
    let call = Call::new(server, "monitor").without("action");
    let call = if let Some(plug) = plug { call.set("plug", plug) } else { call };
    examine::device_within(examine::LONGEST, true, &call.input(), Some("node2"), None)
}

#[test]
fn a_flag_is_proven_by_two_sessions_and_nothing_stays() {
    for (kind, words) in [
        (SessionsAre::Shown, "a session with its Context"),
        (SessionsAre::WithoutContext, "a session, shown without its Context"),
        (SessionsAre::WithoutSuchProperty, "a session, shown without its Context"),
        (SessionsAre::Hidden, "none (its list of sessions does not show a session that was just opened)"),
        (SessionsAre::OwnOnly, "none (its list of sessions does not show the sessions of another client)"),
    ] {
        let server = Server::with_world(World::with_sessions(kind));
        server.world().add_session("operator", Some("a browser"));
        let flag = examined(&server, None).flag.unwrap();
        assert_eq!(flag.to_string(), words);
        assert_eq!(server.world().sessions.len(), 1, "the operator's");
        assert!(server.posted().is_empty());
    }
}

#[test]
fn a_bmc_that_refuses_sessions_offers_no_flag() {
    let full = Misbehaviour::Status(503, "{}".to_owned());
    for server in [
        Server::start(),
        Server::with_world(World::with_sessions(SessionsAre::Shown).with(Fault::always(
            "POST",
            "Sessions",
            full.clone(),
        ))),
        // Its table of sessions has space for one more.
        Server::with_world(
            World::with_sessions(SessionsAre::Shown).with(Fault::always("POST", "Sessions", full).after(1)),
        ),
    ] {
        let found = examined(&server, None);
        assert!(matches!(found.flag, Some(Flag::None(_))) && found.note.failure.is_none(), "{found:?}");
        assert!(server.world().sessions.is_empty());
    }
}

#[test]
fn no_flag_is_proven_where_the_bmc_does_not_do_what_fencing_needs() {
    let server = Server::with_world(World::of(Vec::new()));
    assert_eq!(examined(&server, None).flag, None);
    assert!(server.requests().iter().all(|request| request.starts_with("GET ")));
}

/// A captured BMC: its name, the seconds after which it ends an idle session, and whether its systems have a locate light.
const KNOWN: [(&str, u64, bool); 11] = [
    ("dell-idrac9-r750", 1800, true),
    ("dmtf-public-rackmount1", 30, true),
    ("gigabyte-h262-ami-megarac", 30, true),
    ("hpe-cray-ex235n-2nodes", 30, false),
    ("hpe-ilo5-dl385gen10plusv2", 30, true),
    ("lenovo-xcc-sr670v2", 300, true),
    ("nvidia-bluefield3-dpu", 1800, false),
    ("nvidia-gb200-nvl-2systems", 1800, true),
    ("openbmc-stock-off", 1800, true),
    ("supermicro-x10-thin", 300, true),
    ("supermicro-x13-sys821ge", 300, true),
];

/// Asserts the flag that each captured BMC offers for a fence race. The flag is a session if the service root names a list of sessions and
/// the BMC has this list. The captures contain no list, so the test adds one. The BMC's locate light is never a flag.
#[test]
fn each_captured_bmc_offers_a_session_where_its_root_says_and_no_light() {
    assert_eq!(KNOWN.map(|(name, ..)| name).to_vec(), CAPTURED.iter().map(|one| one.name).collect::<Vec<_>>());
    at_once(KNOWN.iter().zip(CAPTURED), |((name, idle, has_light), captured)| {
        let fixed = capture(name);
        let document = |uri: &str| -> Value {
            let found = fixed.iter().find(|(path, _)| path == uri);
            serde_json::from_str(&found.unwrap().1).unwrap()
        };
        assert_eq!(document("/redfish/v1")["Links"]["Sessions"]["@odata.id"], SESSIONS, "{name}");
        assert_eq!(document("/redfish/v1/SessionService")["SessionTimeout"], *idle, "{name}");
        let has = |text: &str| text.contains("\"IndicatorLED\"") || text.contains("\"LocationIndicatorActive\"");
        let is_lit = |(path, text): &(String, String)| path.contains("/Systems/") && has(text);
        assert_eq!(fixed.iter().any(is_lit), *has_light, "{name}");
        let world = |access| World { fixed: fixed.clone(), access, ..World::of(Vec::new()) };
        let as_captured = Server::with_world(world(Access::Basic));
        let with_list = Server::with_world(world(Access::Both));
        let flags = [&as_captured, &with_list].map(|server| examined(server, captured.plug).flag);
        let [Some(Flag::None(_)), Some(Flag::SessionWithContext)] = &flags else { panic!("{name}: {flags:?}") };
    });
}
