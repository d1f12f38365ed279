//! This node and its etcd resource, for the commands of an operator.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::adapters::command::Programs;
use crate::adapters::pace::Pace;
use crate::adapters::pacemaker::local_node;
use crate::adapters::pacemaker::resource::{Configured, configured};
use crate::adapters::pacemaker::{Error, configuration};
use crate::agent::observe;
use crate::agent::resource::context::Context;
use crate::agent::resource::deployment::{Deployment, Manifests};
use crate::agent::resource::params;
use crate::base::Fact;
use crate::decide::{Evidence, Request};
use crate::operate::failure::Failure;
use crate::os::clock::Deadline;
use crate::records::state_file;

/// Fails unless root runs the command, because only root may read and write the command's files.
pub fn must_be_root() -> Result<(), Failure> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    Err(Failure("this is for root: type the same behind 'sudo'".to_owned()))
}

/// Returns the error for a machine that belongs to no Pacemaker cluster.
pub fn no_cluster() -> Failure {
    Failure("this node belongs to no cluster: type 'tandem setup --example', which shows how to form one".to_owned())
}

/// Returns the error for a CIB that could not be read. It is the error of [`no_cluster`] if Pacemaker's folder
/// `on_disk` has no CIB either.
fn unanswered(error: Error, on_disk: &Path) -> Failure {
    let is_silent = matches!(error, Error::Disconnected { .. });
    if is_silent && configuration::on_disk(on_disk, None).is_absent() { no_cluster() } else { error.into() }
}

/// Returns every podman-etcd resource in the CIB.
fn configured_here() -> Result<Vec<Configured>, Failure> {
    configured(&Programs::default()).map_err(|error| unanswered(error, Path::new(configuration::ON_DISK)))
}

/// Longest time for which a command observes etcd and Pacemaker.
const BUDGET: Duration = Duration::from_secs(600);

/// Returns the parameters and the state of the etcd resource from which this node's agent would decide now.
pub fn context(resource: Option<&str>) -> Result<Context, Failure> {
    let programs = Programs::default();
    let env = choose(configured_here()?, resource)?.env();
    let deadline = Deadline::after(BUDGET);
    // The command waits as long as the agent does, and adds no measurement to the agent's file.
    let programs =
        programs.paced(Pace::read(&state_file::pace_path(&env.volatile_dir(), env.resource())).ending(deadline));
    Ok(Context::new(&env, params::parse(&env)?, &programs, deadline, Manifests::CurrentOrSaved)?)
}

/// Returns an error unless the agent accepts the values `settings` for parameters of the resource.
pub fn takes(resource: Option<&str>, settings: &[(String, String)]) -> Result<(), Failure> {
    let mut configured = choose(configured_here()?, resource)?;
    configured.parameters.retain(|(name, _)| settings.iter().all(|(other, _)| other != name));
    configured.parameters.extend_from_slice(settings);
    params::parse(&configured.env())?;
    Ok(())
}

/// Returns the data dir of the etcd resource on this node.
pub fn data_dir(programs: &Programs, resource: Option<&str>) -> Result<PathBuf, Failure> {
    let found = configured(programs).map_err(|error| unanswered(error, Path::new(configuration::ON_DISK)))?;
    let env = choose(found, resource)?.env();
    // A pod's manifest on this node may place the data dir elsewhere than the parameters do.
    let params = params::parse(&env)?;
    let deployment = Deployment::resolve(&params, &local_node(programs)?, Manifests::CurrentOrSaved)?;
    Ok(deployment.data_dir)
}

/// Reads the path of the kubeconfig for OpenShift's API from the resource's parameters. It does not query etcd.
pub fn kubeconfig(resource: Option<&str>) -> Result<PathBuf, Failure> {
    let env = choose(configured_here()?, resource)?.env();
    Ok(params::parse(&env)?.kubeconfig)
}

fn choose(mut found: Vec<Configured>, wanted: Option<&str>) -> Result<Configured, Failure> {
    let ids: Vec<String> = found.iter().map(|resource| resource.id.clone()).collect();
    let at = which(&ids, wanted)?;
    Ok(found.swap_remove(at))
}

