//! PostgreSQL under Patroni on both hosts, with the settings of the page for users of etcd. The lab takes it from
//! Debian's packages, and starts it as systemd would. The rows are written on the host itself, and each acknowledged
//! row is in a log that survives the host.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::programs::debian::CACHE;
use crate::programs::release;
use crate::sh::{self, Result};

/// Patroni's `ttl` in seconds, as the guide for users of etcd advises it. It is the longest life of a dead primary's
/// lock.
pub const TTL: u64 = 70;
const PACKAGES: [&str; 2] = ["patroni", "postgresql-15"];
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
const CONFIG: &str = "/etc/patroni/lab.yml";
/// The name of Patroni's log in a host's `/var/log`. The lab reads it from the host's disk.
const LOG: &str = "patroni.log";
const ROWS: &str = "rows.log";

/// Returns the directory with the packages' files that this machine lacks. The first call makes it. The hosts also
/// see the machine's own files.
fn tree() -> Result<PathBuf> {
    let tree = Path::new(CACHE).join("patroni");
    if tree.is_dir() {
        return Ok(tree);
    }
    println!("fetching Patroni and PostgreSQL from Debian");
    let work = Path::new(CACHE).join(format!("work-patroni-{}", std::process::id()));
    sh::make_dir(&work.join("partial"))?;
    let made = fetch(&work).and_then(|()| Ok(fs::rename(work.join("unpacked"), &tree)?));
    let _ = fs::remove_dir_all(&work);
    made.map_err(|error| format!("cannot fetch Patroni: {error}"))?;
    Ok(tree)
}

fn fetch(work: &Path) -> Result<()> {
    sh::run("apt-get", &["--quiet", "update"])?;
    let mut apt = Command::new("apt-get");
    apt.args(["--quiet", "--yes", "--download-only", "--no-install-recommends", "-o", "APT::Sandbox::User=root", "-o"]);
    sh::must(apt.arg(format!("Dir::Cache::archives={}", work.display())).arg("install").args(PACKAGES))?;
    sh::make_dir(&work.join("unpacked/usr"))?;
    for entry in fs::read_dir(work)?.flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "deb") {
            sh::must(Command::new("dpkg").arg("-x").arg(entry.path()).arg(work.join("unpacked")))?;
        }
    }
    Ok(())
}

/// Installs Patroni, PostgreSQL and their configuration on a running host.
pub fn install(lab: &Lab, node: Node) -> Result<()> {
    if release::root(lab) != Path::new("/") {
        return Err("the lab has Patroni for hosts of the machine's own release only".into());
    }
    let mut pack = Command::new("tar");
    let mut packed = pack.arg("-C").arg(tree()?).args(["-c", "usr"]).stdout(std::process::Stdio::piped()).spawn()?;
    let stream = packed.stdout.take().ok_or("tar has no output")?;
    let done = host::command(lab, node, &["tar", "-C", "/", "-x"])?.stdin(stream).output()?;
    if !packed.wait()?.success() || !done.status.success() {
        return Err(format!("{node} does not take the files: {}", String::from_utf8_lossy(&done.stderr)).into());
    }
    host::put(lab, node, CONFIG, &configuration(node))?;
    for file in ["ca.crt", "client.crt", "client.key"] {
        host::put(lab, node, &format!("/etc/patroni/{file}"), &fs::read_to_string(lab.pki().join(file))?)?;
    }
    let own = "id postgres > /dev/null 2>&1 || useradd --system --home-dir /var/lib/postgresql postgres
        mkdir --parents /var/lib/postgresql
        chown --recursive postgres: /var/lib/postgresql /etc/patroni && chmod 600 /etc/patroni/client.key";
    host::must(lab, node, &["sh", "-ec", own])?;
    host::put(lab, node, "/usr/sbin/write-rows", &WRITE_ROWS.replace("PROGRAMS", PROGRAMS))
}

