//! The image that etcd runs from, and the one that follows, are published and decide nothing.

use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::{Evidence, NextImage, RunningImage};
use crate::decide::plan::{Effect, Exit, Request};

fn next(id: Option<&str>) -> NextImage {
    NextImage { image: "etcd:new".to_owned(), id: id.map(str::to_owned), version: None }
}

fn running(next: Option<NextImage>) -> RunningImage {
    RunningImage { image: "etcd:old".to_owned(), id: "1".to_owned(), version: None, next }
}

fn voter(seen: Fact<RunningImage>) -> Evidence {
    let mut voter = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME, PEER], &[]))).seen_voting();
    voter.local.image = seen;
    voter
}

#[test]
fn a_member_whose_next_image_is_not_here_runs_on_and_shows_it() {
    for seen in [running(None), running(Some(next(None))), running(Some(next(Some("2"))))] {
        let plan = first(Request::Monitor, &voter(Fact::Known(seen.clone())));
        assert_eq!(plan.effects, [Effect::PublishImage(Some(seen.clone()))]);
        assert_eq!(exit(&plan), Some(Exit::Success));
        let published = voter(Fact::Known(seen.clone())).cib_with(|cib| cib.own_image = Some(seen));
        assert!(first(Request::Monitor, &published).effects.is_empty(), "it is published once");
        let reload = first(Request::Reload, &published);
        assert_eq!((exit(&reload), reload.effects), (Some(Exit::Success), Vec::new()), "Pacemaker restarts what fails");
    }
}

#[test]
fn an_image_that_is_not_known_changes_nothing_that_was_published() {
    for seen in [Fact::NotAsked, Fact::Absent, Fact::Unknown("podman hangs".to_owned())] {
        let shown = voter(seen).cib_with(|cib| cib.own_image = Some(running(Some(next(None)))));
        assert!(first(Request::Monitor, &shown).effects.is_empty());
    }
}

#[test]
fn a_node_that_stops_takes_its_image_back() {
    let stopped = at_rest().cib_with(|cib| cib.own_image = Some(running(None)));
    assert!(first(Request::Stop, &stopped).effects.contains(&Effect::PublishImage(None)));
}

#[test]
fn podman_is_asked_until_the_image_that_is_named_runs() {
    assert!(running(None).is_settled("etcd:old"));
    assert!(!running(None).is_settled("etcd:new") && !running(Some(next(None))).is_settled("etcd:old"));
}
