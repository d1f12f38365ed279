//! Performs an upgrade of the image: both nodes get the image, and each is restarted once it may be stopped.
//!
//! No progress is stored, because the cluster shows it. An upgrade that was cut off continues from the present state
//! when it is typed again.

mod settings;

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use super::judge::judge;
use super::seen::{self, Stand};
use super::{Order, Step, Upgraded};
use crate::adapters::command::Programs;
use crate::adapters::etcd::version::Version;
use crate::adapters::pace::Question;
use crate::adapters::pace::limits::Limits;
use crate::adapters::pacemaker::{by_hand, instance, member_change};
use crate::adapters::podman;
use crate::agent::resource::context::Context;
use crate::agent::resource::params;
use crate::base::shell;
use crate::operate::cluster::{self, Cluster};
use crate::operate::failure::Failure;
use crate::operate::health::{self, view, words};
use crate::operate::node;
use crate::operate::talk::{Progress, Talk};
use crate::os::clock::{self, Deadline};
use crate::os::ofd_lock;

const OFTEN: Duration = Duration::from_millis(500);
/// Longest time for which an upgrade bans etcd from a node. The ban expires by itself if the upgrade is interrupted.
const AWAY: Duration = Duration::from_secs(600);
/// Longest time without writes while etcd is banned from a node. After this time the upgrade lifts the ban.
const PAUSE: Duration = Duration::from_secs(15);
const LOCK: &str = "/var/lib/tandem/upgrade.lock";
/// Name of the etcd resource's parameter that contains the image.
const IMAGE: &str = "image";

pub(super) struct Work<'a> {
    order: &'a Order,
    talk: &'a dyn Talk,
    programs: Programs,
    context: Context,
    progress: Box<dyn Progress>,
    end: Deadline,
    report: Upgraded,
}

impl<'a> Work<'a> {
    pub(super) fn new(order: &'a Order, talk: &'a dyn Talk) -> Result<Self, Failure> {
        if order.settings.is_empty() {
            params::image_fits(&order.image)?;
        }
        let context = node::context(order.resource.as_deref())?;
        if context.deployment.manifest.is_some() {
            return Err(Failure(
                "this pair has its image from a pod manifest: OpenShift's etcd operator upgrades it".to_owned(),
            ));
        }
        let settings = order.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let report = Upgraded { image: order.image.clone(), settings, dry_run: order.dry_run, ..Upgraded::default() };
        let (progress, end) = (talk.progress(), Deadline::after(order.timeout));
        Ok(Self { order, talk, programs: Programs::default(), context, progress, end, report })
    }

    /// Returns the steps that the upgrade would perform, for a dry run.
    pub(super) fn plan(mut self) -> Result<Upgraded, Failure> {
        let cluster = self.look()?;
        let is_begun = self.is_begun(&cluster)?;
        Self::may_begin(&cluster, is_begun)?;
        self.knows_the_release(&cluster)?;
        self.report.steps = self.to_do(&cluster)?.into_iter().map(|what| Step { what, seconds: None }).collect();
        self.report.done = self.report.steps.is_empty();
        self.progress.end();
        Ok(self.report)
    }

    pub(super) fn run(mut self) -> Result<Upgraded, Failure> {
        let done = self.steps();
        self.progress.end();
        done.map(|()| self.report)
    }

    fn steps(&mut self) -> Result<(), Failure> {
        let _lock = lock()?;
        let cluster = self.look()?;
        let is_begun = self.is_begun(&cluster)?;
        Self::may_begin(&cluster, is_begun)?;
        self.knows_the_release(&cluster)?;
        let to_do = self.to_do(&cluster)?;
        if to_do.is_empty() && !is_begun {
            self.report.done = true;
            return Ok(());
        }
        self.takes_over(&cluster, &to_do, is_begun)?;
        // An earlier run may have kept a node from running etcd.
        for name in view::names(&cluster) {
            instance::let_back(&self.programs, &name)?;
        }
        for name in self.outdated(&cluster)? {
            self.restarts(&name, false)?;
        }
        self.is_named(&cluster)?;
        self.is_on_both()?;
        self.until(seen::both_vote)?;
        for name in seen::in_order(&self.look()?) {
            if seen::stand(&self.look()?, &name, &self.order.image) != Stand::Runs {
                self.restarts(&name, true)?;
            }
        }
        member_change::give_back(&self.programs)?;
        self.report.done = true;
        Ok(())
    }

