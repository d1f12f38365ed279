//! `tandem upgrade`: changes the image or the settings of both members, one after the other, while etcd takes writes.

mod judge;
mod seen;
mod work;

use std::time::Duration;

use serde::Serialize;

use self::work::Work;
use crate::operate::failure::Failure;
use crate::operate::talk::Talk;

/// The arguments of `tandem upgrade`; its help explains each field.
#[derive(Debug)]
pub struct Order {
    /// The new image; empty if the order changes settings.
    pub image: String,
    pub settings: Vec<(String, String)>,
    pub dry_run: bool,
    pub timeout: Duration,
    /// The id of the etcd resource; `None` if the operator named none.
    pub resource: Option<String>,
}

/// The report of the steps that `tandem upgrade` made, or that a dry run would make.
#[derive(Debug, Default, Serialize)]
pub struct Upgraded {
    pub image: String,
    /// The settings to change, each as `NAME=VALUE`; empty if the image is changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// The release of etcd in the new image; empty if settings are changed.
    pub version: String,
    /// True if both members run with the new image or settings.
    pub done: bool,
    pub dry_run: bool,
    pub steps: Vec<Step>,
    /// The known defects of the etcd release in the new image.
    pub warnings: Vec<String>,
}

/// A step of an upgrade.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    pub what: String,
    /// The time that the step took, in seconds; `None` if it is not done yet.
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
