//! Observes the cluster from this node through files and queries. It changes nothing.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use super::{ClusterFacts, corosync, hosts};
use crate::adapters::command::{Error, Output, Programs};
use crate::adapters::corosync::conf;
use crate::adapters::pace::limits::Limits;
use crate::adapters::pacemaker::crm_mon;
use crate::adapters::pacemaker::exit_code::DISCONNECTED;
use crate::adapters::pacemaker::layout::{self, Cib};
use crate::adapters::systemd;
use crate::base::Fact;
use crate::operate::setup::TOKEN;
use crate::os::clock::Deadline;
use crate::os::regular_file;
use crate::os::wiped;

/// Path of the CIB that Pacemaker keeps on disk. It lacks the status section.
const CIB_ON_DISK: &str = "/var/lib/pacemaker/cib/cib.xml";
/// Largest size of a file that is read, in bytes: many times the usual size.
const LIMIT: u64 = 64 * 1024 * 1024;
/// Timeout of pcs, which takes a second on an idle machine and half a minute on an emulated one.
const FOR_PCS: Duration = Duration::from_secs(90);
/// Timeout of Pacemaker's tools, which answer late while the cluster starts.
const FOR_PACEMAKER: Duration = Duration::from_secs(45);

/// Reads the cluster's configuration and state from this node, until `end` at the latest.
pub fn look(programs: &Programs, end: Deadline) -> ClusterFacts {
    let programs = &programs.clone().until(end);
    let limits = Limits { cib: FOR_PACEMAKER, crm_mon: FOR_PACEMAKER, ..Limits::default() };
    ClusterFacts {
        pcs: version(programs),
        hosts: known_hosts(),
        corosync: without_the_example(configured()),
        enabled: systemd::enabled(Path::new("/")),
        cib: configuration(programs, Path::new(CIB_ON_DISK)),
        pacemaker: crm_mon::ask(programs, &limits),
        jobs: Fact::NotAsked,
    }
}

fn known_hosts() -> Fact<BTreeMap<String, IpAddr>> {
    let accepted = wiped::read_at_most(Path::new(TOKEN), LIMIT).ok();
    parsed(Path::new(hosts::FILE), |json| hosts::parse(json, accepted.as_ref().map(|token| token.as_slice())))
}

fn version(programs: &Programs) -> Fact<String> {
    match programs.run("pcs", &["--version"], FOR_PCS) {
        Ok(output) if output.code == 0 => Fact::Known(output.stdout.trim().to_owned()),
        Ok(output) => Fact::Unknown(format!("pcs failed ({}): {}", output.code, output.complaint())),
        Err(Error::NotInstalled { .. }) => Fact::Absent,
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

fn configured() -> Fact<corosync::Corosync> {
    of_text(conf::text(), Path::new(conf::PATH), |text| Ok(corosync::parse(text)))
}

fn without_the_example(conf: Fact<corosync::Corosync>) -> Fact<corosync::Corosync> {
    if conf.known().is_some_and(corosync::Corosync::is_example) { Fact::Absent } else { conf }
}

fn parsed<T>(path: &Path, parse: impl FnOnce(&str) -> Result<T, String>) -> Fact<T> {
    of_text(regular_file::text_of_at_most(path, LIMIT), path, parse)
}

fn of_text<T>(text: io::Result<String>, path: &Path, parse: impl FnOnce(&str) -> Result<T, String>) -> Fact<T> {
    match text {
        Ok(text) => parse(&text).map_or_else(|why| Fact::Unknown(format!("{}: {why}", path.display())), Fact::Known),
        Err(error) if error.kind() == ErrorKind::NotFound => Fact::Absent,
        Err(error) => Fact::Unknown(format!("{}: {error}", path.display())),
    }
}

fn configuration(programs: &Programs, on_disk: &Path) -> Fact<Cib> {
    match programs.run("cibadmin", &["--query"], FOR_PACEMAKER) {
        Ok(Output { code: DISCONNECTED, .. }) | Err(Error::NotInstalled { .. }) => parsed(on_disk, layout::parse),
        Ok(output) if output.code == 0 => layout::parse(&output.stdout).map_or_else(Fact::Unknown, Fact::Known),
        Ok(output) => Fact::Unknown(format!("cibadmin failed ({}): {}", output.code, output.complaint())),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    const EMPTY: &str = "<cib><configuration/></cib>";

    #[test]
    fn what_is_not_there_is_told_from_what_could_not_be_asked() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("cib.xml");
        let asked = |script: &str| configuration(&fake_program(dir.path(), "cibadmin", script), &disk);
        assert!(asked("exit 102").is_absent());
        assert!(matches!(asked("echo no >&2; exit 5"), Fact::Unknown(why) if why.contains("(5): no")));
        assert!(matches!(asked("echo half"), Fact::Unknown(_)));
        assert!(asked(&format!("echo '{EMPTY}'")).known().is_some());
        std::fs::write(&disk, EMPTY).unwrap();
        assert!(asked("exit 102").known().is_some(), "where Pacemaker is stopped its file is read");
        let version = |script: &str| version(&fake_program(dir.path(), "pcs", script));
        assert_eq!(version("echo 0.11.5"), Fact::Known("0.11.5".to_owned()));
        assert!(matches!(version("exit 1"), Fact::Unknown(_)));
    }

    #[test]
    fn the_example_of_the_package_is_no_cluster() {
        let conf = |name: &str| {
            corosync::parse(&format!(
                "totem {{\ncluster_name: {name}\n}}\nnodelist {{\nnode {{\nring0_addr: 127.0.0.1\n}}\n}}\n"
            ))
        };
        assert!(without_the_example(Fact::Known(conf("debian"))).is_absent());
        assert!(without_the_example(Fact::Known(conf("prod"))).known().is_some());
    }
}
