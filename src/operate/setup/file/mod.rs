//! Parses the file that describes a cluster: TOML, with the line and column of every fault and what to write instead.
//! Pure.

mod bmc;
mod checks;
mod nearest;
mod node;
mod reader;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeTable;

use self::reader::{Reader, Section};
use super::description::{self, Certificates, Clone, Description, Etcd, Node};
use crate::adapters::etcd::settings;
use crate::agent::resource::params;
use crate::base::duration;

/// Default path of the file that describes the cluster.
pub const PATH: &str = "/etc/tandem/cluster.toml";
/// An example of the file that describes the cluster, which explains every setting.
pub const EXAMPLE: &str = include_str!("example.toml");
/// Largest size of the file that describes the cluster, in bytes.
pub const LIMIT: u64 = 256 * 1024;

const DATA_DIR: &str = "/var/lib/etcd";
/// Default of Corosync's token timeout, equal to that of pcs.
const TOKEN: Duration = Duration::from_secs(3);

/// A fault at a place of the description file. `line` and `column` count from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    pub line: usize,
    pub column: usize,
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.text)
    }
}

/// Parses the file that describes the cluster. The error has all faults in the order of their lines.
pub fn read(text: &str) -> Result<Description, Vec<Fault>> {
    let mut reader = Reader::new(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        reader.fault(error.span().unwrap_or(0..0), format!("this is no TOML: {}", error.message()));
    }
    // A parser that continues after a syntax error may misread the rest, so its table is not checked.
    if reader.is_faulty() {
        return Err(reader.into_faults());
    }
    let description = whole(&mut reader, &Section::new("", table.span(), table.get_ref()));
    match description {
        Some(description) if !reader.is_faulty() => Ok(description),
        _ => Err(reader.into_faults()),
    }
}

const TOP: &[&str] = &[
    "cluster",
    "preferred",
    "primary",
    "split",
    "fencing_delay",
    "lone_boot",
    "token",
    "clone",
    "node",
    "etcd",
    "certificates",
    "names",
];

