//! Access to the Kubernetes API, from a kubeconfig file: the server, whom to trust, and who we are.

use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde_json::Value;
use zeroize::Zeroizing;

use super::yaml;
use crate::wiped;

/// Many times what a kubeconfig, a certificate or a key is.
const SIZE_LIMIT: u64 = 4 * 1024 * 1024;

/// What the current context of a kubeconfig file says. PEM texts; what is secret never shows, and is wiped when it is dropped.
pub struct Access {
    pub server: String,
    pub authorities: Option<Zeroizing<Vec<u8>>>,
    /// A client certificate and its key.
    pub identity: Option<(Zeroizing<Vec<u8>>, Zeroizing<Vec<u8>>)>,
    pub token: Option<Zeroizing<String>>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Reads the file at `path`; answers in words what keeps it from being used.
pub fn read(path: &Path) -> Result<Access, String> {
    let bytes = wiped::read_at_most(path, SIZE_LIMIT).map_err(|error| format!("cannot be read ({})", error.kind()))?;
    let text =
        std::str::from_utf8(&bytes).map_err(|_| format!("cannot be read ({})", std::io::ErrorKind::InvalidData))?;
    let config = yaml::parse(text).ok_or("is not understood")?;
    let base = path.parent().unwrap_or(Path::new("/"));
    let current = config.get("current-context").and_then(Value::as_str);
    let context = named(&config, "contexts", "context", current).ok_or("has no context")?;
    let of = |name: &str| context.get(name).and_then(Value::as_str);
    let cluster = named(&config, "clusters", "cluster", of("cluster")).ok_or("has no cluster")?;
    let user = named(&config, "users", "user", of("user")).ok_or("has no user")?;
    let server = cluster.get("server").and_then(Value::as_str).ok_or("names no server")?;
    let certificate = content(user, "client-certificate", base)?;
    let key = content(user, "client-key", base)?;
    let token = user.get("token").and_then(Value::as_str).map(|token| Zeroizing::new(token.to_owned()));
    if token.is_none() && (certificate.is_none() || key.is_none()) {
        return Err("has neither a token nor a certificate in it (tokenFile and exec are not followed)".to_owned());
    }
    Ok(Access {
        server: server.trim_end_matches('/').to_owned(),
        authorities: content(cluster, "certificate-authority", base)?,
        identity: certificate.zip(key),
        token,
    })
}

/// The entry of `list` that is called `name`, or the only one.
fn named<'a>(config: &'a Value, list: &str, kind: &str, name: Option<&str>) -> Option<&'a Value> {
    let entries = config.get(list)?.as_array()?;
    let called = |entry: &&Value| name.is_none() || entry.get("name").and_then(Value::as_str) == name;
    entries.iter().find(called)?.get(kind)
}

/// A file's content, given in the configuration itself or by its path.
fn content(entry: &Value, name: &str, base: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, String> {
    if let Some(data) = entry.get(format!("{name}-data")).and_then(Value::as_str) {
        let decoded = base64::engine::general_purpose::STANDARD.decode(data.trim());
        return decoded
            .map(|content| Some(Zeroizing::new(content)))
            .map_err(|_| format!("has a {name}-data that is not base64"));
    }
    let Some(path) = entry.get(name).and_then(Value::as_str) else { return Ok(None) };
    let path: PathBuf = base.join(path);
    wiped::read_at_most(&path, SIZE_LIMIT)
        .map(Some)
        .map_err(|error| format!("names {}, which cannot be read ({})", path.display(), error.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority: ca.crt\n    server: https://localhost:6443\n  name: loopback\ncontexts:\n- context:\n    cluster: other\n    user: other\n  name: other\n- context:\n    cluster: loopback\n    user: me\n  name: loopback\ncurrent-context: loopback\nkind: Config\npreferences: {}\nusers:\n- name: me\n  user:\n    client-certificate-data: Q0VSVA==\n    client-key-data: S0VZ\n";

    #[test]
    fn the_current_context_counts_and_files_are_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("localhost.kubeconfig");
        std::fs::write(&path, TEXT).unwrap();
        assert!(read(&path).unwrap_err().contains("ca.crt, which cannot be read"));
        std::fs::write(dir.path().join("ca.crt"), "CA").unwrap();
        let access = read(&path).unwrap();
        assert_eq!(access.server, "https://localhost:6443");
        assert_eq!(access.authorities.as_deref().map(Vec::as_slice), Some(b"CA".as_slice()));
        let (certificate, key) = access.identity.as_ref().unwrap();
        assert_eq!((certificate.as_slice(), key.as_slice()), (b"CERT".as_slice(), b"KEY".as_slice()));
        assert!(!format!("{access:?}").contains("KEY"));
        let anonymous = TEXT.replace("client-certificate-data: Q0VSVA==", "tokenFile: /run/token");
        std::fs::write(&path, anonymous).unwrap();
        assert!(read(&path).unwrap_err().contains("tokenFile and exec are not followed"));
    }
}
