//! Certificates are renewed under writers, and under a client that opens a connection for each write.

use super::super::steps;
use super::clients::{Following, Knocked, Knocks};
use super::seen::{self, PKI};
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::sh::Result;

pub(super) fn run(lab: &Lab, _: Wish) -> Result<()> {
    let members = steps::members(lab)?;
    let booted = steps::boots(lab);
    let starts = seen::starts(lab)?;
    let mut writers = super::super::writing(lab)?;
    let following = Following::begin(lab);

    let knocked = while_knocked(lab, "tandem certs renew --json")?;
    must("no connection is refused by a renewal", &knocked.refused, |refused| refused.is_empty())?;
    let knocked = while_knocked(lab, "tandem certs renew --new-key --json")?;
    must("with a new key no two in a row are refused", &knocked, |knocked| knocked.in_a_row <= 1)?;
    println!("   with new keys {} of {} were refused", knocked.refused.len(), knocked.served + knocked.refused.len());

    let after = seen::starts(lab)?;
    must("no etcd was restarted", (&starts, &after), |(before, after)| before == after)?;
    for node in NODES {
        let (code, said) = host::typed(lab, node, "tandem certs renew --if-due")?;
        must("what is new is not due", (code, said), |(code, said)| *code == 0 && !said.contains("renewed"))?;
    }
    drop(following);
    steps::same_members(lab, members)?;
    super::super::ends_well(lab, &mut writers)?;
    steps::nobody_was_fenced(lab, booted)
}

/// Runs the command `line` on both nodes, one after the other, while a client keeps connecting to both. Each command
/// must replace the certificate of its node.
fn while_knocked(lab: &Lab, line: &str) -> Result<Knocked> {
    let knocks = Knocks::begin(lab);
    knocks.go_on()?;
    for node in NODES {
        let before = fingerprint(lab, node)?;
        println!("   {node}: {line}");
        let (code, said) = host::typed(lab, node, line)?;
        must("it was done", (code, said), |(code, _)| *code == 0)?;
        must("there is another certificate", fingerprint(lab, node)?, |now| *now != before)?;
        knocks.go_on()?;
        NODES.into_iter().try_for_each(|by| seen::shown_is_so(lab, by))?;
    }
    let knocked = knocks.end()?;
    println!("   {} new connections served, {} refused", knocked.served, knocked.refused.len());
    Ok(knocked)
}

fn fingerprint(lab: &Lab, node: Node) -> Result<String> {
    host::must(lab, node, &["openssl", "x509", "-noout", "-fingerprint", "-in", &format!("{PKI}/etcd.crt")])
}
