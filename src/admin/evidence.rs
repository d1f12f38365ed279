//! Evidence for people: one line for each source, strongest first.

mod lone_boot;

use std::fmt::Write;

use crate::adapters::data_dir::DataDir;
use crate::base::Fact;
use crate::base::utc;
use crate::decide::evidence::{
    BootState, Cib, Container, DurableState, Etcd, Evidence, Leaderless, LogPosition, MemberId, Pace, PeerAgent,
    PeerNode, PublishedState,
};
use crate::decide::{outlook, yielding};

/// Returns all evidence as lines of text.
pub(crate) fn text(evidence: &Evidence) -> String {
    let mut lines = String::new();
    let mut line = |what: &str, fact: String| {
        let _ = writeln!(lines, "  {what:<18} {fact}");
    };
    let peer = evidence.peer_name();
    line("own etcd", fact(&evidence.own_etcd, "does not run", |own| etcd(evidence, own)));
    if !evidence.own_leaderless.is_not_asked() {
        line("without a leader", fact(&evidence.own_leaderless, "does not run", leaderless));
    }
    line(&format!("{peer}'s etcd"), fact(&evidence.peer_etcd, "does not run", |peer| etcd(evidence, peer)));
    if let Some(told) = leadership(evidence) {
        line("is to lead", told);
    }
    if let Some(kept) = kept_history(evidence) {
        line("two histories", kept);
    }
    line("container", fact(&evidence.container, "there is none", container));
    line("data dir", fact(&evidence.disk, "blank", data));
    if let Some(seconds) = evidence.local.log_written {
        line("last written", utc(seconds));
    }
    if let Some(failed) = &evidence.local.failed_starts {
        line("failed starts", format!("{} from this data ({})", failed.count, failed.last_words));
    }
    line("durable note", fact(&evidence.note, "none", note));
    line("this boot", fact(&evidence.boot_memory, "remembers nothing", |memory| boot_memory(evidence, memory)));
    if let Fact::Known(word) = &evidence.confirmation {
        let loss = if word.accept_loss { ", accepting the loss" } else { "" };
        line("confirmation", format!("{} is given up{loss}", word.lost_node));
    }
    if let Some(asked) = &evidence.lone_boot {
        lone_boot::write(asked, peer, &mut line);
    }
    if evidence.pace != Pace::default() {
        line("this machine", pace(evidence.pace));
    }
    match &evidence.cib {
        Fact::Known(cib) => write_cib(cib, peer, &mut line),
        _ => line("Pacemaker", format!("unknown: {}", evidence.cib.why_unknown())),
    }
    lines
}

/// Returns the evidence in four lines: this node's data, its etcd, the other node in Pacemaker, and whether that node ran standalone.
pub(super) fn in_short(evidence: &Evidence) -> String {
    let mut lines = String::new();
    let mut line = |what: &str, fact: String| {
        let _ = writeln!(lines, "  {what:<18} {fact}");
    };
    let (peer, cib) = (evidence.peer_name(), evidence.cib.known());
    let written = evidence.local.log_written.map(|at| format!(", last written {}", utc(at))).unwrap_or_default();
    line("data here", fact(&evidence.disk, "blank", data) + &written);
    line("etcd here", fact(&evidence.own_etcd, "does not run", |own| etcd(evidence, own)));
    line(
        peer,
        match cib {
            Some(cib) => format!("machine {}, agent {}", machine(cib.peer_machine()), agent(cib.peer_agent)),
            None => format!("unknown: {}", evidence.cib.why_unknown()),
        },
    );
    let forks = match cib {
        _ if evidence.was_left_behind() => format!("{peer} ran standalone since: this node lacks what it took then"),
        Some(_) => format!("no record says that {peer} ran standalone since"),
        None => "not known".to_owned(),
    };
    line("histories", forks);
    lines
}

