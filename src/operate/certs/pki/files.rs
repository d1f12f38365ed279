//! The files of the CA and of this node: each has mode 0600, in a directory that only root can enter. Each file is
//! replaced by one rename, so that a reader has the old one or the new one. Two files cannot change at once, so a
//! renewal keeps the key and replaces only the certificate.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::authority::new_key;
use super::{
    Authority, CA_CERT, CA_KEY, CLIENT_CERT, CLIENT_KEY, Certificate, ETCD_CERT, ETCD_KEY, NEXT_CERT, NEXT_KEY,
    Result as Made, authority, read_all,
};
use crate::os::{ofd_lock, wiped};
use crate::records::state_file;

/// Mode of certificate and key files: only the owner may read and write them.
const MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;
/// Largest size of a certificate or key file that is read, in bytes: many times the usual size.
const LIMIT: u64 = 4 * 1024 * 1024;
/// Name of the file that a program locks while it changes the certificate files.
const LOCK: &str = ".lock";

/// The reason why a certificate or key file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    #[error("cannot read {path}: {source}")]
    Read { path: String, source: io::Error },
    #[error("cannot write {path}: {source}")]
    Write { path: String, source: io::Error },
    #[error("another command changes {0} at this moment: type it again when that has ended")]
    Busy(String),
    #[error(transparent)]
    Made(#[from] super::Error),
}

/// One of the two certificates that Tandem's CA issues for a node: etcd's certificate, or etcdctl's client certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    Etcd,
    Client,
}

impl Leaf {
    pub fn cert(self) -> &'static str {
        match self {
            Self::Etcd => ETCD_CERT,
            Self::Client => CLIENT_CERT,
        }
    }

    pub fn key(self) -> &'static str {
        match self {
            Self::Etcd => ETCD_KEY,
            Self::Client => CLIENT_KEY,
        }
    }
}

/// The node for which a certificate is issued, with the names that the certificate contains.
#[derive(Clone, Debug)]
pub struct Holder {
    pub node: String,
    /// All addresses and DNS names at which clients reach the node, or from which the node connects to its peer.
    pub reached_at: Vec<String>,
}

/// The directory of the certificate and key files, usually [`super::DIR`].
#[derive(Clone, Debug)]
pub struct Files {
    dir: PathBuf,
}

/// An exclusive lock on the certificate files. While this value exists, no other Tandem command changes the files.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "it ends with the file")] fs::File);

impl Files {
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Returns whether this node has the certificate and the key of Tandem's CA.
    pub fn has_authority(&self) -> bool {
        self.has(CA_CERT) && self.has(CA_KEY)
    }

    /// Takes the exclusive lock on the certificate files. Fails if another program has it.
    pub fn lock(&self) -> Result<Lock, Failed> {
        let path = self.path(LOCK);
        self.make_dir()?;
        let open = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(MODE).open(&path);
        let failed = |source| Failed::Write { path: path.display().to_string(), source };
        let file = open.map_err(failed)?;
        if ofd_lock::try_take(&file).map_err(failed)? {
            return Ok(Lock(file));
        }
        Err(Failed::Busy(self.dir.display().to_string()))
    }

    /// Creates the directory of the certificate files, and lets only its owner enter it.
    pub fn make_dir(&self) -> Result<(), Failed> {
        let made = DirBuilder::new().recursive(true).mode(DIR_MODE).create(&self.dir);
        let closed = made.and_then(|()| fs::set_permissions(&self.dir, fs::Permissions::from_mode(DIR_MODE)));
        closed.map_err(|source| Failed::Write { path: self.dir.display().to_string(), source })
    }

