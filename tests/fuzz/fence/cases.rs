//! Properties that every external input must satisfy. proptest and cargo-fuzz both use them.

use std::ffi::OsString;

use tandem::adapters::https::address::{Address, Location};
use tandem::adapters::https::tls;
use tandem::adapters::redfish::resource::{Page, System, allowed_by_action_info, link};
use tandem::adapters::redfish::select::{Candidate, Wanted, choose};
use tandem::adapters::redfish::{complaint, task};
use tandem::fence::config::{Action, Config, Environment};
use tandem::fence::input::{from_arguments, from_lines};
use tandem::os::secret::Scrubber;
use tandem::os::uuid;

/// Asserts that options on standard input are read or refused with clear sentences, whatever `input` contains.
pub(crate) fn lines(input: &[u8]) {
    let given = from_lines(input);
    let kept: usize = given.values.values().map(|value| value.bytes().len()).sum();
    assert!(kept <= input.len() && given.remarks.len() <= 20);
    for action in [Action::Off, Action::Status] {
        let config = Config::read(action, &given, Environment::default());
        if let Err(faults) = config {
            assert!(!faults.is_empty() && faults.iter().all(|fault| !fault.contains('\n')));
        }
    }
}

/// Asserts that options on the command line are read or refused with a clear sentence, whatever `words` are.
pub(crate) fn words(words: &[OsString]) {
    match from_arguments(words) {
        Ok(given) => drop(Config::read(Action::Off, &given, Environment::default())),
        Err(fault) => assert!(!fault.is_empty() && !fault.contains('\n')),
    }
}

/// Asserts that all readers of a BMC's answer survive this body, and that no secret is left after it was cleaned.
pub(crate) fn body(body: &[u8]) {
    let said = complaint::read(body);
    drop((
        said.sentence(),
        said.kind(400, None),
        said.meaning(),
        task::failure("/task", body),
        task::place(None, body),
    ));
    let scrubber = Scrubber::default();
    scrubber.hide(b"secret");
    let scrubbed = scrubber.clean(&String::from_utf8_lossy(body), 300);
    assert!(scrubbed.chars().count() <= 303 && !scrubbed.contains('\n') && !scrubbed.contains("secret"));
    let Ok(document) = serde_json::from_slice::<serde_json::Value>(body) else { return };
    drop((Page::read(&document), allowed_by_action_info(&document), link(&document, "Systems")));
    let system = System::read(&document).ok();
    let candidate = |uri: &str| Candidate { uri: uri.into(), system: system.clone(), may_return: false };
    let candidates = [candidate("/a"), candidate("/b")];
    for wanted in [Wanted::Any, Wanted::Named("x".into()), Wanted::Node("a".into())] {
        drop(choose(&candidates, &wanted, Some("11111111-2222-3333-4444-555555555555")));
    }
}

/// Asserts that a text is read or refused as an address, a link and a fingerprint. A link may lead only to the same BMC.
pub(crate) fn text(text: &str) {
    drop((Address::parse(text, 443), tls::parse_fingerprints(text), uuid::same(text, text)));
    let Ok(bmc) = Address::parse("bmc.example", 443) else { return };
    let from = Location { port: 443, path: "/redfish/v1/Systems".into() };
    for place in [bmc.follow(&from, text).ok(), bmc.here(&from, text)].into_iter().flatten() {
        // A link that may be followed is a valid URI of the same host.
        assert!(place.path.starts_with('/') && place.path.bytes().all(|byte| byte.is_ascii_graphic()), "{place:?}");
        let uri = format!("{}{}", bmc.origin(place.port), place.path).parse::<ureq::http::Uri>();
        assert_eq!(uri.ok().as_ref().and_then(|uri| uri.host()), Some("bmc.example"), "{place:?}");
    }
}