/// Returns Patroni's configuration as the guide prints it. It has no passwords, because only the lab can reach the
/// network.
fn configuration(node: Node) -> String {
    let (ip, hosts) = (node.ip(), NODES.map(|node| format!("{}:2379", node.ip())).join(", "));
    format!(
        "scope: lab
name: {node}
namespace: /service/
restapi: {{listen: '{ip}:8008', connect_address: '{ip}:8008'}}
etcd3:
  hosts: [{hosts}]
  protocol: https
  cacert: /etc/patroni/ca.crt
  cert: /etc/patroni/client.crt
  key: /etc/patroni/client.key
bootstrap:
  dcs:
    ttl: {TTL}
    loop_wait: 10
    retry_timeout: 30
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters: {{wal_sender_timeout: 10s}}
  initdb: [encoding: UTF8, locale: C, data-checksums]
postgresql:
  listen: '{ip}:5432'
  connect_address: '{ip}:5432'
  data_dir: /var/lib/postgresql/lab
  bin_dir: {PROGRAMS}
  pgpass: /var/lib/postgresql/pgpass
  authentication:
    superuser: {{username: postgres}}
    replication: {{username: replicator}}
  parameters: {{unix_socket_directories: /tmp}}
  pg_hba: [local all all trust, host all all 10.99.0.0/24 trust, host replication all 10.99.0.0/24 trust]
"
    )
}

/// A script that inserts uniquely named rows wherever PostgreSQL accepts them. For each row that was acknowledged
/// without a warning it logs the time and the name.
const WRITE_ROWS: &str = "#!/bin/bash
while :; do
    row=$HOSTNAME-$$-$((++number))
    said=$(PGCONNECT_TIMEOUT=2 PROGRAMS/psql -h /tmp -U postgres -qAtc \"insert into rows values ('$row')\" 2>&1) &&
        [ -z \"$said\" ] && echo \"$EPOCHREALTIME $row\" >> /var/log/rows.log || sleep 0.3
    sleep 0.05
done
";

/// Starts Patroni on a host, and the script that writes rows, as a boot would.
pub fn start(lab: &Lab, node: Node) -> Result<()> {
    let patroni = format!("runuser -u postgres -- patroni {CONFIG} >> /var/log/{LOG} 2>&1");
    let rows = "bash /usr/sbin/write-rows".to_owned();
    for words in [patroni, rows] {
        let in_background = format!("setsid sh -c '{words}' < /dev/null > /dev/null 2>&1 &");
        host::must(lab, node, &["sh", "-c", &in_background])?;
    }
    lab.event(&format!("Patroni is started on {node}"));
    Ok(())
}

/// Returns PostgreSQL's answer to an SQL statement on a host.
pub fn ask(lab: &Lab, node: Node, question: &str) -> Result<String> {
    let psql = format!("{PROGRAMS}/psql");
    let words = ["timeout", "5", &psql, "-h", "/tmp", "-U", "postgres", "-qAtc", question];
    host::must(lab, node, &words).map(|said| said.trim().to_owned())
}

pub fn is_primary(lab: &Lab, node: Node) -> bool {
    ask(lab, node, "select pg_is_in_recovery()").is_ok_and(|said| said == "f")
}

/// Returns whether Patroni's state in etcd names a synchronous standby. From then on each row waits for the other host. If a replica is
/// lost before that state names it, Patroni 3.0.2 makes rows wait until the replica is back.
pub fn is_redundant(lab: &Lab, node: Node) -> bool {
    host::said(lab, node, &["timeout", "5", "patronictl", "-c", CONFIG, "list"]).contains("Sync Standby")
}

/// Returns Patroni's log on a host.
pub fn said(lab: &Lab, node: Node) -> String {
    fs::read_to_string(lab.disk(node, "var-log").join(LOG)).unwrap_or_default()
}

/// Returns the rows that PostgreSQL acknowledged on a host, each with its time in seconds since 1970.
pub fn acknowledged(lab: &Lab, node: Node) -> Vec<(f64, String)> {
    let text = fs::read_to_string(lab.disk(node, "var-log").join(ROWS)).unwrap_or_default();
    // The last line may be incomplete.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let row = |line: &str| line.split_once(' ').and_then(|(at, row)| Some((at.parse().ok()?, row.to_owned())));
    whole.lines().filter_map(row).collect()
}

/// Returns the rows that PostgreSQL acknowledged on either host and that are missing on `node`.
pub fn lost(lab: &Lab, node: Node) -> Result<Vec<String>> {
    let acknowledged: Vec<String> =
        NODES.iter().flat_map(|node| acknowledged(lab, *node)).map(|(_, row)| row).collect();
    let there = ask(lab, node, "select id from rows")?;
    let there: BTreeSet<&str> = there.lines().collect();
    println!("   {} rows acknowledged, {} there", acknowledged.len(), there.len());
    Ok(acknowledged.into_iter().filter(|row| !there.contains(row.as_str())).collect())
}