    /// Asks the operator for consent and records the upgrade as the cluster's change of members. Does neither if an earlier run of the
    /// same upgrade has done so.
    fn takes_over(&mut self, cluster: &Cluster, to_do: &[String], is_begun: bool) -> Result<(), Failure> {
        if !is_begun {
            self.consents(to_do)?;
            if !member_change::take(&self.programs, &self.words(cluster))? {
                return Err(Failure("another change of the members began meanwhile: type the same again".to_owned()));
            }
        }
        Ok(())
    }

    /// Observes the whole cluster.
    fn look(&self) -> Result<Cluster, Failure> {
        cluster::must_be_root()?;
        Ok(cluster::look(&self.programs, self.order.resource.as_deref(), &Limits::patient()))
    }

    /// Returns the value that the cluster property for a change of members gets during this upgrade.
    fn words(&self, cluster: &Cluster) -> String {
        let what = if self.order.settings.is_empty() { "upgrades etcd" } else { "changes settings of etcd" };
        format!("{} {what}", view::here(cluster))
    }

    /// Returns whether an upgrade that began on this node was interrupted. Fails if another change of members is in progress.
    fn is_begun(&self, cluster: &Cluster) -> Result<bool, Failure> {
        match health::change_under_way(cluster) {
            None => Ok(false),
            Some(change) if change == self.words(cluster) => Ok(true),
            Some(change) => Err(Failure(format!(
                "another change is under way ({change}): wait for its end, or type the same there again"
            ))),
        }
    }

    /// Checks that both nodes vote and that one of them may be stopped. Skips the check if `is_begun` is true, because an interrupted
    /// upgrade may have left a node without etcd.
    fn may_begin(cluster: &Cluster, is_begun: bool) -> Result<(), Failure> {
        if is_begun {
            return Ok(());
        }
        let first = seen::in_order(cluster).into_iter().next().unwrap_or_default();
        seen::both_vote(cluster).and_then(|()| seen::may_be_stopped(cluster, &first)).map_err(|why| {
            Failure(format!("nothing was done: {why}; see 'tandem status', and type the same once both nodes vote"))
        })
    }

    /// Pulls the new image on this node, and judges the etcd release in it.
    fn knows_the_release(&mut self, cluster: &Cluster) -> Result<(), Failure> {
        let image = &self.order.image;
        if podman::image_id(&self.programs, image, Question::Podman)?.is_none() {
            self.progress.say(&pulls(image));
            let began = Deadline::after(self.end.left());
            podman::pull(&self.programs, image, &self.context.params.authfile, self.end.left()).map_err(|error| {
                Failure(format!("nothing was done: {image} cannot be pulled: {error}: type 'podman pull {image}'"))
            })?;
            self.done(was_pulled(image, view::here(cluster)), &began);
        }
        let printed = podman::version_of(&self.programs, image, "etcd")?;
        let version = Version::parse(&printed).ok_or_else(|| {
            Failure(format!("nothing was done: {image} does not report which etcd it is: name another image"))
        })?;
        self.report.version = version.to_string();
        self.report.warnings = judge(image, version, &seen::versions(cluster))
            .map_err(|why| Failure(format!("nothing was done: {why}")))?;
        Ok(())
    }

    fn to_do(&self, cluster: &Cluster) -> Result<Vec<String>, Failure> {
        let image = &self.order.image;
        let outdated = self
            .outdated(cluster)?
            .into_iter()
            .map(|name| format!("restarts etcd on {name}, as Pacemaker goes by the agent that started it until then"));
        let named =
            (self.context.deployment.image != *image).then(|| format!("names {image}; nothing is restarted by that"));
        let pending =
            seen::in_order(cluster).into_iter().filter(|name| seen::stand(cluster, name, image) != Stand::Runs);
        let restarts = pending.map(|name| format!("restarts etcd on {name}, and waits until it votes"));
        Ok(outdated.chain(named).chain(restarts).collect())
    }

