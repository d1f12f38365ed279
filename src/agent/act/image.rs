//! The image that etcd runs from: here or pulled, and which etcd it holds.

use std::collections::BTreeMap;
use std::path::Path;

use super::Error;
use crate::adapters::command::Programs;
use crate::adapters::etcd::version::{self, Version};
use crate::adapters::pace::Question;
use crate::adapters::podman;
use crate::agent::resource::context::Context;
use crate::base::Fact;
use crate::records::{decision_log, state_file};

/// What is assumed where an image does not tell: the release line that knows the fewest new names and is in support.
const ASSUMED: Version = Version { minor: 5, patch: u32::MAX };
/// What is known of images, by their ids.
const KNOWN: &str = "etcd-versions.json";

/// An image on this node.
pub(super) struct Image {
    pub id: String,
    pub version: Version,
}

/// The image, pulled where it is not here.
pub(super) fn have(context: &Context) -> Result<Image, Error> {
    let (image, programs) = (&context.deployment.image, &context.programs);
    let id = match podman::image_id(programs, image, Question::Podman)? {
        Some(id) => id,
        None => pulled(context)?,
    };
    let version = known_version(programs, image, &id);
    Ok(Image { id, version })
}

fn pulled(context: &Context) -> Result<String, Error> {
    let (image, params, programs) = (&context.deployment.image, &context.params, &context.programs);
    if !params.allow_pull {
        return Err(Error::Unusable(format!("image {image} is not on this node: type 'podman pull {image}'")));
    }
    log::info!("pulling {image}");
    podman::pull(programs, image, &params.authfile, context.deadline.left()).map_err(|error| {
        // podman's own words are long, and Pacemaker cuts an exit reason after 127 characters.
        log::error!("{error}");
        Error::Unusable(format!("image {image} is not here and cannot be pulled: type 'podman pull {image}'"))
    })?;
    podman::image_id(programs, image, Question::Podman)?
        .ok_or_else(|| Error::Unusable(format!("image {image} was pulled and is not here")))
}

/// An image never changes under its id: its etcd is asked once.
fn known_version(programs: &Programs, image: &str, id: &str) -> Version {
    let path = Path::new(decision_log::DIRECTORY).join(KNOWN);
    let mut known: BTreeMap<String, Version> = match state_file::read(&path) {
        Fact::Known(known) => known,
        Fact::Absent | Fact::Unknown(_) | Fact::NotAsked => BTreeMap::new(),
    };
    if let Some(version) = known.get(id) {
        return *version;
    }
    let Some(version) = asked(programs, image) else { return ASSUMED };
    for defect in version::defects(version) {
        log::warn!("etcd {version} of {image}: {defect}");
    }
    known.insert(id.to_owned(), version);
    if let Err(error) = state_file::write(&path, &known) {
        log::debug!("the version of etcd in {image} is not kept: {error}");
    }
    version
}

fn asked(programs: &Programs, image: &str) -> Option<Version> {
    match podman::version_of(programs, image, "etcd") {
        Ok(printed) => Version::parse(&printed).or_else(|| {
            log::warn!("{image} does not tell the version of its etcd: taking it for a 3.{}", ASSUMED.minor);
            None
        }),
        Err(error) => {
            log::warn!("{image} does not tell the version of its etcd ({error}): taking it for a 3.{}", ASSUMED.minor);
            None
        }
    }
}
