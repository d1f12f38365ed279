//! `tandem member guard`: prints a PodDisruptionBudget.

use clap::Args;

use super::source::SourceArguments;
use crate::admin::report::{Form, Report};
use crate::operate::failure::Failure;
use crate::operate::members::guard::{self, Guard, Place};

const HELP: &str = "\
It prints the object for Kubernetes and writes nothing there. This command does:

  tandem member guard | kubectl apply --filename -

The budget keeps one pod less available than there should be voters. Kubernetes' eviction API then drains one
control-plane node at a time, and none while the pod of another one is not ready. The pods are yours: one on each
control-plane node, with the label of --selector, ready while the etcd of its node is healthy. No other budget may
select them. OpenShift's etcd operator has its own budget and pods, and does not need this one.

With --json: voters (how many there should be), min_available, and manifest (the object).";

/// Prints a PodDisruptionBudget that lets one control-plane node be drained at a time
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    /// Namespace of the pods that the budget counts
    #[arg(long, value_name = "NAME", default_value = "kube-system", value_parser = namespace)]
    namespace: String,
    /// Label of the pods that the budget counts
    #[arg(long, value_name = "KEY=VALUE", default_value = "app=etcd-quorum-guard", value_parser = label)]
    selector: (String, String),
    #[command(flatten)]
    source: SourceArguments,
    #[command(flatten)]
    pub(super) form: Form,
}

pub(super) fn run(arguments: &Arguments) -> Result<Guard, Failure> {
    let place = Place { namespace: arguments.namespace.clone(), selector: arguments.selector.clone() };
    guard::guard(&arguments.source.target(), &place)
}

/// Parses the name of a Kubernetes namespace.
fn namespace(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = !text.is_empty() && text.len() < 64 && text.chars().all(is_plain);
    if is_name { Ok(text.to_owned()) } else { Err("it is no namespace: type one such as kube-system".to_owned()) }
}

/// Parses a Kubernetes label, `KEY=VALUE`.
fn label(text: &str) -> Result<(String, String), String> {
    let is_plain = |text: &str, more: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c));
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && is_plain(key, "-_./") && is_plain(value, "-_.") => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err("it is no label: type one such as app=etcd-quorum-guard".to_owned()),
    }
}

impl Report for Guard {
    fn text(&self) -> String {
        self.manifest.yaml()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;

    fn place() -> Place {
        Place { namespace: "kube-system".to_owned(), selector: label("app=etcd-quorum-guard").unwrap() }
    }

    #[test]
    fn the_budget_has_its_golden_and_all_voters_but_one_stay() {
        golden::compare("member-guard", &guard::of(3, &place()).unwrap());
        assert_eq!(guard::of(2, &place()).unwrap().min_available, 1);
        for voters in [0, 1] {
            assert!(guard::of(voters, &place()).unwrap_err().0.contains("would guard nothing"));
        }
    }

    #[test]
    fn what_would_not_mean_the_same_in_yaml_is_no_argument() {
        assert_eq!(namespace("openshift-etcd").as_deref(), Ok("openshift-etcd"));
        assert_eq!(label("example.com/app=").unwrap(), ("example.com/app".to_owned(), String::new()));
        for wrong in ["", "a b", "A", "a\nb", "a: b", "\""] {
            assert!(namespace(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "app", "=x", "app=a b", "app=\"", "a\n=b", "a=b=c"] {
            assert!(label(wrong).is_err(), "{wrong}");
        }
    }
}
