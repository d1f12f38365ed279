//! The line of a scenario file for each move.

use super::kinds::Move;
use crate::sim::model::pacemaker::Begin;
use crate::sim::model::timing::MOMENTS;
use crate::sim::model::world::{Blind, Bmc, KeptHistory, NAMES, Wanted};

impl Move {
    /// Returns the line that represents this move in a scenario file.
    pub fn text(self) -> String {
        match self {
            Self::Write => "client writes".to_owned(),
            Self::Replicate => "etcd replicates".to_owned(),
            Self::Learn => "etcd follower hears what is committed".to_owned(),
            Self::Persist(n) => format!("etcd on {} writes down what is committed", NAMES[n]),
            Self::Elect(n) => format!("etcd on {} asks for votes", NAMES[n]),
            Self::StepDown(n) => format!("etcd on {} steps down", NAMES[n]),
            Self::Leave(n) => format!("etcd on {} finds itself removed", NAMES[n]),
            Self::PowerCut(n) => format!("power of {} is cut", NAMES[n]),
            Self::Destroy(n) => format!("power of {} is cut, and its disk is lost", NAMES[n]),
            Self::Unblock(n) => format!("operator unblocks the quorum of {}", NAMES[n]),
            Self::Boot(n) => format!("power of {} is back", NAMES[n]),
            Self::KillEtcd(n) => format!("etcd on {} is killed", NAMES[n]),
            Self::KillAgent(n) => format!("agent on {} is killed", NAMES[n]),
            Self::CutLink => "net is cut".to_owned(),
            Self::HealLink => "net is back".to_owned(),
            Self::Lag(n) => format!("cib on {} stands still", NAMES[n]),
            Self::CatchUp => "cib catches up".to_owned(),
            Self::Notice => "pacemaker notices the loss".to_owned(),
            Self::Meet(n) => format!("pacemaker forms one membership, by the cib of {}", NAMES[n]),
            Self::Fence(n) => format!("pacemaker on {} fences its peer", NAMES[n]),
            Self::Begin(n, begin, moment) => {
                format!("pacemaker begins {} on {}{}", begin_text(begin), NAMES[n], later(moment))
            }
            Self::Decide(n, moment) => format!("agent on {} decides{}", NAMES[n], later(moment)),
            Self::Effect(n) => format!("agent on {} acts", NAMES[n]),
            Self::GiveUp(n) => format!("agent on {} acts and gives up", NAMES[n]),
            Self::Want(n, Wanted::Running) => format!("operator wants {} to run", NAMES[n]),
            Self::Want(n, Wanted::Standby) => format!("operator sets {} to standby", NAMES[n]),
            Self::Want(n, Wanted::Shutdown) => format!("operator shuts {} down", NAMES[n]),
            Self::EndStack(n) => format!("operator ends pacemaker on {}, in maintenance", NAMES[n]),
            Self::KillStack(n) => format!("pacemaker on {} is killed", NAMES[n]),
            Self::StackBack(n) => format!("pacemaker on {} is back", NAMES[n]),
            Self::KillLaunch(n) => format!("agent on {} is killed while it starts etcd", NAMES[n]),
            Self::Launched(n) => format!("etcd on {} starts, after its agent was killed", NAMES[n]),
            Self::Damage(n) => format!("power of {} is cut, and its database is damaged", NAMES[n]),
            Self::Unmount(n) => format!("power of {} is cut, and its data's disk is not mounted", NAMES[n]),
            Self::Mount(n) => format!("disk of {}'s data is mounted", NAMES[n]),
            Self::PutBack(..) | Self::RollBack(..) | Self::Copy(..) => of_older_data(self),
            Self::CleanUp(n) => format!("operator cleans up on {}", NAMES[n]),
            Self::Choose(n) => format!("operator chooses the history of {}", NAMES[n]),
            Self::Tell(n) => format!("operator sets force_new_cluster on {}", NAMES[n]),
            Self::CutUsers(n) => format!("users do not reach {}", NAMES[n]),
            Self::UsersBack(n) => format!("users reach {} again", NAMES[n]),
            Self::DelayOver(n) => format!("etcd on {} has its peer well, or no leader, for the delay", NAMES[n]),
            Self::PartEtcd => "net is cut between the etcds alone".to_owned(),
            Self::JoinEtcd => "net is back between the etcds".to_owned(),
            Self::Keep(n, kept) => format!("operator has {} keep {}", NAMES[n], kept_text(kept)),
            Self::BmcFails(..) | Self::BmcBack(_) | Self::OffForLong(_) | Self::LoneLook(_) | Self::LoneAct(_) => {
                of_a_lone_boot(self)
            }
            Self::LoseThirdVoter => "guest is lost".to_owned(),
            Self::ThirdVoterBack => "guest is back".to_owned(),
            Self::Forget(n) => format!("operator has pacemaker forget {}", NAMES[n]),
            Self::Erase(n) => format!("pacemaker erases the record of {} from the CIB", NAMES[n]),
            Self::Hide(n, what) => format!("agent on {} does not find out {} once", NAMES[n], hidden(what)),
            Self::Confirm(n, accept_loss, node_is_on) => {
                let accepted = if accept_loss { ", accepting the loss" } else { "" };
                let named = if node_is_on { format!(", though {} is on", NAMES[1 - n]) } else { String::new() };
                format!("operator confirms the recovery of {}{accepted}{named}", NAMES[n])
            }
            Self::RemoveElsewhere => "operator removes the voter that follows".to_owned(),
            Self::PromoteElsewhere => "another controller promotes the learner".to_owned(),
        }
    }
}

