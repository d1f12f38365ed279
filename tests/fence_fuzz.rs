//! Whatever comes in from outside: no panic, no hang, and no more memory than the input justifies.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tandem::fence::config::{Action, Config, Environment};
use tandem::fence::input::{from_arguments, from_lines};
use tandem::fence::options::OPTIONS;
use tandem::redfish::address::{Address, Place};
use tandem::redfish::resource::{Page, System, allowed_by_action_info, link};
use tandem::redfish::secret::Scrubber;
use tandem::redfish::select::{Candidate, Wanted, choose, same_uuid};
use tandem::redfish::{complaint, tls};

/// One input may take this long at most; a parser that is worse than linear shows here.
const PATIENCE: Duration = Duration::from_secs(2);

fn bounded(parse: impl FnOnce()) {
    let began = Instant::now();
    parse();
    assert!(began.elapsed() < PATIENCE, "took {:?}", began.elapsed());
}

/// Names that mean something, mixed with ones that do not.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&'static str> = OPTIONS.iter().flat_map(|row| [Some(row.name), row.old]).flatten().collect();
    prop_oneof![
        proptest::sample::select(known).prop_map(|name| name.as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20),
        Just(b"nodename".to_vec()),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..60),
        "[ -~]{0,40}".prop_map(String::into_bytes),
        proptest::sample::select(vec!["1", "0", "off", "127.0.0.1", "::1", "[::1]:1", "\"", "a,b", "/x", "-1", "1e9"])
            .prop_map(|text| text.as_bytes().to_vec()),
    ]
}

fn lines() -> impl Strategy<Value = Vec<u8>> {
    let line = (key(), value()).prop_map(|(key, value)| [key, b"=".to_vec(), value, b"\n".to_vec()].concat());
    prop_oneof![
        proptest::collection::vec(line, 0..60).prop_map(|lines| lines.concat()),
        proptest::collection::vec(any::<u8>(), 0..4096),
    ]
}

fn json() -> impl Strategy<Value = Vec<u8>> {
    let keys = vec![
        "error",
        "@Message.ExtendedInfo",
        "MessageId",
        "MessageID",
        "Message",
        "code",
        "message",
        "Members",
        "@odata.id",
        "Members@odata.nextLink",
        "PowerState",
        "UUID",
        "Id",
        "Name",
        "Actions",
        "#ComputerSystem.Reset",
        "target",
        "ResetType@Redfish.AllowableValues",
        "@Redfish.ActionInfo",
        "Parameters",
        "AllowableValues",
        "Systems",
        "Links",
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        "\\PC{0,20}".prop_map(serde_json::Value::from),
        proptest::sample::select(vec!["On", "Off", "PoweringOff", "ResetType", "/redfish/v1", "Base.1.0.Success"])
            .prop_map(serde_json::Value::from),
    ];
    let tree = leaf.prop_recursive(6, 80, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(serde_json::Value::from),
            proptest::collection::vec((proptest::sample::select(keys.clone()), inner), 0..8).prop_map(|members| {
                serde_json::Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    });
    (tree, any::<proptest::sample::Index>(), any::<u8>(), 0..4_u8).prop_map(|(tree, at, byte, damage)| {
        let mut bytes = tree.to_string().into_bytes();
        let at = at.index(bytes.len());
        match damage {
            0 => bytes[at] = byte,
            1 => bytes.truncate(at),
            _ => {}
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lines_on_standard_input(input in lines()) {
        bounded(|| {
            let given = from_lines(&input);
            let kept: usize = given.values.values().map(|value| value.bytes().len()).sum();
            assert!(kept <= input.len() && given.remarks.len() <= 20);
            for action in [Action::Off, Action::Status] {
                let config = Config::read(action, &given, Environment::default());
                if let Err(faults) = config {
                    assert!(!faults.is_empty() && faults.iter().all(|fault| !fault.contains('\n')));
                }
            }
        });
    }

    #[test]
    fn words_on_the_command_line(words in proptest::collection::vec((0..3_u8, key(), value()), 0..12)) {
        let words: Vec<OsString> = words.into_iter().flat_map(|(form, key, value)| match form {
            0 => vec![OsString::from_vec([b"--".to_vec(), key].concat()), OsString::from_vec(value)],
            1 => vec![OsString::from_vec([b"--".to_vec(), key, b"=".to_vec(), value].concat())],
            _ => vec![OsString::from_vec(value)],
        }).collect();
        bounded(|| match from_arguments(&words) {
            Ok(given) => drop(Config::read(Action::Off, &given, Environment::default())),
            Err(fault) => assert!(!fault.is_empty() && !fault.contains('\n')),
        });
    }

    #[test]
    fn bodies(body in json()) {
        bounded(|| {
            let said = complaint::read(&body);
            drop((said.sentence(), said.kind(400), said.meaning()));
            let scrubbed = Scrubber::default().clean(&String::from_utf8_lossy(&body), 300);
            assert!(scrubbed.chars().count() <= 303 && !scrubbed.contains('\n'));
            let Ok(document) = serde_json::from_slice::<serde_json::Value>(&body) else { return };
            drop((Page::read(&document), allowed_by_action_info(&document), link(&document, "Systems")));
            let system = System::read(&document).ok();
            let candidates = [Candidate { uri: "/a".into(), system: system.clone() }, Candidate { uri: "/b".into(), system }];
            for wanted in [Wanted::Any, Wanted::Named("x".into()), Wanted::Node("a".into())] {
                drop(choose(&candidates, &wanted, Some("11111111-2222-3333-4444-555555555555")));
            }
        });
    }

    #[test]
    fn arbitrary_bytes_as_a_body(body in proptest::collection::vec(any::<u8>(), 0..2048)) {
        bounded(|| drop(complaint::read(&body)));
    }

    #[test]
    fn addresses_links_and_fingerprints(text in "\\PC{0,60}", other in "[-a-zA-Z0-9./:%\\[\\]#?]{0,60}") {
        bounded(|| {
            for text in [&text, &other] {
                drop((Address::parse(text, 443), tls::parse_fingerprints(text), same_uuid(text, &other)));
                let bmc = Address::parse("bmc.example", 443).unwrap();
                let from = Place { port: 443, path: "/redfish/v1/Systems".into() };
                if let Ok(place) = bmc.follow(&from, text) {
                    // What may be followed can be sent, and stays here.
                    assert!(place.path.starts_with('/') && place.path.bytes().all(|byte| byte.is_ascii_graphic()), "{place:?}");
                    format!("{}{}", bmc.origin(place.port), place.path).parse::<ureq::http::Uri>().unwrap();
                }
            }
        });
    }
}
