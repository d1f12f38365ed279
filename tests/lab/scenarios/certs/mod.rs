//! `tandem certs` on running clusters. Certificates are renewed without a refused connection. The CA is replaced
//! without a long gap, even if a node is off or dies, or a command is killed meanwhile.

mod clients;
mod cut_off;
mod installed;
mod renewed;
mod replaced;
mod seen;

use super::needs::Needs;
use super::setup;
use super::table::{Scenario, scenario};
use crate::host::state::Lab;
use crate::sh::Result;

/// The scenarios of this folder, in the order in which they run. Scenarios that share a lab are adjacent.
pub(super) const SCENARIOS: &[Scenario] = &[
    scenario(
        "certs_renewed",
        "'tandem certs renew' on both nodes: no connection is refused, and no etcd is restarted",
        renewed::run,
    ).nightly()
    .needs(Needs::SetUp),
    scenario(
        "certs_ca_replaced",
        "'tandem certs rotate-ca' under writers, with the other node's part typed there, and by --ssh",
        replaced::run,
    )
    .needs(Needs::SetUp)
    .nightly(),
    scenario(
        "certs_ca_replaced_keeping",
        "the same with --keep-old: a client of the old CA is served until the same was typed without",
        replaced::keeping,
    )
    .needs(Needs::SetUp)
    .nightly(),
    scenario(
        "certs_ca_replaced_node_off",
        "the CA is to be replaced while one node is off: it comes back with its old certificate and is served",
        cut_off::node_off,
    )
    .needs(Needs::SetUp)
    .nightly(),
    scenario(
        "certs_ca_replaced_power_cut",
        "the CA is replaced, and either node's power is cut at each step of it",
        cut_off::by_power,
    )
    .needs(Needs::SetUp)
    .nightly(),
    scenario(
        "certs_ca_replaced_killed",
        "'tandem certs rotate-ca' and 'join' get SIGKILL at each step and are typed again",
        cut_off::by_sigkill,
    )
    .needs(Needs::SetUp)
    .nightly(),
    scenario(
        "certs_installed",
        "'tandem certs install' replaces a site's certificates and its CA under writers, and refuses what would lock a node out",
        installed::run,
    )
    .leaves_a_mess()
    .nightly(),
];

/// Sets up two voters by `tandem setup`, with a CA of Tandem's own.
pub(super) fn set_up(lab: &Lab) -> Result<()> {
    setup::by_default(lab)
}
