//! A run as a page of its own: the two nodes' timelines side by side, with the reason of every decision under the finger.
//! It needs no network and no script.

use std::fmt::Write;

use super::check::Trace;
use super::moves::{self, Move};
use super::view::NAMES;
use super::world::{Node, Run, World};
use super::{Sim, roots, story};
use crate::decide::snapshot::PeerAgent;

const STYLE: &str = "body{font:14px system-ui,sans-serif;margin:1rem;background:#fff;color:#222}\
table{border-collapse:collapse;width:100%}\
th{position:sticky;top:0;background:#fff;text-align:left;border-bottom:2px solid #444;padding:4px}\
td{padding:2px 6px;border-bottom:1px solid #eee;vertical-align:top}\
.off{background:#333;color:#fff}.wait{background:#f3d98b}.none{background:#f0a58f}\
.follow{background:#bfe3c0}.lead{background:#5fb562;color:#fff}.idle{background:#ddd}\
.fault{color:#b00020;font-weight:bold}\
summary{cursor:pointer}details{white-space:pre-wrap}details>div{font:12px monospace;color:#444;overflow-wrap:anywhere}\
.acked{font-variant-numeric:tabular-nums;white-space:nowrap}";

/// The page of a trace.
pub fn page(sim: &mut Sim, title: &str, trace: &Trace) -> String {
    let mut world = if trace.from_blank { roots::blank(sim) } else { roots::healthy(sim) };
    let mut text = head(title);
    row(sim, &mut text, 0, None, &[], &world);
    for (index, what) in trace.moves.iter().enumerate() {
        let why = story::reasons(sim, &world, *what);
        match moves::apply(sim, &world, *what) {
            Ok(Some(next)) => world = next,
            Ok(None) => {}
            Err(violation) => {
                row(sim, &mut text, index + 1, Some(*what), &[violation.0], &world);
                break;
            }
        }
        row(sim, &mut text, index + 1, Some(*what), &why, &world);
    }
    text + "</table>\n</html>\n"
}

fn head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=en><meta charset=utf-8>\n<meta name=viewport content='width=device-width'>\n\
         <title>{0}</title>\n<style>{STYLE}</style>\n<h1>{0}</h1>\n\
         <p>Each line is one thing that happens. A line with a reason opens where it is tapped, and shows it where the \
         pointer rests.</p>\n<table>\n<tr><th>#<th>what happens<th>{1}<th>role<th>{2}<th>role<th>acknowledged\n",
        escape(title),
        NAMES[0],
        NAMES[1]
    )
}

fn row(sim: &Sim, text: &mut String, number: usize, by: Option<Move>, why: &[String], world: &World) {
    let is_drastic = by.is_some_and(|by| by.is_fault() || matches!(by, Move::Fence(_)));
    let class = if is_drastic { " class=fault" } else { "" };
    let what = by.map_or_else(|| "the beginning".to_owned(), |by| escape(&by.text()));
    let why = escape(&why.join("\n"));
    let cell = if why.is_empty() {
        what
    } else {
        format!("<details title='{why}'><summary>{what}</summary><div>{why}</div></details>")
    };
    let _ = write!(text, "<tr><td>{number}<td{class}>{cell}");
    for (n, node) in world.nodes.iter().enumerate() {
        let (class, state) = state(node);
        let _ = write!(text, "<td class={class}>{state}<td>{}", role(sim, node, n));
    }
    let acked = (0..7).filter(|bit| world.acked & (1 << bit) != 0).map(|bit| format!("w{}", bit + 1));
    let _ = writeln!(text, "<td class=acked>{}", acked.collect::<Vec<_>>().join(" "));
}

/// Power and etcd, as a colour and a word.
fn state(node: &Node) -> (&'static str, &'static str) {
    match node.etcd {
        _ if !node.on => ("off", "power off"),
        Run::Off => ("idle", "etcd off"),
        Run::Fresh => ("wait", "etcd waits"),
        Run::Leaderless => ("none", "no leader"),
        Run::Follower => ("follow", "follows"),
        Run::Leader => ("lead", "leads: takes writes"),
    }
}

/// What its member is, and what Pacemaker has its agent as.
fn role(sim: &Sim, node: &Node, n: usize) -> String {
    let agent = match node.cib.agent[n] {
        PeerAgent::Active => "active",
        PeerAgent::Starting => "starting",
        PeerAgent::Stopping => "stopping",
        PeerAgent::Stopped => "stopped",
        PeerAgent::NoHistory => "",
    };
    let member = match node.data.newest(&sim.logs).conf {
        _ if !node.etcd.is_on() => "",
        conf if conf.votes(node.data.mid) => "voter, ",
        _ => "learner, ",
    };
    if node.on { format!("{member}{agent}") } else { String::new() }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\'', "&#39;")
}
