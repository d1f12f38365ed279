//! Drop-ins for the container's systemd scopes. At a shutdown of the machine, they make systemd stop Pacemaker, and
//! with it etcd in good order, before it ends the container.

use std::path::Path;
use std::time::Duration;

use crate::adapters::command::Programs;
use crate::agent::resource::context::Context;
use crate::agent::resource::params::SYSTEMD_RUNS;
use crate::records::state_file;

const TRANSIENT: &str = "/run/systemd/transient";
const TEXT: &str = "[Unit]\nBefore=pacemaker.service\n";
const RELOAD_TAKES: Duration = Duration::from_secs(20);

/// Writes systemd's drop-in files for the container `id`. With these files, systemd stops Pacemaker before it ends the container at a
/// shutdown, and Pacemaker stops etcd in good order. The files are written after each start, because systemd forgets a stopped container's
/// scopes. A failure is only logged, because etcd runs without them, too.
pub(crate) fn write(context: &Context, id: &str) {
    if !context.params.drop_in_dependency {
        return;
    }
    if let Err(error) = write_below(Path::new(TRANSIENT), id) {
        log::warn!("systemd's drop-ins for the container cannot be written: {error}");
        return;
    }
    if Path::new(SYSTEMD_RUNS).is_dir()
        && let Err(error) = reload(&context.programs)
    {
        log::warn!("systemd's drop-ins for the container cannot be loaded: {error}");
    }
}

fn write_below(directory: &Path, id: &str) -> std::io::Result<()> {
    for scope in [format!("libpod-{id}.scope.d"), format!("libpod-conmon-{id}.scope.d")] {
        let directory = directory.join(scope);
        // The mode does not depend on the agent's umask, because systemd warns about a drop-in that not all users can
        // read.
        state_file::replace(&directory.join("dep.conf"), TEXT.as_bytes(), 0o644)?;
    }
    Ok(())
}

fn reload(programs: &Programs) -> Result<(), String> {
    let output = programs.run("systemctl", &["daemon-reload"], RELOAD_TAKES).map_err(|error| error.to_string())?;
    if output.code == 0 { Ok(()) } else { Err(output.complaint().to_owned()) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn both_scopes_of_the_container_get_one() {
        let dir = tempfile::tempdir().unwrap();
        write_below(dir.path(), "c1").unwrap();
        for scope in ["libpod-c1.scope.d", "libpod-conmon-c1.scope.d"] {
            let path = dir.path().join(scope).join("dep.conf");
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
            let text = fs::read_to_string(path).unwrap();
            assert_eq!(text, "[Unit]\nBefore=pacemaker.service\n");
        }
    }
}
