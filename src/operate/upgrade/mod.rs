//! `tandem upgrade`: changes the image or the settings of both members, one after the other, while etcd takes writes.

mod judge;
mod seen;
mod work;

use std::time::Duration;

use serde::Serialize;

use self::work::Work;
use crate::operate::failure::Failure;
use crate::operate::talk::Talk;

/// The upgrade that the operator typed; `tandem upgrade --help` explains each field.
#[derive(Debug)]
pub struct Order {
    /// Empty if the order changes settings.
    pub image: String,
    pub settings: Vec<(String, String)>,
    pub dry_run: bool,
    pub timeout: Duration,
    /// The id of the etcd resource, if the cluster has several.
    pub resource: Option<String>,
}

/// The report of the changes that were made, or that a dry run would make.
#[derive(Debug, Default, Serialize)]
pub struct Upgraded {
    pub image: String,
    /// The settings that were changed instead of the image, as they were typed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// The release of etcd in the image.
    pub version: String,
    /// True if both members run with the change.
    pub done: bool,
    pub dry_run: bool,
    pub steps: Vec<Step>,
    /// The known defects of that release.
    pub warnings: Vec<String>,
}

/// A step of the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    pub what: String,
    /// The time that the step took; `None` if it is not done yet.
    pub seconds: Option<f64>,
}

/// Performs the upgrade, or returns the plan for a dry run.
pub fn run(order: &Order, talk: &dyn Talk) -> Result<Upgraded, Failure> {
    let work = Work::new(order, talk)?;
    match (order.settings.is_empty(), order.dry_run) {
        (true, true) => work.plan(),
        (true, false) => work.run(),
        (false, true) => work.plan_settings(),
        (false, false) => work.run_settings(),
    }
}
