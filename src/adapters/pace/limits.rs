//! The time limit of each question. A source that hangs counts as unknown after its time, and delays no source that answers.

use std::time::Duration;

use crate::adapters::pace::Question;

/// The time limits of everything that one observation for an operator queries. Programs and files of this node are queried first, in
/// parallel. The etcds are queried once the CIB has shown their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The limit of `cibadmin`. If it times out, the addresses of the etcds come from the CIB on this node's disk.
    pub cib: Duration,
    /// The limit of `crm_mon`, which queries the CIB's manager and the fencer.
    pub crm_mon: Duration,
    /// The limit of `corosync-quorumtool`.
    pub quorum: Duration,
    /// The limit of `attrd_updater`, which reads the values that the collectors on both nodes have published.
    pub attributes: Duration,
    /// The limit of a TCP connection to an etcd. A machine that is off does not refuse the connection, so the limit ends it.
    pub connect: Duration,
    /// The limit of the TLS handshake in which an etcd shows its certificate. An etcd that hangs accepts the connection and sends
    /// nothing.
    pub certificate: Duration,
    /// The limit of reading an etcd's state and members.
    pub etcd: Duration,
    /// The limit of a linearizable read, which an etcd without a majority does not answer.
    pub read: Duration,
    /// The limit of the whole observation.
    pub whole: Duration,
}

impl Default for Limits {
    /// Returns limits with which an observation ends within five seconds, even if a program hangs.
    fn default() -> Self {
        let millis = Duration::from_millis;
        Self {
            cib: millis(1_500),
            crm_mon: millis(4_000),
            quorum: millis(2_000),
            attributes: millis(2_000),
            connect: millis(1_000),
            certificate: millis(1_000),
            etcd: millis(2_500),
            read: millis(1_500),
            whole: millis(4_600),
        }
    }
}

impl Limits {
    /// Returns limits for commands that change something, or for which no operator waits. The limit of each tool is the least limit of
    /// [`Question::Pacemaker`], so that a slow machine answers late instead of never.
    pub fn patient() -> Self {
        let tool = Question::Pacemaker.floor();
        Self { cib: tool, crm_mon: tool, quorum: tool, attributes: tool, whole: 2 * tool, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outlasts_the_whole_and_that_is_below_five_seconds() {
        let limits = Limits::default();
        let silent_etcd = limits.cib + limits.connect + limits.certificate;
        let each = [limits.crm_mon, limits.quorum, limits.attributes, silent_etcd, limits.cib + limits.etcd];
        assert!(each.iter().all(|limit| *limit < limits.whole) && limits.whole < Duration::from_secs(5));
        assert!(limits.read < limits.etcd);
        let patient = Limits::patient();
        assert!(patient.cib + limits.connect + limits.certificate + limits.etcd < patient.whole);
    }
}
