//! `tandem upgrade`: another image or other settings for both members, one after the other, while writes are taken.

mod judge;
mod seen;
mod work;

use std::time::Duration;

use serde::Serialize;

use self::work::Work;
use crate::operate::failure::Failure;
use crate::operate::talk::Talk;

/// The upgrade that was asked for; `tandem upgrade --help` explains each field.
#[derive(Debug)]
pub struct Order {
    /// Empty where settings are changed.
    pub image: String,
    pub settings: Vec<(String, String)>,
    pub dry_run: bool,
    pub timeout: Duration,
    /// The etcd resource, where the cluster has several.
    pub resource: Option<String>,
}

/// Report of the changes that were made, or would be.
#[derive(Debug, Default, Serialize)]
pub struct Upgraded {
    pub image: String,
    /// The settings that were changed in place of the image, as they were typed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// The release of etcd in it.
    pub version: String,
    /// True if both members run from it.
    pub done: bool,
    pub dry_run: bool,
    pub steps: Vec<Step>,
    /// The known faults of that release.
    pub warnings: Vec<String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    pub what: String,
    /// The duration; `None` where it is not done yet.
    pub seconds: Option<f64>,
}

/// Performs the upgrade, or plans it.
pub fn run(order: &Order, talk: &dyn Talk) -> Result<Upgraded, Failure> {
    let work = Work::new(order, talk)?;
    match (order.settings.is_empty(), order.dry_run) {
        (true, true) => work.plan(),
        (true, false) => work.run(),
        (false, true) => work.plan_settings(),
        (false, false) => work.run_settings(),
    }
}
