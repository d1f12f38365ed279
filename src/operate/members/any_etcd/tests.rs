//! Tests of orders that make no sense, and of the environment of a new etcd.

use super::super::samples::{new_node, one_of_three_dead};
use super::removed::Removed;
use super::wanted::{Wrong, meant, wanted};
use super::{Membership, new_etcd};
use crate::decide::members::{Member, Wish};
use crate::operate::members::order::{Order, newcomer};

fn replace(old: &str, new: &str) -> Order {
    let (fence, links, old_is_off, abort) = (Vec::new(), Vec::new(), false, false);
    Order::Replace { old: Some(old.to_owned()), new: Some(newcomer(new).unwrap()), fence, links, old_is_off, abort }
}

fn add(new: &str) -> Order {
    Order::Add { new: newcomer(new).unwrap(), fence: Vec::new(), links: Vec::new() }
}

fn refused(order: &Order, membership: &Membership) -> String {
    match meant(order, membership, None).unwrap_err() {
        Wrong::Usage(why) => why.to_owned(),
        Wrong::Members(why) => why.0,
    }
}

#[test]
fn what_cannot_be_meant_is_told_with_what_to_type() {
    let seen = one_of_three_dead();
    for (order, why) in [
        (replace("node7", "node4=192.0.2.4"), "no member is called 'node7'; there are: node1, node2, node3"),
        (replace("node3", "node3=192.0.2.4"), "--new has the name or the address of node3"),
        (replace("node3", "node4=192.0.2.3"), "--new has the name or the address of node3"),
        (replace("node3", "node2=192.0.2.4"), "a member is called node2 already"),
        (replace("node3", "node4=192.0.2.2"), "https://192.0.2.2:2380 is the address of node2 already"),
        (add("node2=192.0.2.4"), "a member is called node2 already"),
        (add("node4=192.0.2.2"), "https://192.0.2.2:2380 is the address of node2 already"),
        (add("node4=ftp://192.0.2.2"), "the address 'ftp://192.0.2.2' is not ADDRESS"),
        (Order::Promote { node: "node7".to_owned() }, "no member is called 'node7'"),
        (
            Order::Add { new: new_node(), fence: vec![("ip".to_owned(), "192.0.2.9".to_owned())], links: Vec::new() },
            "'--fence' and '--link' are for a pair",
        ),
        (
            Order::Add { new: new_node(), fence: Vec::new(), links: vec!["192.0.2.9".parse().unwrap()] },
            "'--fence' and '--link' are for a pair",
        ),
    ] {
        let told = refused(&order, &seen.membership);
        assert!(told.starts_with(why), "{order:?}: {told}");
    }
    for odd in 0..4 {
        let links = if odd == 3 { vec!["192.0.2.9".parse().unwrap()] } else { Vec::new() };
        let fence = if odd == 0 { vec![("ip".to_owned(), "192.0.2.9".to_owned())] } else { Vec::new() };
        let (old, new) = (Some("node3".to_owned()), Some(new_node()));
        let order = Order::Replace { old, new, fence, links, old_is_off: odd == 1, abort: odd == 2 };
        assert!(refused(&order, &seen.membership).contains("are for a pair"), "{order:?}");
    }
    let (fence, links) = (Vec::new(), Vec::new());
    let nobody = Order::Replace { old: None, new: None, fence, links, old_is_off: false, abort: false };
    assert!(refused(&nobody, &seen.membership).contains("type 'tandem member replace OLD --new NAME=ADDRESS'"));
}

#[test]
fn a_change_that_was_cut_off_is_known_by_the_address_of_its_new_member() {
    let mut seen = one_of_three_dead();
    let order = replace("node3", "node5=192.0.2.5");
    let of = |seen: &super::MembersSeen| meant(&order, &seen.membership, None).unwrap();
    assert_eq!(wanted(&seen.membership, &of(&seen)), 3);
    let newcomer = Member { id: 5, peer_urls: vec!["https://192.0.2.5:2380".to_owned()], ..Member::default() };
    seen.membership.members.push(Member { is_learner: true, ..newcomer.clone() });
    assert_eq!(wanted(&seen.membership, &of(&seen)), 3, "it is listed");
    *seen.membership.members.last_mut().unwrap() = Member { name: "node5".to_owned(), ..newcomer };
    assert_eq!(wanted(&seen.membership, &of(&seen)), 3, "it votes beside the old one");
    seen.membership.members.retain(|member| member.name != "node3");
    let last = of(&seen);
    assert!(matches!(last.wish, Wish::Replace { old: None, .. }), "{last:?}");
    assert_eq!(wanted(&seen.membership, &last), 3, "the old one is gone");
}

#[test]
fn a_new_etcd_is_told_all_of_the_cluster() {
    let variables = new_etcd::variables(&new_node(), &one_of_three_dead());
    let all = (1..=3).map(|id| format!("node{id}=https://192.0.2.{id}:2380,")).collect::<Vec<_>>().concat();
    assert_eq!(variables["ETCD_INITIAL_CLUSTER"], format!("{all}node5=https://192.0.2.5:2380"));
    assert_eq!(variables["ETCD_INITIAL_CLUSTER_STATE"], "existing");
    assert_eq!(variables["ETCD_ADVERTISE_CLIENT_URLS"], "https://192.0.2.5:2379");
    assert!(new_etcd::lines(&variables).contains("\n  ETCD_NAME=node5"));
}

/// Asserts that a repeated replacement is accepted only with the removed member's name and the same new member. The first command was
/// interrupted before it added the new member.
#[test]
fn who_was_removed_is_told_from_who_is_mistyped() {
    let mut seen = one_of_three_dead();
    let order = replace("node3", "node5=192.0.2.5");
    let old = seen.membership.members.pop().unwrap();
    let removed = Removed::of(&old, "node3", Some("https://192.0.2.5:2380"));
    let of = |order: &Order, removed: &Removed| meant(order, &seen.membership, Some(removed)).map(|meant| meant.wish);
    assert!(matches!(of(&order, &removed), Ok(Wish::Replace { old: None, .. })));
    let by_id = replace(&format!("{:x}", old.id), "node5=192.0.2.5");
    assert!(matches!(of(&by_id, &removed), Ok(Wish::Replace { old: None, .. })));
    for (what, order, removed) in [
        ("another name", replace("node7", "node5=192.0.2.5"), removed.clone()),
        ("another replacement", replace("node3", "node6=192.0.2.6"), removed.clone()),
        ("it was removed for good", order, Removed::of(&old, "node3", None)),
    ] {
        let why = format!("{:?}", of(&order, &removed).unwrap_err());
        assert!(why.contains("where it is removed already: 'tandem member add"), "{what}: {why}");
    }
    let remove = |node: &str| Order::Remove { node: node.to_owned(), allow_fewer_voters: false };
    assert_eq!(of(&remove("node3"), &removed).unwrap(), Wish::Remove(old.id));
    assert!(of(&remove("node7"), &removed).is_err());
}