fn write_cib(cib: &Cib, peer: &str, line: &mut impl FnMut(&str, String)) {
    line("Pacemaker", format!("{peer}'s machine {}, its agent {}", machine(cib.peer_machine()), agent(cib.peer_agent)));
    let none = if cib.keeps_own_record { "erased from the CIB; Pacemaker's attribute manager has it" } else { "none" };
    line("own record", cib.own_record.as_ref().map_or(none.to_owned(), record));
    line(&format!("{peer}'s record"), cib.peer_record.as_ref().map_or("none".to_owned(), record));
    let forks = if cib.lineage.forks == 0 {
        "none".to_owned()
    } else {
        format!("{} (last by {})", cib.lineage.forks, cib.lineage.by)
    };
    line("forks recorded", forks);
    if let Some(third_voter) = &cib.third_voter {
        line("etcd_guest", format!("a third member outside of the pair, {third_voter}"));
    }
    if let Some(primary) = &cib.primary {
        line("etcd_primary", format!("an operator chose the data of {primary}"));
    }
    if let Fact::Known(redundancy) = &cib.redundancy {
        let what = if redundancy.is_redundant { "two voters" } else { "one voter alone" };
        line("etcd_redundancy", format!("{what} since {}", utc(redundancy.since)));
    }
    if let Some(running) = &cib.own_image {
        let next = running.next.as_ref().map(|next| format!(", and {} is named", next.image)).unwrap_or_default();
        line("etcd_image", format!("{}{next}", running.image));
    }
    if let Some(reach) = &cib.reach {
        let is = |reach: &Fact<bool>| fact(reach, "not known", |is| if *is { "yes" } else { "no" }.to_owned());
        line("users reach", format!("this node: {}, {peer}: {}", is(&reach.own), is(&reach.peer)));
    }
    line("standalone_node", cib.standalone_node.clone().unwrap_or_else(|| "not set".to_owned()));
}

fn fact<T>(fact: &Fact<T>, absent: &str, describe: impl Fn(&T) -> String) -> String {
    match fact {
        Fact::Known(value) => describe(value),
        Fact::Absent => absent.to_owned(),
        Fact::Unknown(why) => format!("unknown: {why}"),
        Fact::NotAsked => "not asked".to_owned(),
    }
}

/// Returns the name of the node with the etcd member `id`: the node of the etcd that answered, or else the name in a member list.
/// Returns the id if neither has a name for it.
fn node_of(evidence: &Evidence, id: MemberId) -> String {
    let [own, peer] = [&evidence.own_etcd, &evidence.peer_etcd].map(Fact::known);
    let is = |etcd: Option<&Etcd>| etcd.is_some_and(|etcd| etcd.member_id == id);
    let peers_name = evidence.peer.as_ref().map(|peer| &peer.name);
    let answered = is(own).then_some(&evidence.me.name).or(peers_name.filter(|_| is(peer)));
    let mut listed = own.into_iter().chain(peer).flat_map(|etcd| &etcd.members);
    let listed = listed.find(|member| member.id == id && member.has_started()).map(|member| &member.name);
    answered.or(listed).cloned().unwrap_or_else(|| format!("{id:x}"))
}

/// Returns in words which node is the configured primary, and when leadership moves to that node, or why it does not.
/// Returns `None` if there is nothing to report.
fn leadership(evidence: &Evidence) -> Option<String> {
    let primary = evidence.leading.as_ref()?.primary.as_ref();
    let peer = evidence.peer_name();
    let outlook = outlook(evidence).map(|outlook| outlook.sentence(&evidence.me.name, peer));
    let outlook = outlook.or_else(|| yielding(evidence).map(|yields| yields.sentence(peer)));
    match (primary, outlook) {
        (Some(primary), Some(outlook)) => Some(format!("{primary}, the configured primary: {outlook}")),
        (Some(primary), None) => Some(format!("{primary}, the configured primary")),
        (None, outlook) => outlook,
    }
}

