use super::*;
use crate::admin::report::golden;
use crate::operate::certs::pki::Authority;

/// The time 2026-11-23, in seconds since 1970.
const NOW: u64 = 1_795_400_000;
const DAY: u64 = 86_400;

/// Replaces the fingerprint in `row`, which differs in each run of the test, by a fixed text.
fn still(mut row: Row) -> Row {
    row.fingerprint = row.fingerprint.map(|_| "SHA-256".to_owned());
    row
}

#[test]
fn certificates_are_told_by_what_they_are_and_by_who_has_read_them() {
    let authority = Authority::new("demo", NOW).unwrap();
    let ca = authority.certificate();
    let leaf = |now| {
        let pair = authority.node("node1", &["192.0.2.1".to_owned()], now).unwrap();
        pki::first(&pair.certificate_pem, "it").unwrap()
    };
    let (shown, renewed) = (leaf(NOW), leaf(NOW + 1));
    let seen = PeerSeen { chains: vec![vec![shown.clone()]; 2], trusts: vec![vec![ca.subject_der.clone()]; 2] };
    let own = |what: &str, file: &str, one: &Certificate| still(row(file, None, what, one, Some(ca), Some(&seen)));
    let report = Shown {
        at: rfc3339(NOW),
        here: "node1".to_owned(),
        certificates: vec![
            own("CA", "/etc/tandem/pki/ca.crt", ca),
            own("etcd", "/etc/tandem/pki/etcd.crt", &renewed),
            still(row("node2, for clients", Some("node2"), "shown by etcd", &shown, Some(ca), None)),
            Row {
                r#where: "fence-node2".to_owned(),
                what: "BMC".to_owned(),
                ends: rfc3339(NOW + 9 * DAY),
                ends_at: NOW + 9 * DAY,
                ..Row::default()
            },
        ],
        missing: vec![Missing {
            r#where: "etcd on node2".to_owned(),
            why: "nobody listens at 192.0.2.2:2379".to_owned(),
        }],
        now: NOW,
    };
    assert_eq!(report.certificates[0].shown, Some(true));
    assert_eq!(report.certificates[1].shown, Some(false), "etcd shows the one before");
    assert_eq!(report.certificates[2].shown, None);
    assert!(report.certificates[..3].iter().all(|row| row.own));
    assert_eq!(report.exit(), Exit::Degraded);
    golden::compare("certs-show", &report);
    let later =
        |now| Shown { now, certificates: vec![still(row("it", None, "etcd", &shown, None, None))], ..Shown::default() };
    let exits = [later(NOW), later(shown.ends - 30 * DAY + 1), later(shown.ends + 1)].map(|shown| shown.exit());
    assert_eq!(exits, [Exit::Done, Exit::Degraded, Exit::Worst]);
}
