//! Removes secrets from texts that other programs wrote. It recognises secrets by their names and by their form.
//! Secrets of the CIB and of password files are removed wherever they appear.

use std::collections::BTreeSet;
use std::path::Path;

use roxmltree::Document;

use crate::adapters::pacemaker::primitive::is_secret;
use crate::os::regular_file;

/// The text that replaces a secret.
const REMOVED: &str = "(removed)";
/// Length in bytes from which a secret is removed wherever it occurs. A shorter secret is removed only where a name such as `password`
/// precedes it, because its letters also occur in other words.
const SHORTEST: usize = 4;

/// A filter that removes this cluster's secrets from texts.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    /// The secrets, longest first, because one secret may contain another.
    words: Vec<String>,
}

impl Redactor {
    /// Returns a filter for the secrets in the CIB, and in the password files that the CIB names. Looks for the CIB among `texts`. If no
    /// text is the CIB, the filter knows no secrets.
    pub(crate) fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut words = BTreeSet::new();
        for text in texts.filter(|text| text.trim_start().starts_with("<cib")) {
            if let Ok(document) = Document::parse(text) {
                document.descendants().filter_map(secrets_of).for_each(|found| words.extend(found));
            }
        }
        let escaped: Vec<String> = words.iter().flat_map(|word| spellings(word)).collect();
        words.extend(escaped);
        let mut words: Vec<String> = words.into_iter().filter(|word| word.len() >= SHORTEST).collect();
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        Self { words }
    }

    /// Returns `text` with each secret replaced by [`REMOVED`].
    pub(crate) fn clean(&self, text: &str) -> String {
        let text = without_private_keys(text);
        let lines: Vec<String> = text.split('\n').map(|line| named(&attributes(&users(line)))).collect();
        let mut clean = lines.join("\n");
        for word in &self.words {
            if clean.contains(word.as_str()) {
                clean = clean.replace(word.as_str(), REMOVED);
            }
        }
        clean
    }
}

/// Returns the secrets in an element of the CIB, and those in the password file that the element names; `None` if
/// there are none.
fn secrets_of(node: roxmltree::Node<'_, '_>) -> Option<Vec<String>> {
    let value = node.attribute("value")?;
    if node.has_tag_name("recipient") {
        // The path of a URL may be the permission to write there.
        let (_, rest) = value.split_once("://")?;
        let at = rest.find(['/', '?'])?;
        return Some(vec![rest[at..].to_owned()]).filter(|path| path[0].len() > SHORTEST);
    }
    let name = node.attribute("name")?.to_ascii_lowercase();
    if is_secret(&name) {
        return Some(vec![value.to_owned()]);
    }
    (name.contains("pass") && name.ends_with("file")).then(|| lines_of(Path::new(value)))
}

/// Reads the lines of a password file. Lines after the first two are no passwords, but are removed from texts too.
fn lines_of(path: &Path) -> Vec<String> {
    let text = regular_file::text_of_at_most(path, 64 * 1024).unwrap_or_default();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

/// Returns the escaped spellings of a secret in XML and in JSON.
fn spellings(word: &str) -> Vec<String> {
    let xml = word.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let json = serde_json::to_string(word).unwrap_or_default();
    vec![xml.replace('\'', "&apos;"), xml, json.trim_matches('"').to_owned()]
}

fn without_private_keys(text: &str) -> String {
    const BEGIN: &str = "-----BEGIN ";
    const KIND: &str = "PRIVATE KEY-----";
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(BEGIN) {
        let head = &rest[at + BEGIN.len()..];
        let is_key = head.find("-----").is_some_and(|end| head[..end].ends_with(KIND.trim_end_matches('-')));
        if !is_key {
            kept.push_str(&rest[..at + BEGIN.len()]);
            rest = head;
            continue;
        }
        kept.push_str(&rest[..at]);
        kept.push_str(REMOVED);
        // If the end of the key is missing, everything that follows may belong to it.
        rest = head.split_once("-----END ").and_then(|(_, end)| end.split_once(KIND)).map_or("", |(_, after)| after);
    }
    kept + rest
}

/// Removes the user and password from each URL in a line.
fn users(line: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        kept.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || "/?#\"'<>,".contains(c)).unwrap_or(after.len());
        match after[..end].rfind('@') {
            Some(user) => {
                kept.push_str(REMOVED);
                rest = &after[user..];
            }
            None => rest = after,
        }
    }
    kept + rest
}