    /// Reads the file `name` in a buffer that is wiped from memory after use. Returns `None` if the file does not
    /// exist.
    pub fn read(&self, name: &str) -> Result<Option<Zeroizing<String>>, Failed> {
        let path = self.path(name);
        let failed = |source| Failed::Read { path: path.display().to_string(), source };
        match wiped::read_at_most(&path, LIMIT) {
            Ok(bytes) => {
                let text = std::str::from_utf8(&bytes).map_err(|_| failed(ErrorKind::InvalidData.into()))?;
                Ok(Some(Zeroizing::new(text.to_owned())))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Reads the file `name` as [`Self::read`] does. Fails if the file does not exist.
    pub fn need(&self, name: &str) -> Result<Zeroizing<String>, Failed> {
        let missing =
            || Failed::Read { path: self.path(name).display().to_string(), source: ErrorKind::NotFound.into() };
        self.read(name)?.ok_or_else(missing)
    }

    /// Replaces the file `name` by one rename, and syncs it.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Failed> {
        self.make_dir()?;
        let path = self.path(name);
        state_file::replace(&path, text.as_bytes(), MODE)
            .map_err(|source| Failed::Write { path: path.display().to_string(), source })
    }

    /// Removes the file `name` if it exists.
    pub fn remove(&self, name: &str) -> Result<(), Failed> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(Failed::Write { path: path.display().to_string(), source })
            }
            _ => Ok(()),
        }
    }

    /// Parses the certificates in the file `name`. Returns an empty list if the file does not exist.
    pub fn certificates(&self, name: &str) -> Result<Vec<Certificate>, Failed> {
        let Some(text) = self.read(name)? else { return Ok(Vec::new()) };
        Ok(read_all(&text, &self.path(name).display().to_string())?)
    }

    /// Parses the certificates of the CAs that etcd on this node trusts, from `ca.crt`.
    pub fn bundle(&self) -> Result<Vec<Certificate>, Failed> {
        self.certificates(CA_CERT)
    }

    /// Parses the certificate of `leaf`. Returns `None` if its file does not exist.
    pub fn leaf(&self, leaf: Leaf) -> Result<Option<Certificate>, Failed> {
        Ok(self.certificates(leaf.cert())?.into_iter().next())
    }

    /// Returns whether the certificate and the key of `leaf` exist and belong together.
    pub fn fits(&self, leaf: Leaf) -> Result<bool, Failed> {
        let (Some(certificate), Some(key)) = (self.leaf(leaf)?, self.read(leaf.key())?) else { return Ok(false) };
        Ok(authority::public_key(&key).is_ok_and(|public_key| public_key == certificate.public_key))
    }

    /// Loads the CA in use, from `ca.crt` and `ca.key`.
    pub fn authority(&self) -> Result<Authority, Failed> {
        Ok(Authority::load(&self.need(CA_CERT)?, &self.need(CA_KEY)?)?)
    }

    /// Loads the new CA of a CA rotation; `None` if no rotation is in progress. Its key is in `next.key`, or in `ca.key` at the end
    /// of the rotation.
    pub fn next(&self) -> Result<Option<Authority>, Failed> {
        let Some(certificate) = self.read(NEXT_CERT)? else { return Ok(None) };
        let from =
            |key: &str| -> Result<Made<Authority>, Failed> { Ok(Authority::load(&certificate, &self.need(key)?)) };
        if self.has(NEXT_KEY)
            && let Ok(authority) = from(NEXT_KEY)?
        {
            return Ok(Some(authority));
        }
        Ok(Some(from(CA_KEY)??))
    }

    /// Returns the CA that issues this node's next certificate: the issuer of etcd's present certificate. The other node already
    /// trusts this CA.
    pub fn issuing(&self) -> Result<Authority, Failed> {
        let shown = self.leaf(Leaf::Etcd)?.map(|leaf| leaf.issuer_der);
        let next = self.next()?.filter(|next| Some(&next.certificate().subject_der) == shown.as_ref());
        next.map_or_else(|| self.authority(), Ok)
    }

    /// Replaces the certificate of `leaf` with one from `authority`. Keeps a usable key, so that only one file is
    /// replaced.
    pub fn renew(&self, leaf: Leaf, authority: &Authority, holder: &Holder, now: u64) -> Result<(), Failed> {
        let there = self.read(leaf.key())?.filter(|key| authority::public_key(key).is_ok());
        let Some(key) = there else { return self.renew_with_new_key(leaf, authority, holder, now) };
        self.write(leaf.cert(), &certificate(leaf, authority, holder, &key, now)?)
    }

    /// Replaces the certificate and the key of `leaf`. A handshake between the two renames fails, because at that moment certificate and
    /// key do not belong together. If the command is interrupted at that moment, the next renewal issues a certificate for the key on
    /// disk.
    pub fn renew_with_new_key(
        &self,
        leaf: Leaf,
        authority: &Authority,
        holder: &Holder,
        now: u64,
    ) -> Result<(), Failed> {
        let key = new_key()?;
        let certificate = certificate(leaf, authority, holder, &key, now)?;
        // Everything slow precedes the first rename.
        let asides = [(leaf.key(), key.as_str()), (leaf.cert(), &certificate)]
            .map(|(name, text)| self.aside(name, text).map(|aside| (aside, name)));
        let [key, certificate] = asides;
        for (aside, name) in [key?, certificate?] {
            let path = self.path(name);
            fs::rename(aside, &path).map_err(|source| Failed::Write { path: path.display().to_string(), source })?;
        }
        let synced = fs::File::open(&self.dir).and_then(|dir| dir.sync_all());
        synced.map_err(|source| Failed::Write { path: self.dir.display().to_string(), source })
    }

    /// Writes the new content of the file `name` to a temporary file next to it, and syncs that. Returns its path.
    fn aside(&self, name: &str, text: &str) -> Result<PathBuf, Failed> {
        self.make_dir()?;
        let path = self.path(&format!(".{name}.new"));
        let _ = fs::remove_file(&path);
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(MODE).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
        written.map_err(|source| Failed::Write { path: path.display().to_string(), source })?;
        Ok(path)
    }
}

fn certificate(leaf: Leaf, authority: &Authority, holder: &Holder, key: &str, now: u64) -> Made<String> {
    match leaf {
        Leaf::Etcd => authority.node_with_key(&holder.node, &holder.reached_at, key, now),
        Leaf::Client => authority.client_with_key(super::CLIENT, key, now),
    }
}
