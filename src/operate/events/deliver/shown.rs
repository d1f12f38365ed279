//! The printable form of a recipient, and the errors of an unusable one.

/// The reason why a recipient's configured value is unusable.
#[derive(Debug, thiserror::Error)]
pub enum Unknown {
    #[error("recipient '{0}' is not known: give it as journal, file:/PATH or https://HOST/PATH")]
    Form(String),
    #[error("recipient '{0}' has a user in it: give a URL without 'USER:PASSWORD@'")]
    User(String),
    #[error("TLS cannot be set up for {0}: {1}")]
    Tls(String, String),
}

/// Returns a recipient in a printable form. A URL is shortened to its host, because its path may contain a secret that permits
/// posting there.
pub(super) fn shown(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| *scheme != "file") else {
        return text.to_owned();
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}")
}