fn whole(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Option<Description> {
    reader.known(top, TOP);
    let cluster = reader.text(top, "cluster").and_then(|name| checks::cluster_name(reader, name));
    let names = node::names(reader, top);
    let nodes = node::both(reader, top, names.as_deref().unwrap_or_default());
    let primary = primary(reader, top, nodes.as_ref());
    let preferred = preferred(reader, top, nodes.as_ref(), primary.as_ref().and_then(Option::as_deref));
    let race = race(reader, top);
    let fencing_delay = fencing_delay(reader, top);
    let lone_boot = lone_boot(reader, top);
    let token = token(reader, top);
    let clone = clone(reader, top);
    let etcd = reader.table(top, "etcd").and_then(|section| etcd(reader, &section));
    let certificates = certificates(reader, top);
    Some(Description {
        cluster: cluster?,
        nodes: names.and(nodes)?,
        preferred: preferred?,
        primary: primary?,
        fencing_delay: fencing_delay?,
        race: race?,
        lone_boot: lone_boot?,
        token: token?,
        clone: clone?,
        etcd: etcd?,
        certificates: certificates?,
    })
}

/// Reads the setting `preferred`, the node that wins a split. The default is the primary, or else the first node by name.
fn preferred(
    reader: &mut Reader<'_>,
    top: &Section<'_, '_>,
    nodes: Option<&[Node; 2]>,
    primary: Option<&str>,
) -> Option<String> {
    let (name, at) = match (reader.text_if_any(top, "preferred")?, primary) {
        (Some(given), _) => given,
        (None, Some(primary)) => return Some(primary.to_owned()),
        (None, None) => return nodes.and_then(|nodes| nodes.iter().map(|node| node.name.clone()).min()),
    };
    let name = one_of_both(reader, "preferred", (name, at.clone()), nodes)?;
    match primary {
        Some(primary) if primary != name => {
            let text = format!(
                "preferred = \"{name}\" is not primary = \"{primary}\": the node that is to lead is the one that is to win a split; write \"{primary}\", or leave it out"
            );
            reader.fault(at, text);
            None
        }
        _ => Some(name),
    }
}

#[expect(clippy::option_option, reason = "wrong, not there, there")]
fn primary(reader: &mut Reader<'_>, top: &Section<'_, '_>, nodes: Option<&[Node; 2]>) -> Option<Option<String>> {
    match reader.text_if_any(top, "primary")? {
        None => Some(None),
        Some(given) => one_of_both(reader, "primary", given, nodes).map(Some),
    }
}

fn one_of_both(
    reader: &mut Reader<'_>,
    key: &str,
    (name, at): (String, Range<usize>),
    nodes: Option<&[Node; 2]>,
) -> Option<String> {
    let names = nodes?.each_ref().map(|node| node.name.as_str());
    if names.contains(&name.as_str()) {
        return Some(name);
    }
    reader.fault(at, format!("{key} = \"{name}\" is none of the nodes: write \"{}\" or \"{}\"", names[0], names[1]));
    None
}

fn race(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Option<bool> {
    match reader.text_if_any(top, "split")? {
        None => Some(false),
        Some((word, _)) if word == "delay" => Some(false),
        Some((word, _)) if word == "race" => Some(true),
        Some((word, at)) => {
            reader.fault(at, format!("split = \"{word}\" is not known: write \"delay\" or \"race\""));
            None
        }
    }
}

fn fencing_delay(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Option<Duration> {
    const SHORTEST: Duration = Duration::from_secs(5);
    const LONGEST: Duration = Duration::from_secs(60);
    let Some((text, at)) = reader.text_if_any(top, "fencing_delay")? else { return Some(description::fencing_delay()) };
    let delay = duration(&text).ok().filter(|delay| delay.subsec_nanos() == 0);
    let delay = delay.filter(|delay| (SHORTEST..=LONGEST).contains(delay));
    if delay.is_none() {
        reader.fault(
            at,
            format!("fencing_delay = \"{text}\" is no time of whole seconds from 5s to 60s: write one such as \"10s\""),
        );
    }
    delay
}

fn lone_boot(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Option<bool> {
    match reader.text_if_any(top, "lone_boot")? {
        None => Some(false),
        Some((word, _)) if word == params::NEVER => Some(false),
        Some((word, _)) if word == params::SOLE_VOTER => Some(true),
        Some((word, at)) => {
            reader.fault(at, format!("lone_boot = \"{word}\" is not known: write \"never\" or \"sole_voter\""));
            None
        }
    }
}

fn token(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Option<Duration> {
    const SHORTEST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);
    let Some((text, at)) = reader.text_if_any(top, "token")? else { return Some(TOKEN) };
    let token = duration(&text).ok().filter(|token| token.subsec_nanos() % 1_000_000 == 0);
    let token = token.filter(|token| (SHORTEST..=LONGEST).contains(token));
    if token.is_none() {
        reader
            .fault(at, format!("token = \"{text}\" is no time from 1s to 60s: write one such as \"3s\" or \"1500ms\""));
    }
    token
}

fn clone(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Option<Clone> {
    match reader.text_if_any(top, "clone")? {
        None => Some(Clone::Promotable),
        Some((word, _)) if word == "promotable" => Some(Clone::Promotable),
        Some((word, _)) if word == "plain" => Some(Clone::Plain),
        Some((word, at)) => {
            reader.fault(at, format!("clone = \"{word}\" is not known: write \"promotable\" or \"plain\""));
            None
        }
    }
}

fn etcd(reader: &mut Reader<'_>, section: &Section<'_, '_>) -> Option<Etcd> {
    reader.known(section, &["image", "data_dir", "settings"]);
    let image = reader.text(section, "image").and_then(|(image, at)| {
        let is_one = !image.is_empty() && !image.starts_with('-') && !image.contains(char::is_whitespace);
        if !is_one {
            reader.fault(
                at,
                "image is no name that podman could pull: write one such as \"registry.example.com/etcd:v3.5\""
                    .to_owned(),
            );
        }
        is_one.then_some(image)
    });
    let data_dir = match reader.text_if_any(section, "data_dir") {
        Some(Some(given)) => checks::path(reader, "data_dir", given),
        Some(None) => Some(PathBuf::from(DATA_DIR)),
        None => None,
    };
    let settings = match reader.table_if_any(section, "settings") {
        Some(Some(settings)) => settings_of(reader, &settings),
        Some(None) => Some(Vec::new()),
        None => None,
    };
    Some(Etcd { image: image?, data_dir: data_dir?, settings: settings? })
}

fn settings_of(reader: &mut Reader<'_>, section: &Section<'_, '_>) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    let (mut parsed, mut is_whole) = (Vec::new(), true);
    for (name, value, at) in reader.scalars(section) {
        match settings::setting(&name, &value) {
            Ok(setting) if !value.contains(';') => {
                parsed.push(setting);
                found.push((name, value));
                continue;
            }
            Ok(_) => reader.fault(at, format!("{name} cannot have a ';' in it here: leave it out")),
            Err(error) if settings::names().any(|known| known == name) || settings::is_ours(&name) => {
                reader.fault(at, format!("{error}: write another value, or leave it out"));
            }
            Err(_) => {
                let near = nearest::of(&name, settings::names());
                let instead =
                    near.map_or_else(|| "leave it out".to_owned(), |near| format!("write {near}, or leave it out"));
                reader.fault(at, format!("etcd has no setting '{name}': {instead}"));
            }
        }
        is_whole = false;
    }
    if is_whole && let Err(error) = settings::fit_together(&parsed, &[]) {
        reader.fault(section.at(), format!("{error}: write other values"));
        is_whole = false;
    }
    is_whole.then_some(found)
}

fn certificates(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Option<Certificates> {
    let Some(section) = reader.table_if_any(top, "certificates")? else { return Some(Certificates::Own) };
    reader.known(&section, &["ca", "cert", "key"]);
    let mut path = |name: &str| reader.text(&section, name).and_then(|given| checks::path(reader, name, given));
    let (ca, cert, key) = (path("ca"), path("cert"), path("key"));
    let (ca, cert, key) = (ca?, cert?, key?);
    if ca == cert || cert == key || key == ca {
        reader.fault(section.at(), "ca, cert and key are one and the same file: write three".to_owned());
        return None;
    }
    Some(Certificates::Given { ca, cert, key })
}
