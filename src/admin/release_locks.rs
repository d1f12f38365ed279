//! `tandem release-locks`: ends the leases of a node's keys when Pacemaker's alert confirms the node as off. Otherwise
//! they would end one full TTL after the pause.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use log::{LevelFilter, error, info, warn};
use serde::Serialize;

use super::report::{Form, Report};
use crate::adapters::etcd::blocking;
use crate::adapters::etcd::client::{Credentials, Endpoint, Error};
use crate::adapters::etcd::leases::{Lease, Mark, Own};
use crate::adapters::ocf::alert;
use crate::adapters::ocf::env::Env;
use crate::adapters::options::standard::Standard;
use crate::adapters::options::value::OptionValue;
use crate::adapters::options::{OptionKind, OptionRow};
use crate::operate::failure::Failure;
use crate::os::clock::Deadline;
use crate::os::logging;

const HELP: &str = "\
All input comes from the environment, as Pacemaker sets it for an alert: CRM_alert_kind=fencing, CRM_alert_rc=0,
CRM_alert_node=NODE, CRM_alert_desc='Operation reboot of NODE by ...' or 'Operation off of NODE by ...', and the options
of 'pcs alert create':

  prefix           beginning of the keys, which ends with '/'
  match            place of the node's name: value (of the key; the default), name (what follows the key's last slash) or
                   either
  endpoints        client URLs of etcd, separated by commas: https://10.99.0.1:2379,https://10.99.0.2:2379
  trusted_ca_file  the CA of etcd's certificates
  cert_file        a client certificate
  key_file         its private key, which the user hacluster can read, because Pacemaker runs alert agents as that user
  timeout          for how many seconds the agent tries until etcd takes writes again; the default is 10

The agent revokes a lease if each key that it holds begins with prefix and is the fenced node's own: the whole value, or
the whole last part of the key, equals the node's name, byte by byte. A lease that holds any other key expires by itself.
For an alert of another kind, a fencing that failed, or a node that was switched on, the agent does nothing and ends
with 0.

With --json:
  node     the fenced node, or null if nothing is to be done
  revoked  the leases that were revoked, each with id (as etcdctl prints it), own (keys of the node) and others (further
           keys)
  left     the leases that were not revoked, with the same keys";

/// Revokes the leases of a fenced node's keys, as an alert agent that Pacemaker calls
#[derive(Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub form: Form,
}

/// The alert's option `prefix`. Only leases of keys that begin with this prefix are revoked.
const PREFIX: OptionRow = OptionRow::new("prefix", OptionKind::Text, "").value("/service/").required();
const MATCH: OptionRow = OptionRow::new("match", OptionKind::OneOf(&["value", "name", "either"]), "").default("value");
const ENDPOINTS: OptionRow =
    OptionRow::new("endpoints", OptionKind::Text, "").value("https://10.99.0.1:2379,https://10.99.0.2:2379").required();
const TRUSTED_CA_FILE: OptionRow =
    OptionRow::new("trusted_ca_file", OptionKind::Path, "").value("/etc/tandem/ca.crt").required();
const CERT_FILE: OptionRow =
    OptionRow::new("cert_file", OptionKind::Path, "").value("/etc/tandem/locks.crt").required();
const KEY_FILE: OptionRow = OptionRow::new("key_file", OptionKind::Path, "").value("/etc/tandem/locks.key").required();
const TIMEOUT: OptionRow = OptionRow::new("timeout", OptionKind::Seconds(1, 600), "").default("10");

/// Time limit of the first query of an endpoint. If the fenced node's endpoint is queried first, the other endpoint's query is delayed by
/// this time.
const FIRST_TRY: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(200);

/// The report of `tandem release-locks`. It is empty if the alert does not report a fenced node.
#[derive(Default, Serialize)]
pub(super) struct Released {
    node: Option<String>,
    revoked: Vec<Shown>,
    left: Vec<Shown>,
}

/// A lease with its keys: those of the fenced node, and those of others.
#[derive(Clone, PartialEq, Eq, Serialize)]
struct Shown {
    id: String,
    own: Vec<String>,
    others: Vec<String>,
}

