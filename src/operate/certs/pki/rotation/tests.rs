//! Two nodes with model etcds, which read their leaf in every handshake and their authorities at a start.

use std::cell::{Cell, RefCell};

use super::*;
use crate::operate::certs::pki::{Use, is_trusted};

/// The time of the tests, 2026-11-23, in seconds since 1970.
const NOW: u64 = 1_795_400_000;
const NODES: [&str; 2] = ["node1", "node2"];
/// A number greater than the number of changes in a CA rotation.
const ALL: usize = 60;

struct World {
    _dir: tempfile::TempDir,
    files: [Files; 2],
    /// The CAs that each etcd read at its last start. `None` while the node is off.
    loaded: RefCell<[Option<Vec<Certificate>>; 2]>,
    /// The number of further changes until the fake power cut.
    left: Cell<usize>,
    made: RefCell<Vec<String>>,
}

fn holder(at: usize) -> Holder {
    Holder { node: NODES[at].to_owned(), reached_at: vec![address(at).to_string()] }
}

fn address(at: usize) -> std::net::IpAddr {
    std::net::IpAddr::from([192, 0, 2, 1 + u8::try_from(at).unwrap()])
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let files = NODES.map(|node| Files::at(dir.path().join(node)));
        let authority = Authority::new("demo", NOW - 30 * 86_400).unwrap();
        for (at, files) in files.iter().enumerate() {
            files.write(CA_CERT, authority.certificate_pem()).unwrap();
            files.write(CA_KEY, authority.key_pem()).unwrap();
            for leaf in [Leaf::Etcd, Leaf::Client] {
                files.renew(leaf, &authority, &holder(at), NOW).unwrap();
            }
        }
        let world = Self {
            _dir: dir,
            files,
            loaded: RefCell::default(),
            left: Cell::new(usize::MAX),
            made: RefCell::default(),
        };
        (0..2).for_each(|at| world.start(at));
        world
    }

    fn start(&self, at: usize) {
        self.loaded.borrow_mut()[at] = Some(self.files[at].bundle().unwrap());
    }

    fn stop(&self, at: usize) {
        self.loaded.borrow_mut()[at] = None;
    }

    fn seen(&self, at: usize) -> Option<RotationSeen> {
        let loaded = self.loaded.borrow()[at].clone()?;
        let issuer = self.files[at].leaf(Leaf::Etcd).unwrap().unwrap().issuer_der;
        let trusts: Vec<Vec<u8>> = loaded.into_iter().map(|one| one.subject_der).collect();
        Some(RotationSeen { issuers: vec![issuer.clone(), issuer], trusts: vec![trusts.clone(), trusts] })
    }

    /// Asserts that each node accepts the other node's certificate, with the CAs that it has loaded and with the CAs in its files.
    fn is_served(&self, when: &str) {
        for (at, other) in [(0, 1), (1, 0)] {
            let leaf = self.files[at].leaf(Leaf::Etcd).unwrap().unwrap();
            let bundles = [self.loaded.borrow()[other].clone(), Some(self.files[other].bundle().unwrap())];
            for (bundle, which) in bundles.into_iter().zip(["has read", "would read"]) {
                let Some(bundle) = bundle else { continue };
                for wanted in [Use::Server(&address(at).to_string()), Use::Client] {
                    let trusted = is_trusted(std::slice::from_ref(&leaf), &bundle, wanted, NOW + 100);
                    assert!(
                        trusted.is_ok(),
                        "{when}: {} is not served by what {} {which}: {trusted:?}",
                        NODES[at],
                        NODES[other]
                    );
                }
            }
            assert!(self.files[at].fits(Leaf::Etcd).unwrap(), "{when}: mixed on {}", NODES[at]);
        }
    }

    fn advance(&self, at: usize, keep_old: bool) -> Result<Next, Stopped> {
        let role = [Role::First, Role::Second][at];
        let done = advance(&self.files[at], &mut Site { world: self, at }, role, keep_old, &holder(at), NOW + 100);
        self.is_served(&format!("after {:?}", self.made.borrow().last()));
        done
    }

    /// Advances the CA rotation on both nodes in turns until each is done or waits only for the other one.
    fn settle(&self) -> [Next; 2] {
        for _ in 0..ALL {
            let both = [0, 1].map(|at| {
                if self.loaded.borrow()[at].is_some() { self.advance(at, false).unwrap() } else { Next::Done }
            });
            if both.iter().all(|next| !matches!(next, Next::Do(_))) {
                return both;
            }
        }
        panic!("it does not end: {:?}", self.made.borrow());
    }

    fn begin(&self) -> Authority {
        begin(&self.files[0], "demo", false, NOW + 50).unwrap().unwrap()
    }

    fn is_over(&self, new: &Authority) {
        for (at, files) in self.files.iter().enumerate() {
            let bundle: Vec<Vec<u8>> = files.bundle().unwrap().into_iter().map(|one| one.subject_der).collect();
            assert_eq!(bundle, [new.certificate().subject_der.clone()], "{}", NODES[at]);
            assert_eq!(files.leaf(Leaf::Etcd).unwrap().unwrap().issuer, new.certificate().subject);
            assert_eq!(files.authority().unwrap().certificate(), new.certificate());
            assert!(!files.has(NEXT_CERT) && !files.has(NEXT_KEY));
            assert_eq!(self.seen(at).unwrap().trusts[0], bundle, "{} was restarted last", NODES[at]);
        }
    }
}

