//! The judge of a run: what the writers, the journals and the agents' records show, and whether it may be so.

pub mod check;
pub mod decisions;
pub mod evidence;
pub mod figures;
#[path = "../../support/openshift/greps.rs"]
pub mod greps;
pub mod history;
pub mod journals;
pub mod report;
pub mod results;
pub mod self_test;
pub mod story;
pub mod timeline;
pub mod verdict;