/// Formats a lease as etcdctl prints it, with leading zeros. Its keys are sorted by name, because etcd returns them in an arbitrary
/// order.
impl From<&Lease> for Shown {
    fn from(lease: &Lease) -> Self {
        let sorted = |keys: &[String]| {
            let mut keys = keys.to_vec();
            keys.sort();
            keys
        };
        Self { id: format!("{:016x}", lease.id), own: sorted(&lease.own), others: sorted(&lease.others) }
    }
}

impl Report for Released {
    fn text(&self) -> String {
        let revoked = self.revoked.iter().map(|lease| format!("revoked  {}  {}", lease.id, lease.own.join(" ")));
        let left = self.left.iter().map(|lease| {
            format!("left     {}  {}, as it also holds {}", lease.id, lease.own.join(" "), lease.others.join(" "))
        });
        revoked.chain(left).collect::<Vec<_>>().join("\n")
    }
}

pub(super) fn run() -> Result<Released, Failure> {
    let tag = "tandem-release-locks".to_owned();
    logging::init(logging::Settings { tag, stderr: LevelFilter::Off, syslog: LevelFilter::Info, file: None });
    answer(&Env::from_process()).inspect_err(|Failure(why)| error!("{why}"))
}

fn answer(env: &Env) -> Result<Released, Failure> {
    let alert = alert::read(env);
    let Some(node) = alert.fenced() else { return Ok(Released::default()) };
    let (setup, own) = Setup::read(env, node)?;
    let mut released = Released { node: Some(node.to_owned()), ..Released::default() };
    setup.release(&own, &mut released)?;
    if released.revoked.is_empty() && released.left.is_empty() {
        info!("{node} is fenced: no lease holds a key of its own below {}", own.prefix);
    }
    Ok(released)
}

/// The endpoints of etcd, the credentials, and the time limit, from the alert's options.
struct Setup {
    endpoints: Vec<Endpoint>,
    credentials: Credentials,
    timeout: Duration,
}

impl Setup {
    fn read(env: &Env, node: &str) -> Result<(Self, Own), Failure> {
        let prefix: String = option(env, &PREFIX)?;
        // A name in a path ends at a '/', and a prefix of only slashes would match everything.
        if !prefix.ends_with('/') || prefix.trim_matches('/').is_empty() {
            return Err(Failure(format!("prefix={prefix} is no part of the keys: give one such as /service/")));
        }
        let mark = match option::<String>(env, &MATCH)?.as_str() {
            "name" => Mark::Name,
            "either" => Mark::Either,
            _ => Mark::Value,
        };
        let endpoints: String = option(env, &ENDPOINTS)?;
        let setup = Self {
            endpoints: endpoints.split(',').map(|url| endpoint(url.trim())).collect::<Result<_, _>>()?,
            credentials: Credentials {
                trusted_ca_file: option::<PathBuf>(env, &TRUSTED_CA_FILE)?,
                cert_file: option::<PathBuf>(env, &CERT_FILE)?,
                key_file: option::<PathBuf>(env, &KEY_FILE)?,
            },
            timeout: Duration::from_secs(option(env, &TIMEOUT)?),
        };
        Ok((setup, Own { prefix, node: node.to_owned(), mark }))
    }