/// Returns in words which node's history continues after both nodes ran standalone, according to the parameters of
/// both nodes. Returns `None` if no history is configured.
fn kept_history(evidence: &Evidence) -> Option<String> {
    let (primary, peer) = (evidence.preferred()?, evidence.peer_name());
    let record = evidence.cib.known().and_then(|cib| cib.peer_record.as_ref());
    let peers = record.and_then(|record| record.prefers.as_ref());
    Some(match (record, peers) {
        (_, Some(named)) if named == primary => format!("{primary}'s continues: two_histories=primary on both nodes"),
        (_, Some(named)) => format!("this node names {primary}, and {peer} names {named}: an operator chooses"),
        (Some(_), None) => format!("this node names {primary}, and {peer} none: an operator chooses"),
        (None, None) => format!("this node names {primary}, and what {peer} names is not known"),
    })
}

fn etcd(evidence: &Evidence, etcd: &Etcd) -> String {
    let role = if etcd.is_learner { "learner" } else { "voter" };
    let led = |leader| format!("leader {}", node_of(evidence, leader));
    let leader = etcd.leader.map_or("no leader".to_owned(), led);
    let voters = ids(etcd.voters().map(|member| member.id));
    let mut text = format!("{role} {:x}, {leader}, term {} index {}", etcd.member_id, etcd.term, etcd.index);
    if !etcd.members.is_empty() {
        let _ = write!(text, ", voters {voters}");
    }
    for alarm in &etcd.alarms {
        let _ = write!(text, ", reports '{alarm}'");
    }
    text
}

fn leaderless(told: &Leaderless) -> String {
    let voters = ids(told.voters().map(|member| member.id));
    format!("etcd {}, member {:x}, term {}, voters {voters}", told.version, told.member_id, told.term)
}

fn ids(ids: impl Iterator<Item = MemberId>) -> String {
    let ids: Vec<String> = ids.map(|id| format!("{id:x}")).collect();
    if ids.is_empty() { "none".to_owned() } else { ids.join(" ") }
}

fn container(container: &Container) -> String {
    let state = if container.running { "runs" } else { "does not run" };
    let exit = container.exit.as_ref().map(|exit| format!(" ({exit})")).unwrap_or_default();
    let force = if container.forces_new_cluster { ", configured to force a new cluster" } else { "" };
    format!("{state}{exit}{force}")
}

/// Describes the content of a data dir in one line.
pub(super) fn data(disk: &DataDir) -> String {
    match disk {
        DataDir::Blank => "blank".to_owned(),
        DataDir::Broken { why } => format!("broken: {why}"),
        DataDir::Present(history) => {
            let left = if history.has_left { ", has left" } else { "" };
            let ahead = history.database_ahead.map(|index| format!(", its database to {index}")).unwrap_or_default();
            format!(
                "member {:x}, to term {} index {} (committed {}){ahead}, voters {}, learners {}{left}",
                history.member_id,
                history.last_term,
                history.last_index,
                history.commit_index,
                ids(history.voters.iter().copied()),
                ids(history.learners.iter().copied()),
            )
        }
    }
}

fn note(note: &DurableState) -> String {
    let mut text = format!("{} forks", note.lineage.forks);
    match note.alone_since {
        None => {}
        // An etcd without a leader may not have reported its position.
        Some(since) if since == LogPosition::default() => text.push_str(", alone"),
        Some(since) => {
            let _ = write!(text, ", alone since term {} index {}", since.term, since.index);
        }
    }
    if let Some(left) = note.left_at {
        let _ = write!(text, ", left at term {} index {}", left.term, left.index);
    }
    text
}

fn boot_memory(evidence: &Evidence, memory: &BootState) -> String {
    if memory.boot_id != evidence.boot_id {
        return "remembers only an earlier boot".to_owned();
    }
    match &memory.voter {
        Some(voter) if voter.among_many => format!("saw member {:x} vote among three or more", voter.member_id),
        Some(voter) => format!("saw member {:x} vote, and may run standalone with its data", voter.member_id),
        None => "saw no voter run, or gave its claim up".to_owned(),
    }
}

