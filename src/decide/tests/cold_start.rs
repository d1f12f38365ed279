//! The table of R2, from both sides at once: the two answers must fit together.

use super::world::*;
use crate::decide::evidence::{DataDir, PublishedState};
use crate::decide::reason::{Refusal, Rule};
use crate::decide::start::cold_start::{Chosen, Cluster, ColdStart, answer};

fn broken() -> DataDir {
    DataDir::Broken { why: "no wal".to_owned() }
}

/// Returns the result of the table of cold starts on each node, node1's first. `first` is node1's record, and `second` is
/// node2's.
fn both(first: &PublishedState, second: &PublishedState) -> (ColdStart, ColdStart) {
    (answer(first, second, &cluster(true)), answer(second, first, &cluster(false)))
}

fn cluster(i_am_first: bool) -> Cluster<'static> {
    Cluster {
        names: if i_am_first { ["node1", "node2"] } else { ["node2", "node1"] },
        recorded: false,
        forks: 0,
        chosen: Chosen::Nobody,
        reached: None,
        recorded_of_me: None,
        recorded_of_peer: None,
        third_voter: None,
    }
}

fn normally(rule: Rule) -> ColdStart {
    ColdStart::StartNormally(rule)
}

#[test]
fn each_row_gives_two_answers_that_fit() {
    use ColdStart::{FollowThePeer, ForceNewCluster};
    use Rule::*;
    let pair = |me| history(me, &[ME, PEER], &[]);
    for (name, first, second, expected) in [
        ("two voters that name each other", pair(ME), pair(PEER), (normally(TwoPlainStarts), normally(TwoPlainStarts))),
        (
            "its own log does not know yet that it is a voter",
            pair(ME),
            history(PEER, &[ME], &[PEER]),
            (normally(TwoPlainStarts), normally(TwoPlainStarts)),
        ),
        (
            "sole voter and its learner",
            history(ME, &[ME], &[PEER]),
            history(PEER, &[ME], &[PEER]),
            (normally(SoleVoter), FollowThePeer(PeerIsSoleVoter)),
        ),
        (
            "sole voter and an older voter",
            history(ME, &[ME], &[]),
            pair(PEER),
            (normally(SoleVoter), FollowThePeer(PeerIsSoleVoter)),
        ),
        (
            "sole voter and a departed member",
            history(ME, &[ME], &[]),
            departed(PEER),
            (normally(SoleVoter), FollowThePeer(PeerIsSoleVoter)),
        ),
        (
            "sole voter and nothing",
            history(ME, &[ME], &[]),
            DataDir::Blank,
            (normally(SoleVoter), FollowThePeer(PeerIsSoleVoter)),
        ),
        (
            "voter and nothing",
            pair(ME),
            DataDir::Blank,
            (ForceNewCluster(PeerHasNoData), FollowThePeer(PeerHasTheVotersData)),
        ),
        (
            "voter and a broken data dir",
            pair(ME),
            broken(),
            (ForceNewCluster(PeerHasNoData), FollowThePeer(PeerHasTheVotersData)),
        ),
        (
            "voter and one whose log holds its own removal",
            pair(ME),
            departed(PEER),
            (ForceNewCluster(PeerHasNoData), FollowThePeer(PeerHasTheVotersData)),
        ),
        (
            "voter beside a member that came after the one that left",
            history(ME, &[ME, 7], &[]),
            departed(PEER),
            (normally(PeerJoinedSince), FollowThePeer(PeerHasTheVotersData)),
        ),
        (
            "nothing and nothing",
            DataDir::Blank,
            DataDir::Blank,
            (ColdStart::Bootstrap(FirstByNameBootstraps), FollowThePeer(FirstByNameBootstraps)),
        ),
    ] {
        assert_eq!(both(&record(first), &record(second)), expected, "{name}");
    }
}

#[test]
fn the_order_of_the_nodes_changes_nothing_but_who_bootstraps() {
    let answers = both(&record(DataDir::Blank), &record(history(PEER, &[PEER, ME], &[])));
    let expected =
        (ColdStart::FollowThePeer(Rule::PeerHasTheVotersData), ColdStart::ForceNewCluster(Rule::PeerHasNoData));
    assert_eq!(answers, expected);
}

#[test]
fn nobody_chooses_between_two_histories() {
    let answers = both(&record(history(ME, &[ME], &[])), &record(history(PEER, &[PEER], &[])));
    assert_eq!(answers, (ColdStart::Refuse(Refusal::HistoriesSplit), ColdStart::Refuse(Refusal::HistoriesSplit)));
}