    /// Revokes the fenced node's leases through one endpoint after the other, until one succeeds or the time is over. Repeats failed
    /// attempts, because etcd may not accept writes right after a node was fenced.
    fn release(&self, own: &Own, released: &mut Released) -> Result<(), Failure> {
        let deadline = Deadline::after(self.timeout);
        let mut one_try = FIRST_TRY;
        // Keeps the last error of each endpoint, so that the dead machine's error does not hide the other's.
        let mut reasons = vec![String::new(); self.endpoints.len()];
        loop {
            let asked = self.endpoints.iter().zip(&mut reasons).take_while(|_| !deadline.has_passed());
            for (endpoint, reason) in asked {
                match self.ask(endpoint, own, deadline, one_try, released) {
                    Ok(()) => return Ok(()),
                    // This error does not pass by itself.
                    Err(Error::NoPermission { url, user, why }) => {
                        let user = user.unwrap_or_else(|| "without a name".to_owned());
                        return Err(Failure(format!(
                            "'tandem etcdctl role grant-permission ROLE readwrite {} --prefix' for the user {user}: {url} says '{why}'",
                            own.prefix
                        )));
                    }
                    Err(error) => *reason = error.to_string(),
                }
            }
            deadline.sleep(PAUSE);
            if deadline.has_passed() {
                reasons.retain(|reason| !reason.is_empty());
                let (node, seconds, why) = (&own.node, self.timeout.as_secs(), reasons.join("; "));
                return Err(Failure(format!("{node}'s leases are left to end by themselves after {seconds} s: {why}")));
            }
            one_try *= 2;
        }
    }

    fn ask(
        &self,
        endpoint: &Endpoint,
        own: &Own,
        deadline: Deadline,
        one_try: Duration,
        released: &mut Released,
    ) -> Result<(), Error> {
        let found = blocking::find_leases(endpoint, &self.credentials, own, deadline.at_most(one_try))?;
        released.left.clear();
        for lease in &found {
            let shown = Shown::from(lease);
            let (node, id, keys) = (&own.node, &shown.id, some_of(&shown.own));
            if lease.others.is_empty() {
                blocking::revoke_lease(endpoint, &self.credentials, lease.id, deadline.at_most(one_try))?;
                info!("{node} is fenced: lease {id} is revoked, which held {keys}");
                released.revoked.push(shown);
            } else {
                let others = some_of(&shown.others);
                warn!(
                    "{node} is fenced: lease {id} is not revoked, because the lease holds {keys} and also keys of others: {others}"
                );
                released.left.push(shown);
            }
        }
        Ok(())
    }
}

