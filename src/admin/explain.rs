//! `tandem explain`: what the agent would do now on this node, and why, without doing it.

use std::fmt::Write;

use clap::Args;
use serde::Serialize;

use super::evidence;
use super::node::ResourceArgument;
use super::report::{Form, Report};
use crate::decide::{self, Evidence, Exit, Next, Plan, Progress, Reason, Request};
use crate::operate::failure::Failure;
use crate::operate::lone_boot::{LoneBooter, Look};
use crate::operate::node;

const HELP: &str = "\
With --json, request, snapshot and plan have the form of the files of decisions that 'tandem replay' reads:
  request    the action that Pacemaker would ask for now: start or monitor
  snapshot   the evidence, as the agent observes it
  plan       the effects that the agent would carry out, and what it would do after them
  because    the reason, as a sentence
  lone_boot  plan and because of 'tandem lone-boot'; only where the parameter lone_boot allows a lone boot and this node
             has no quorum";

/// Shows what the agent observes on this node, and what it would do now, without doing it
#[derive(Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    resource: ResourceArgument,
    #[command(flatten)]
    pub form: Form,
}

/// The report of `tandem explain`: the decision that the agent would make now, with its evidence.
#[derive(Serialize)]
pub(super) struct Explanation {
    /// The resource and its node, as `RESOURCE on NODE`.
    #[serde(skip)]
    place: String,
    request: Request,
    /// The evidence of the decision. Its JSON key is `snapshot`, as in the decision log, because scripts rely on it.
    #[serde(rename = "snapshot")]
    evidence: Evidence,
    plan: Plan,
    because: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    lone_boot: Option<LoneBoot>,
}

/// The decision that `tandem lone-boot` would make now.
#[derive(Serialize)]
struct LoneBoot {
    plan: Plan,
    because: String,
}

pub(super) fn run(arguments: &Arguments) -> Result<Explanation, Failure> {
    let context = node::context(arguments.resource.id())?;
    let (evidence, request) = node::look(&context);
    let may_boot_alone = request == Request::Start && context.params.lone_boot.is_wanted;
    let lone_boot = if may_boot_alone { lone_boot(arguments.resource.id())? } else { None };
    let place = format!("{} on {}", context.resource, context.me.name);
    Ok(Explanation { lone_boot, ..Explanation::new(place, request, evidence) })
}

/// Observes and decides as `tandem lone-boot` does. Returns `None` if there is quorum.
fn lone_boot(resource: Option<&str>) -> Result<Option<LoneBoot>, Failure> {
    let (_, Look { plan, .. }) = LoneBooter::new(resource, false).look()?;
    let because = plan.because.to_string();
    Ok((plan.next != Next::Exit(Exit::Success)).then_some(LoneBoot { plan, because }))
}

impl Explanation {
    fn new(place: String, request: Request, evidence: Evidence) -> Self {
        let plan = decide::decide(request, &evidence, &Progress::default()).plan;
        let because = plan.because.to_string();
        Self { place, request, evidence, plan, because, lone_boot: None }
    }
}

impl Report for Explanation {
    fn text(&self) -> String {
        let Self { place, request, evidence, plan, .. } = self;
        let mut text = format!("resource {place}\nevidence\n{}{}", evidence::text(evidence), decision(*request, plan));
        if let Some(because) = after_waiting(*request, evidence, plan) {
            let _ = writeln!(text, "  if that lasts      {because}");
        }
        if let Some(lone_boot) = &self.lone_boot {
            text += &decision(Request::LoneBoot, &lone_boot.plan);
        }
        text.trim_end().to_owned()
    }
}

/// Returns the reason that the agent would report if it waited in vain until its deadline. `crm_mon` would show this reason. Returns
/// `None` if the agent does not wait, or if the present reason would not change.
fn after_waiting(request: Request, evidence: &Evidence, plan: &Plan) -> Option<Reason> {
    if !plan.effects.is_empty() || !matches!(plan.next, Next::Reobserve { .. }) {
        return None;
    }
    let late = Evidence { elapsed_ms: evidence.budget_ms, ..evidence.clone() };
    let because = decide::decide(request, &late, &Progress::default()).plan.because;
    (because != plan.because).then_some(because)
}

/// Returns the decision for `request` as lines of text.
pub(super) fn decision(request: Request, plan: &Plan) -> String {
    let asked = match request {
        Request::Start => "if Pacemaker asked for a start now",
        Request::LoneBoot => "if 'tandem lone-boot' looked now",
        _ => "if Pacemaker asked for a monitor now",
    };
    format!("decision, {asked}\n{}", outcome(plan))
}

