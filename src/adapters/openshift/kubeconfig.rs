//! Access to the Kubernetes API, from a kubeconfig file: the server, whom to trust, and who we are.

use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use saphyr::{ScalarStyle, Yaml, YamlLoader};
use saphyr_parser::Parser;
use serde::Deserialize;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::os::wiped;

/// Many times what a kubeconfig, a certificate or a key is.
const SIZE_LIMIT: u64 = 4 * 1024 * 1024;

/// The content of a PEM file.
pub type Pem = Zeroizing<Vec<u8>>;

/// What the current context of a kubeconfig file says. PEM texts; what is secret never shows, and is wiped when it is
/// dropped. What the YAML reader copies on its way is not ours to wipe.
pub struct Access {
    pub server: String,
    pub authorities: Option<Pem>,
    /// A client certificate and its key.
    pub identity: Option<(Pem, Pem)>,
    pub token: Option<Zeroizing<String>>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The file, as far as it is of use here. Programs that write one leave out or set to null what they have nothing for.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Config {
    current_context: Option<String>,
    contexts: Option<Vec<Named<Context>>>,
    clusters: Option<Vec<Named<Cluster>>>,
    users: Option<Vec<Named<User>>>,
}

/// An entry of one of the lists; each list has another word for the content.
#[derive(Deserialize)]
struct Named<T> {
    name: Option<String>,
    #[serde(alias = "context", alias = "cluster", alias = "user")]
    content: Option<T>,
}

#[derive(Deserialize)]
struct Context {
    cluster: Option<String>,
    user: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: Option<String>,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<Zeroizing<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct User {
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<Zeroizing<String>>,
    client_key: Option<PathBuf>,
    client_key_data: Option<Zeroizing<String>>,
    token: Option<Zeroizing<String>>,
}

/// Reads the file at `path`; answers in words what keeps it from being used.
pub fn read(path: &Path) -> Result<Access, String> {
    let bytes = wiped::read_at_most(path, SIZE_LIMIT).map_err(|error| format!("cannot be read ({})", error.kind()))?;
    let text =
        std::str::from_utf8(&bytes).map_err(|_| format!("cannot be read ({})", std::io::ErrorKind::InvalidData))?;
    let config = parse(text).ok_or("is not understood")?;
    let base = path.parent().unwrap_or(Path::new("/"));
    let context = named(config.contexts.as_deref(), config.current_context.as_deref()).ok_or("has no context")?;
    let cluster = named(config.clusters.as_deref(), context.cluster.as_deref()).ok_or("has no cluster")?;
    let user = named(config.users.as_deref(), context.user.as_deref()).ok_or("has no user")?;
    let server = cluster.server.as_deref().ok_or("names no server")?;
    let file = |name: &str, data: &Option<Zeroizing<String>>, path: &Option<PathBuf>| {
        content(name, data.as_deref().map(String::as_str), path.as_ref().map(|path| base.join(path)))
    };
    let certificate = file("client-certificate", &user.client_certificate_data, &user.client_certificate)?;
    let key = file("client-key", &user.client_key_data, &user.client_key)?;
    if user.token.is_none() && (certificate.is_none() || key.is_none()) {
        return Err("has neither a token nor a certificate in it (tokenFile and exec are not followed)".to_owned());
    }
    Ok(Access {
        server: server.trim_end_matches('/').to_owned(),
        authorities: file(
            "certificate-authority",
            &cluster.certificate_authority_data,
            &cluster.certificate_authority,
        )?,
        identity: certificate.zip(key),
        token: user.token.clone(),
    })
}

/// Reads YAML, of which JSON is a part. Why it cannot be read is not said: the reader's own errors may hold what they are
/// about, and that may be a key.
fn parse(text: &str) -> Option<Config> {
    let mut loader = YamlLoader::<Yaml<'_>>::default();
    // A token stays as it is written, also where it looks like a number.
    loader.early_parse(false);
    loader.allow_duplicate_keys(true);
    Parser::new_from_str(text).load(&mut loader, false).ok()?;
    let mut documents = loader.into_documents().into_iter();
    let config = serde_json::from_value(value(documents.next()?)?).ok();
    config.filter(|_| documents.next().is_none())
}

/// YAML as the JSON that it stands for: texts, lists, mappings and nothing. `None` where that is not all there is.
fn value(yaml: Yaml<'_>) -> Option<Value> {
    Some(match yaml {
        Yaml::Representation(text, ScalarStyle::Plain, None)
            if matches!(text.as_ref(), "" | "~" | "null" | "Null" | "NULL") =>
        {
            Value::Null
        }
        Yaml::Representation(text, ..) => Value::String(text.into_owned()),
        Yaml::Sequence(items) => Value::Array(items.into_iter().map(value).collect::<Option<_>>()?),
        Yaml::Mapping(entries) => {
            let entries = entries.into_iter().map(|(key, content)| match key {
                Yaml::Representation(key, ..) => Some((key.into_owned(), value(content)?)),
                _ => None,
            });
            Value::Object(entries.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// The entry of `list` that is called `name`, or the first one where no name is given.
fn named<'a, T>(list: Option<&'a [Named<T>]>, name: Option<&str>) -> Option<&'a T> {
    let called = |entry: &&Named<T>| name.is_none() || entry.name.as_deref() == name;
    list?.iter().find(called)?.content.as_ref()
}

/// A file's content, given in the configuration itself or by its path.
fn content(name: &str, data: Option<&str>, path: Option<PathBuf>) -> Result<Option<Pem>, String> {
    if let Some(data) = data {
        let decoded = base64::engine::general_purpose::STANDARD.decode(data.trim());
        return decoded
            .map(|content| Some(Zeroizing::new(content)))
            .map_err(|_| format!("has a {name}-data that is not base64"));
    }
    let Some(path) = path else { return Ok(None) };
    wiped::read_at_most(&path, SIZE_LIMIT)
        .map(Some)
        .map_err(|error| format!("names {}, which cannot be read ({})", path.display(), error.kind()))
}

/// One in `dir` for a test's own API.
#[cfg(test)]
pub(crate) fn for_server(dir: &tempfile::TempDir, server: &str) -> std::path::PathBuf {
    let path = dir.path().join("kubeconfig");
    let text = serde_json::json!({
        "clusters": [{ "name": "c", "cluster": { "server": server } }],
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
        "users": [{ "name": "u", "user": { "token": "t" } }],
    });
    std::fs::write(&path, text.to_string()).unwrap();
    path
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    /// The token of the first user.
    fn token(text: &str) -> Option<String> {
        Some(named(parse(text)?.users.as_deref(), None)?.token.as_deref()?.clone())
    }

    #[test]
    fn nested_lists_and_mappings() {
        let text = "# comment\napiVersion: v1\nusers:\n- name: 'a''b'\n  user:\n    token: \"x\\ty\"\n-\n  name: c\nempty: {}\nlist:\n  - 1\n  - two\nclusters:\n";
        let config = parse(text).unwrap();
        let names: Vec<_> = config.users.unwrap().into_iter().map(|user| (user.name, user.content.is_some())).collect();
        assert_eq!(names, [(Some("a'b".to_owned()), true), (Some("c".to_owned()), false)]);
        assert!(config.clusters.is_none() && config.contexts.is_none());
        assert_eq!(token(text).as_deref(), Some("x\ty"));
        for strange in ["users:\n\t- name: c", "just words", "users: c", "- users:", "users: [", "users: *x"] {
            assert!(parse(strange).is_none(), "{strange}");
        }
    }

    #[test]
    fn every_way_to_write_a_token() {
        for (text, expected) in [
            ("users:\n- user:\n    token: a b # comment", "a b"),
            ("users:\n  - user:\n      token: a#b", "a#b"),
            ("---\nusers: [{name: u, user: {token: 'a: b'}}]\n", "a: b"),
            ("users:\n- user:\n    token: |-\n      ab\n      cd\n", "ab\ncd"),
            ("users:\n- user:\n    token: >-\n      ab\n      cd\n", "ab cd"),
            ("users:\n- user: &x\n    token: 0x10", "0x10"),
            ("users:\n- user:\n    token: 1\n    token: yes", "yes"),
            ("{\"users\":\n\t[{\"user\": {\"token\": \"a\\/\\u0062\"}}]}", "a/b"),
        ] {
            assert_eq!(token(text).as_deref(), Some(expected), "{text}");
        }
        for nothing in ["users:\n- user:\n    token:", "users:\n- user:\n    token: null", "users: null", "users: []"] {
            assert_eq!(token(nothing), None, "{nothing}");
            assert!(parse(nothing).is_some(), "{nothing}");
        }
    }

    #[test]
    fn no_complaint_shows_a_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        for (from, to) in [
            ("client-key-data: S0VZ", "client-key-data: {S0VZ: }"),
            ("client-key-data: S0VZ", "client-key-data: [S0VZ"),
            ("client-key-data: S0VZ", "client-key-data: \"S0VZ"),
            ("client-key-data: S0VZ", "client-key-data: S0VZ!"),
            ("    client-key-data: S0VZ", "  client-key-data: *S0VZ"),
        ] {
            let text = TEXT.replace("    certificate-authority: ca.crt\n", "").replace(from, to);
            std::fs::write(&path, text).unwrap();
            let why = read(&path).unwrap_err();
            assert!(!why.contains("S0VZ"), "{why}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([ \\-a:'\"#\n{}\\[\\]|>&*!%é]{0,40})") {
            let _ = parse(&text);
            let _ = parse(&format!("users:{text}"));
        }
    }
}
