//! Access to the Kubernetes API from a kubeconfig file: the server, its authorities, and the credentials.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use saphyr::{ScalarStyle, Yaml, YamlLoader};
use saphyr_parser::Parser;
use serde::Deserialize;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::os::wiped;

/// The size in bytes of the largest file that is read. A kubeconfig, a certificate or a key is much smaller.
const SIZE_LIMIT: u64 = 4 * 1024 * 1024;

/// The contents of a PEM file, which are overwritten when they are dropped.
pub type Pem = Zeroizing<Vec<u8>>;

/// The server and the credentials that the current context of a kubeconfig file names. Secrets are never printed, and are overwritten when
/// they are dropped. The YAML parser's own copies of them are not overwritten.
pub struct Access {
    /// The path of the kubeconfig file, for error texts.
    pub file: String,
    pub server: String,
    pub authorities: Option<Pem>,
    /// The client certificate and its key; `None` if only a token is used.
    pub identity: Option<(Pem, Pem)>,
    pub token: Option<Zeroizing<String>>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The API server's address and the service account, as Kubernetes gives them to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    /// The value of `KUBERNETES_SERVICE_HOST`.
    pub(crate) host: String,
    /// The value of `KUBERNETES_SERVICE_PORT`.
    pub(crate) port: String,
    /// The directory of the service account, with the files `token` and `ca.crt`.
    pub(crate) account: PathBuf,
}

impl Pod {
    /// Reads the token and the authority that the service account has at this moment.
    pub(crate) fn access(&self) -> Result<Access, String> {
        let read = |name: &str| {
            let path = self.account.join(name);
            wiped::read_at_most(&path, SIZE_LIMIT)
                .map_err(|error| format!("{} cannot be read ({})", path.display(), error.kind()))
        };
        let token = read("token")?;
        let token = std::str::from_utf8(&token).map_err(|_| "the service account's token is no text".to_owned())?;
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        Ok(Access {
            file: self.account.display().to_string(),
            server: format!("https://{host}:{}", self.port),
            authorities: Some(read("ca.crt")?),
            identity: None,
            token: Some(Zeroizing::new(token.trim().to_owned())),
        })
    }
}

/// The fields of a kubeconfig file that this program uses. Each may be missing or null.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Config {
    current_context: Option<String>,
    contexts: Option<Vec<Named<Context>>>,
    clusters: Option<Vec<Named<Cluster>>>,
    users: Option<Vec<Named<User>>>,
}

/// An entry of the lists `contexts`, `clusters` or `users`. The key of its content is `context`, `cluster` or `user`.
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
    certificate_authority: Option<String>,
    certificate_authority_data: Option<Zeroizing<String>>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct User {
    client_certificate: Option<String>,
    client_certificate_data: Option<Zeroizing<String>>,
    client_key: Option<String>,
    client_key_data: Option<Zeroizing<String>>,
    token: Option<Zeroizing<String>>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// The settings in a kubeconfig's entry for a cluster with which the client would trust or reach another server. The client does not
/// support them.
const OF_A_CLUSTER: &[&str] = &["insecure-skip-tls-verify", "tls-server-name", "proxy-url"];
/// The settings in a kubeconfig's entry for a user with which the client would act as another user. The client does not support them.
const IN_ANOTHER_NAME: &[&str] = &["as", "as-uid", "as-groups", "as-user-extra"];

/// Reads the kubeconfig file at `path`. The error text describes why the file cannot be used.
///
/// Only the user of the current context counts, because another user's credentials may be for another cluster.
pub fn read(path: &Path) -> Result<Access, String> {
    let bytes = wiped::read_at_most(path, SIZE_LIMIT).map_err(|error| format!("cannot be read ({})", error.kind()))?;
    let text =
        std::str::from_utf8(&bytes).map_err(|_| format!("cannot be read ({})", std::io::ErrorKind::InvalidData))?;
    let config = parse(text).ok_or("is not understood")?;
    let base = path.parent().unwrap_or(Path::new("/"));
    let current = given(config.current_context.as_deref()).ok_or("has no context: current-context is not set")?;
    let context = named(config.contexts.as_deref(), current).ok_or_else(|| format!("has no context '{current}'"))?;
    let of_context = |what: &str| format!("names no {what} in its context '{current}'");
    let cluster = given(context.cluster.as_deref()).ok_or_else(|| of_context("cluster"))?;
    let user = given(context.user.as_deref()).ok_or_else(|| of_context("user"))?;
    let missing = |what: &str, name: &str| format!("has no {what} '{name}', which its context '{current}' names");
    let cluster = named(config.clusters.as_deref(), cluster).ok_or_else(|| missing("cluster", cluster))?;
    let user = named(config.users.as_deref(), user).ok_or_else(|| missing("user", user))?;
    not_followed(&cluster.others, OF_A_CLUSTER)?;
    not_followed(&user.others, IN_ANOTHER_NAME)?;
    let server = given(cluster.server.as_deref()).ok_or("names no server")?;
    let file = |name: &str, data: &Option<Zeroizing<String>>, path: &Option<String>| {
        let data = given(data.as_deref().map(String::as_str));
        content(name, data, given(path.as_deref()).map(|path| base.join(path)))
    };
    let certificate = file("client-certificate", &user.client_certificate_data, &user.client_certificate)?;
    let key = file("client-key", &user.client_key_data, &user.client_key)?;
    let token = user.token.clone().filter(|token| given(Some(token)).is_some());
    match (&certificate, &key) {
        (Some(_), None) => return Err("has a client-certificate without a client-key".to_owned()),
        (None, _) if token.is_none() => {
            return Err("has neither a token nor a certificate in it (tokenFile and exec are not followed)".to_owned());
        }
        _ => {}
    }
    Ok(Access {
        file: path.display().to_string(),
        server: server.trim_end_matches('/').to_owned(),
        authorities: file(
            "certificate-authority",
            &cluster.certificate_authority_data,
            &cluster.certificate_authority,
        )?,
        identity: certificate.zip(key),
        token,
    })
}

/// Returns `text`; `None` if it is missing or blank.
fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}

