//! The three steps of a lone boot. Each can be repeated.

use std::path::Path;
use std::time::Duration;

use super::{BMC, LoneBooter, Look, bmc};
use crate::adapters::pacemaker::{attributes, by_hand};
use crate::agent::resource::context::Context;
use crate::decide::Effect;
use crate::operate::failure::Failure;
use crate::os::clock;
use crate::records::events::{self, own};

/// Time limit for fencing the peer: it covers the fence agent, its delay and a second attempt by Pacemaker's fencer.
const FENCING: Duration = Duration::from_secs(180);

impl LoneBooter {
    /// Carries out the effects of the plan that the observation `look` led to.
    pub(super) fn perform(&mut self, context: &Context, look: &Look) -> Result<(), Failure> {
        look.plan.effects.iter().try_for_each(|effect| {
            log::info!("effect: {effect}");
            match effect {
                Effect::AnnounceLoneBoot(node) => self.announce(context, node, look, effect),
                Effect::HoldPeerOff(peer) => self.hold_off(context, peer),
                Effect::CancelWaitForAll => Ok(by_hand::grant_quorum(&context.programs)?),
                other => Err(Failure(format!("a lone boot never {other}: see 'tandem explain'"))),
            }
        })
    }

    fn announce(&mut self, context: &Context, node: &str, look: &Look, effect: &Effect) -> Result<(), Failure> {
        let value = format!("{node}:{}", clock::wall_seconds());
        attributes::set_property(&context.programs, attributes::LONE_BOOT, Some(&value))?;
        self.announced = Some(value);
        own::tell(Path::new(events::DIRECTORY), own::of_effect(node, effect, &look.plan.because, false));
        Ok(())
    }

    /// Fences the peer so that it stays off. Fails if the peer's BMC has not reported Off without a gap until now.
    fn hold_off(&mut self, context: &Context, peer: &str) -> Result<(), Failure> {
        let answered = bmc::ask(&context.programs, &context.resource, peer, BMC);
        if !answered.known().is_some_and(|answered| self.off.goes_with(answered)) {
            return Err(Failure(format!(
                "{peer}'s BMC does not report Off any more, so nothing is sent to it: see 'tandem power status {peer}'"
            )));
        }
        by_hand::fence(&context.programs, peer, FENCING)?;
        self.held_off = true;
        Ok(())
    }
}