    /// Returns the nodes on which an older version of the agent started etcd. Pacemaker would restart these etcds at
    /// once if the image changed.
    fn outdated(&self, cluster: &Cluster) -> Result<Vec<String>, Failure> {
        if self.context.deployment.image == self.order.image {
            return Ok(Vec::new());
        }
        let old = instance::restarts_for(&self.programs, &view::etcd_id(cluster), IMAGE)?;
        Ok(seen::in_order(cluster).into_iter().filter(|name| old.contains(name)).collect())
    }

    fn consents(&self, to_do: &[String]) -> Result<(), Failure> {
        self.progress.end();
        let what = if self.report.settings.is_empty() {
            format!("{} ({})", self.report.version, self.order.image)
        } else {
            format!("with {}", shell::line(&self.report.settings))
        };
        self.talk.tell(&format_args!("etcd {what}, one node after the other:"))?;
        for warning in &self.report.warnings {
            self.talk.tell(&format_args!("  known: {warning}"))?;
        }
        for step in to_do {
            self.talk.tell(&format_args!("  {step}"))?;
        }
        if self.talk.leave("Type 'yes' to continue")? {
            Ok(())
        } else {
            Err(Failure("nothing was done: 'yes' was not typed".to_owned()))
        }
    }

    /// Writes the new image to the resource's parameters. This restarts nothing.
    fn is_named(&mut self, cluster: &Cluster) -> Result<(), Failure> {
        let (image, resource) = (&self.order.image, view::etcd_id(cluster));
        if self.context.deployment.image == *image {
            return Ok(());
        }
        let began = Deadline::after(self.end.left());
        instance::set_parameter(&self.programs, &resource, IMAGE, image)?;
        self.done(format!("{resource} names {image}"), &began);
        for name in view::names(cluster).into_iter().filter(|name| seen::has_failed(cluster, name)) {
            by_hand::forget_failures(&self.programs, &resource, &name)?;
        }
        Ok(())
    }

    /// Waits until each node that runs etcd has published that it has pulled the new image.
    fn is_on_both(&mut self) -> Result<(), Failure> {
        let (image, release) = (self.order.image.clone(), self.report.version.clone());
        let began = Deadline::after(self.end.left());
        self.until(|cluster| {
            for name in view::names(cluster).iter().filter(|name| !view::etcd_fact(cluster, name).is_absent()) {
                match seen::stand(cluster, name, &image) {
                    Stand::Ready(Some(version)) if version.to_string() != release => {
                        return Err(format!("{image} is etcd {version} on {name}: type 'podman pull {image}' there"));
                    }
                    Stand::Runs | Stand::Ready(_) => {}
                    Stand::Missing => {
                        return Err(format!("{name} does not have {image}: type 'podman pull {image}' there"));
                    }
                    Stand::Unsaid => return Err(format!("waits until {name} has read the new name")),
                }
            }
            Ok(())
        })?;
        self.done(on_both(), &began);
        Ok(())
    }

    /// Restarts etcd on a node and waits until it votes. If `from_the_image` is true, also waits until it runs from the new image.
    fn restarts(&mut self, name: &str, from_the_image: bool) -> Result<(), Failure> {
        let began = Deadline::after(self.end.left());
        self.stops(name)?;
        instance::let_back(&self.programs, name)?;
        let image = from_the_image.then(|| self.order.image.clone());
        self.until(|cluster| {
            seen::both_vote(cluster)?;
            match &image {
                Some(image) if seen::stand(cluster, name, image) != Stand::Runs => {
                    Err(format!("waits until {name} publishes that it runs from {image}"))
                }
                _ => Ok(()),
            }
        })?;
        self.done(restarted(name), &began);
        Ok(())
    }

