//! Observes the image that etcd runs from, and the one in the parameters. It queries podman only while this node has
//! not published that both are the same.

use crate::adapters::pace::Question;
use crate::adapters::podman::{self, Error};
use crate::agent::resource::context::Context;
use crate::agent::resource::params;
use crate::base::Fact;
use crate::decide::evidence::{Cib, Etcd, NextImage, RunningImage};
use crate::records::image_versions;

/// Returns the image from which etcd runs. Queries podman only in a monitor of an etcd with a leader, so that no recovery waits for the
/// answer.
pub(super) fn observe(context: &Context, own: &Fact<Etcd>, cib: &Fact<Cib>) -> Fact<RunningImage> {
    let has_a_leader = own.known().is_some_and(|etcd| etcd.leader.is_some());
    let Some(cib) = cib.known().filter(|_| context.is_monitor && has_a_leader) else { return Fact::NotAsked };
    let named = &context.deployment.image;
    if cib.own_image.as_ref().is_some_and(|running| running.is_settled(named)) {
        return Fact::NotAsked;
    }
    match ask(context) {
        Ok(Some(running)) => Fact::Known(running),
        Ok(None) => Fact::Absent,
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

fn ask(context: &Context) -> Result<Option<RunningImage>, Error> {
    let (programs, named) = (&context.programs, &context.deployment.image);
    let Some(container) = podman::inspect(programs, &context.params.name)? else { return Ok(None) };
    // podman reports no names if the container's storage is damaged.
    if container.image.is_empty() || container.image_name.is_empty() {
        return Ok(None);
    }
    let fits = params::image_fits(named).is_ok();
    let id = if fits { podman::image_id(programs, named, Question::Podman)? } else { None };
    let version = |id: &String| image_versions::read(id);
    if id.as_ref() == Some(&container.image) {
        let (version, id) = (version(&container.image), container.image);
        return Ok(Some(RunningImage { image: named.clone(), id, version, next: None }));
    }
    let next = NextImage { image: named.clone(), version: id.as_ref().and_then(version), id };
    let (version, id, image) = (version(&container.image), container.image, container.image_name);
    Ok(Some(RunningImage { image, id, version, next: Some(next) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    const NEW: &str = "etcd:new";

    /// Returns the result of [`ask`] for a container that was made from `etcd:old`. The parameters name the image `named`. `images` are the
    /// images that podman lists, each as `name=id`.
    fn ask_where(images: &str, named: &str) -> Option<RunningImage> {
        let dir = tempfile::tempdir().unwrap();
        let state = r#"{"Running":true,"Status":"running","ExitCode":0,"Pid":1}"#;
        let container = format!(r#"{{"id":"c1","state":{state},"image":"1","image_name":"etcd:old"}}"#);
        let script = format!(
            "if [ $1 = container ]; then echo '{container}'; exit; fi\n\
             for image in {images}; do [ \"$5\" = \"${{image%=*}}\" ] && echo ${{image#*=}} && exit; done\n\
             echo 'Error: no such image' >&2; exit 125"
        );
        let files = [("trusted_ca_file", "/c"), ("cert_file", "/c"), ("key_file", "/c"), ("image", named)];
        let mut context = Context::of_test(dir.path(), &files);
        context.programs = fake_program(dir.path(), "podman", &script);
        ask(&context).unwrap()
    }

    #[test]
    fn the_image_of_the_next_start_is_told_from_the_one_that_runs_by_its_id() {
        let running =
            |image: &str, next| RunningImage { image: image.to_owned(), id: "1".to_owned(), version: None, next };
        let next = |id: Option<&str>| NextImage { image: NEW.to_owned(), id: id.map(str::to_owned), version: None };
        assert_eq!(ask_where("etcd:old=1", "etcd:old"), Some(running("etcd:old", None)));
        assert_eq!(ask_where("etcd:old=1", NEW), Some(running("etcd:old", Some(next(None)))));
        assert_eq!(ask_where("etcd:new=2", NEW), Some(running("etcd:old", Some(next(Some("2"))))));
        assert_eq!(ask_where("etcd:new=1", NEW), Some(running(NEW, None)), "another name of the same image");
        let odd = ask_where("etcd:old=1", "--help").unwrap();
        assert_eq!(odd.next.unwrap().id, None, "podman is not asked about an option");
    }
}
