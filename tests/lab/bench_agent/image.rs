//! A new image for both members: one after the other by `tandem upgrade`, or both at once as Pacemaker restarts them.

use std::time::Duration;

use super::Contestant;
use super::blows::Run;
use super::table::{Figure, Sheet};
use crate::cluster;
use crate::cluster::pcs;
use crate::host;
use crate::host::node::NODES;
use crate::host::state::Lab;
use crate::programs::image::{self, Tools};
use crate::scenarios::image_changes;
use crate::sh::Result;

/// The pause after each change of etcd's image. It is long enough for a gap in the writes to begin, or to end.
const SETTLES: Duration = Duration::from_secs(5);

pub(super) fn changed(lab: &Lab, run: u32, sheet: &mut Sheet) -> Result<()> {
    let is_shell = sheet.of == Contestant::Shell;
    let tools = if is_shell { Tools::ForTheShellAgent } else { Tools::None };
    let (own, next) = (image::name(&lab.setting("etcd").unwrap_or_default()), image_changes::import_next(lab, tools)?);
    let mut this = Run::begin(lab)?;
    if !is_shell {
        let from = this.now();
        host::must(lab, NODES[0], &["tandem", "upgrade", next, "--yes"])?;
        std::thread::sleep(SETTLES);
        sheet.add(Figure::UpgradeGap, this.longest_gap(from));
    }
    let from = this.now();
    let other = if is_shell && run.is_multiple_of(2) { next } else { own.as_str() };
    pcs::run(lab, NODES[0], &["resource", "update", cluster::ETCD, &format!("image={other}")])?;
    if !is_shell {
        // The shell agent's meta-data makes Pacemaker restart both members when this parameter changes.
        host::must(lab, NODES[0], &["crm_resource", "--restart", "--resource", cluster::ETCD_CLONE])?;
    }
    // Pacemaker starts the restarts during this pause.
    std::thread::sleep(SETTLES);
    this.first_write(this.now())?;
    this.two_voters()?;
    std::thread::sleep(SETTLES);
    sheet.add(Figure::ImageGap, this.longest_gap(from));
    this.end(sheet)
}