struct Site<'a> {
    world: &'a World,
    at: usize,
}

impl super::Site for Site<'_> {
    fn look(&mut self) -> Look {
        let down = || "nobody listens".to_owned();
        let other = self.world.seen(1 - self.at);
        let may_restart = if other.is_some() { Ok(()) } else { Err("the other one is to serve first".to_owned()) };
        Look {
            own: self.world.seen(self.at).ok_or_else(down),
            other: other.map_or_else(|| Other::Unseen(down()), Other::Seen),
            may_restart,
        }
    }

    fn restart(&mut self) -> Result<(), String> {
        self.world.start(self.at);
        Ok(())
    }

    fn about_to(&mut self, what: &str) -> Result<(), String> {
        let left = self.world.left.get();
        self.world.left.set(left.checked_sub(1).ok_or("the power went")?);
        self.world.made.borrow_mut().push(format!("{what} of {}", NODES[self.at]));
        self.world.is_served(&format!("before {what} of {}", NODES[self.at]));
        Ok(())
    }
}

#[test]
fn two_nodes_take_turns_until_the_old_ca_is_gone() {
    let world = World::new();
    let new = world.begin();
    assert!(!adopt(&world.files[1], &new).unwrap());
    world.settle();
    world.is_over(&new);
    assert!(adopt(&world.files[1], &new).unwrap(), "typed again it is over");
    let restarts: Vec<String> = world.made.borrow().iter().filter(|made| made.starts_with("etcd ")).cloned().collect();
    assert_eq!(restarts, ["etcd of node1", "etcd of node2", "etcd of node1", "etcd of node2"]);
}

#[test]
fn killed_before_each_change_and_typed_again_it_ends_the_same() {
    for left in 0..ALL {
        let world = World::new();
        let new = world.begin();
        adopt(&world.files[1], &new).unwrap();
        world.left.set(left);
        let mut killed = false;
        for _ in 0..ALL {
            for at in [0, 1] {
                killed |= world.advance(at, false).is_err();
            }
            if killed {
                break;
            }
        }
        world.left.set(usize::MAX);
        // The operator types the same command again. It continues, or the rotation is complete on this node.
        let again = begin(&world.files[0], "demo", false, NOW + 60).unwrap();
        assert!(again.is_none_or(|again| again.certificate() == new.certificate()));
        if !killed {
            assert!(left > 15, "a rotation has more changes than {left}");
            return;
        }
        world.settle();
        world.is_over(&new);
    }
    panic!("it was killed each time");
}

