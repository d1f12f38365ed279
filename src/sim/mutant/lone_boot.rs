//! Broken rules of a lone boot.

use super::Mutant;
use super::forged::{bend_cib, bend_history};
use crate::base::Fact;
use crate::decide::evidence::{DataDir, Evidence, LoneBoot, PeerBmc, Power, Redundancy};

/// Changes the evidence of a node that boots without its peer, as the broken rule requires.
pub(super) fn blind(mutant: Mutant, evidence: &mut Evidence) {
    match mutant {
        Mutant::TwoVotersDataBootsAlone => {
            if let Fact::Known(DataDir::Present(history)) = &mut evidence.disk
                && history.is_voter()
            {
                history.voters = [history.member_id].into();
            }
            overlook_redundancy(evidence);
        }
        Mutant::LearnersDataBootsAlone => {
            let learns = |disk: &Fact<DataDir>| matches!(disk.known(), Some(DataDir::Present(history)) if history.learners.contains(&history.member_id));
            if learns(&evidence.disk) {
                bend_history(evidence, |history| !history.has_left);
                if let Fact::Known(DataDir::Present(history)) = &mut evidence.disk {
                    history.voters = [history.member_id].into();
                }
                if let Fact::Known(note) = &mut evidence.note {
                    note.joins = false;
                }
                // The voter next to a learner is the node that the CIB names as the one that runs standalone.
                bend_cib(evidence, |cib| cib.standalone_node = None);
                ask(evidence, |asked| asked.voters_are_committed = Fact::Known(true));
            }
        }
        Mutant::OnIsOff => take_for_off(evidence, |bmc| bmc.power == Power::On),
        Mutant::SilenceIsOff => take_for_off(evidence, |bmc| matches!(bmc.power, Power::Silent { .. })),
        Mutant::AnothersOffCounts => ask(evidence, |asked| {
            if let Fact::Known(bmc) = &mut asked.peer_bmc {
                bmc.found.clone_from(&bmc.by_device);
            }
        }),
        Mutant::KnownForkIgnored => {
            let own = evidence.own_lineage().unwrap_or_default();
            bend_cib(evidence, |cib| (cib.lineage, cib.peer_lineage) = (own, None));
        }
        // Data that is older than the property mostly ends before the published position, too.
        Mutant::RedundantIgnored => {
            overlook_redundancy(evidence);
            bend_cib(evidence, |cib| cib.reached = Fact::Absent);
        }
        // The CIB shows two voters while only one log has the removal.
        Mutant::UncommittedRemovalCounts => {
            overlook_redundancy(evidence);
            ask(evidence, |asked| asked.voters_are_committed = Fact::Known(true));
        }
        _ => {}
    }
}

fn ask(evidence: &mut Evidence, change: impl FnOnce(&mut LoneBoot)) {
    if let Some(asked) = &mut evidence.lone_boot {
        change(asked);
    }
}

fn take_for_off(evidence: &mut Evidence, is_it: impl FnOnce(&PeerBmc) -> bool) {
    ask(evidence, |asked| {
        if let Fact::Known(bmc) = &mut asked.peer_bmc
            && is_it(bmc)
        {
            bmc.power = Power::Off { for_ms: u64::MAX, age_ms: 0 };
        }
    });
}

fn overlook_redundancy(evidence: &mut Evidence) {
    bend_cib(evidence, |cib| cib.redundancy = Fact::Known(Redundancy { is_redundant: false, since: 0 }));
}
