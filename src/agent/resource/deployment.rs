//! The deployment of etcd: image, certificates, data dir and settings, from the parameters or from a pod manifest.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::params::{self, Certificates, Invalid, Params, Source};
use crate::adapters::etcd::client::Credentials;
use crate::adapters::etcd::config::Pair;
use crate::adapters::etcd::settings::Setting;
use crate::adapters::openshift::manifest::{self, CLIENT_VARIABLES, Manifest};
use crate::os::beneath::Dir;
use crate::records::own_dir;

/// Default path of etcd's data dir.
const DATA_DIR: &str = "/var/lib/etcd";
/// File name for the copy of the pod manifest from which the container was made. It is next to etcd's configuration.
pub const SAVED_MANIFEST: &str = "pod.yaml";
/// Number of characters of a long path that a sentence shows, so that Pacemaker does not cut the sentence.
const LONGEST_PATH: usize = 48;

/// Image, paths, mounts and settings for etcd's container, from the parameters or OpenShift's pod manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    pub image: String,
    pub data_dir: PathBuf,
    /// Path of the CA's certificate inside the container.
    pub trusted_ca_file: PathBuf,
    /// Paths inside the container of etcd's server certificate and its key.
    pub server: Pair,
    /// Paths inside the container of etcd's peer certificate and its key.
    pub peer: Pair,
    /// Credentials with which the agent queries etcd as a client, as paths on this node.
    pub credentials: Credentials,
    /// Credentials that etcd members use among themselves, as paths on this node.
    pub peer_credentials: Credentials,
    /// Paths of all certificates and keys on this node, each with its kind.
    pub files: Vec<(&'static str, PathBuf)>,
    pub mounts: Vec<Mount>,
    /// Environment variables with which `etcdctl` in the container needs no options.
    pub environment: Vec<(String, String)>,
    /// Settings for etcd's configuration file. If a name occurs twice, the first one counts.
    pub settings: Vec<Setting>,
    /// OpenShift's pod manifest; `None` outside OpenShift.
    pub manifest: Option<Manifest>,
}

/// Directory of this node that is mounted in etcd's container.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mount {
    pub on_the_node: PathBuf,
    pub inside: PathBuf,
    pub read_only: bool,
}

/// Choice of the pod manifest that an action may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manifests {
    /// Only the configured manifest, because a container will be made from it.
    Current,
    /// The configured manifest or, if it is missing, the copy from which the container was made.
    CurrentOrSaved,
}

impl Deployment {
    /// Determines from `params` the image, paths, mounts and settings for etcd's container on the node `node`.
    pub fn resolve(params: &Params, node: &str, manifests: Manifests) -> Result<Self, Invalid> {
        match &params.source {
            Source::Parameters { image, certificates } => Ok(Self::from_parameters(params, image, certificates)),
            Source::Manifest { path, image } => {
                let read = Manifest::read(path, node);
                let read = match read {
                    Err(_) if manifests == Manifests::CurrentOrSaved => saved(params, node).or(read),
                    read => read,
                };
                let manifest = read.map_err(|error| unusable(path, &error))?;
                let deployment =
                    Self::from_manifest(params, image.as_deref(), manifest).map_err(|error| unusable(path, &error))?;
                params::settings_fit(params, &deployment.settings)?;
                Ok(deployment)
            }
        }
    }

    fn from_parameters(params: &Params, image: &str, certificates: &Certificates) -> Self {
        let Certificates { trusted_ca_file, server, peer, client } = certificates;
        let files = vec![
            ("trusted_ca_file", trusted_ca_file.clone()),
            ("cert_file", server.cert.clone()),
            ("key_file", server.key.clone()),
            ("peer_cert_file", peer.cert.clone()),
            ("peer_key_file", peer.key.clone()),
            ("client_cert_file", client.cert.clone()),
            ("client_key_file", client.key.clone()),
        ];
        let data_dir = params.data_dir.clone().unwrap_or_else(|| PathBuf::from(DATA_DIR));
        // The directories are mounted, and not the files: etcd reads a renewed file by its path at the next handshake.
        // A mount of the file would show it the old one for good. `validate` warns about other programs' secrets in
        // there.
        let directories: BTreeSet<&Path> = [trusted_ca_file, &server.cert, &server.key, &peer.cert, &peer.key]
            .into_iter()
            .filter_map(|file| file.parent())
            .collect();
        let mut mounts = vec![same_place(&data_dir, false)];
        mounts.extend(directories.into_iter().map(|directory| same_place(directory, true)));
        let mounts = with_configuration(mounts, params, &data_dir);
        Self {
            image: image.to_owned(),
            data_dir,
            trusted_ca_file: trusted_ca_file.clone(),
            server: server.clone(),
            peer: peer.clone(),
            credentials: credentials(trusted_ca_file, client),
            peer_credentials: credentials(trusted_ca_file, peer),
            files,
            mounts,
            environment: client_environment(trusted_ca_file, server),
            settings: params.etcd_settings.clone(),
            manifest: None,
        }
    }

