//! The claim to run standalone, which a final stop gives up. While it lasts, only fencing lets the other node run
//! standalone.

use std::path::PathBuf;

use crate::adapters::command::Programs;
use crate::adapters::ocf::env::Env;
use crate::adapters::pacemaker::{attributes, cib};
use crate::agent::resource::context;
use crate::base::Fact;
use crate::decide::evidence::{BootState, Cib, PeerNode, PublishedState};
use crate::records::state_file;

/// Withdraws the record by which this node claims the right to run standalone, as a final stop with valid parameters does. etcd has ended
/// already, so a failure is only logged.
pub(in crate::agent) fn give_up_the_claim(env: &Env, programs: &Programs) {
    let Err(why) = give_up(env, programs) else { return };
    // A node without a memory has run no voter since its boot, so it has no claim that Pacemaker would still have.
    match state_file::read::<BootState>(&memory_path(env)) {
        Fact::Absent => log::debug!("this node's claim to run standalone cannot be read: {why}"),
        _ => log::warn!(
            "this node's claim to run standalone cannot be given up, and the peer may wait for this node: {why}"
        ),
    }
}

fn memory_path(env: &Env) -> PathBuf {
    state_file::memory_path(&env.volatile_dir(), env.resource())
}

fn give_up(env: &Env, programs: &Programs) -> Result<(), String> {
    let node = context::local_name(env, programs).map_err(|invalid| invalid.sentence)?;
    let cib = cib::query_of_node(programs, env.resource(), &node).map_err(|error| error.to_string())?;
    if keeps_it(env, &node, &cib) {
        return Ok(());
    }
    // The memory comes first, because this node must not rely on a claim that the other one sees given up.
    forget_the_voter(env)?;
    match cib.own_record {
        Some(record) if record.claims => {
            let given_up = PublishedState { claims: false, ..record };
            attributes::publish_record(programs, &node, &given_up).map_err(|error| error.to_string())
        }
        _ => Ok(()),
    }
}

/// Returns whether a stop without valid parameters keeps this node's claim of the right to run standalone. The claim is kept if a start
/// follows, if `restart_no_leave` is set, or if the peer's node is not in the membership.
fn keeps_it(env: &Env, node: &str, cib: &Cib) -> bool {
    let restarts = env.notify().is_some_and(|notify| notify.start.contains(node));
    restarts || cib.others.restart_no_leave || matches!(cib.peer_machine(), PeerNode::Down | PeerNode::Lost)
}

