//! Replaces a CA while etcd serves. Each node determines its missing steps from what it observes, and performs its own
//! part. After an interruption the same command performs what is left.
//!
//! etcd reads its certificate in every handshake, but its trusted authorities only when it starts. So both nodes trust
//! both CAs before either presents a certificate of the new one. The old CA is dropped once neither node presents a
//! certificate of it. The rotation waits for a node that is off, which comes back unchanged and is still trusted.

use std::fmt::Display;

use super::files::{Failed, Files, Holder, Leaf};
use super::{Authority, CA_CERT, CA_KEY, Certificate, NEXT_CERT, NEXT_KEY};

/// Age in seconds below which a CA is replaced only if the operator asks for it.
const FRESH: u64 = 24 * 3_600;

/// The part of a node in a CA rotation. The first node is the one on which the rotation began, and it restarts its etcd
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    First,
    Second,
}

/// The certificates that a running etcd uses, as both of its ports show them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RotationSeen {
    /// The issuer of the certificate that each port presents, in DER.
    pub issuers: Vec<Vec<u8>>,
    /// The subjects of the CAs that each port trusts, in DER.
    pub trusts: Vec<Vec<Vec<u8>>>,
}

impl RotationSeen {
    fn trusts(&self, subject: &[u8]) -> bool {
        !self.trusts.is_empty() && self.trusts.iter().all(|port| port.iter().any(|one| one == subject))
    }

    fn trusts_nothing_but(&self, subject: &[u8]) -> bool {
        self.trusts(subject) && self.trusts.iter().flatten().all(|one| one == subject)
    }

    fn shows_nothing_but(&self, issuer: &[u8]) -> bool {
        !self.issuers.is_empty() && self.issuers.iter().all(|one| one == issuer)
    }
}

/// The observed etcd of the other node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Other {
    /// The cluster has no other node.
    None,
    Seen(RotationSeen),
    /// The reason why the other node's etcd could not be observed.
    Unseen(String),
}

impl Other {
    /// Checks a condition on the other node's etcd. Without another node the condition always holds. The error is
    /// `not_yet`, or that the other etcd does not answer.
    fn holds(&self, is_so: impl Fn(&RotationSeen) -> bool, not_yet: &str) -> Result<(), String> {
        match self {
            Self::None => Ok(()),
            Self::Seen(seen) if is_so(seen) => Ok(()),
            Self::Seen(_) => Err(not_yet.to_owned()),
            Self::Unseen(why) => Err(format!("waiting for the other node, as its etcd does not answer: {why}")),
        }
    }
}

/// The observed etcds of both nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    pub own: Result<RotationSeen, String>,
    pub other: Other,
    /// `Ok` if etcd will serve after a restart of this node's etcd. The error is what the restart must wait for.
    pub may_restart: Result<(), String>,
}

/// The state of a CA rotation in a node's certificate files. The rotation's next step follows from it. Each CA is represented by its
/// subject in DER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The subject of the new CA; `None` if no CA rotation is in progress.
    pub next: Option<Vec<u8>>,
    pub bundle: Vec<Vec<u8>>,
    /// The issuers of etcd's and etcdctl's certificates in this node's files. An empty issuer marks a pair of files
    /// that do not belong together.
    pub leaves: Vec<Vec<u8>>,
    /// True if the key in `ca.key` is that of the CA rotation's new CA.
    pub signs_with_next: bool,
}

impl State {
    pub fn read(files: &Files) -> Result<Self, Failed> {
        let next = files.next()?;
        let subject = |authority: &Authority| authority.certificate().subject_der.clone();
        let leaves = [files.leaf(Leaf::Etcd)?, files.leaf(Leaf::Client)?];
        let is_mixed = !files.fits(Leaf::Etcd)? || !files.fits(Leaf::Client)?;
        let signs_with_next = match &next {
            Some(next) => files.read(CA_KEY)?.is_some_and(|key| *key == **next.key_pem()),
            None => false,
        };
        Ok(Self {
            bundle: files.bundle()?.into_iter().map(|one| one.subject_der).collect(),
            // A missing pair, or one that does not belong together, counts as issued by no CA.
            leaves: if is_mixed {
                vec![Vec::new()]
            } else {
                leaves.into_iter().flatten().map(|one| one.issuer_der).collect()
            },
            next: next.as_ref().map(subject),
            signs_with_next,
        })
    }
}

