//! The image that etcd runs from: its presence on this node, its pull, and the version of etcd in it.

use std::time::Duration;

use super::Error;
use crate::adapters::command::Programs;
use crate::adapters::etcd::version::{self, Version};
use crate::adapters::pace::Question;
use crate::adapters::podman::{self, Inspected};
use crate::agent::resource::context::Context;
use crate::agent::resource::params;
use crate::records::image_versions;

/// Version of etcd that is assumed if an image does not report one. It is the supported release with the fewest settings.
const ASSUMED: Version = Version { minor: 5, patch: u32::MAX };
/// Time limit of an image pull while etcd runs, or can start from its last container's image. It is short, because no other action of this
/// agent runs during a pull. Also, the peer takes no writes while this member is down.
const PULLS_BRIEFLY: Duration = Duration::from_secs(8);

/// Container image that is on this node.
#[derive(Debug)]
pub(super) struct Image {
    pub name: String,
    pub id: String,
    pub version: Version,
}

/// Returns the image that the parameters name. Pulls it first if this node lacks it.
pub(super) fn have(context: &Context) -> Result<Image, Error> {
    let (image, programs) = (&context.deployment.image, &context.programs);
    let id = match here(context)? {
        Some(id) => id,
        None => pulled(context, start_pulls(context))?,
    };
    let version = known_version(programs, image, &id);
    Ok(Image { name: image.clone(), id, version })
}

/// Returns the id of the image that the parameters name; `None` if this node lacks it.
fn here(context: &Context) -> Result<Option<String>, Error> {
    let image = &context.deployment.image;
    params::image_fits(image).map_err(|invalid| Error::Unusable(invalid.sentence))?;
    Ok(podman::image_id(&context.programs, image, Question::Podman)?)
}

/// Returns the time limit of a start's image pull: a short one if etcd can run from its last container's image, else the rest of the
/// start's time.
fn start_pulls(context: &Context) -> Duration {
    let left = context.deadline.left();
    let there = podman::inspect(&context.programs, &context.params.name).ok().flatten();
    if there.is_some_and(|container| may_be_the_last(context, &container)) { briefly(left) } else { left }
}

fn briefly(left: Duration) -> Duration {
    PULLS_BRIEFLY.min(left / 2)
}

fn pulled(context: &Context, within: Duration) -> Result<String, Error> {
    let (image, params, programs) = (&context.deployment.image, &context.params, &context.programs);
    if !params.allow_pull {
        return Err(Error::Unusable(format!("image {image} is not on this node: type 'podman pull {image}'")));
    }
    log::info!("image {image} is being pulled");
    podman::pull(programs, image, &params.authfile, within).map_err(|error| {
        // podman's own message is long, and Pacemaker cuts an exit reason after 127 characters.
        log::error!("image {image} cannot be pulled: {error}");
        Error::Unusable(format!("image {image} is not here and cannot be pulled: type 'podman pull {image}'"))
    })?;
    podman::image_id(programs, image, Question::Podman)?
        .ok_or_else(|| Error::Unusable(format!("image {image} was pulled and is not here")))
}

/// Returns the last container's image for a start that cannot get the image in the parameters. Returns the error `why` if that image cannot
/// be used.
pub(super) fn of_the_last(context: &Context, there: Option<&Inspected>, why: Error) -> Result<Image, Error> {
    let Some(container) = there.filter(|container| may_be_the_last(context, container)) else { return Err(why) };
    let (id, name) = (&container.image, &container.image_name);
    if podman::image_id(&context.programs, id, Question::Podman).ok().flatten().is_none() {
        return Err(why);
    }
    log::warn!("etcd starts from the image of its last container, {name}: {why}");
    let version = known_version(&context.programs, id, id);
    Ok(Image { name: name.clone(), id: id.clone(), version })
}

/// Returns whether etcd may run from the image of its last container. On OpenShift it may not, because the etcd operator's manifest
/// determines the image.
fn may_be_the_last(context: &Context, container: &Inspected) -> bool {
    let is_named = !container.image.is_empty() && !container.image_name.is_empty();
    is_named && context.deployment.manifest.is_none() && !container.state.was_never_started()
}

/// Prepares the image of the next start while etcd runs: pulls it in a part of this action's time, and reads the version of etcd in it. A
/// failure does not affect the running etcd. A monitor publishes that the image is missing.
pub(super) fn prepare(context: &Context) {
    let within = briefly(context.deadline.left());
    let image = &context.deployment.image;
    let id = here(context).and_then(|id| id.map_or_else(|| pulled(context, within), Ok));
    match id {
        Ok(id) => {
            known_version(&context.programs, image, &id);
        }
        Err(error) => log::warn!(
            "image {image} cannot be prepared for the next start, and the running etcd keeps its image: {error}"
        ),
    }
}

