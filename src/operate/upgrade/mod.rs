//! `tandem upgrade`: another image for both members, one after the other, while writes are taken.

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
    pub image: String,
    pub dry_run: bool,
    pub timeout: Duration,
    /// The etcd resource, where the cluster has several.
    pub resource: Option<String>,
}

/// What was done, or would be.
#[derive(Debug, Default, Serialize)]
pub struct Upgraded {
    pub image: String,
    /// The release of etcd in it.
    pub version: String,
    /// Whether both members run from it.
    pub done: bool,
    pub dry_run: bool,
    pub steps: Vec<Step>,
    /// What is known of that release.
    pub warnings: Vec<String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    pub what: String,
    /// How long it took; `None` where it is not done yet.
    pub seconds: Option<f64>,
}

/// Performs the upgrade, or plans it.
pub fn run(order: &Order, talk: &dyn Talk) -> Result<Upgraded, Failure> {
    let work = Work::new(order, talk)?;
    if order.dry_run { work.plan() } else { work.run() }
}