/// Removes the `value` of each XML element with a `name` that denotes a secret.
fn attributes(line: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(begin) = rest.find('<') {
        let end = rest[begin..].find('>').map_or(rest.len(), |end| begin + end + 1);
        let tag = &rest[begin..end];
        kept.push_str(&rest[..begin]);
        match attribute(tag, "name").map(|(name, _)| is_secret(name)) {
            Some(true) => kept.push_str(&without_value(tag)),
            _ => kept.push_str(tag),
        }
        rest = &rest[end..];
    }
    kept + rest
}

/// Returns the value of an XML attribute, and the value's byte index in the tag; `None` if the tag lacks the
/// attribute.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<(&'a str, usize)> {
    ['"', '\''].iter().find_map(|quote| {
        let at = tag.find(&format!(" {name}={quote}"))? + name.len() + 3;
        let end = tag[at..].find(*quote)?;
        Some((&tag[at..at + end], at))
    })
}

fn without_value(tag: &str) -> String {
    match attribute(tag, "value") {
        Some((value, at)) => format!("{}{REMOVED}{}", &tag[..at], &tag[at + value.len()..]),
        None => tag.to_owned(),
    }
}

/// Removes the text after each name that denotes a secret: `password=x`, `"token": "x"`, `--password x`, `Authorization: Basic x`.
fn named(line: &str) -> String {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let (mut kept, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(begin) = rest.find(is_of_name) {
        let length = rest[begin..].find(|c| !is_of_name(c)).unwrap_or(rest.len() - begin);
        let (before, after) = rest.split_at(begin + length);
        let name = &before[begin..];
        kept.push_str(&before[..begin]);
        kept.push_str(if is_token(name) { REMOVED } else { name });
        rest = after;
        if let Some((at, value)) = value_of(name, after) {
            kept.push_str(&after[..at]);
            kept.push_str(REMOVED);
            rest = &after[at + value.len()..];
        }
    }
    kept + rest
}

/// Returns whether the word is a JSON Web Token.
fn is_token(word: &str) -> bool {
    word.len() > 40 && word.starts_with("eyJ") && word.contains('.')
}

/// Returns the value that follows the word `name`, and the value's byte index in `after`. Returns `None` if `name` does not denote a
/// secret, or has no value.
fn value_of<'a>(name: &str, after: &'a str) -> Option<(usize, &'a str)> {
    if !is_secret(name) {
        return None;
    }
    let closed = after.trim_start_matches(['"', '\'', '\\']);
    let separated = closed.trim_start();
    let opened = match separated.strip_prefix([':', '=']) {
        Some(opened) => opened.trim_start(),
        None if name.starts_with("--") => separated,
        None => return None,
    };
    let quote = opened.trim_start_matches('\\').chars().next().filter(|c| ['"', '\''].contains(c));
    let value = opened.trim_start_matches(['\\', '"', '\'']);
    let end = match quote {
        Some(quote) => end_of_quoted(value, quote),
        // `Basic x`: the value is the rest of the line.
        None if name.to_ascii_lowercase().contains("authorization") => value.len(),
        None => value.find(|c: char| c.is_whitespace() || ",;)}]\"'<&".contains(c)).unwrap_or(value.len()),
    };
    let value = &value[..end];
    // A truth value only shows whether a secret exists.
    if ["true", "false", "null"].contains(&value) {
        return None;
    }
    // Corosync's `token` is a time.
    let is_time = name.to_ascii_lowercase().contains("token") && value.chars().all(|c| c.is_ascii_digit());
    let at = value.as_ptr().addr() - after.as_ptr().addr();
    (!value.is_empty() && !is_time).then_some((at, value))
}

