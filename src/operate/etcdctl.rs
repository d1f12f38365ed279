//! Runs `etcdctl` against this node's etcd: in etcd's container if the image has it, else from a package of this node.

use std::ffi::OsString;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::adapters::command::Programs;
use crate::adapters::etcd::client::Credentials;
use crate::adapters::podman;
use crate::agent::resource::context::Context;
use crate::agent::resource::deployment::Deployment;
use crate::operate::certs::pki;
use crate::operate::failure::Failure;
use crate::operate::node;

const PROGRAM: &str = "etcdctl";
/// Name and value of the environment variable that selects etcd's API 3. etcdctl before 3.4 needs it, and later
/// versions default to it.
const API: (&str, &str) = ("ETCDCTL_API", "3");
const ENDPOINTS: &str = "ETCDCTL_ENDPOINTS";
/// Names of the environment variables for the paths of the CA, the client certificate and its key.
const FILES: [&str; 3] = ["ETCDCTL_CACERT", "ETCDCTL_CERT", "ETCDCTL_KEY"];
/// The environment variables of etcdctl, each with the option that sets the same. etcdctl refuses a call that has
/// both.
const OPTIONS: [(&str, &str); 4] =
    [(ENDPOINTS, "--endpoints"), (FILES[0], "--cacert"), (FILES[1], "--cert"), (FILES[2], "--key")];
/// Timeout of the connection that shows whether this node's etcd runs.
const PATIENCE: Duration = Duration::from_secs(1);

/// A program that is to replace this process, with its arguments and its environment.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    program: &'static str,
    args: Vec<OsString>,
    variables: Vec<(&'static str, String)>,
}

impl Call {
    /// Replaces this process by the program, and so returns only if that fails.
    pub fn become_it(&self) -> Failure {
        Programs::default().become_it(self.program, &self.args, &self.variables).into()
    }
}

/// Returns the etcdctl command with the arguments `typed`. It runs against this node's etcd, or against the peer's if
/// this node's does not run. `has_terminal` is true if standard input and output are a terminal.
pub fn call(resource: Option<&str>, typed: &[OsString], has_terminal: bool) -> Result<Call, Failure> {
    node::must_be_root()?;
    let context = node::context(resource)?;
    let (programs, credentials) = (&context.programs, credentials(context.credentials(), Path::new(pki::DIR)));
    if has_it(programs, &context.params.name) {
        let variables = in_container(&context, &credentials, typed);
        return Ok(exec(&context.params.name, &variables, typed, has_terminal));
    }
    if programs.find(PROGRAM).is_none() {
        return Err(Failure(
            "etcdctl is neither in etcd's container nor on this node: type 'apt-get install etcd-client' or 'dnf install /usr/bin/etcdctl'"
                .to_owned(),
        ));
    }
    let own = SocketAddr::new(context.own_ip, context.params.client_port);
    let runs_here = TcpStream::connect_timeout(&own, PATIENCE).is_ok();
    let peer = context.peer_endpoint.as_ref().filter(|_| !runs_here);
    let url = &peer.unwrap_or(&context.own_endpoint).url;
    let variables = variables(url, Some(files(&credentials)), typed);
    Ok(Call { program: PROGRAM, args: typed.to_vec(), variables })
}

/// Returns whether the container `name` runs and its image has etcdctl.
fn has_it(programs: &Programs, name: &str) -> bool {
    let runs = podman::inspect(programs, name).is_ok_and(|found| found.is_some_and(|found| found.alive().is_some()));
    runs && podman::exec(programs, name, &[PROGRAM.to_owned(), "version".to_owned()]).is_ok()
}

/// Returns the client certificate that Tandem's CA issued for etcd's user root, if the resource uses certificates of
/// that CA. Otherwise returns the resource's own certificate.
fn credentials(of_the_resource: &Credentials, pki: &Path) -> Credentials {
    let (cert_file, key_file) = (pki.join(pki::CLIENT_CERT), pki.join(pki::CLIENT_KEY));
    if of_the_resource.cert_file.starts_with(pki) && cert_file.is_file() && key_file.is_file() {
        return Credentials { cert_file, key_file, trusted_ca_file: of_the_resource.trusted_ca_file.clone() };
    }
    of_the_resource.clone()
}

fn files(credentials: &Credentials) -> [PathBuf; 3] {
    [&credentials.trusted_ca_file, &credentials.cert_file, &credentials.key_file].map(Clone::clone)
}

/// Returns the environment variables for etcdctl, except those that the operator set by an option.
fn variables(url: &str, files: Option<[PathBuf; 3]>, typed: &[OsString]) -> Vec<(&'static str, String)> {
    let files = files.into_iter().flatten().map(|file| file.display().to_string());
    let all = [(API.0, API.1.to_owned()), (ENDPOINTS, url.to_owned())].into_iter().chain(FILES.into_iter().zip(files));
    all.filter(|(name, _)| !is_typed(name, typed)).collect()
}

