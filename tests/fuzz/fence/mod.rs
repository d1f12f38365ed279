//! External inputs of the fence agent: no panic, no hang, and no more memory than the input justifies.
//!
//! `TANDEM_FUZZ_CASES` sets the number of cases for each property. A plain run does a share that CI can afford.

mod cases;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use crate::allocation;
use proptest::prelude::*;
use tandem::fence::options::rows;

/// The limit of CPU time for one input. A parser that takes more than linear time exceeds it.
const PATIENCE: Duration = Duration::from_secs(2);

/// The largest number of bytes of memory for each byte of JSON. An object with one small member takes about a hundred times its
/// text.
const FACTOR: usize = 120;
/// The bytes of memory for the tables of options and for a message, in addition to those for the input.
const CONSTANT: usize = 512 * 1024;

/// Returns the CPU time that this thread has used, because other work on the machine must not count.
fn computed() -> Duration {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

fn bounded(size: usize, parse: impl FnOnce()) {
    let began = computed();
    let (peak, ()) = allocation::peak(parse);
    let took = computed().saturating_sub(began);
    assert!(took < PATIENCE, "took {took:?}");
    assert!(peak <= CONSTANT + FACTOR * size, "{peak} bytes for an input of {size}");
}

/// Returns a generator of names of options, known and unknown.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&'static str> = rows().flat_map(|row| [Some(row.name), row.old]).flatten().collect();
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

fn config() -> ProptestConfig {
    let cases = std::env::var("TANDEM_FUZZ_CASES").map_or(2000, |cases| cases.parse().expect("a number of cases"));
    ProptestConfig { cases, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_lines_on_standard_input_are_read_within_bounds(input in lines()) {
        bounded(input.len(), || cases::lines(&input));
    }

    #[test]
    fn any_words_on_the_command_line_are_read_within_bounds(words in proptest::collection::vec((0..3_u8, key(), value()), 0..12)) {
        let words: Vec<OsString> = words.into_iter().flat_map(|(form, key, value)| match form {
            0 => vec![OsString::from_vec([b"--".to_vec(), key].concat()), OsString::from_vec(value)],
            1 => vec![OsString::from_vec([b"--".to_vec(), key, b"=".to_vec(), value].concat())],
            _ => vec![OsString::from_vec(value)],
        }).collect();
        bounded(words.iter().map(|word| word.len()).sum(), || cases::words(&words));
    }

    #[test]
    fn any_json_body_is_read_within_bounds(body in json()) {
        bounded(body.len(), || cases::body(&body));
    }

    #[test]
    fn any_bytes_as_a_body_are_read_within_bounds(body in proptest::collection::vec(any::<u8>(), 0..2048)) {
        bounded(body.len(), || cases::body(&body));
    }

    #[test]
    fn any_address_link_and_fingerprint_is_read_within_bounds(text in "\\PC{0,60}", other in "[-a-zA-Z0-9./:%\\[\\]#?]{0,60}") {
        bounded(text.len() + other.len(), || {
            cases::text(&text);
            cases::text(&other);
        });
    }
}

/// Asserts that the largest accepted inputs are parsed within the limits. For these inputs, a parser that takes more
/// than linear time would exceed the limits.
#[test]
fn the_largest_inputs_are_read_within_bounds() {
    let large = 256 * 1024;
    let names: String = (0..).map(|number| format!("{number:x},")).take(large / 5).collect();
    let keys: String = (0..).map(|number| format!("k{number:x}=1\n")).take(large / 8).collect();
    for input in [format!("plug={names}\n"), keys, "=".repeat(large), "\n".repeat(large), "ip=x\n".repeat(large / 5)] {
        bounded(input.len(), || cases::lines(input.as_bytes()));
    }
    let large = 1024 * 1024;
    for unit in ["[", "{\"\":", "[],", "{\"a\":1},", "\"secret\",", " ", "\\u0000", "1,", "\"@odata.id\","] {
        let many = unit.repeat(large / unit.len());
        for body in
            [many.clone(), format!("[{many}0]"), format!("{{\"error\":{{\"@Message.ExtendedInfo\":[{many}0]}}}}")]
        {
            bounded(body.len(), || cases::body(body.as_bytes()));
        }
    }
}
