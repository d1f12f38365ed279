//! `tandem certs issue`: a certificate for a client of etcd.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::admin::report::{Form, Report};
use crate::operate::certs::here;
use crate::operate::certs::pki::{self, Files};
use crate::operate::failure::Failure;
use crate::operate::health::words::rfc3339;
use crate::operate::node::must_be_root;
use crate::os::clock;
use crate::records::state_file;

const HELP: &str = "\
The command writes three files into DIR: NAME.crt, NAME.key (0600) and ca.crt. It creates DIR (0700) if DIR does not
exist. If etcd's auth is on, NAME is the user. It replaces no file: renew a certificate into another directory.

With --json: name, certificate, key and ca (paths of the files), and ends (when the certificate ends).";

/// Issues a certificate for a client of etcd
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    /// Name of the client; if etcd's auth is on, the name of its user
    #[arg(long)]
    name: String,
    /// Directory to write the files to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    pub form: Form,
}

/// The report of `tandem certs issue`: the files that were written.
#[derive(Debug, Serialize)]
pub(super) struct Issued {
    name: String,
    certificate: PathBuf,
    key: PathBuf,
    ca: PathBuf,
    ends: String,
}

impl Report for Issued {
    fn text(&self) -> String {
        let Self { name, certificate, key, ca, ends } = self;
        format!("{name}: {}, {} and {}, until {ends}", certificate.display(), key.display(), ca.display())
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Issued, Failure> {
    must_be_root()?;
    issue(&here::files(), &arguments.name, &arguments.out, clock::wall_seconds())
}

fn issue(own: &Files, name: &str, out: &Path, now: u64) -> Result<Issued, Failure> {
    if name.contains('/') || name.starts_with('.') {
        return Err(Failure(format!("'{name}' is no name for a file: give one without '/'")));
    }
    let pair = own.issuing()?.client(name, now)?;
    let bundle = own.need(pki::CA_CERT)?;
    let path = |file: &str| out.join(file);
    let (certificate, key, ca) = (path(&format!("{name}.crt")), path(&format!("{name}.key")), path(pki::CA_CERT));
    let has_the_ca = std::fs::read_to_string(&ca).is_ok_and(|text| text == **bundle);
    if let Some(there) =
        [&certificate, &key, &ca].into_iter().find(|file| file.exists() && !(**file == ca && has_the_ca))
    {
        return Err(Failure(format!("{} is there already: give another directory with --out", there.display())));
    }
    DirBuilder::new().recursive(true).mode(0o700).create(out)?;
    state_file::replace(&key, pair.key_pem.as_bytes(), 0o600)?;
    state_file::replace(&certificate, pair.certificate_pem.as_bytes(), 0o644)?;
    state_file::replace(&ca, bundle.as_bytes(), 0o644)?;
    let ends = rfc3339(pki::first(&pair.certificate_pem, name)?.ends);
    Ok(Issued { name: name.to_owned(), certificate, key, ca, ends })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::admin::report::golden;
    use crate::operate::certs::pki::Authority;

    const NOW: u64 = 1_795_400_000;

    #[test]
    fn a_client_gets_three_files_and_replaces_none() {
        let dir = tempfile::tempdir().unwrap();
        let (own, out) = (Files::at(dir.path().join("pki")), dir.path().join("out"));
        let authority = Authority::new("demo", NOW).unwrap();
        own.write(pki::CA_CERT, authority.certificate_pem()).unwrap();
        own.write(pki::CA_KEY, authority.key_pem()).unwrap();
        let issued = issue(&own, "backup", &out, NOW).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&out), mode(&issued.key)), (0o700, 0o600));
        assert!(issue(&own, "other", &out, NOW).is_ok(), "the same CA is no other file");
        let again = issue(&own, "backup", &out, NOW).unwrap_err().0;
        assert!(again.contains("backup.crt is there already"), "{again}");
        assert!(issue(&own, "../backup", &out, NOW).unwrap_err().0.contains("without '/'"));
        // A directory that exists keeps its mode.
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        issue(&own, "third", dir.path(), NOW).unwrap();
        assert_eq!(mode(dir.path()), 0o755);
        let root = PathBuf::from("/root/backup");
        let shown = Issued {
            certificate: root.join("backup.crt"),
            key: root.join("backup.key"),
            ca: root.join("ca.crt"),
            ..issued
        };
        golden::compare("certs-issue", &shown);
    }
}