/// Returns an error if `others` enables a setting of `names`. This client does not support these settings. If it ignored one, it would
/// trust or reach another server than the file intends, or act as another user.
fn not_followed(others: &BTreeMap<String, Value>, names: &[&str]) -> Result<(), String> {
    let is_on = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !matches!(text.as_str(), "" | "false"),
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
        _ => true,
    };
    match names.iter().find(|name| others.get(**name).is_some_and(is_on)) {
        Some(name) => Err(format!("has {name}, which is not followed")),
        None => Ok(()),
    }
}

/// Parses a kubeconfig from YAML, which includes JSON; `None` if that fails. The reason is not returned, because the parser's errors may
/// quote a key.
fn parse(text: &str) -> Option<Config> {
    serde_json::from_value(yaml(text)?).ok()
}

/// Parses one document of YAML. Returns its texts, lists, mappings and nulls as JSON; `None` if it has anything else. A number
/// stays a text.
pub(crate) fn yaml(text: &str) -> Option<Value> {
    let mut loader = YamlLoader::<Yaml<'_>>::default();
    // A token stays as it is written, even if it looks like a number.
    loader.early_parse(false);
    loader.allow_duplicate_keys(true);
    Parser::new_from_str(text).load(&mut loader, false).ok()?;
    let mut documents = loader.into_documents().into_iter();
    let document = value(documents.next()?)?;
    documents.next().is_none().then_some(document)
}

