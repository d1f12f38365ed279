//! The last step of a password change on this node, without the operator: a file with two lines loses the first line once the BMC
//! accepts the second.

use std::path::Path;

use log::{info, warn};

use crate::adapters::command::Programs;
use crate::adapters::pacemaker::fence_options;
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::base::Fact;
use crate::fence::password_file::PasswordFile;
use crate::fence::renewal::{self, Asks, Settled};
use crate::operate::cluster::Cluster;
use crate::operate::health::fencing::is_ours;

/// Asks the BMC which password is valid, for each password file with an old and a new password. Removes the old one if the new one is
/// valid. The attempts are rate-limited, so that the BMC locks no account.
pub fn settle(programs: &Programs, cluster: &Cluster) {
    let Fact::Known(configuration) = &cluster.configuration else { return };
    let staged = configuration.fence_devices.iter().filter(|device| is_ours(device)).filter_map(two_lines);
    let staged: Vec<(&FenceDevice, &Path)> = staged.collect();
    if staged.is_empty() {
        return;
    }
    let Ok(options) = fence_options::read(programs) else { return };
    for (device, path) in staged {
        let id = &device.resource.id;
        let Ok(lines) = options.lines_of(id) else { continue };
        let target = device.targets.first().map(String::as_str);
        let plug = target.and_then(|target| device.plugs.get(target)).map(String::as_str);
        match renewal::settle(&lines, target, plug, path, Asks::NowAndThen) {
            Ok(Settled::Dropped) => {
                info!("{id}: the BMC accepts the new password, and {} has it alone", path.display());
            }
            Ok(Settled::Unknown(why)) => warn!("{id}: both passwords are kept: {why}"),
            Ok(Settled::Single | Settled::FirstIsValid | Settled::NotDue) => {}
            Err(error) => warn!("{id}: the password file {} cannot be changed: {error}", path.display()),
        }
    }
}

fn two_lines(device: &FenceDevice) -> Option<(&FenceDevice, &Path)> {
    let path = Path::new(device.resource.parameters.get("password_file")?);
    (PasswordFile::look(path).ok()?.lines.len() > 1).then_some((device, path))
}
