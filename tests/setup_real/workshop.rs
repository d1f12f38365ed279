//! pcs, and the files on which it works instead of a cluster.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::namespaces::{self, program};
use crate::variants::{Variant, facts, typed};
use tandem::operate::setup::cluster::ClusterFacts;

/// Runs `inner` in fresh namespaces in which pcs is present and both agents are installed.
pub(crate) fn in_namespaces(module: &str, name: &str, inner: fn()) {
    for needed in ["/usr/sbin/pcs", "/usr/sbin/cibadmin"] {
        assert!(Path::new(needed).is_file(), "{needed} is missing: install pcs and pacemaker-cli-utils");
    }
    namespaces::run(module, name, 580, || {
        install_agents();
        inner();
    });
}

const ROOM: &str = "/run/setup";

fn install_agents() {
    shell(
        "set -e
         mount -t tmpfs tmpfs /run
         for place in sbin:/usr/sbin agents:/usr/lib/ocf/resource.d; do
             mkdir -p /run/${place%%:*}/upper /run/${place%%:*}/work
             mount -t overlay overlay -o lowerdir=${place#*:},upperdir=/run/${place%%:*}/upper,workdir=/run/${place%%:*}/work \\
                 ${place#*:}
         done
         mkdir -p /run/setup /usr/lib/ocf/resource.d/tandem",
    );
    let tandem = format!("{ROOM}/tandem");
    std::fs::copy(env!("CARGO_BIN_EXE_tandem"), &tandem).unwrap();
    for link in [
        "/usr/sbin/fence_redfish_rs",
        "/usr/sbin/fence_redfish",
        "/usr/lib/ocf/resource.d/tandem/podman-etcd",
        "/usr/lib/ocf/resource.d/heartbeat/podman-etcd",
    ] {
        let _ = std::fs::remove_file(link);
        std::os::unix::fs::symlink(&tandem, link).unwrap();
    }
}

fn shell(script: &str) {
    let output = program("/bin/sh").args(["-c", script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The files of a cluster that does not run: its CIB and its `corosync.conf`.
pub(crate) struct Workshop {
    cib: PathBuf,
    corosync_conf: PathBuf,
}

impl Workshop {
    /// Returns the files of a cluster in which nothing is configured.
    pub(crate) fn blank(name: &str) -> Self {
        let workshop = Self {
            cib: PathBuf::from(format!("{ROOM}/{name}.xml")),
            corosync_conf: PathBuf::from(format!("{ROOM}/{name}.conf")),
        };
        let empty = program("/usr/sbin/cibadmin").arg("--empty").output().unwrap();
        std::fs::write(&workshop.cib, empty.stdout).unwrap();
        let _ = std::fs::remove_file(&workshop.corosync_conf);
        workshop
    }

    /// Returns a copy of the two files under another name.
    pub(crate) fn copy(&self, name: &str) -> Self {
        let copy = Self::blank(name);
        std::fs::copy(&self.cib, &copy.cib).unwrap();
        std::fs::copy(&self.corosync_conf, &copy.corosync_conf).unwrap();
        copy
    }

    pub(crate) fn cib(&self) -> String {
        std::fs::read_to_string(&self.cib).unwrap()
    }

    pub(crate) fn corosync_conf(&self) -> String {
        std::fs::read_to_string(&self.corosync_conf).unwrap()
    }

    /// Returns the facts that `tandem setup` would observe about a cluster with these files.
    pub(crate) fn facts(&self, variant: &Variant) -> ClusterFacts {
        facts(&self.corosync_conf(), &self.cib(), variant)
    }

    /// Returns the CIB's lines in a canonical order, with sorted attributes and without empty sets, so that two CIBs can be
    /// compared.
    pub(crate) fn said(&self) -> Vec<String> {
        let xml = self.cib();
        let is_frame = |line: &&str| {
            ["<cib ", "</", "<meta_attributes ", "<instance_attributes "].iter().any(|frame| line.starts_with(frame))
        };
        let lines = xml.lines().map(str::trim).filter(|line| !is_frame(line));
        let sorted = |line: &str| {
            let mut words: Vec<&str> = line.trim_end_matches(['/', '>']).split(' ').collect();
            words.sort_unstable();
            words.join(" ")
        };
        let mut lines: Vec<String> = lines.map(sorted).collect();
        lines.sort();
        lines
    }

    /// Runs a command on the two files. A warning of pcs is a failure, because a later release will refuse the command.
    pub(crate) fn run(&self, words: &[String]) {
        let said = self.try_run(words).unwrap_or_else(|said| panic!("'{}': {said}", typed(words)));
        assert!(!said.contains("Warning"), "'{}': {said}", typed(words));
    }

    fn try_run(&self, words: &[String]) -> Result<String, String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let arguments = match words.as_slice() {
            // There is no cluster to wait for, and no pcsd.
            ["crm_resource", "--wait", ..] | ["pcs", "host", "auth", ..] => return Ok(String::new()),
            ["pcs", "cluster", rest @ ..] => {
                let live = |word: &&str| !matches!(*word, "--start" | "--enable") && !word.starts_with("--wait");
                let mut arguments = vec!["cluster"];
                arguments.extend(rest.iter().copied().filter(live));
                arguments.extend(["--corosync_conf", self.corosync_conf.to_str().unwrap()]);
                arguments
            }
            ["pcs", rest @ ..] => {
                let mut arguments = vec!["-f", self.cib.to_str().unwrap()];
                arguments.extend(rest);
                // pcs cannot ask systemd for its units here.
                if rest.contains(&"systemd:kubelet") || rest.starts_with(&["resource", "update", "kubelet"]) {
                    arguments.push("--force");
                }
                arguments
            }
            other => panic!("{other:?}"),
        };
        let output = program("/usr/sbin/pcs").args(arguments).stdin(Stdio::null()).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        // The nodes are not authenticated here, none of them runs, and systemd is missing, which would know kubelet's
        // operations.
        let of_the_room =
            ["known-hosts file", "init system", "systemd:kubelet", "node existence", "is not a valid operation name"];
        let lines = said.lines().filter(|line| !of_the_room.iter().any(|words| line.contains(words)));
        let said = lines.collect::<Vec<_>>().join("\n");
        if output.status.success() { Ok(said) } else { Err(said) }
    }

    /// Runs a typed line on the two files, and fails if the command fails. Unlike [`run`](Self::run), it accepts warnings of
    /// pcs.
    pub(crate) fn type_in(&self, line: &str) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        if let Err(said) = self.try_run(&words) {
            panic!("'{line}': {said}");
        }
    }
}