/// A step of a CA rotation on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationStep {
    /// The step after which this node trusts the new CA in addition to the old one, from etcd's next start.
    Trust,
    Restart,
    /// The step that issues this node's certificates from the new CA.
    Issue,
    /// The step after which this node trusts only the new CA, from etcd's next start.
    Drop,
    Finish,
}

impl Display for RotationStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Trust => "have this node trust the new CA beside the old one",
            Self::Restart => "restart etcd here, which does not leave the member list",
            Self::Issue => "replace this node's certificates by ones of the new CA",
            Self::Drop => "have this node trust the old CA no more",
            Self::Finish => "clear away what the rotation needed",
        })
    }
}

/// The next action of a CA rotation on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Do(RotationStep),
    /// The CA rotation must wait for the condition in the text.
    Wait(String),
    /// The CA rotation has ended, except that the old CA stays trusted because the operator asked for that.
    Kept,
    Done,
}

/// Returns the next action of a CA rotation on this node. If `keep_old` is true, the old CA stays trusted.
pub fn next(state: &State, look: &Look, role: Role, keep_old: bool) -> Next {
    match walk(state, look, role, keep_old) {
        Ok(next) => next,
        Err(wait) => Next::Wait(wait),
    }
}

fn walk(state: &State, look: &Look, role: Role, keep_old: bool) -> Result<Next, String> {
    let Some(new) = &state.next else { return Ok(Next::Done) };
    let restart = || look.may_restart.clone().map(|()| Next::Do(RotationStep::Restart));
    if !state.bundle.contains(new) {
        return Ok(Next::Do(RotationStep::Trust));
    }
    let own = look.own.as_ref().map_err(|why| format!("this node's etcd does not answer: {why}"))?;
    let trusts = |seen: &RotationSeen| seen.trusts(new);
    let other_trusts = || look.other.holds(trusts, "the new CA is not trusted by the other node yet");
    if !trusts(own) {
        // The second node restarts only after the first one is back.
        if role == Role::Second {
            other_trusts()?;
        }
        return restart();
    }
    other_trusts()?;
    if state.leaves.iter().any(|issuer| issuer != new) {
        return Ok(Next::Do(RotationStep::Issue));
    }
    let shows = |seen: &RotationSeen| seen.shows_nothing_but(new);
    if !shows(own) {
        return Err("this node's etcd does not show its new certificate yet".to_owned());
    }
    look.other.holds(shows, "a certificate of the old CA is shown by the other node still")?;
    let is_rid = |seen: &RotationSeen| seen.trusts_nothing_but(new);
    let other_is_rid = || look.other.holds(is_rid, "the old CA is trusted by the other node still");
    let is_dropped = state.bundle.iter().all(|one| one == new) && state.signs_with_next;
    if keep_old && !is_dropped {
        return Ok(Next::Kept);
    }
    if role == Role::Second && !(is_dropped && is_rid(own)) {
        other_is_rid()?;
    }
    if !is_dropped {
        return Ok(Next::Do(RotationStep::Drop));
    }
    if !is_rid(own) {
        return restart();
    }
    other_is_rid()?;
    Ok(Next::Do(RotationStep::Finish))
}

/// Access to both etcds for a CA rotation on this node.
pub trait Site {
    fn look(&mut self) -> Look;
    /// Restarts this node's etcd without removing its member, and waits until etcd serves.
    fn restart(&mut self) -> Result<(), String>;
    /// Is called before each single change, with the name of what changes. An error stops the CA rotation.
    fn about_to(&mut self, _what: &str) -> Result<(), String> {
        Ok(())
    }
}