fn forget_the_voter(env: &Env) -> Result<(), String> {
    let path = memory_path(env);
    match state_file::read::<BootState>(&path) {
        Fact::Known(memory) if memory.voter.is_some() || memory.promoted => {
            let memory = BootState { voter: None, promoted: false, ..memory };
            state_file::write(&path, &memory).map_err(|error| format!("{}: {error}", path.display()))
        }
        Fact::Unknown(why) => Err(why),
        Fact::Known(_) | Fact::Absent | Fact::NotAsked => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    const RECORD: &str = r#"{"boot_id":"b","disk":"Blank","lineage":{"forks":1,"by":"node1"},"claims":true,"nonce":7}"#;
    const MEMORY: &str = r#"{"boot_id":"b","voter":{"cluster_id":1,"member_id":2,"lineage":{"forks":0,"by":""},"sole":false},
        "promoted":true,"start_failures":2}"#;

    /// Returns a CIB in which node1 claims the right to run standalone. `peer_is_in` is true if node2 is in the membership.
    fn cib_of(record: &str, peer_is_in: bool, more: &str) -> String {
        let record = record.replace('"', "&quot;");
        let crmd = if peer_is_in { "online" } else { "offline" };
        format!(
            "<cib><configuration><nodes><node id='1' uname='node1'/><node id='2' uname='node2'/></nodes></configuration>\
             <status><node_state id='1' uname='node1' in_ccm='true' crmd='online' join='member' expected='member'>\
             <transient_attributes id='1'><instance_attributes id='i'><nvpair id='r' name='etcd_record' value='{record}'/>{more}\
             </instance_attributes></transient_attributes></node_state>\
             <node_state id='2' uname='node2' in_ccm='{peer_is_in}' crmd='{crmd}' join='member' expected='member'/></status></cib>"
        )
    }

    struct Node {
        dir: tempfile::TempDir,
        programs: Programs,
    }

    impl Node {
        fn with(cib: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let (xml, typed) = (dir.path().join("cib.xml"), dir.path().join("typed"));
            std::fs::write(&xml, cib).unwrap();
            fake_program(dir.path(), "cibadmin", &format!("cat {}", xml.display()));
            let programs = fake_program(dir.path(), "attrd_updater", &format!("echo \"$@\" >> {}", typed.display()));
            let node = Self { dir, programs };
            std::fs::write(node.memory(), MEMORY).unwrap();
            node
        }

        fn memory(&self) -> std::path::PathBuf {
            state_file::memory_path(self.dir.path(), "etcd")
        }

        /// Runs a stop with an invalid parameter. `start` names the node on which the same transition starts the resource afterwards. It
        /// is empty if the transition starts none.
        fn stop(&self, start: &str) {
            let place = self.dir.path().display().to_string();
            let pairs = [
                ("HA_RSCTMP", place.as_str()),
                ("OCF_RESKEY_oom", "much"),
                ("OCF_RESKEY_CRM_meta_on_node", "node1"),
                ("OCF_RESKEY_CRM_meta_notify", "true"),
                ("OCF_RESKEY_CRM_meta_notify_start_uname", start),
            ];
            let env = Env::from_pairs(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
            give_up_the_claim(&env, &self.programs);
        }

        /// Returns the values that the agent published.
        fn published(&self) -> Vec<String> {
            let typed = std::fs::read_to_string(self.dir.path().join("typed")).unwrap_or_default();
            typed.lines().filter(|line| line.contains("--update")).map(str::to_owned).collect()
        }

        fn remembers(&self) -> bool {
            let memory: BootState = state_file::read(&self.memory()).known().cloned().unwrap();
            assert_eq!((memory.boot_id.as_str(), memory.start_failures), ("b", 2), "all else stays");
            memory.voter.is_some()
        }
    }

    fn claims() -> String {
        serde_json::to_string(&serde_json::from_str::<PublishedState>(RECORD).unwrap()).unwrap()
    }

    /// Asserts that a final stop with wrong parameters withdraws this node's claim of the right to run standalone. Otherwise the other node
    /// would wait endlessly.
    #[test]
    fn a_final_stop_with_wrong_parameters_gives_its_claim_up() {
        let claims = claims();
        let node = Node::with(&cib_of(&claims, true, ""));
        node.stop("");
        let given_up = claims.replace("\"claims\":true", "\"claims\":false");
        assert_eq!(node.published(), [format!("--node node1 --name etcd_record --update {given_up}")]);
        assert!(!node.remembers(), "it counts on no claim that the other node has seen given up");
        let silent = Node::with(&cib_of(&given_up, true, ""));
        silent.stop("");
        assert!(silent.published().is_empty() && !silent.remembers());
    }

    #[test]
    fn a_claim_stays_where_a_start_follows_or_the_other_node_cannot_see_it_go() {
        let claims = claims();
        let flag = "<nvpair id='f' name='restart_no_leave' value='true'/>";
        for (cib, start) in
            [(cib_of(&claims, true, ""), "node1"), (cib_of(&claims, false, ""), ""), (cib_of(&claims, true, flag), "")]
        {
            let node = Node::with(&cib);
            // The live value counts.
            let live = format!(
                "echo \"$@\" >> {}; case \"$*\" in *restart_no_leave*) echo 'name=\"restart_no_leave\" host=\"node1\" value=\"true\"';; esac",
                node.dir.path().join("typed").display()
            );
            fake_program(node.dir.path(), "attrd_updater", &live);
            node.stop(start);
            assert!(node.published().is_empty() && node.remembers(), "{cib}");
        }
    }

    /// Asserts what a stop withdraws if an access fails. If the CIB or the agent's memory file cannot be read, it withdraws nothing. If
    /// only the CIB cannot be written, it still removes the claim from the memory file.
    #[test]
    fn what_cannot_be_read_or_written_changes_no_stop() {
        let node = Node::with("<cib");
        node.stop("");
        assert!(node.published().is_empty() && node.remembers(), "it may still claim");
        let claims = claims();
        let node = Node::with(&cib_of(&claims, true, ""));
        fake_program(node.dir.path(), "attrd_updater", "echo 'no connection' >&2; exit 102");
        node.stop("");
        assert!(!node.remembers());
        let node = Node::with(&cib_of(&claims, true, ""));
        std::fs::write(node.memory(), "{").unwrap();
        node.stop("");
        assert!(node.published().is_empty(), "a memory that may count on the claim keeps it");
    }
}
