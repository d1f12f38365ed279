//! A run as a page: the two nodes' timelines side by side. The reason of every decision appears under the pointer, the
//! finger or the keyboard's focus. The page needs no network and no script.

use std::fmt::Write;

use super::story;
use crate::decide::evidence::PeerAgent;
use crate::sim::Sim;
use crate::sim::model::world::{NAMES, Node, Run, World};
use crate::sim::moves::scenario::Trace;
use crate::sim::moves::{self, Move};

const STYLE: &str = include_str!("page.css");
/// The legend of the page: the name of each colour, and the text that a lane of that colour has.
const LEGEND: [(&str, &str); 6] = [
    ("lead", "leads: takes writes"),
    ("follow", "follows"),
    ("none", "no leader"),
    ("wait", "etcd waits"),
    ("idle", "etcd off"),
    ("off", "power off"),
];

/// Returns the HTML page that shows a run, with a row for each move and a lane for each node.
pub fn page(sim: &mut Sim, title: &str, trace: &Trace) -> String {
    trace.set_bounds(&mut sim.bounds);
    let mut world = trace.begin.world(sim);
    let mut rows = Rows { text: head(title), number: 0, before: None };
    rows.add(sim, None, &[], &world);
    for what in &trace.moves {
        let why = story::reasons(sim, &world, *what);
        match moves::apply(sim, &world, *what) {
            Ok(Some(next)) => world = next,
            Ok(None) => {}
            Err(violation) => {
                rows.add(sim, Some(*what), &[violation.0], &world);
                break;
            }
        }
        rows.add(sim, Some(*what), &why, &world);
    }
    rows.text + "</tbody></table>\n</html>\n"
}

fn head(title: &str) -> String {
    let legend = LEGEND.map(|(class, word)| format!("<li class={class}>{word}")).join("\n");
    format!(
        "<!doctype html>\n<html lang=en><meta charset=utf-8>\n\
         <meta name=viewport content='width=device-width, initial-scale=1'>\n\
         <title>{0}</title>\n<style>\n{STYLE}</style>\n<h1>{0}</h1>\n\
         <p>Time goes down, each line is one thing that happens, and each node has a lane whose colour says what its etcd \
         does. A line with dots under it has a reason: rest the pointer on it, tap it, or go to it with the Tab key. What \
         fails, and fencing, is red.</p>\n<ul class=legend>\n{legend}\n</ul>\n\
         <table><tbody>\n<tr><th>#<th>what happens<th>{1}<th>{2}<th>acknowledged\n",
        escape(title),
        NAMES[0],
        NAMES[1]
    )
}

/// The rows of the page's table that have been written so far.
struct Rows {
    text: String,
    number: usize,
    /// The state that the previous row shows; `None` for the first row.
    before: Option<World>,
}

impl Rows {
    fn add(&mut self, sim: &Sim, by: Option<Move>, why: &[String], world: &World) {
        let text = &mut self.text;
        let is_drastic = by.is_some_and(|by| by.is_fault() || matches!(by, Move::Fence(_)));
        let class = if is_drastic { "event fault" } else { "event" };
        let (what, why) = match by {
            // The description of an effect is short, so it is printed in the line itself.
            Some(Move::Effect(n) | Move::GiveUp(n)) if !why.is_empty() => {
                (format!("agent on {} {}", NAMES[n], why.join(", ")), &[][..])
            }
            Some(by) => (by.text(), why),
            None => ("the beginning".to_owned(), why),
        };
        let what = escape(&what);
        let _ = write!(text, "<tr><td class=number>{}<td>", self.number);
        if why.is_empty() {
            let _ = write!(text, "<div class='{class}'><span class=what>{what}</span></div>");
        } else {
            let (id, why) = (self.number, escape(&why.join("\n")));
            let _ = write!(
                text,
                "<div class='{class}' tabindex=0 aria-describedby=why{id}><span class=what>{what}</span>\
                 <div class=why id=why{id} role=tooltip>{why}</div></div>"
            );
        }
        for (n, node) in world.nodes.iter().enumerate() {
            let (class, word) = state(node);
            let role = role(sim, node, n);
            let is_same = self.before.is_some_and(|before| {
                (state(&before.nodes[n]).0, self::role(sim, &before.nodes[n], n)) == (class, role.clone())
            });
            let (same, role) = if is_same { (" same", String::new()) } else { ("", role) };
            let _ = write!(text, "<td class='lane {class}{same}'><span class=word>{word}</span>");
            if !role.is_empty() {
                let _ = write!(text, "<span class=role>{role}</span>");
            }
        }
        let acked = (0..7).filter(|bit| world.acked & (1 << bit) != 0).map(|bit| format!("w{}", bit + 1));
        let _ = writeln!(text, "<td class=acked>{}</td>", acked.collect::<Vec<_>>().join(" "));
        self.number += 1;
        self.before = Some(*world);
    }
}

/// Returns the colour and the text of a node's lane, as an entry of [`LEGEND`]. They show the node's power and the state of its etcd.
fn state(node: &Node) -> (&'static str, &'static str) {
    LEGEND[match node.etcd {
        _ if !node.on => 5,
        Run::Off => 4,
        Run::Fresh => 3,
        Run::Leaderless => 2,
        Run::Follower => 1,
        Run::Leader => 0,
    }]
}

/// Returns a text for a node's lane. It names the role of the node's member, and the state of its agent in Pacemaker.
fn role(sim: &Sim, node: &Node, n: usize) -> String {
    let agent = match node.cib.agent[n] {
        PeerAgent::Active => "agent active",
        PeerAgent::Starting => "agent starting",
        PeerAgent::Stopping => "agent stopping",
        PeerAgent::Stopped => "agent stopped",
        PeerAgent::NoHistory => "",
    };
    let member = match node.data.newest(&sim.logs).conf {
        _ if !node.etcd.is_on() => "",
        conf if conf.votes(node.data.mid) => "voter",
        _ => "learner",
    };
    let said = [member, agent].into_iter().filter(|words| node.on && !words.is_empty());
    said.collect::<Vec<_>>().join(", ")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\'', "&#39;")
}