fn of_older_data(what: Move) -> String {
    match what {
        Move::PutBack(n, kept, with_note) => {
            let note = note_too(with_note);
            format!("power of {} is cut, and its disk is put back to {kept} entries{note}", NAMES[n])
        }
        Move::RollBack(n, kept, with_note) => {
            format!("operator puts the data of {} back to {kept} entries{}", NAMES[n], note_too(with_note))
        }
        Move::Copy(n, with_note) => {
            let note = if with_note { "" } else { ", without its note" };
            format!("power of {} is cut, and its disk is a copy of the other one's{note}", NAMES[n])
        }
        _ => String::new(),
    }
}

fn of_a_lone_boot(what: Move) -> String {
    match what {
        Move::BmcFails(n, Bmc::Anothers) => format!("bmc of another machine answers for {}", NAMES[n]),
        Move::BmcFails(n, _) => format!("bmc of {} is silent", NAMES[n]),
        Move::BmcBack(n) => format!("bmc of {} is back", NAMES[n]),
        Move::OffForLong(n) => format!("bmc of {} has said off for long", NAMES[1 - n]),
        Move::LoneLook(n) => format!("lone boot on {} looks", NAMES[n]),
        Move::LoneAct(n) => format!("lone boot on {} acts", NAMES[n]),
        _ => String::new(),
    }
}

fn note_too(with_note: bool) -> &'static str {
    if with_note { ", its note too" } else { "" }
}

fn hidden(what: Blind) -> &'static str {
    match what {
        Blind::None => "nothing",
        Blind::Cib => "what is in the CIB",
        Blind::Note => "what its note says",
        Blind::Disk => "what is on its disk",
        Blind::Container => "whether its container runs",
        Blind::OwnEtcd => "what its etcd says",
        Blind::PeerEtcd => "what its peer's etcd says",
        Blind::Stranger => "that another cluster's etcd answers for its peer",
    }
}

fn kept_text(kept: KeptHistory) -> &'static str {
    match kept {
        KeptHistory::Primarys => "the primary's history",
        KeptHistory::Neither => "neither history",
        KeptHistory::Others => "the other node's history",
    }
}

/// Returns the text that represents the moment of a decision in a scenario file. It is empty for the first moment.
fn later(moment: usize) -> String {
    let when = MOMENTS[moment].name;
    if when.is_empty() { String::new() } else { format!(" {when}") }
}

fn begin_text(begin: Begin) -> &'static str {
    match begin {
        Begin::Probe => "probe",
        Begin::Start { both: true } => "start (with its peer's)",
        Begin::Start { both: false } => "start",
        Begin::Monitor => "monitor",
        Begin::Stop { restart: true, both: false } => "stop (of a restart)",
        Begin::Stop { restart: false, both: false } => "stop",
        Begin::Stop { restart: true, both: true } => "stop (of a restart of both)",
        Begin::Stop { restart: false, both: true } => "stop (with its peer's)",
        Begin::StopInVain => "stop (of a restart, after starts in vain)",
        Begin::BeforeStart => "notification before a start",
        Begin::AfterStart => "notification after a start",
        Begin::AfterStop => "notification after a stop",
        Begin::Promote => "promotion",
        Begin::Demote => "demotion",
    }
}