/// Returns the reason, effects and end of a plan as lines of text.
pub(super) fn outcome(plan: &Plan) -> String {
    let mut text = format!("  because            {}\n", plan.because);
    for effect in &plan.effects {
        let _ = writeln!(text, "  effect             {effect}");
    }
    if plan.effects.is_empty() {
        text += "  effect             none\n";
    }
    let next = match plan.next {
        Next::Exit(exit) => exit.to_string(),
        Next::Reobserve { after_ms, .. } => format!("looks again after {after_ms} ms"),
    };
    text + &format!("  then               {next}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;
    use crate::base::Fact;
    use crate::decide::evidence::{
        BootState, Cause, Container, DataDir, Etcd, HandOver, History, Leading, LoneBoot as LoneBootFacts, PeerAgent,
        PeerNode, Reach,
    };

    /// Returns evidence in which node1 leads, node2 is the configured primary, and 18 s of the 60 s before a
    /// hand-over have passed.
    fn with_a_primary() -> Evidence {
        let mut evidence = golden::recorded().evidence;
        let follower = Etcd::of_test(2, Some(1), &[1, 2], &[]);
        evidence.container = Fact::Known(Container { running: true, ..Container::default() });
        (evidence.disk, evidence.notify) = (Fact::NotAsked, None);
        evidence.own_etcd = Fact::Known(Etcd { member_id: 1, ..follower.clone() });
        evidence.peer_etcd = Fact::Known(follower);
        let hand_over = Some(HandOver { cause: Cause::Primary, since_s: 900, tries: 0 });
        evidence.boot_memory =
            Fact::Known(BootState { boot_id: evidence.boot_id.clone(), hand_over, ..BootState::default() });
        let primary = Some("node2".to_owned());
        let ready_for_s = Some(18);
        evidence.leading = Some(Box::new(Leading {
            primary,
            failback: true,
            delay_s: 60,
            ready_for_s,
            boot_s: 918,
            ..Leading::default()
        }));
        if let Fact::Known(cib) = &mut evidence.cib {
            (cib.peer_node, cib.peer_agent) = (PeerNode::Online, PeerAgent::Active);
            cib.reach = Some(Box::new(Reach { own: Fact::Known(true), peer: Fact::Absent }));
        }
        evidence
    }

    #[test]
    fn it_names_the_node_that_leads_and_the_one_that_is_to() {
        let explain = |evidence| Explanation::new("etcd on node1".to_owned(), Request::Monitor, evidence);
        golden::compare("explain-primary", &explain(with_a_primary()));
        let mut lags = with_a_primary();
        if let Fact::Known(peer) = &mut lags.peer_etcd {
            peer.index = 0;
        }
        let told = "is to lead         node2, the configured primary: leadership goes back to node2 later: node2 lacks 1000 entries";
        assert!(explain(lags).text().contains(told));
    }

    /// Returns evidence of a node that booted without its peer, with data that names two voters.
    fn of_two_voters() -> Evidence {
        let mut evidence = golden::recorded().evidence;
        let voter = History {
            cluster_id: 7,
            member_id: 1,
            last_term: 3,
            last_index: 1000,
            commit_index: 990,
            voters: [1, 2].into(),
            learners: [].into(),
            has_left: false,
            database_ahead: None,
            damage: Vec::new(),
        };
        (evidence.disk, evidence.data_in_use) = (Fact::Known(DataDir::Present(voter)), Fact::Known(false));
        if let Fact::Known(cib) = &mut evidence.cib {
            (cib.peer_node, cib.peer_agent) = (PeerNode::NeverSeen, PeerAgent::NoHistory);
        }
        evidence
    }

    #[test]
    fn it_names_the_rule_that_forbids_a_lone_boot() {
        let evidence = of_two_voters();
        let facts = LoneBootFacts {
            is_wanted: true,
            wait_s: 120,
            quorum: Fact::Known(false),
            waits_for_all: Fact::Known(true),
            peer_was_seen: Fact::Known(false),
            ..LoneBootFacts::default()
        };
        let asked = Evidence { lone_boot: Some(Box::new(facts)), ..evidence.clone() };
        let plan = decide::decide(Request::LoneBoot, &asked, &Progress::default()).plan;
        let because = plan.because.to_string();
        assert!(because.starts_with("L2: ") && because.ends_with("'tandem confirm-recovery'"), "{because}");
        let explanation = Explanation::new("etcd on node1".to_owned(), Request::Start, evidence);
        let explanation = Explanation { lone_boot: Some(LoneBoot { plan, because: because.clone() }), ..explanation };
        assert!(explanation.text().contains(&because));
        golden::compare("explain-lone-boot", &explanation);
    }

    #[test]
    fn it_explains_a_recorded_moment() {
        let entry = golden::recorded();
        golden::compare("explain", &Explanation::new("etcd on node1".to_owned(), entry.request, entry.evidence));
    }
}