    /// Stops etcd on a node once the other node may run standalone, and keeps it stopped. The stopping agent first hands leadership over
    /// and removes its member.
    fn stops(&self, name: &str) -> Result<(), Failure> {
        self.until(|cluster| seen::may_be_stopped(cluster, name))?;
        self.keeps_away(name)
    }

    /// Bans etcd from a node and waits until it is stopped there and the other node runs standalone. Lifts the ban and fails if there are
    /// no writes for [`PAUSE`].
    fn keeps_away(&self, name: &str) -> Result<(), Failure> {
        let until = clock::wall_seconds() + AWAY.as_secs();
        instance::keep_away(&self.programs, &view::clone_id(&self.look()?), name, until)?;
        let pause = RefCell::new(None);
        let stopped = self.until(|cluster| {
            let begun = *pause.borrow_mut().get_or_insert_with(|| Deadline::after(PAUSE));
            match (seen::is_stopped(cluster, name), view::writes(cluster)) {
                (Ok(()), _) => Ok(true),
                (Err(_), Some(false)) if begun.has_passed() => Ok(false),
                (Err(why), Some(false)) => Err(why),
                (Err(why), _) => {
                    pause.replace(None);
                    Err(why)
                }
            }
        });
        if !matches!(stopped, Ok(true)) {
            instance::let_back(&self.programs, name)?;
        }
        if stopped? {
            return Ok(());
        }
        Err(Failure(format!(
            "etcd took no writes while it was kept from {name}, and gets that node back: see 'tandem status', and type the same again once both nodes vote"
        )))
    }

    /// Observes the cluster repeatedly until `missing` returns `Ok`. The error of `missing` names what is still missing.
    fn until<T>(&self, missing: impl Fn(&Cluster) -> Result<T, String>) -> Result<T, Failure> {
        loop {
            let mut cluster = self.look()?;
            health::without_change(&mut cluster);
            let why = match missing(&cluster) {
                Ok(found) => return Ok(found),
                Err(why) => why,
            };
            self.progress.say(&why);
            if self.end.has_passed() {
                let patience = words::span(self.order.timeout.as_secs());
                return Err(Failure(match self.way_back(&cluster) {
                    Some(back) => format!(
                        "{why}: not within {patience}; see 'tandem status', and type the same again, which continues; to go back: {back}"
                    ),
                    None => format!(
                        "{why}: not within {patience}; see 'tandem status', and type the same again, which continues"
                    ),
                }));
            }
            self.end.sleep(OFTEN);
        }
    }

    /// Returns the command that restores the previous image or settings. Returns `None` if every node runs from the new image, or if
    /// the new settings equal the previous ones.
    fn way_back(&self, cluster: &Cluster) -> Option<String> {
        if !self.order.settings.is_empty() {
            return self.settings_of_before(cluster);
        }
        let images =
            view::names(cluster).into_iter().filter_map(|name| Some(view::running_image(cluster, &name)?.image));
        let old = images.into_iter().find(|image| *image != self.order.image)?;
        Some(shell::command!("tandem upgrade {}", old))
    }

    fn done(&mut self, what: String, began: &Deadline) {
        let seconds = Duration::as_secs_f64(&began.elapsed());
        self.progress.keep(&format!("{what} ({seconds:.1} s)"));
        self.report.steps.push(Step { what, seconds: Some((seconds * 10.0).round() / 10.0) });
    }
}

fn pulls(image: &str) -> String {
    format!("pulls {image}")
}

fn was_pulled(image: &str, node: &str) -> String {
    format!("{image} was pulled on {node}")
}

fn on_both() -> String {
    "both nodes have it".to_owned()
}

fn restarted(node: &str) -> String {
    format!("{node} was restarted and votes")
}

/// Takes the lock that excludes a second upgrade on this node. The lock lasts while the returned file is open.
fn lock() -> Result<File, Failure> {
    std::fs::create_dir_all("/var/lib/tandem")?;
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(LOCK)?;
    if ofd_lock::try_take(&file)? {
        return Ok(file);
    }
    Err(Failure("another 'tandem upgrade' is at it on this node: wait for its end".to_owned()))
}