fn known_version(programs: &Programs, image: &str, id: &str) -> Version {
    if let Some(version) = image_versions::read(id) {
        return version;
    }
    let Some(version) = asked(programs, image) else { return ASSUMED };
    for defect in version::defects(version) {
        log::warn!("etcd {version} of {image}: {defect}");
    }
    if let Err(error) = image_versions::keep(id, version) {
        log::debug!("the version of etcd in {image} cannot be recorded: {error}");
    }
    version
}

fn asked(programs: &Programs, image: &str) -> Option<Version> {
    match podman::version_of(programs, image, "etcd") {
        Ok(printed) => Version::parse(&printed).or_else(|| {
            log::warn!("image {image} reports no version of etcd, and the agent assumes 3.{}", ASSUMED.minor);
            None
        }),
        Err(error) => {
            log::warn!("image {image} reports no version of etcd, and the agent assumes 3.{}: {error}", ASSUMED.minor);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    fn context(dir: &std::path::Path, more: &[(&str, &str)], script: &str) -> Context {
        let files = [("trusted_ca_file", "/c"), ("cert_file", "/c"), ("key_file", "/c"), ("image", "etcd:typo")];
        let mut context = Context::of_test(dir, &[&files[..], more].concat());
        context.programs = fake_program(dir, "podman", script);
        context
    }

    fn container(status: &str) -> Inspected {
        let state = format!(r#"{{"Running":false,"Status":"{status}","ExitCode":0}}"#);
        serde_json::from_str(&format!(r#"{{"id":"c1","state":{state},"image":"1","image_name":"etcd:old"}}"#)).unwrap()
    }

    const MISSING: &str = "case $5 in 1) echo 1;; *) echo 'Error: no such image' >&2; exit 125;; esac";

    /// Asserts that a killed etcd starts again from its last image if the parameters name an image that does not exist.
    #[test]
    fn an_image_that_cannot_be_had_is_replaced_by_that_of_the_last_container() {
        let dir = tempfile::tempdir().unwrap();
        let context = context(dir.path(), &[("allow_pull", "0")], MISSING);
        let why = || have(&context).unwrap_err();
        assert_eq!(why().to_string(), "image etcd:typo is not on this node: type 'podman pull etcd:typo'");
        let image = of_the_last(&context, Some(&container("exited")), why()).unwrap();
        assert_eq!((image.name.as_str(), image.id.as_str()), ("etcd:old", "1"));
        for there in [None, Some(container("created"))] {
            let refused = of_the_last(&context, there.as_ref(), why()).unwrap_err();
            assert_eq!(refused.to_string(), why().to_string(), "{there:?}");
        }
        let gone = Inspected { image: "2".to_owned(), ..container("exited") };
        assert!(of_the_last(&context, Some(&gone), why()).is_err(), "that image was removed");
    }

    /// Asserts that a start pulls an image only briefly while it has another one, because the peer of a killed member takes no writes
    /// meanwhile.
    #[test]
    fn a_start_pulls_for_long_only_where_there_is_no_other_image() {
        let pulls = |script: &str| {
            let dir = tempfile::tempdir().unwrap();
            let mut context = context(dir.path(), &[], script);
            context.deadline = crate::os::clock::Deadline::after(Duration::from_secs(600));
            start_pulls(&context)
        };
        let state = r#"{"Running":false,"Status":"exited","ExitCode":137}"#;
        let there = format!(r#"echo '{{"id":"c1","state":{state},"image":"1","image_name":"etcd:old"}}'"#);
        assert_eq!(pulls(&there), PULLS_BRIEFLY);
        assert!(pulls("echo 'Error: no such container etcd' >&2; exit 125") > Duration::from_secs(500));
    }

    #[test]
    fn what_is_no_image_is_not_given_to_podman() {
        let dir = tempfile::tempdir().unwrap();
        let asked = dir.path().join("asked");
        let script = format!("touch {}; exit 1", asked.display());
        let context = context(dir.path(), &[("image", "--help")], &script);
        assert!(have(&context).unwrap_err().to_string().starts_with("image=--help is no image"));
        assert!(!asked.exists());
    }

    /// Asserts that `reload-agent` pulls the image, and succeeds even if the pull fails. Pacemaker would restart etcd after a failed
    /// `reload-agent`.
    #[test]
    fn a_reload_pulls_and_a_pull_that_fails_fails_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let pulled = dir.path().join("pulled");
        let script = format!("[ $1 = pull ] && touch {}\n{MISSING}", pulled.display());
        prepare(&context(dir.path(), &[], &script));
        assert!(pulled.exists());
    }
}