/// Asserts that after a power loss during a CA rotation, each node accepts the other's certificate and the rotation ends. The node
/// that loses its power keeps only its files.
#[test]
fn a_node_that_loses_its_power_at_any_change_comes_back_and_is_served() {
    for left in 0..ALL {
        for dies in [0, 1] {
            let world = World::new();
            let new = world.begin();
            adopt(&world.files[1], &new).unwrap();
            world.left.set(left);
            if !(0..ALL).any(|_| [0, 1].iter().any(|at| world.advance(*at, false).is_err())) {
                return;
            }
            world.left.set(usize::MAX);
            world.stop(dies);
            world.settle();
            world.is_served("while one is off");
            world.start(dies);
            world.is_served("once it is back");
            if world.files.iter().any(|files| files.has(NEXT_CERT)) {
                world.settle();
            }
            world.is_over(&new);
        }
    }
}

#[test]
fn while_the_other_node_is_off_nothing_is_done_that_would_lock_it_out() {
    let world = World::new();
    let new = world.begin();
    world.stop(1);
    world.files[0].certificates(NEXT_CERT).unwrap();
    let waits = world.settle();
    assert!(matches!(&waits[0], Next::Wait(_)), "{waits:?}");
    assert!(!world.made.borrow().iter().any(|made| made.starts_with(Leaf::Etcd.cert())));
    world.start(1);
    world.is_served("once it is back, with its old certificate");
    adopt(&world.files[1], &new).unwrap();
    world.settle();
    world.is_over(&new);
}

#[test]
fn the_old_ca_stays_where_somebody_wants_that_and_goes_when_the_same_is_typed_without() {
    let world = World::new();
    let new = world.begin();
    adopt(&world.files[1], &new).unwrap();
    for _ in 0..ALL {
        let _ = (world.advance(0, true).unwrap(), world.advance(1, false).unwrap());
    }
    assert_eq!(world.advance(0, true).unwrap(), Next::Kept);
    for files in &world.files {
        assert_eq!(files.bundle().unwrap().len(), 2);
        assert_eq!(files.leaf(Leaf::Etcd).unwrap().unwrap().issuer, new.certificate().subject);
    }
    world.settle();
    world.is_over(&new);
}

/// Asserts that a node can adopt the other node's new CA even if it has begun a CA rotation itself. Also asserts that the rotation to the
/// adopted CA ends.
#[test]
fn of_two_rotations_at_once_the_one_that_is_joined_counts() {
    let world = World::new();
    let other = begin(&world.files[1], "demo", false, NOW + 40).unwrap().unwrap();
    let look = Site { world: &world, at: 1 };
    take(RotationStep::Trust, &world.files[1], &mut { look }, &holder(1), NOW + 41).unwrap();
    let new = world.begin();
    adopt(&world.files[1], &new).unwrap();
    assert_ne!(new.certificate(), other.certificate());
    world.settle();
    world.is_over(&new);
}

#[test]
fn who_does_not_answer_is_waited_for_in_words() {
    let world = World::new();
    world.begin();
    assert_eq!(world.advance(0, false).unwrap(), Next::Do(RotationStep::Trust));
    world.stop(1);
    let Next::Wait(why) = world.advance(0, false).unwrap() else { panic!("it does not wait") };
    assert_eq!(why, "the other one is to serve first");
    world.stop(0);
    let Next::Wait(why) = world.advance(0, false).unwrap() else { panic!("it does not wait") };
    assert_eq!(why, "this node's etcd does not answer: nobody listens");
}

fn subject(name: &str) -> Vec<u8> {
    name.as_bytes().to_vec()
}

/// Returns a fake etcd with two ports: the issuer of the certificate that each presents, and the CAs that each trusts.
fn ports(issuers: [&str; 2], trusts: [&[&str]; 2]) -> RotationSeen {
    let trusted = |port: &[&str]| port.iter().map(|name| subject(name)).collect();
    RotationSeen { issuers: issuers.map(subject).to_vec(), trusts: trusts.map(trusted).to_vec() }
}