/// Describes how slow this node is, as far as the agent takes its slowness into account.
fn pace(pace: Pace) -> String {
    let Pace { look_ms, launch_ms, postponed, unanswered } = pace;
    let mut parts = Vec::new();
    if look_ms > 0 {
        parts.push(format!("took {} s for this look", seconds(look_ms)));
    }
    if launch_ms > 0 {
        parts.push(format!("needs {} s to launch etcd", seconds(launch_ms)));
    }
    if postponed > 0 {
        parts.push(format!("had no time to run standalone in the last {postponed} actions"));
    }
    if unanswered > 0 {
        parts.push(format!("had no answer of its etcd in time in the last {unanswered} looks"));
    }
    parts.join(", ")
}

fn seconds(ms: u64) -> String {
    format!("{}.{}", ms / 1_000, ms % 1_000 / 100)
}

fn record(record: &PublishedState) -> String {
    let claim = if record.claims { "; claims to run standalone" } else { "" };
    format!("{}; {} forks{claim}", data(&record.disk), record.lineage.forks)
}

fn machine(node: PeerNode) -> &'static str {
    match node {
        PeerNode::Online => "is online",
        PeerNode::Pending => "is joining or leaving",
        PeerNode::Down => "is confirmed down",
        PeerNode::Lost => "is lost and not confirmed down",
        PeerNode::NeverSeen => "was not seen since the cluster started",
    }
}

fn agent(agent: PeerAgent) -> &'static str {
    match agent {
        PeerAgent::Active => "is active",
        PeerAgent::Starting => "is starting",
        PeerAgent::Stopping => "is stopping",
        PeerAgent::Stopped => "is stopped",
        PeerAgent::NoHistory => "has no history",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;
    use crate::decide::evidence::Leading;

    #[test]
    fn the_node_that_is_to_lead_is_named_with_when_it_does() {
        let mut evidence = golden::recorded().evidence;
        let leading = |primary: &str| Leading {
            primary: Some(primary.to_owned()),
            failback: true,
            delay_s: 60,
            ..Leading::default()
        };
        evidence.leading = Some(Box::new(leading("node9")));
        assert_eq!(leadership(&evidence).as_deref(), Some("node9, the configured primary"));
        evidence.leading = None;
        assert_eq!(leadership(&evidence), None);
    }

    #[test]
    fn the_history_that_continues_is_the_one_that_both_nodes_name() {
        let mut evidence = golden::recorded().evidence;
        assert_eq!(kept_history(&evidence), None);
        let primary = Some("node1".to_owned());
        evidence.leading = Some(Box::new(Leading { primary, keeps_its_history: true, ..Leading::default() }));
        let mut shown = |named: Option<&str>| {
            if let Fact::Known(cib) = &mut evidence.cib {
                cib.peer_record.as_mut().unwrap().prefers = named.map(str::to_owned);
            }
            kept_history(&evidence).unwrap()
        };
        assert_eq!(shown(Some("node1")), "node1's continues: two_histories=primary on both nodes");
        assert!(shown(Some("node2")).ends_with("names node2: an operator chooses"));
        assert!(shown(None).ends_with("none: an operator chooses"));
    }

    #[test]
    fn how_slow_this_machine_is_is_told_in_words() {
        let slow = Pace { look_ms: 6_340, launch_ms: 31_000, postponed: 2, unanswered: 3 };
        let told = "took 6.3 s for this look, needs 31.0 s to launch etcd, had no time to run standalone in the last 2 actions, \
                    had no answer of its etcd in time in the last 3 looks";
        assert_eq!(pace(slow), told);
        assert_eq!(pace(Pace { look_ms: 1_000, ..Pace::default() }), "took 1.0 s for this look");
    }
}