#[test]
fn a_peer_that_joined_since_it_published_is_waited_for_as_the_voter_that_it_is() {
    // Member 7 is the peer, once it had backed its data up and was promoted.
    let (me, before) = (record(history(ME, &[ME, 7], &[])), record(history(PEER, &[ME, PEER], &[])));
    assert_eq!(both(&me, &before).0, normally(Rule::PeerJoinedSince));
    // Each announced a fork, and the peer gave its own up.
    let own_fork = PublishedState { lineage: forks(1, "node1"), ..me.clone() };
    let other_fork = PublishedState { lineage: forks(1, "node2"), ..before.clone() };
    assert_eq!(both(&own_fork, &other_fork).0, normally(Rule::PeerJoinedSince));
    let refused = ColdStart::Refuse(Refusal::HistoriesSplit);
    let claims = PublishedState { claims: true, ..before.clone() };
    let stranger = record(history(PEER, &[PEER, 8], &[]));
    for other in [claims, stranger] {
        assert_eq!(both(&me, &other).0, refused);
    }
    let chosen = Cluster { chosen: Chosen::Me, ..cluster(true) };
    assert_eq!(answer(&me, &before, &chosen), ColdStart::ForceNewCluster(Rule::ChosenPrimary));
}

#[test]
fn an_operator_chooses_between_two_histories() {
    let chosen = |chosen| Cluster { chosen, ..cluster(true) };
    let sole = (record(history(ME, &[ME], &[])), record(history(PEER, &[PEER], &[])));
    let strangers = (record(history(ME, &[ME, 7], &[])), record(history(PEER, &[PEER, 8], &[])));
    for (first, second) in [sole, strangers] {
        let goes_on = ColdStart::ForceNewCluster(Rule::ChosenPrimary);
        assert_eq!(answer(&first, &second, &chosen(Chosen::Me)), goes_on);
        let follows = ColdStart::FollowThePeer(Rule::PeerIsChosenPrimary);
        assert_eq!(answer(&second, &first, &chosen(Chosen::ThePeer)), follows);
    }
    // Where the evidence ranks the two, it is not asked for.
    let (older, newer) = (record(history(PEER, &[ME, PEER], &[])), record(history(ME, &[ME], &[])));
    assert_eq!(answer(&newer, &older, &chosen(Chosen::ThePeer)), normally(Rule::SoleVoter));
}

#[test]
fn without_a_voters_data_nobody_begins() {
    let learner = |me: u64| history(me, &[3 - me], &[me]);
    for (first, second) in [
        (learner(ME), DataDir::Blank),
        (learner(ME), learner(PEER)),
        (departed(ME), DataDir::Blank),
        (departed(ME), departed(PEER)),
    ] {
        let answers = both(&record(first), &record(second));
        assert_eq!(answers, (ColdStart::Refuse(Refusal::NoVotersData), ColdStart::Refuse(Refusal::NoVotersData)));
    }
}

#[test]
fn two_blank_disks_of_a_recorded_cluster_are_a_loss_and_not_a_beginning() {
    let blank = record(DataDir::Blank);
    assert_eq!(
        answer(&blank, &blank, &Cluster { recorded: true, ..cluster(true) }),
        ColdStart::Refuse(Refusal::DataOfARecordedClusterIsGone)
    );
}

#[test]
fn two_broken_data_dirs_are_never_begun_over() {
    let gone = || ColdStart::Refuse(Refusal::DataOfARecordedClusterIsGone);
    for (first, second) in [(broken(), broken()), (broken(), DataDir::Blank), (DataDir::Blank, broken())] {
        assert_eq!(both(&record(first), &record(second)), (gone(), gone()));
    }
}

#[test]
fn a_peer_that_went_on_alone_and_lost_its_disk_is_not_forgotten() {
    let expected = ColdStart::Refuse(Refusal::PeerWentOnAloneAndLostItsData { peer_forks: 1 });
    // A new disk has no note: what the cluster recorded for good counts.
    for (peer, recorded) in [(forks(1, "node2"), 0), (forks(0, ""), 1)] {
        for me in [history(ME, &[ME, PEER], &[]), history(ME, &[ME], &[])] {
            for lost in [DataDir::Blank, departed_from(PEER, 7)] {
                let peer = PublishedState { lineage: peer.clone(), ..record(lost) };
                assert_eq!(answer(&record(me.clone()), &peer, &Cluster { forks: recorded, ..cluster(true) }), expected);
            }
        }
    }
    let me = PublishedState { lineage: forks(1, "node1"), ..record(history(ME, &[ME, PEER], &[])) };
    let own_fork = answer(&me, &record(DataDir::Blank), &Cluster { forks: 1, ..cluster(true) });
    assert_eq!(own_fork, ColdStart::ForceNewCluster(Rule::PeerHasNoData));
}