    fn from_manifest(params: &Params, image: Option<&str>, manifest: Manifest) -> Result<Self, manifest::Error> {
        let image =
            image.map(str::to_owned).or_else(|| manifest.image.clone()).ok_or(manifest::Error::Missing("image"))?;
        let data_dir = manifest.variable("ETCD_DATA_DIR").unwrap_or(DATA_DIR);
        let data_dir = params.data_dir.clone().map_or_else(|| mountable("ETCD_DATA_DIR", Path::new(data_dir)), Ok)?;
        let certificates_here = mountable("hostPath", manifest.certificates_on_the_node())?;
        let [ca, cert, key] = CLIENT_VARIABLES.map(|name| manifest.variable(name).map(PathBuf::from));
        let (trusted_ca_file, peer) = (ca?, Pair { cert: cert?, key: key? });
        let (cert, key) = manifest.serving_pair()?;
        let server = Pair { cert, key };
        let on_the_node =
            |pair: &Pair| Pair { cert: manifest.on_the_node(&pair.cert), key: manifest.on_the_node(&pair.key) };
        let (ca_here, server_here, peer_here) =
            (manifest.on_the_node(&trusted_ca_file), on_the_node(&server), on_the_node(&peer));
        // The directory also contains the manifest: if the container could write it, the agent would execute it as
        // root.
        let certificates =
            Mount { on_the_node: certificates_here, inside: PathBuf::from(manifest::CERTS_INSIDE), read_only: true };
        let mut settings = params.etcd_settings.clone();
        settings.extend(manifest.settings());
        Ok(Self {
            image,
            credentials: credentials(&ca_here, &peer_here),
            peer_credentials: credentials(&ca_here, &peer_here),
            files: vec![
                ("CA", ca_here),
                ("certificate", server_here.cert),
                ("key", server_here.key),
                ("certificate", peer_here.cert),
                ("key", peer_here.key),
            ],
            mounts: with_configuration(vec![certificates, same_place(&data_dir, false)], params, &data_dir),
            data_dir,
            environment: client_environment(&trusted_ca_file, &peer),
            trusted_ca_file,
            server,
            peer,
            settings,
            manifest: Some(manifest),
        })
    }
}

/// Checks that a path in the pod manifest can be mounted. It must not contain a colon, because podman separates the parts of a mount by
/// colons.
fn mountable(name: &'static str, path: &Path) -> Result<PathBuf, manifest::Error> {
    let text = path.to_string_lossy();
    let is_one = path.is_absolute() && !text.contains([':', '\n', '\0']);
    is_one.then(|| path.to_owned()).ok_or(manifest::Error::NoPath(name))
}

/// Reads the copy of the pod manifest from which the container was made. Refuses a text that is no manifest, and quotes it in no message.
///
/// No link below the data dir may be followed, but only the manifest names the data dir. So only a link in the last part of the copy's path
/// is refused.
fn saved(params: &Params, node: &str) -> Result<Manifest, manifest::Error> {
    let text = Dir::open(&params.config_location)
        .and_then(|location| own_dir::text(&location, SAVED_MANIFEST, manifest::SIZE_LIMIT));
    Manifest::parse(&text.map_err(|error| manifest::Error::Unreadable(error.kind()))?, node)
}

fn credentials(trusted_ca_file: &Path, client: &Pair) -> Credentials {
    Credentials {
        trusted_ca_file: trusted_ca_file.to_owned(),
        cert_file: client.cert.clone(),
        key_file: client.key.clone(),
    }
}

fn same_place(directory: &Path, read_only: bool) -> Mount {
    Mount { on_the_node: directory.to_owned(), inside: directory.to_owned(), read_only }
}

/// Adds the directory of etcd's configuration to the mounts, unless another mount contains it. Mounts each of the agent's own directories
/// over itself, read-only, if the container may write to the directory around it.
fn with_configuration(mut mounts: Vec<Mount>, params: &Params, data_dir: &Path) -> Vec<Mount> {
    let location = &params.config_location;
    if !mounts.iter().any(|mount| location.starts_with(&mount.inside) && mount.inside == mount.on_the_node) {
        mounts.push(same_place(location, true));
    }
    let written: BTreeSet<&Path> =
        [data_dir, location.as_path()].into_iter().filter(|place| place.starts_with(data_dir)).collect();
    mounts.extend(written.into_iter().map(|directory| same_place(&directory.join(own_dir::NAME), true)));
    mounts
}

/// Returns the environment with which `etcdctl` in the container needs no options.
fn client_environment(trusted_ca_file: &Path, pair: &Pair) -> Vec<(String, String)> {
    let values = [trusted_ca_file, &pair.cert, &pair.key].map(|path| path.display().to_string());
    CLIENT_VARIABLES.map(str::to_owned).into_iter().zip(values).collect()
}

/// Returns the error for an unusable pod manifest. Pacemaker may try again, because an operator or OpenShift's etcd operator can repair the
/// manifest.
fn unusable(path: &Path, error: &manifest::Error) -> Invalid {
    let name = shortened(path);
    let remedy = if is_openshift(path) {
        "waiting for OpenShift's etcd operator to write it"
    } else {
        "no OpenShift? Give image and certificates"
    };
    Invalid::for_now(format!("pod manifest {name} {error}: {remedy}"))
}

/// Returns whether this node has OpenShift's files. If so, OpenShift may write the missing pod manifest later.
pub fn is_openshift(manifest: &Path) -> bool {
    // This is the directory right below `/etc`, or the top of another configured path.
    let top: PathBuf = manifest.components().take(3).collect();
    top.is_dir()
}

fn shortened(path: &Path) -> String {
    let whole = path.display().to_string();
    if whole.len() <= LONGEST_PATH {
        return whole;
    }
    let last: PathBuf = path.iter().skip(path.iter().count().saturating_sub(2)).collect();
    format!(".../{}", last.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_manifest_must_be_one_that_podman_mounts() {
        let checked = |path: &str| mountable("ETCD_DATA_DIR", Path::new(path));
        assert_eq!(checked("/var/lib/etcd"), Ok(PathBuf::from("/var/lib/etcd")));
        for wrong in ["", "var/lib/etcd", "/var/lib/etcd:/etc", "/var/lib/etcd\n/etc"] {
            assert_eq!(checked(wrong), Err(manifest::Error::NoPath("ETCD_DATA_DIR")), "{wrong:?}");
        }
    }
}