/// Returns the index in `ids` of the resource `wanted`, or of the only one if none was typed.
pub fn which(ids: &[String], wanted: Option<&str>) -> Result<usize, Failure> {
    if let Some(wanted) = wanted {
        return ids.iter().position(|id| id == wanted).ok_or_else(|| {
            Failure(format!("no podman-etcd resource is called '{wanted}'; there are: {}", ids.join(", ")))
        });
    }
    match ids.len() {
        0 => Err(Failure("this cluster has no podman-etcd resource: see 'pcs resource create'".to_owned())),
        1 => Ok(0),
        _ => Err(Failure(format!("there are several resources: add --resource {}", ids.join(" or ")))),
    }
}

/// Observes all that the agent observes, and returns it with the action that Pacemaker would request first. That is a
/// monitor if a container may run, else a start. Before a start the agent publishes this node's record, so the returned
/// evidence has that record as published.
pub fn look(context: &Context) -> (Evidence, Request) {
    let mut evidence = observe::observe(context, context.container_lock.is_anothers());
    if evidence.container_may_run() {
        return (evidence, Request::Monitor);
    }
    let record = evidence.published_state();
    if let Fact::Known(cib) = &mut evidence.cib {
        cib.own_record = record;
    }
    (evidence, Request::Start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    fn configured(id: &str) -> Configured {
        Configured { id: id.to_owned(), parameters: Vec::new(), promotable: false }
    }

    /// Asserts that a machine that belongs to no cluster gets the error of [`no_cluster`], and a machine on which Pacemaker is stopped
    /// gets another error.
    #[test]
    fn a_machine_without_a_cluster_is_no_machine_whose_pacemaker_is_stopped() {
        let silent = || Error::Disconnected { tool: "cibadmin", complaint: "Init failed".to_owned() };
        let dir = tempfile::tempdir().unwrap();
        let cib = dir.path().join("cib.xml");
        assert_eq!(unanswered(silent(), &cib).0, no_cluster().0);
        let other = Error::Tool { tool: "cibadmin", code: 1, complaint: "no".to_owned() };
        assert_eq!(unanswered(other, &cib).0, "cibadmin failed (1): no");
        std::fs::write(&cib, "<cib/>").unwrap();
        assert!(unanswered(silent(), &cib).0.contains("pcs cluster start"));
    }

    #[test]
    fn one_resource_is_meant_and_of_several_one_is_named() {
        assert!(choose(vec![configured("a")], None).is_ok_and(|chosen| chosen.id == "a"));
        assert!(choose(vec![configured("a"), configured("b")], Some("b")).is_ok_and(|chosen| chosen.id == "b"));
        let several = choose(vec![configured("a"), configured("b")], None).unwrap_err().0;
        assert!(several.contains("--resource a or b"), "{several}");
        assert!(choose(vec![configured("a")], Some("c")).unwrap_err().0.contains("there are: a"));
        assert!(choose(Vec::new(), None).unwrap_err().0.contains("pcs resource create"));
    }

    #[test]
    fn the_data_dir_is_the_resources_own() {
        let dir = tempfile::tempdir().unwrap();
        let xml = "<resources><primitive class=\"ocf\" type=\"podman-etcd\" id=\"etcd\"><instance_attributes id=\"i\">\
             <nvpair id=\"n\" name=\"node_ip_map\" value=\"node1:10.0.0.1;node2:10.0.0.2\"/>\
             <nvpair id=\"m\" name=\"image\" value=\"etcd:1\"/><nvpair id=\"a\" name=\"trusted_ca_file\" value=\"/a\"/>\
             <nvpair id=\"b\" name=\"cert_file\" value=\"/b\"/><nvpair id=\"c\" name=\"key_file\" value=\"/c\"/>\
             <nvpair id=\"d\" name=\"data_dir\" value=\"/srv/etcd\"/></instance_attributes></primitive></resources>";
        fake_program(dir.path(), "crm_node", "echo node1");
        let programs = fake_program(dir.path(), "cibadmin", &format!("echo '{xml}'"));
        assert_eq!(data_dir(&programs, None).map_err(|failure| failure.0), Ok(PathBuf::from("/srv/etcd")));
    }
}