/// The reason why a step of a CA rotation was not done.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    #[error(transparent)]
    Files(#[from] Failed),
    #[error(transparent)]
    Made(#[from] super::Error),
    #[error("{0}")]
    Site(String),
}

/// Observes both etcds, and performs at most one step of the CA rotation. Returns that step, or what the rotation waits
/// for.
pub fn advance(
    files: &Files,
    site: &mut impl Site,
    role: Role,
    keep_old: bool,
    holder: &Holder,
    now: u64,
) -> Result<Next, Stopped> {
    let look = site.look();
    let next = next(&State::read(files)?, &look, role, keep_old);
    if let Next::Do(step) = &next {
        take(*step, files, site, holder, now)?;
    }
    Ok(next)
}

fn take(step: RotationStep, files: &Files, site: &mut impl Site, holder: &Holder, now: u64) -> Result<(), Stopped> {
    let Some(new) = files.next()? else { return Ok(()) };
    let mut about_to = |what: &str| site.about_to(what).map_err(Stopped::Site);
    match step {
        RotationStep::Trust => {
            about_to(CA_CERT)?;
            let bundle: String = files.bundle()?.iter().map(Certificate::pem).collect();
            files.write(CA_CERT, &(bundle + new.certificate_pem()))?;
        }
        RotationStep::Restart => {
            about_to("etcd")?;
            site.restart().map_err(Stopped::Site)?;
        }
        // Certificates that an earlier attempt has issued are not issued again. So attempts that are cut off after the
        // same time still make progress.
        RotationStep::Issue => {
            for leaf in [Leaf::Client, Leaf::Etcd] {
                let issuer = files.leaf(leaf)?.map(|there| there.issuer_der);
                if issuer.as_ref() != Some(&new.certificate().subject_der) || !files.fits(leaf)? {
                    about_to(leaf.cert())?;
                    files.renew(leaf, &new, holder, now)?;
                }
            }
        }
        // The key is replaced first. The bundle contains the new CA all the time, so that the signing CA is always
        // trusted.
        RotationStep::Drop => {
            if files.read(CA_KEY)?.is_none_or(|key| *key != **new.key_pem()) {
                about_to(CA_KEY)?;
                files.write(CA_KEY, new.key_pem())?;
            }
            about_to(CA_CERT)?;
            files.write(CA_CERT, new.certificate_pem())?;
        }
        // The certificate is removed last, because it marks that a rotation is in progress.
        RotationStep::Finish => {
            if files.has(NEXT_KEY) {
                about_to(NEXT_KEY)?;
                files.remove(NEXT_KEY)?;
            }
            about_to(NEXT_CERT)?;
            files.remove(NEXT_CERT)?;
        }
    }
    Ok(())
}

/// Creates the new CA of a CA rotation, or returns the new CA of a rotation in progress. Returns `None` if the CA in use is less than
/// a day old, because a repeated command must not begin another rotation. If `again` is true, the age of the CA in use does not
/// matter.
pub fn begin(files: &Files, cluster: &str, again: bool, now: u64) -> Result<Option<Authority>, Failed> {
    if let Some(next) = files.next()? {
        return Ok(Some(next));
    }
    if !again && is_fresh(files, now)? {
        return Ok(None);
    }
    let next = Authority::new(cluster, now)?;
    adopt(files, &next)?;
    Ok(Some(next))
}

/// Returns whether the CA in use is less than a day old.
pub fn is_fresh(files: &Files, now: u64) -> Result<bool, Failed> {
    Ok(now.saturating_sub(files.authority()?.certificate().begins) < FRESH)
}

/// Makes `next` the new CA of the CA rotation on this node. Returns true if this node already trusts only `next`, so
/// that nothing is left to do. Replaces another new CA that was adopted before. If this node already trusts the
/// replaced CA, it counts as an old CA from then on.
pub fn adopt(files: &Files, next: &Authority) -> Result<bool, Failed> {
    let there = files.next()?;
    let subject = |authority: &Authority| authority.certificate().fingerprint.clone();
    if there.as_ref().map(subject) == Some(subject(next)) {
        return Ok(false);
    }
    let bundle = files.bundle()?;
    let is_alone = matches!(bundle.as_slice(), [one] if one.fingerprint == subject(next));
    if there.is_none() && is_alone {
        return Ok(true);
    }
    files.remove(NEXT_CERT)?;
    files.write(NEXT_KEY, next.key_pem())?;
    files.write(NEXT_CERT, next.certificate_pem())?;
    Ok(false)
}

#[cfg(test)]
mod tests;