/// Returns whether the operator typed the etcdctl option that corresponds to the environment variable `name`.
fn is_typed(name: &str, typed: &[OsString]) -> bool {
    let Some((_, option)) = OPTIONS.iter().find(|(variable, _)| *variable == name) else { return false };
    let begins = format!("{option}=");
    typed.iter().any(|word| word == option || word.to_str().is_some_and(|word| word.starts_with(&begins)))
}

/// Returns the environment variables for etcdctl in etcd's container. Leaves out certificate paths that the container
/// does not see. In that case the container has certificate paths of its own.
fn in_container(context: &Context, credentials: &Credentials, typed: &[OsString]) -> Vec<(&'static str, String)> {
    let [ca, cert, key] = files(credentials).map(|file| inside(&context.deployment, &file));
    let files = ca.zip(cert).zip(key).map(|((ca, cert), key)| [ca, cert, key]);
    variables(&context.own_endpoint.url, files, typed)
}

/// Returns the path inside the container of this node's file `file`; `None` if no mount contains it.
fn inside(deployment: &Deployment, file: &Path) -> Option<PathBuf> {
    let seen = |mount: &crate::agent::resource::deployment::Mount| {
        Some(mount.inside.join(file.strip_prefix(&mount.on_the_node).ok()?))
    };
    deployment.mounts.iter().find_map(seen)
}

fn exec(name: &str, variables: &[(&'static str, String)], typed: &[OsString], has_terminal: bool) -> Call {
    let mut args: Vec<OsString> = vec!["exec".into(), "--interactive".into()];
    if has_terminal {
        args.push("--tty".into());
    }
    args.extend(variables.iter().map(|(name, value)| OsString::from(format!("--env={name}={value}"))));
    args.extend([OsString::from(name), PROGRAM.into()]);
    args.extend_from_slice(typed);
    Call { program: "podman", args, variables: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    fn names(variables: &[(&'static str, String)]) -> Vec<&'static str> {
        variables.iter().map(|(name, _)| *name).collect()
    }

    const PARAMETERS: [(&str, &str); 4] = [
        ("image", "etcd:test"),
        ("trusted_ca_file", "/etc/tls/ca.crt"),
        ("cert_file", "/etc/tls/etcd.crt"),
        ("key_file", "/etc/tls/etcd.key"),
    ];

    #[test]
    fn what_is_typed_is_passed_on_word_by_word_and_where_etcd_is_by_variables() {
        let dir = tempfile::tempdir().unwrap();
        let context = Context::of_test(dir.path(), &PARAMETERS);
        let typed = words(&["put", "--", "-key", "a b"]);
        let variables = in_container(&context, context.credentials(), &typed);
        assert_eq!(
            names(&variables),
            ["ETCDCTL_API", "ETCDCTL_ENDPOINTS", "ETCDCTL_CACERT", "ETCDCTL_CERT", "ETCDCTL_KEY"]
        );
        assert_eq!(variables[1].1, "https://192.0.2.1:2379");
        let call = exec("etcd", &variables, &typed, false);
        assert_eq!(call.args[..2], words(&["exec", "--interactive"]));
        assert_eq!(call.args[call.args.len() - 6..], words(&["etcd", "etcdctl", "put", "--", "-key", "a b"]));
        assert!(!call.args.contains(&"--tty".into()));
        assert!(exec("etcd", &[], &typed, true).args.contains(&"--tty".into()));
    }

    #[test]
    fn an_option_that_is_typed_takes_its_variables_place() {
        let url = "https://192.0.2.1:2379";
        for typed in [&["--endpoints", "https://192.0.2.9:1"][..], &["get", "--endpoints=https://192.0.2.9:1", "a"]] {
            assert_eq!(names(&variables(url, None, &words(typed))), ["ETCDCTL_API"], "{typed:?}");
        }
        assert_eq!(names(&variables(url, None, &words(&["get", "--endpoint"]))), ["ETCDCTL_API", ENDPOINTS]);
    }

    #[test]
    fn files_that_the_container_does_not_see_are_left_to_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let context = Context::of_test(dir.path(), &PARAMETERS);
        let elsewhere = Credentials { key_file: PathBuf::from("/root/own.key"), ..context.credentials().clone() };
        assert_eq!(names(&in_container(&context, &elsewhere, &[])), ["ETCDCTL_API", ENDPOINTS]);
    }

    #[test]
    fn tandems_own_ca_made_a_certificate_for_etcdctl() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let own = Credentials {
            trusted_ca_file: path(pki::CA_CERT),
            cert_file: path("etcd.crt"),
            key_file: path("etcd.key"),
        };
        assert_eq!(credentials(&own, dir.path()), own, "without one it is the resource's");
        for name in [pki::CLIENT_CERT, pki::CLIENT_KEY] {
            std::fs::write(path(name), "").unwrap();
        }
        assert_eq!(credentials(&own, dir.path()).cert_file, path(pki::CLIENT_CERT));
        assert_eq!(credentials(&own, Path::new("/etc/elsewhere")), own, "another CA knows no root of ours");
    }
}
