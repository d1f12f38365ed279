//! Steps in which no node is lost.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::{Seat, comes_to_say, says};
use crate::cluster::collector;
use crate::cluster::etcd;
use crate::cluster::pacemaker;
use crate::host;
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::sh::Result;

/// Runs the commands that a new operator types first, some of them mistyped.
pub(super) fn first_look(lab: &Lab, seat: Seat) -> Result<()> {
    let Seat { here, there, .. } = seat;
    says(lab, here, "tandem status", 0, &["redundant: two voters since", here.name(), there.name()])?;
    says(lab, here, "tandem status -o json", 0, &["\"verdict\": \"redundant\""])?;
    says(lab, here, "tandem status --timeout 3 --wait-for serving", 0, &["redundant"])?;
    says(lab, here, "tandem events --since yesterday", 0, &[])?;
    says(lab, here, "tandem data-dir show", 0, &["cluster"])?;
    says(lab, here, "tandem data-dir show /etc", 1, &["/etc"])?;
    let slip = says(lab, here, "tandem statsu", 2, &["'status'"])?;
    must("the word that was meant comes first", slip, |slip| {
        slip.find("'setup'").is_none_or(|setup| slip.find("'status'").is_some_and(|status| status < setup))
    })?;
    says(lab, here, "tandem completion bash", 0, &["complete"]).map(drop)
}

/// Checks the subcommands of `tandem` on a node where Pacemaker is stopped. Each must report that with the same
/// sentence and the same command.
pub(super) fn without_pacemaker(lab: &Lab, seat: Seat) -> Result<()> {
    let there = seat.there;
    pacemaker::end(lab, there)?;
    let fact = "Pacemaker is stopped on";
    for line in
        ["tandem explain", "tandem member list", "tandem confirm-recovery < /dev/null", "tandem power status node1"]
    {
        says(lab, there, line, 1, &[fact, "pcs cluster start"])?;
    }
    says(lab, there, "tandem status", 3, &[fact, "pcs cluster start"])?;
    says(lab, there, "tandem status --json 2> /dev/null", 3, &["\"verdict\": \"degraded\"", "pacemaker-stopped"])?;
    says(lab, there, "tandem fencing check", 1, &[fact, "pcs cluster start"])?;
    pacemaker::begin(lab, there)
}

/// Checks that `since` in `tandem status` begins anew after etcd was killed. The cluster was not redundant for a moment, and an operator
/// must be able to see that.
pub(super) fn killed(lab: &Lab, seat: Seat) -> Result<()> {
    let killed_at = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    etcd::kill(lab, seat.there)?;
    let since = || -> Result<(Value, u64)> {
        let (_, said) = host::typed(lab, seat.here, "tandem status --json 2> /dev/null")?;
        let document: Value = serde_json::from_str(&said)?;
        let since = document["since"].as_str().unwrap_or_default();
        let since = humantime::parse_rfc3339_weak(since)?.duration_since(UNIX_EPOCH)?.as_secs();
        Ok((document["verdict"].clone(), since))
    };
    let is_anew = |seen: &Result<(Value, u64)>| {
        seen.as_ref().is_ok_and(|(verdict, at)| verdict == "redundant" && *at >= killed_at)
    };
    eventually("'redundant since' is of a time after the kill", since, is_anew)?.map(drop)
}

/// Checks that `tandem status --wait-for redundant` returns at once although the other node's collector is late.
pub(super) fn late_collector(lab: &Lab, seat: Seat) -> Result<()> {
    const LATE: Duration = Duration::from_secs(600);
    collector::collect(lab)?;
    collector::make_old(lab, seat.there, LATE)?;
    let waits = "tandem status --wait-for redundant --timeout 20";
    says(lab, seat.here, waits, 0, &["redundant: two voters", "collector published last"])?;
    collector::forget(lab)
}

pub(super) fn gathered(lab: &Lab, seat: Seat) -> Result<()> {
    let said = comes_to_say(lab, seat.here, "tandem gather", 0, &["/var/tmp/"])?;
    let path = said.split_whitespace().find(|word| word.starts_with("/var/tmp/")).unwrap_or_default();
    let path = path.trim_end_matches([':', ',', '.']);
    host::must(lab, seat.here, &["test", "-s", path])?;
    host::must(lab, seat.here, &["rm", path]).map(drop)
}
