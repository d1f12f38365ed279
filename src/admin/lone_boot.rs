//! `tandem lone-boot`: lets this node serve after it has booted without its peer, if rules L1 to L5 hold.
//! `tandem-lone-boot.service` runs it.

use clap::Args;
use log::LevelFilter;
use serde::Serialize;

use super::exit::Exit;
use super::node::ResourceArgument;
use super::report::{Form, Report};
use crate::decide::reason::{Reason, Refusal};
use crate::decide::{LoneBootOutlook, Plan, lone_boot_outlook};
use crate::operate::failure::Failure;
use crate::operate::lone_boot::{LoneBooter, Look};
use crate::operate::node::must_be_root;
use crate::os::logging;

const HELP: &str = "\
The command observes this node each 10 s (each 2 s in its first minute) and ends once the node has quorum. With the
resource's parameter lone_boot=sole_voter it acts if all of these rules hold. Otherwise it changes nothing, and logs
the rule that does not hold and what to type:

  L1  Corosync waits for the peer, and has not seen it since this machine booted. No etcd runs here, and etcd is not
      in maintenance.
  L2  The data on this node names its member as the only voter. That member has not left and is not about to join, and
      no third voter is configured.
  L3  Nothing in the CIB is newer than this data.
  L4  The release of etcd that wrote the data syncs a write to disk before it acknowledges it: 3.4.21, 3.5.5 or later.
  L5  The BMC of the peer's own machine, which its UUID identifies, has reported Off and nothing else for the seconds
      of lone_boot_wait.

Then the command takes three steps. It announces the lone boot (event EtcdLoneBoot, cluster property etcd_lone_boot),
has Pacemaker's fencer hold the peer off, and ends Corosync's wait for the peer. Pacemaker then starts etcd. The peer
stays off until an operator switches it on, and then joins.

Exit codes:
  0  this node has quorum
With --dry-run:
  0  it would boot alone, now or once the peer has been off for long enough
  3  it would not
  1  not known

With --json:
  node     this node
  outlook  would, would_not or not_known
  rule     the rule that does not hold (L1 to L5), or null
  because  the reason, as a sentence
  plan     the effects that it would carry out, and what it would do after them";

/// Lets the sole voter serve after a boot without its peer, if the peer's BMC proves that the peer is off
#[derive(Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    resource: ResourceArgument,
    /// Observes once, changes nothing, and prints what it would do
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub form: Form,
}

/// The report of `tandem lone-boot`: the last observation and its plan.
#[derive(Serialize)]
pub(super) struct Answer {
    node: String,
    outlook: &'static str,
    rule: Option<&'static str>,
    because: String,
    plan: Plan,
    #[serde(skip)]
    exit: Exit,
}

pub(super) fn run(arguments: &Arguments) -> Result<Answer, Failure> {
    must_be_root()?;
    let mut booter = LoneBooter::new(arguments.resource.id(), !arguments.dry_run);
    if arguments.dry_run {
        return Ok(Answer::of(booter.look()?.1));
    }
    let tag = "tandem-lone-boot".to_owned();
    logging::init(logging::Settings { tag, stderr: LevelFilter::Info, syslog: LevelFilter::Off, file: None });
    Ok(Answer::of(booter.run()))
}

impl Answer {
    fn of(look: Look) -> Self {
        let (outlook, exit) = match lone_boot_outlook(&look.plan.because) {
            LoneBootOutlook::Would => ("would", Exit::Done),
            LoneBootOutlook::WouldNot => ("would_not", Exit::Degraded),
            LoneBootOutlook::NotKnown => ("not_known", Exit::Failed),
        };
        let rule = match &look.plan.because {
            Reason::Refused { refusal: Refusal::LoneBoot { why }, .. } => why.rule(),
            _ => None,
        };
        let because = look.plan.because.to_string();
        Self { node: look.node, outlook, rule, because, plan: look.plan, exit }
    }
}

impl Report for Answer {
    fn text(&self) -> String {
        format!("{}: {}", self.outlook.replace('_', " "), self.because)
    }

    fn exit(&self) -> Exit {
        self.exit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;
    use crate::decide::evidence::LoneBoot;
    use crate::decide::{self, Progress, Request};

    fn answer(lone_boot: Option<LoneBoot>) -> Answer {
        let mut evidence = golden::recorded().evidence;
        evidence.lone_boot = lone_boot.map(Box::new);
        let plan = decide::decide(Request::LoneBoot, &evidence, &Progress::default()).plan;
        Answer::of(Look { node: "node1".to_owned(), resource: "etcd".to_owned(), evidence, plan })
    }

    #[test]
    fn the_exit_code_is_the_outlook() {
        use crate::base::Fact;
        let wanted = LoneBoot { is_wanted: true, wait_s: 120, ..LoneBoot::default() };
        let never = answer(None);
        assert_eq!((never.exit(), never.rule), (Exit::Degraded, None));
        golden::compare(
            "lone-boot",
            &answer(Some(LoneBoot { quorum: Fact::Known(false), waits_for_all: Fact::Known(false), ..wanted.clone() })),
        );
        let unknown = answer(Some(LoneBoot { quorum: Fact::Unknown("late".to_owned()), ..wanted.clone() }));
        assert_eq!((unknown.exit(), unknown.rule), (Exit::Failed, Some("L1")));
        assert_eq!(answer(Some(LoneBoot { quorum: Fact::Known(true), ..wanted })).exit(), Exit::Done);
    }
}
