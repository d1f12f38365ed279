//! How long each question may take. What hangs is unknown when its time is over, and keeps nobody waiting for what answers.

use std::time::Duration;

use crate::adapters::pace::Question;

/// The time of each question. Those to programs and files of this node begin at once, side by side; the etcds are asked once
/// it is known from the CIB where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `cibadmin`. Once it is over, the etcds are looked for by the CIB on this node's disk.
    pub cib: Duration,
    /// `crm_mon`, which asks the CIB's manager and the fencer.
    pub crm_mon: Duration,
    /// `corosync-quorumtool`.
    pub quorum: Duration,
    /// `attrd_updater`, for what the collectors published.
    pub attributes: Duration,
    /// Connecting to an etcd: a machine that is off does not even refuse.
    pub connect: Duration,
    /// The handshake in which an etcd shows its certificate. One that hangs has taken the connection, and says nothing.
    pub certificate: Duration,
    /// An etcd's state and its members.
    pub etcd: Duration,
    /// A linearizable read, which an etcd without a majority keeps waiting.
    pub read: Duration,
    /// All of it.
    pub whole: Duration,
}

impl Default for Limits {
    /// For an answer within five seconds, whatever hangs.
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
    /// Where nobody waits at a terminal, or something is to be changed: what this machine's own tools may take anywhere, so
    /// that a slow machine answers late, not never.
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
