//! Tests of the datagrams that open and do not open, and of arbitrary bytes.

use proptest::prelude::*;

use super::*;

fn sealer(key: &[u8], group: &str, own: &str, number: u64) -> Sealer {
    let mut sealer = Sealer::new(&Secret::new(key), group, own, number).unwrap();
    sealer.list(["a", "b", "c"]);
    sealer
}

fn pair() -> (Sealer, Sealer) {
    (sealer(&[7; 32], "g", "a", 1), sealer(&[7; 32], "g", "b", 1))
}

#[test]
fn a_datagram_opens_once_at_its_receiver_on_its_network() {
    let (mut a, mut b) = pair();
    let datagram = a.seal("b", 0, b"ping").unwrap();
    assert!(!datagram.windows(4).any(|part| part == b"ping"), "in the clear");
    assert_eq!(b.open(&datagram, 1), Err(Dropped::Seal));
    assert_eq!(sealer(&[7; 32], "g", "c", 1).open(&datagram, 0), Err(Dropped::Seal), "another receiver");
    assert_eq!(b.open(&datagram, 0), Ok(("a".to_owned(), b"ping".to_vec())));
    assert_eq!(b.open(&datagram, 0), Err(Dropped::Replay));
    assert_ne!(a.seal("b", 0, b"ping").unwrap(), datagram, "a nonce twice");
    assert!(a.open(&datagram, 0).is_err(), "its own");
}

#[test]
fn another_key_or_group_does_not_open() {
    let (mut a, _) = pair();
    let datagram = a.seal("b", 0, b"ping").unwrap();
    assert_eq!(sealer(&[8; 32], "g", "b", 1).open(&datagram, 0), Err(Dropped::Seal));
    assert_eq!(sealer(&[7; 32], "h", "b", 1).open(&datagram, 0), Err(Dropped::Seal));
}

#[test]
fn foreign_and_unlisted_ones_are_told_apart() {
    let (mut a, mut b) = pair();
    for foreign in [&b""[..], b"TFA1", b"TFA1\x01a", b"\x00memberlist", b"\xf4memberlist", &[0; 1400]] {
        assert_eq!(b.open(foreign, 0), Err(Dropped::Foreign), "{foreign:?}");
    }
    b.list(["c"]);
    assert_eq!(b.open(&a.seal("b", 0, b"ping").unwrap(), 0), Err(Dropped::Unlisted));
    assert!(b.senders.is_empty(), "kept for an unlisted sender");
    let forged = sealer(&[9; 32], "g", "a", 1).seal("b", 0, b"ping").unwrap();
    assert_eq!(b.open(&forged, 0), Err(Dropped::Seal), "a forged name has the API listed");
    let other_group = sealer(&[7; 32], "h", "a", 1).seal("b", 0, b"ping").unwrap();
    assert_eq!(b.open(&other_group, 0), Err(Dropped::Seal));
    b.list(["a"]);
    assert!(b.open(&a.seal("b", 0, b"ping").unwrap(), 0).is_ok());
}

#[test]
fn after_a_restart_with_a_higher_number_nothing_older_opens() {
    let (mut a, mut b) = pair();
    let old = a.seal("b", 0, b"old").unwrap();
    assert!(b.open(&a.seal("b", 0, b"x").unwrap(), 0).is_ok());
    let mut again = sealer(&[7; 32], "g", "a", 2);
    assert!(b.open(&again.seal("b", 0, b"new").unwrap(), 0).is_ok());
    assert_eq!(b.open(&old, 0), Err(Dropped::Replay));
    let mut same = sealer(&[7; 32], "g", "a", 2);
    assert_eq!(b.open(&same.seal("b", 0, b"x").unwrap(), 0), Err(Dropped::Replay), "a number that is used twice");
}

#[test]
fn a_forged_higher_number_locks_nothing_out() {
    let (mut a, mut b) = pair();
    assert!(b.open(&a.seal("b", 0, b"x").unwrap(), 0).is_ok());
    let forged = sealer(&[9; 32], "g", "a", u64::MAX).seal("b", 0, b"x").unwrap();
    assert_eq!(b.open(&forged, 0), Err(Dropped::Seal));
    assert!(b.open(&a.seal("b", 0, b"x").unwrap(), 0).is_ok());
}

#[test]
fn late_ones_open_once_and_too_late_ones_never() {
    let (mut a, mut b) = pair();
    let window = usize::try_from(WINDOW).unwrap();
    let all: Vec<_> = (0..WINDOW + 2).map(|_| a.seal("b", 0, b"x").unwrap()).collect();
    assert!(b.open(&all[window + 1], 0).is_ok());
    assert_eq!(b.open(&all[0], 0), Err(Dropped::Replay), "older than the window");
    assert_eq!(b.open(&all[1], 0), Err(Dropped::Replay));
    for datagram in &all[2..=window] {
        assert!(b.open(datagram, 0).is_ok());
        assert_eq!(b.open(datagram, 0), Err(Dropped::Replay));
    }
}

proptest! {
    /// Asserts that each counter is accepted once, in any order, unless it is too old.
    #[test]
    fn a_counter_is_new_once(counters in proptest::collection::vec(0_u64..20_000, 1..400)) {
        let (mut seen, mut known, mut newest) = (Seen::default(), BTreeSet::new(), 0);
        for counter in counters {
            let is_old = counter + WINDOW <= newest;
            prop_assert_eq!(seen.note(counter), !is_old && known.insert(counter), "{}", counter);
            newest = newest.max(counter);
        }
    }

    /// Asserts that arbitrary bytes do not open, nor a datagram with one changed bit.
    #[test]
    fn nothing_opens_that_was_changed(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..80, bit in 0_u8..8) {
        let (mut a, mut b) = pair();
        prop_assert!(b.open(&bytes, 0).is_err());
        let mut framed = MAGIC.to_vec();
        framed.extend(&bytes);
        prop_assert!(b.open(&framed, 0).is_err());
        let mut datagram = a.seal("b", 0, &bytes).unwrap();
        let at = at % datagram.len();
        datagram[at] ^= 1 << bit;
        prop_assert!(b.open(&datagram, 0).is_err());
    }
}
