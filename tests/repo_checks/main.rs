//! Checks of the repository: documents, maps and tables agree with the sources, and the sources keep to their wings.

mod contract;
mod documents;
mod drawn;
mod english;
mod fuzz_lock;
#[path = "../support/openshift/greps.rs"]
#[expect(dead_code, unreachable_pub, reason = "the lab runs them")]
mod greps;
mod log_lines;
mod recovery_guide;
mod scenario_map;
mod tidy;
#[path = "../support/tree.rs"]
mod tree;
mod typed_commands;
