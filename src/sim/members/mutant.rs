//! Rules broken on purpose, from the outside: the input of the rules, or the use of their answer. The rules have no
//! switch.

use crate::decide::members::{Forbidden, Health, MachineState, Member, MemberStep, Membership, Next, Wish};

/// A rule about changes of etcd's members that is broken on purpose. The search must catch each one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mutant {
    #[default]
    None,
    RoomForTwoMore,
    SecondLearner,
    FewerWithoutAWord,
    SickCountsAsHealthy,
    HealthyBeforeSick,
    BehindIsPromoted,
    OneLookIsEnough,
    DeletedIsPromoted,
    UnstartedPromoted,
    LockIgnored,
    StaleListBelieved,
    LastVoterGoes,
    LeaderGoes,
    UnknownCountsAsHealthy,
    UnknownCountsAsGone,
    StopDuringChange,
    StopWithoutMajority,
    LeaseNeverEnds,
    NeverPromoted,
    OldNeverGoes,
    DeadGoesLast,
}

/// All broken rules, each with its name on the command line.
pub const ALL: [(&str, Mutant); 21] = [
    ("room-for-two-more", Mutant::RoomForTwoMore),
    ("second-learner", Mutant::SecondLearner),
    ("fewer-without-a-word", Mutant::FewerWithoutAWord),
    ("sick-counts-as-healthy", Mutant::SickCountsAsHealthy),
    ("healthy-before-sick", Mutant::HealthyBeforeSick),
    ("behind-is-promoted", Mutant::BehindIsPromoted),
    ("one-look-is-enough", Mutant::OneLookIsEnough),
    ("deleted-is-promoted", Mutant::DeletedIsPromoted),
    ("unstarted-promoted", Mutant::UnstartedPromoted),
    ("lock-ignored", Mutant::LockIgnored),
    ("stale-list-believed", Mutant::StaleListBelieved),
    ("last-voter-goes", Mutant::LastVoterGoes),
    ("leader-goes", Mutant::LeaderGoes),
    ("unknown-counts-as-healthy", Mutant::UnknownCountsAsHealthy),
    ("unknown-counts-as-gone", Mutant::UnknownCountsAsGone),
    ("stop-during-change", Mutant::StopDuringChange),
    ("stop-without-majority", Mutant::StopWithoutMajority),
    ("lease-never-ends", Mutant::LeaseNeverEnds),
    ("never-promoted", Mutant::NeverPromoted),
    ("old-never-goes", Mutant::OldNeverGoes),
    ("dead-goes-last", Mutant::DeadGoesLast),
];

impl Mutant {
    /// Changes the membership that the rules read, as the mutant requires.
    pub(super) fn distort(self, membership: &mut Membership) {
        let all = membership.members.iter_mut();
        match self {
            Self::RoomForTwoMore => membership.wanted += 1,
            Self::SickCountsAsHealthy => all.for_each(|member| heal(member, true)),
            Self::UnknownCountsAsHealthy => all.for_each(|member| heal(member, false)),
            Self::UnknownCountsAsGone => all.for_each(sicken),
            Self::BehindIsPromoted => all.for_each(|member| (member.lag, member.lag_before) = (Some(0), Some(0))),
            Self::OneLookIsEnough => all.for_each(|member| member.lag_before = member.lag),
            Self::UnstartedPromoted => all.for_each(|member| {
                if member.is_learner {
                    (member.lag, member.lag_before) = (Some(0), Some(0));
                }
            }),
            Self::DeletedIsPromoted => all.for_each(|member| member.machine = MachineState::None),
            Self::LeaderGoes => membership.leader = membership.leader.map(|_| 0),
            Self::LastVoterGoes => {
                let voter = membership.voters().next().cloned();
                membership.members.extend(voter.map(|voter| Member { id: 98, peer_urls: Vec::new(), ..voter }));
                membership.leader = membership.leader.map(|_| 98);
            }
            _ => {}
        }
    }

    /// Returns the step that the mutant takes in place of `next`.
    pub(super) fn instead(self, next: Next, seen: &Membership, wish: &Wish) -> Next {
        match (next, wish) {
            (Next::Step(MemberStep::Remove(_), passed), Wish::Replace { new, .. })
                if self == Self::DeadGoesLast && seen.at(&new.peer_url).is_none() =>
            {
                Next::Step(MemberStep::AddLearner(new.clone()), passed)
            }
            (next, _) => next,
        }
    }

    /// Returns whether the mutant ignores this refusal of the rules.
    pub(super) fn passes_over(self, refusal: &Forbidden) -> bool {
        self == Self::HealthyBeforeSick && matches!(refusal, Forbidden::UnhealthyFirst { .. })
    }
}

fn heal(member: &mut Member, sick: bool) {
    let heals = if sick { matches!(member.health, Health::No(_)) } else { matches!(member.health, Health::Unknown(_)) };
    if heals && member.has_started() {
        member.health = Health::Yes;
    }
}

fn sicken(member: &mut Member) {
    if let Health::Unknown(why) = &member.health {
        member.health = Health::No(why.clone());
    }
}
