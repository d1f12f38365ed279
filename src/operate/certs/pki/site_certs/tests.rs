use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, date_time_ymd,
};

use super::samples::{ADDRESS, Ca, NOW, PEER, ca, for_name, peer};
use super::*;

fn checked(pair: &(String, String), trusted: &[Certificate], other: Option<&Peer>) -> Result<Certificate, Unfit> {
    let given = Given { cert: Path::new("new.crt"), cert_pem: &pair.0, key: Path::new("new.key"), key_pem: &pair.1 };
    let bundle = Bundle { file: Path::new("ca.crt"), certificates: trusted };
    check(&given, "node1", ADDRESS.parse().unwrap(), &bundle, other, NOW)
}

fn refused(pair: &(String, String), trusted: &[Certificate], other: &Peer) -> String {
    checked(pair, trusted, Some(other)).map(|leaf| leaf.subject).unwrap_err().to_string()
}

#[test]
fn what_fits_is_taken_beside_a_peer_and_without_one() {
    let company = ca("Company CA", 2040);
    let pair = company.leaf(|_| ());
    assert!(checked(&pair, &company.certificates(), Some(&peer(&company))).is_ok());
    assert!(checked(&pair, &company.certificates(), None).is_ok());
    let more = [company.certificates(), ca("Another CA", 2040).certificates()].concat();
    assert!(checked(&pair, &more, Some(&peer(&company))).is_ok());
}

#[test]
fn what_does_not_fit_is_refused_with_what_to_do() {
    let company = ca("Company CA", 2040);
    let (trusted, other) = (company.certificates(), peer(&company));
    let good = company.leaf(|_| ());
    let with = |pair: (String, String)| refused(&pair, &trusted, &other);
    let of = |change: fn(&mut CertificateParams)| with(company.leaf(change));
    let named = |name: &'static str| {
        with(company.leaf(|params| {
            params.subject_alt_names = for_name(name);
        }))
    };
    let silent = Peer { seen: Err("nobody listens at 192.0.2.2:2379".to_owned()), ..other.clone() };
    let unread = peer(&ca("Another CA", 2040));
    let rows = [
        (with((String::new(), good.1.clone())), "new.crt is no certificate that can be read"),
        (with((good.1.clone(), good.1.clone())), "new.crt is no certificate that can be read"),
        (with((good.0[..300].to_owned(), good.1.clone())), "new.crt is no certificate that can be read"),
        (with((good.0.clone(), good.0.clone())), "new.key is no key that can be read"),
        (
            with((good.0.clone(), company.leaf(|_| ()).1)),
            "the key in new.key is not that of the certificate in new.crt: ",
        ),
        (of(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)), "new.crt is a CA's own certificate"),
        (of(|params| params.not_after = date_time_ymd(2026, 11, 1)), "new.crt ended at 2026-11-01"),
        (of(|params| params.not_before = date_time_ymd(2027, 1, 1)), "new.crt begins only at 2027-01-01"),
        (
            of(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]),
            "is not for servers and clients both",
        ),
        (
            of(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]),
            "is not for servers and clients both",
        ),
        (named(PEER), "new.crt is not good for 192.0.2.1, the address of node1"),
        (named("node1"), "new.crt is not good for 192.0.2.1, the address of node1"),
        (with(ca("Company CA", 2040).leaf(|_| ())), "new.crt is not trusted by the CAs in ca.crt"),
        (refused(&good, &[], &other), "new.crt is not trusted by the CAs in ca.crt"),
        (refused(&good, &trusted, &unread), "node2 would not trust new.crt: "),
        (refused(&good, &trusted, &silent), "as its etcd does not answer (nobody listens at 192.0.2.2:2379)"),
    ];
    for (sentence, wanted) in rows {
        assert!(sentence.contains(wanted), "{sentence}\n  is not: {wanted}");
        assert!(!sentence.contains("PRIVATE KEY"));
    }
}

#[test]
fn a_file_of_cas_keeps_the_other_node_in() {
    let (company, new) = (ca("Company CA", 2040), ca("New CA", 2040));
    let other = peer(&company);
    let check = |certificates: &[Certificate], other: Option<&Peer>| {
        check_bundle(&Bundle { file: Path::new("ca.crt"), certificates }, other, NOW).map_err(|unfit| unfit.to_string())
    };
    let both = [company.certificates(), new.certificates()].concat();
    assert_eq!(check(&both, Some(&other)), Ok(()));
    assert_eq!(check(&new.certificates(), None), Ok(()));
    let dropped = check(&new.certificates(), Some(&other)).unwrap_err();
    assert!(dropped.starts_with("ca.crt does not trust what node2 shows: keep the CA 'CN=Company CA'"), "{dropped}");
    let leaf = read_all(&company.leaf(|_| ()).0, "it").unwrap();
    assert!(check(&leaf, Some(&other)).unwrap_err().contains("which is no CA's certificate: leave it out"));
    let ended = check(&ca("Old CA", 2020).certificates(), Some(&other)).unwrap_err();
    assert!(ended.contains("'CN=Old CA', which ended at 2020-01-01"), "{ended}");
    let silent = Peer { seen: Err("silence".to_owned()), ..other };
    assert!(check(&both, Some(&silent)).unwrap_err().contains("does not answer"));
}

/// Asserts that a chain is refused if its intermediate CA allows only one of the two uses. A node needs its certificate
/// as a server and as a client.
#[test]
fn a_chain_that_is_good_for_one_use_alone_is_refused() {
    let company = ca("Company CA", 2040);
    let issued_through = |usages: Vec<ExtendedKeyUsagePurpose>| {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Company CA for servers");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_after = date_time_ymd(2030, 1, 1);
        params.extended_key_usages = usages;
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &company.issuer).unwrap().pem();
        let (leaf, leaf_key) = Ca { issuer: Issuer::new(params, key), pem: pem.clone() }.leaf(|_| ());
        checked(&(leaf + &pem, leaf_key), &company.certificates(), None).map(|leaf| leaf.issuer)
    };
    let [server, client] = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    assert_eq!(issued_through(vec![server.clone(), client.clone()]).unwrap(), "CN=Company CA for servers");
    for usage in [server, client] {
        assert!(matches!(issued_through(vec![usage.clone()]), Err(Unfit::NotTrustedHere { .. })), "{usage:?}");
    }
}