/// Returns the index of the quote that closes a quoted value. An escaped quote does not close it. If the whole text is escaped, the index
/// is too large rather than too small.
fn end_of_quoted(value: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in value.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            letter if letter == quote => return at,
            _ => {}
        }
    }
    value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> String {
        Redactor::default().clean(text)
    }

    #[test]
    fn a_secret_is_taken_out_under_each_name_and_in_each_form() {
        for (text, expected) in [
            (
                "<nvpair id=\"a\" name=\"password\" value=\"S3C\"/>",
                "<nvpair id=\"a\" name=\"password\" value=\"(removed)\"/>",
            ),
            ("<nvpair name='passwd' value='S3C' id='b'/>", "<nvpair name='passwd' value='(removed)' id='b'/>"),
            (
                "<nvpair value=\"S3C\" name=\"snmp_auth_password\"/>",
                "<nvpair value=\"(removed)\" name=\"snmp_auth_password\"/>",
            ),
            ("<nvpair name=\"password_file\" value=\"/etc/p\"/>", "<nvpair name=\"password_file\" value=\"/etc/p\"/>"),
            // Options of `fence_ipmilan` and `fence_apc_snmp`.
            ("<nvpair name='hexadecimal_kg' value='S3C'/>", "<nvpair name='hexadecimal_kg' value='(removed)'/>"),
            ("<nvpair name='community' value='S3C'/>", "<nvpair name='community' value='(removed)'/>"),
            ("{\"password\": \"S3\\\"C\", \"a\": 1}", "{\"password\": \"(removed)\", \"a\": 1}"),
            ("ETCD_ROOT_PASSWORD=S3C next", "ETCD_ROOT_PASSWORD=(removed) next"),
            ("\"Env\": [\"MY_TOKEN=S3C\"]", "\"Env\": [\"MY_TOKEN=(removed)\"]"),
            ("fence --password S3C --ip a", "fence --password (removed) --ip a"),
            ("X-Auth-Token: S3C", "X-Auth-Token: (removed)"),
            ("Authorization: Basic UzND S3C", "Authorization: (removed)"),
            ("  client-key-data: S3C==", "  client-key-data: (removed)"),
            ("GET https://admin:S3C@bmc/redfish", "GET https://(removed)@bmc/redfish"),
            ("\"Passwd\": true, \"token\": null", "\"Passwd\": true, \"token\": null"),
            ("token: 3000", "token: 3000"),
            ("token: S3C", "token: (removed)"),
            ("nothing here: all is well", "nothing here: all is well"),
        ] {
            assert_eq!(clean(text), expected);
        }
        let escaped = clean(r#"{"body":"{\"Password\":\"S3C\",\"UserName\":\"admin\"}"}"#);
        assert!(!escaped.contains("S3C"), "{escaped}");
        let token = format!("saw eyJ{}.S3C.x", "a".repeat(60));
        assert_eq!(clean(&token), "saw (removed)");
    }

    #[test]
    fn private_keys_are_taken_out_whole_and_certificates_stay() {
        let key = "a\n-----BEGIN EC PRIVATE KEY-----\nS3C\nS3C\n-----END EC PRIVATE KEY-----\nb";
        assert_eq!(clean(key), "a\n(removed)\nb");
        assert_eq!(clean(&key.replace('\n', "\\n")), "a\\n(removed)\\nb");
        assert_eq!(clean("-----BEGIN PRIVATE KEY-----\nS3C"), "(removed)");
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----";
        assert_eq!(clean(certificate), certificate);
    }

    #[test]
    fn what_the_cib_says_is_secret_is_taken_out_of_every_text() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("password");
        std::fs::write(&file, "from-the-file\n").unwrap();
        let cib = format!(
            "<cib><nvpair name=\"passwd\" value=\"a&amp;b&quot;cd\"/><nvpair name=\"password\" value=\"on\"/>\
             <nvpair name=\"password_file\" value=\"{}\"/><recipient id=\"r\" value=\"https://hooks.example.com/T0/S3C\"/></cib>",
            file.display()
        );
        let redactor = Redactor::new(std::iter::once(cib.as_str()));
        assert_eq!(redactor.clean("saw a&b\"cd, from-the-file and a\\&b"), "saw (removed), (removed) and a\\&b");
        assert_eq!(redactor.clean("\"a&b\\\"cd\""), "\"(removed)\"");
        assert_eq!(
            redactor.clean("POST https://hooks.example.com/T0/S3C on"),
            "POST https://hooks.example.com(removed) on"
        );
        let clean = redactor.clean(&cib);
        assert!(!clean.contains("S3C") && !clean.contains("b&quot;cd") && !clean.contains("value=\"on\""), "{clean}");
    }
}