/// Returns the [`State`] of a node's files: the trusted CAs, the issuers of its two certificates, and whether `ca.key`
/// is the new CA's key.
fn state(bundle: &[&str], leaves: [&str; 2], signs_with_next: bool) -> State {
    State {
        next: Some(subject("new")),
        bundle: bundle.iter().map(|name| subject(name)).collect(),
        leaves: leaves.map(subject).to_vec(),
        signs_with_next,
    }
}

const BOTH: &[&str] = &["old", "new"];
const OLD: &[&str] = &["old"];
const NEW: &[&str] = &["new"];

/// Returns a fake etcd before a CA rotation: it uses and trusts only the old CA.
fn old() -> RotationSeen {
    ports(["old"; 2], [OLD; 2])
}

/// Returns a fake etcd that trusts both CAs and presents a certificate of the old one.
fn both() -> RotationSeen {
    ports(["old"; 2], [BOTH; 2])
}

/// Returns a fake etcd that trusts both CAs and presents a certificate of the new one.
fn new() -> RotationSeen {
    ports(["new"; 2], [BOTH; 2])
}

/// Returns a fake etcd that uses and trusts only the new CA.
fn alone() -> RotationSeen {
    ports(["new"; 2], [NEW; 2])
}

/// Asserts that each rotation step waits for its conditions. Without them, the step would lock a node out.
#[test]
fn each_step_waits_for_what_it_needs_of_both_etcds() {
    let (begun, issued) = (state(BOTH, ["old"; 2], false), state(BOTH, ["new"; 2], false));
    let dropped = state(NEW, ["new"; 2], true);
    let (first, second) = (Role::First, Role::Second);
    let rows = [
        ("the second restarts after the first", &begun, second, old(), old(), "not trusted by the other node yet"),
        ("a peer that trusts it on one port", &begun, first, both(), ports(["old"; 2], [BOTH, OLD]), "not trusted by"),
        ("its own new certificate is awaited", &issued, first, both(), new(), "does not show its new certificate yet"),
        ("on each port", &issued, first, ports(["new", "old"], [BOTH; 2]), new(), "does not show its new certificate"),
        ("the peer's, too", &issued, first, new(), both(), "shown by the other node still"),
        ("on each port", &issued, first, new(), ports(["new", "old"], [BOTH; 2]), "shown by the other node still"),
        ("the second drops after the first", &issued, second, new(), new(), "trusted by the other node still"),
        ("and restarts after it", &dropped, second, new(), new(), "trusted by the other node still"),
        ("the end is both's", &dropped, first, alone(), new(), "trusted by the other node still"),
        ("the end is both's", &dropped, second, alone(), new(), "trusted by the other node still"),
        ("on each port", &dropped, first, alone(), ports(["new"; 2], [NEW, BOTH]), "trusted by the other node still"),
    ];
    for (what, state, role, own, other, why) in rows {
        let look = Look { own: Ok(own), other: Other::Seen(other), may_restart: Ok(()) };
        let next = next(state, &look, role, false);
        assert!(matches!(&next, Next::Wait(said) if said.contains(why)), "{what}: {next:?} is not: {why}");
    }
}

/// Asserts that each rotation step is done once its conditions are met, also if it was interrupted before.
#[test]
fn each_step_is_done_once_nothing_is_in_its_way() {
    let (first, second) = (Role::First, Role::Second);
    let rows = [
        (state(OLD, ["old"; 2], false), second, old(), old(), RotationStep::Trust),
        (state(BOTH, ["old"; 2], false), first, old(), old(), RotationStep::Restart),
        (state(BOTH, ["old"; 2], false), first, ports(["old"; 2], [BOTH, OLD]), both(), RotationStep::Restart),
        (state(BOTH, ["old"; 2], false), second, old(), both(), RotationStep::Restart),
        (state(BOTH, ["old"; 2], false), first, both(), both(), RotationStep::Issue),
        (state(BOTH, ["new", "old"], false), first, new(), new(), RotationStep::Issue),
        // A pair of which only one file was replaced belongs to no CA.
        (state(BOTH, ["new", ""], false), first, new(), new(), RotationStep::Issue),
        (state(BOTH, ["new"; 2], false), first, new(), new(), RotationStep::Drop),
        (state(BOTH, ["new"; 2], false), second, new(), alone(), RotationStep::Drop),
        // The signing key must be the new CA's before the certificate that marks the rotation is removed.
        (state(NEW, ["new"; 2], false), first, alone(), alone(), RotationStep::Drop),
        (state(BOTH, ["new"; 2], true), first, alone(), alone(), RotationStep::Drop),
        (state(NEW, ["new"; 2], true), first, new(), new(), RotationStep::Restart),
        (state(NEW, ["new"; 2], true), first, ports(["new"; 2], [NEW, BOTH]), new(), RotationStep::Restart),
        (state(NEW, ["new"; 2], true), second, alone(), alone(), RotationStep::Finish),
    ];
    for (state, role, own, other, step) in rows {
        let look = Look { own: Ok(own), other: Other::Seen(other), may_restart: Ok(()) };
        assert_eq!(next(&state, &look, role, false), Next::Do(step), "{role:?} {state:?}");
    }
}