/// Returns at most eight keys as text, and the number of further ones, so that the line fits into the journal.
fn some_of(keys: &[String]) -> String {
    const SHOWN: usize = 8;
    let more = keys.len().saturating_sub(SHOWN);
    let shown = keys.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(" ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// Returns the value of an option of the alert, or its default. Fails if it has neither.
fn option<T: TryFrom<OptionValue>>(env: &Env, row: &OptionRow) -> Result<T, Failure> {
    let (name, value) = (row.name, row.value);
    let text = env
        .get(name)
        .or(row.default)
        .ok_or_else(|| Failure(format!("{name} is not set: 'pcs alert update ID options {name}={value}'")))?;
    row.parse(Standard::ResourceAgent, text).map_err(Failure)
}

fn endpoint(url: &str) -> Result<Endpoint, Failure> {
    let address = url.strip_prefix("https://").filter(|address| address.contains(':') && !address.contains('/'));
    let address = address.ok_or_else(|| Failure(format!("endpoint {url} is not https://ADDRESS:PORT")))?;
    Ok(Endpoint { url: url.to_owned(), address: address.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;

    const ALERT: [(&str, &str); 5] = [
        ("CRM_alert_kind", "fencing"),
        ("CRM_alert_rc", "0"),
        ("CRM_alert_task", "st_notify_fence"),
        ("CRM_alert_node", "node1"),
        ("CRM_alert_desc", "Operation reboot of node1 by node2 for pacemaker-controld.37@node2: OK (ref=c056)"),
    ];
    const OPTIONS: [(&str, &str); 5] = [
        ("prefix", "/service/"),
        ("endpoints", "https://10.99.0.1:2379, https://[fd00::2]:2379"),
        ("trusted_ca_file", "/etc/tandem/ca.crt"),
        ("cert_file", "/etc/tandem/locks.crt"),
        ("key_file", "/etc/tandem/locks.key"),
    ];

    /// Returns an environment with `variables`, some of them replaced by `instead`. An empty value counts as no variable.
    fn env(variables: &[(&str, &str)], instead: &[(&str, &str)]) -> Env {
        let pairs = variables.iter().chain(instead);
        Env::from_pairs(pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    fn refused(instead: &[(&str, &str)]) -> String {
        Setup::read(&env(&OPTIONS, instead), "node1").err().map(|Failure(why)| why).unwrap_or_default()
    }

    #[test]
    fn only_a_node_that_is_confirmed_off_is_a_reason() {
        assert_eq!(alert::read(&env(&ALERT, &[])).fenced(), Some("node1"));
        let by_hand = "Operation off of node1 by a human for stonith_admin.793@node2: OK (ref=babf)";
        assert_eq!(alert::read(&env(&ALERT, &[("CRM_alert_desc", by_hand)])).fenced(), Some("node1"));
        for (name, value) in [
            ("CRM_alert_kind", "node"),
            ("CRM_alert_kind", "resource"),
            ("CRM_alert_kind", ""),
            ("CRM_alert_rc", "1"),
            ("CRM_alert_rc", ""),
            ("CRM_alert_rc", "-195"),
            ("CRM_alert_desc", "Operation on of node1 by node2 for pacemaker-controld.37@node2: OK (ref=c056)"),
            ("CRM_alert_desc", "Operation off of node10 by node2 for pacemaker-controld.37@node2: OK (ref=c056)"),
            ("CRM_alert_desc", ""),
            ("CRM_alert_node", ""),
        ] {
            let released = answer(&env(&ALERT, &[(name, value)])).unwrap();
            assert!(released.node.is_none() && released.text().is_empty(), "{name}={value}");
        }
    }

    #[test]
    fn an_alert_says_what_is_missing_in_it() {
        let (setup, own) = Setup::read(&env(&OPTIONS, &[]), "node1").unwrap();
        let addresses: Vec<&str> = setup.endpoints.iter().map(|endpoint| endpoint.address.as_str()).collect();
        assert_eq!(addresses, ["10.99.0.1:2379", "[fd00::2]:2379"]);
        assert_eq!((setup.timeout, own.mark), (Duration::from_secs(10), Mark::Value));
        for (name, _) in OPTIONS {
            assert!(refused(&[(name, "")]).starts_with(&format!("{name} is not set: ")), "{name}");
        }
        for prefix in ["/", "//", "/service", "service"] {
            assert_eq!(
                refused(&[("prefix", prefix)]),
                format!("prefix={prefix} is no part of the keys: give one such as /service/")
            );
        }
        for url in ["http://10.99.0.1:2379", "10.99.0.1:2379", "https://10.99.0.1", "https://10.99.0.1:2379/"] {
            assert_eq!(refused(&[("endpoints", url)]), format!("endpoint {url} is not https://ADDRESS:PORT"));
        }
        assert_eq!(refused(&[("match", "values")]), "match=values is not one of value, name, either");
        assert!(refused(&[("timeout", "0")]).starts_with("timeout=0 is not"));
        assert!(refused(&[("key_file", "locks.key")]).contains("begin it with '/'"));
    }

    #[test]
    fn the_help_has_every_option() {
        for row in [PREFIX, MATCH, ENDPOINTS, TRUSTED_CA_FILE, CERT_FILE, KEY_FILE, TIMEOUT] {
            assert!(HELP.contains(&format!("\n  {:<16} ", row.name)), "{}", row.name);
        }
    }

    #[test]
    fn a_line_of_the_journal_has_an_end() {
        let keys: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        assert_eq!(some_of(&keys[..2]), "0 1");
        assert_eq!(some_of(&keys), "0 1 2 3 4 5 6 7 and 992 more");
    }

    #[test]
    fn leases_are_told_with_their_keys() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let lease =
            |id, own: &[&str], others: &[&str]| Shown::from(&Lease { id, own: texts(own), others: texts(others) });
        let released = Released {
            node: Some("node1".to_owned()),
            revoked: vec![lease(0x694d_9c0e_4f5a, &["/service/db/members/node1", "/service/db/leader"], &[])],
            left: vec![lease(0x694d_9c0e_4f5b, &["/service/a"], &["/service/b"])],
        };
        golden::compare("release-locks", &released);
    }
}