#[test]
fn a_fork_that_was_announced_and_not_done_stands_in_nobodys_way() {
    // The peer announced, was joined again, and left: its data names this member as the rest of the cluster.
    let me = record(history(ME, &[ME], &[]));
    let peer = PublishedState { lineage: forks(1, "node2"), ..record(departed(PEER)) };
    assert_eq!(answer(&me, &peer, &Cluster { forks: 1, ..cluster(true) }), normally(Rule::SoleVoter));
    let asked_only = PublishedState { lineage: forks(1, "node2"), ..record(history(PEER, &[ME, PEER], &[])) };
    let expected = (normally(Rule::SoleVoter), ColdStart::FollowThePeer(Rule::PeerIsSoleVoter));
    assert_eq!(both(&me, &asked_only), expected);
}

#[test]
fn a_peer_that_is_about_to_go_on_alone_is_another_history() {
    // An operator ordered both: equally many forks, of which neither knows the other's.
    let me = PublishedState { lineage: forks(1, "node1"), ..record(history(ME, &[ME], &[])) };
    let announced = record(history(PEER, &[ME, PEER], &[]));
    let peer = PublishedState { lineage: forks(1, "node2"), claims: true, ..announced };
    let split = ColdStart::Refuse(Refusal::HistoriesSplit);
    assert_eq!(both(&me, &peer), (split.clone(), split));
}

#[test]
fn a_sole_voter_that_was_left_behind_is_not_followed() {
    let old = record(history(ME, &[ME], &[]));
    let newer = PublishedState { lineage: forks(1, "node2"), ..record(history(PEER, &[7, PEER], &[])) };
    assert_eq!(
        both(&old, &newer),
        (ColdStart::Refuse(Refusal::HistoriesSplit), ColdStart::Refuse(Refusal::HistoriesSplit))
    );
}

#[test]
fn of_two_voters_that_do_not_name_each_other_the_one_with_more_forks_goes_on() {
    let newer = PublishedState { lineage: forks(2, "node1"), ..record(history(ME, &[ME, 7], &[])) };
    let older = PublishedState { lineage: forks(1, "node2"), ..record(history(PEER, &[ME, PEER], &[])) };
    let expected =
        (ColdStart::ForceNewCluster(Rule::PeerWasLeftBehind), ColdStart::FollowThePeer(Rule::PeerWentOnAlone));
    assert_eq!(both(&newer, &older), expected);
    let equal = PublishedState { lineage: forks(2, "node2"), claims: true, ..older };
    assert_eq!(
        both(&newer, &equal),
        (ColdStart::Refuse(Refusal::HistoriesSplit), ColdStart::Refuse(Refusal::HistoriesSplit))
    );
}

#[test]
fn as_many_forks_made_by_another_node_are_another_history_once_they_were_made() {
    let refused = || ColdStart::Refuse(Refusal::HistoriesSplit);
    let sole = |lineage| PublishedState { lineage, ..record(history(ME, &[ME], &[])) };
    let announced = PublishedState { lineage: forks(1, "node2"), ..record(history(PEER, &[ME, PEER], &[])) };
    let claims = PublishedState { claims: true, ..announced.clone() };
    assert_eq!(both(&sole(forks(1, "node1")), &claims), (refused(), refused()));
    let made = PublishedState { lineage: forks(1, "node2"), ..record(history(PEER, &[7, PEER], &[])) };
    assert_eq!(both(&sole(forks(1, "node1")), &made), (refused(), refused()));
    // A node that still votes next to this member, and claims nothing, announced it only.
    let same = (normally(Rule::SoleVoter), ColdStart::FollowThePeer(Rule::PeerIsSoleVoter));
    for known in [forks(1, "node1"), forks(1, "node2"), forks(2, "node1")] {
        assert_eq!(both(&sole(known), &announced), same);
    }
}

#[test]
fn a_peer_that_gave_its_data_up_to_join_has_no_fork_to_miss() {
    let cluster = Cluster { forks: 1, ..cluster(true) };
    let blank = PublishedState { lineage: forks(1, "node2"), ..record(DataDir::Blank) };
    let joins = PublishedState { joins: true, ..blank.clone() };
    for (voters, goes_on) in [(&[ME][..], normally(Rule::SoleVoter)), (&[ME, PEER], normally(Rule::PeerJoinedSince))] {
        let me = record(history(ME, voters, &[]));
        let lost = ColdStart::Refuse(Refusal::PeerWentOnAloneAndLostItsData { peer_forks: 1 });
        assert_eq!(answer(&me, &blank, &cluster), lost);
        assert_eq!(answer(&me, &joins, &cluster), goes_on);
    }
}

#[test]
fn three_voters_are_nobodys_business_here() {
    let many = record(history(ME, &[ME, PEER, 3], &[]));
    for peer in [DataDir::Blank, history(PEER, &[PEER], &[]), history(PEER, &[ME, PEER], &[])] {
        let expected = ColdStart::StartNormally(Rule::MoreThanTwoVoters);
        assert_eq!(answer(&many, &record(peer), &cluster(true)), expected);
    }
    let follows = ColdStart::FollowThePeer(Rule::PeerHasTheVotersData);
    assert_eq!(answer(&record(DataDir::Blank), &many, &cluster(true)), follows);
}