/// Converts YAML to JSON. Returns `None` if the YAML has anything but texts, lists, mappings and nulls.
fn value(yaml: Yaml<'_>) -> Option<Value> {
    Some(match yaml {
        Yaml::Representation(text, ScalarStyle::Plain, None)
            if matches!(text.as_ref(), "" | "~" | "null" | "Null" | "NULL") =>
        {
            Value::Null
        }
        Yaml::Representation(text, _, Some(tag)) if tag.is_yaml_core_schema() && tag.suffix == "binary" => {
            Value::String(String::from_utf8(decoded(&text)?).ok()?)
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

/// Returns the content of the entry of `list` with the name `name`; `None` if there is none.
fn named<'a, T>(list: Option<&'a [Named<T>]>, name: &str) -> Option<&'a T> {
    list?.iter().find(|entry| entry.name.as_deref() == Some(name))?.content.as_ref()
}

/// Decodes base64 without its blanks and line ends; `None` if the rest is not base64.
fn decoded(data: &str) -> Option<Vec<u8>> {
    let mut plain = Zeroizing::new(String::with_capacity(data.len()));
    plain.extend(data.chars().filter(|character| !character.is_ascii_whitespace()));
    base64::engine::general_purpose::STANDARD.decode(plain.as_bytes()).ok()
}

/// Returns the contents of `data`, which is base64, or else of the file at `path`; `None` if both are missing. `name` is the
/// setting, for error texts.
fn content(name: &str, data: Option<&str>, path: Option<PathBuf>) -> Result<Option<Pem>, String> {
    if let Some(data) = data {
        let content = decoded(data).ok_or_else(|| format!("has a {name}-data that is not base64"))?;
        return Ok(Some(Zeroizing::new(content)));
    }
    let Some(path) = path else { return Ok(None) };
    wiped::read_at_most(&path, SIZE_LIMIT)
        .map(Some)
        .map_err(|error| format!("names {}, which cannot be read ({})", path.display(), error.kind()))
}

/// Writes a kubeconfig for a test's API at `server` to `dir`. Returns the file's path.
#[cfg(test)]
pub(crate) fn for_server(dir: &tempfile::TempDir, server: &str) -> std::path::PathBuf {
    let path = dir.path().join("kubeconfig");
    let text = serde_json::json!({
        "current-context": "x",
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

    /// Writes `text` to a kubeconfig file in a directory that also has a file `ca.crt`, and reads it.
    fn read_text(text: &str) -> Result<Access, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.crt"), "CA").unwrap();
        let path = dir.path().join("kubeconfig");
        std::fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn only_the_user_that_the_context_names_lends_its_credentials() {
        for (from, to, why) in [
            ("user: me\n", "# none\n", "names no user in its context 'loopback'"),
            ("user: me\n", "user: \"\"\n", "names no user in its context 'loopback'"),
            ("user: me\n", "user: ops/c\n", "has no user 'ops/c', which its context 'loopback' names"),
            ("cluster: loopback\n", "# none\n", "names no cluster in its context 'loopback'"),
            ("cluster: loopback\n", "cluster: c\n", "has no cluster 'c', which its context 'loopback' names"),
            ("current-context: loopback\n", "# none\n", "has no context: current-context is not set"),
            ("current-context: loopback\n", "current-context: \"\"\n", "has no context: current-context is not set"),
            ("current-context: loopback\n", "current-context: zz\n", "has no context 'zz'"),
        ] {
            assert!(TEXT.contains(from), "{from}");
            assert_eq!(read_text(&TEXT.replace(from, to)).unwrap_err(), why);
        }
    }

    #[test]
    fn an_empty_text_is_none() {
        let beside = TEXT
            .replace("    certificate-authority:", "    certificate-authority-data: \"\"\n    certificate-authority:");
        assert_eq!(read_text(&beside).unwrap().authorities.as_deref().map(Vec::as_slice), Some(b"CA".as_slice()));
        let token =
            |token: &str| TEXT.replace("    client-key-data", &format!("    token: {token}\n    client-key-data"));
        assert!(read_text(&token("\"\"")).unwrap().token.is_none());
        assert_eq!(read_text(&token("t")).unwrap().token.as_deref().map(String::as_str), Some("t"));
        let half = TEXT.replace("client-key-data: S0VZ", "client-key-data: \"\"");
        assert!(read_text(&half).unwrap_err().contains("a client-certificate without a client-key"));
        let nothing = TEXT.replace("client-certificate-data: Q0VSVA==", "client-certificate: \"\"");
        let nothing = nothing.replace("client-key-data: S0VZ", "token: \"\"");
        assert!(read_text(&nothing).unwrap_err().contains("neither a token nor a certificate"));
    }

    #[test]
    fn base64_may_have_blanks_and_line_ends() {
        for data in [
            "|\n      Q0VS\n      VA==\n",
            ">-\n      Q0VS\n      VA==\n",
            "\"Q0VS\n      VA==\"",
            "\" Q0VS\\tVA==\\r\\n\"",
            "!!binary |\n      UTBW\n      U1ZBPT0=\n",
        ] {
            let text = TEXT.replace("client-certificate-data: Q0VSVA==", &format!("client-certificate-data: {data}"));
            let access = read_text(&text).unwrap_or_else(|why| panic!("{data}: {why}"));
            assert_eq!(access.identity.unwrap().0.as_slice(), b"CERT", "{data}");
        }
        for text in [format!("\u{feff}{TEXT}"), TEXT.replace('\n', "\r\n")] {
            assert_eq!(read_text(&text).unwrap().server, "https://localhost:6443", "{text}");
        }
    }

    #[test]
    fn a_setting_that_is_not_followed_is_named() {
        let cluster = |line: &str| TEXT.replace("    server:", &format!("    {line}\n    server:"));
        let user = |line: &str| TEXT.replace("    client-key-data:", &format!("    {line}\n    client-key-data:"));
        for (text, name) in [
            (cluster("insecure-skip-tls-verify: true"), "insecure-skip-tls-verify"),
            (cluster("tls-server-name: api.cluster.example"), "tls-server-name"),
            (cluster("proxy-url: http://192.0.2.1:3128"), "proxy-url"),
            (user("as: admin"), "as"),
            (user("as-groups: [system:masters]"), "as-groups"),
        ] {
            assert_eq!(read_text(&text).unwrap_err(), format!("has {name}, which is not followed"));
        }
        for harmless in
            ["insecure-skip-tls-verify: false", "tls-server-name: \"\"", "disable-compression: true", "proxy-url:"]
        {
            assert!(read_text(&cluster(harmless)).is_ok(), "{harmless}");
        }
    }

    /// Returns the token of the first user in the kubeconfig `text`.
    fn token(text: &str) -> Option<String> {
        Some(parse(text)?.users?.first()?.content.as_ref()?.token.as_deref()?.clone())
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