/// Asserts that a certificate is issued again if it does not fit its key, although the new CA issued it. Such a pair
/// is left if a command is interrupted between writing the two files.
#[test]
fn a_pair_that_does_not_belong_together_is_nobodys_and_is_issued_again() {
    let world = World::new();
    let new = world.begin();
    let files = &world.files[0];
    for leaf in [Leaf::Etcd, Leaf::Client] {
        files.renew(leaf, &new, &holder(0), NOW).unwrap();
    }
    assert_eq!(State::read(files).unwrap().leaves, vec![new.certificate().subject_der.clone(); 2]);
    for leaf in [Leaf::Etcd, Leaf::Client] {
        let before = files.need(leaf.cert()).unwrap();
        files.write(leaf.key(), &crate::operate::certs::pki::authority::new_key().unwrap()).unwrap();
        assert_eq!(State::read(files).unwrap().leaves, [Vec::<u8>::new()], "{leaf:?}");
        take(RotationStep::Issue, files, &mut Unwatched, &holder(0), NOW + 1).unwrap();
        assert!(files.fits(leaf).unwrap(), "{leaf:?}");
        assert_ne!(files.need(leaf.cert()).unwrap(), before, "{leaf:?}");
    }
}

/// A fake site without etcd, which accepts every change.
struct Unwatched;

impl super::Site for Unwatched {
    fn look(&mut self) -> Look {
        Look { own: Err(String::new()), other: Other::None, may_restart: Ok(()) }
    }

    fn restart(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Asserts that `signs_with_next` is true only if `ca.key`, which signs new certificates, is the new CA's key.
#[test]
fn whose_key_signs_is_read_from_the_key_itself() {
    let world = World::new();
    let new = world.begin();
    let files = &world.files[0];
    assert!(!State::read(files).unwrap().signs_with_next);
    files.write(CA_KEY, new.key_pem()).unwrap();
    assert!(State::read(files).unwrap().signs_with_next);
}

/// Asserts that adopting a CA twice changes nothing, and that `adopt` returns true only if that CA alone is trusted.
#[test]
fn joining_again_keeps_the_ca_to_come_and_one_that_is_in_use_alone_is_not_begun_again() {
    let world = World::new();
    let (files, new) = (&world.files[1], world.begin());
    assert!(!adopt(files, &new).unwrap());
    let written = std::fs::metadata(files.path(NEXT_CERT)).unwrap().modified().unwrap();
    assert!(!adopt(files, &new).unwrap());
    assert_eq!(std::fs::metadata(files.path(NEXT_CERT)).unwrap().modified().unwrap(), written, "it was written again");
    files.remove(NEXT_CERT).unwrap();
    files.remove(NEXT_KEY).unwrap();
    assert!(!adopt(files, &new).unwrap(), "it is not trusted yet");
    files.remove(NEXT_CERT).unwrap();
    files.remove(NEXT_KEY).unwrap();
    files.write(CA_CERT, new.certificate_pem()).unwrap();
    assert!(adopt(files, &new).unwrap());
    assert!(!files.has(NEXT_CERT) && !files.has(NEXT_KEY));
}
