//! `tandem upgrade`: runs another image of etcd on both nodes, one after the other.

use std::time::Duration;

use clap::Args;

use super::exit::Exit;
use super::node::ResourceArgument;
use super::prompt::{Answers, Prompt};
use super::report::{Form, Report};
use crate::base::{duration, shell};
use crate::operate::failure::Failure;
use crate::operate::upgrade::{self, Order, Upgraded};

const HELP: &str = "\
With IMAGE, the command first pulls the image on this node, and asks the etcd in it for its release. It refuses a
release that is older than the data, or more than one minor release ahead, and names known defects of the release.
Then it names the image in the resource, which restarts nothing, and waits until the agents of both nodes have pulled
it. It restarts etcd on the follower. Once both vote again, it restarts etcd on the leader, which hands leadership
over first. Before each restart it waits until 'tandem status --may-stop' would answer yes.

If the command was cut off, type it again on the same node: it continues. If the new image does not start, type the
command with the old image: it goes back.

With --settings, each node gets the new values while its etcd is stopped, the follower first, by the same restarts.
A value replaces the present one, so name everything that 'etcd_settings' is to have.

Exit codes:
  0  both members run with the image or settings; with --dry-run, the steps were printed
  1  refused, failed, or not done in time

With --json:
  image     the image
  settings  the settings that are changed
  version   the release of etcd in the image
  done      whether both members run with the image or settings
  dry_run   whether this was a dry run
  steps     each with what, and seconds (how long it took; null if it is only planned)
  warnings  sentences, such as known defects of the release";

/// Restarts etcd from another image, or with other settings, on one node after the other, while etcd takes writes
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    /// New image, as podman names it, such as registry.example.com/etcd:v3.5.21
    #[arg(value_name = "IMAGE", required_unless_present = "settings")]
    image: Option<String>,
    /// Changes these parameters instead of the image: etcd_settings, run_opts, run_cmd, run_cmd_opts
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = setting, conflicts_with = "image")]
    settings: Vec<(String, String)>,
    /// Prints the steps, and changes nothing except that the image is pulled on this node
    #[arg(long)]
    dry_run: bool,
    /// Time after which the command gives up, such as 90s or 10m
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    resource: ResourceArgument,
    #[command(flatten)]
    answers: Answers,
    #[command(flatten)]
    pub form: Form,
}

fn setting(word: &str) -> Result<(String, String), String> {
    let pair = word.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or("it is to be KEY=VALUE, as in etcd_settings=heartbeat-interval=200")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Report for Upgraded {
    fn text(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        let (image, version) = (&self.image, &self.version);
        let (settings, are_changed) = (shell::line(&self.settings), !self.settings.is_empty());
        if self.dry_run && !self.done {
            lines.extend(self.warnings.iter().map(|warning| format!("known: {warning}")));
            lines.push(if are_changed {
                format!("tandem upgrade --settings {settings}:")
            } else {
                format!("'tandem upgrade {image}', to etcd {version}:")
            });
            lines.extend(self.steps.iter().map(|step| format!("  {}", step.what)));
            return lines.join("\n");
        }
        for step in &self.steps {
            let seconds = step.seconds.map(|seconds| format!(" ({seconds:.1} s)")).unwrap_or_default();
            lines.push(format!("{}{seconds}", step.what));
        }
        lines.push(if are_changed {
            format!("both members run with {settings}")
        } else {
            format!("both members run etcd {version} from {image}")
        });
        lines.join("\n")
    }

    fn exit(&self) -> Exit {
        Exit::Done
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Upgraded, Failure> {
    let order = Order {
        image: arguments.image.clone().unwrap_or_default(),
        settings: arguments.settings.clone(),
        dry_run: arguments.dry_run,
        timeout: arguments.timeout,
        resource: arguments.resource.id().map(str::to_owned),
    };
    upgrade::run(&order, &Prompt::new(&arguments.answers, arguments.form))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;
    use crate::operate::upgrade::Step;

    #[test]
    fn what_was_done_is_told_with_its_seconds_and_what_would_be_without() {
        let step = |what: &str, seconds| Step { what: what.to_owned(), seconds };
        let done = Upgraded {
            image: "registry.example.com/etcd:v3.6.4".to_owned(),
            settings: Vec::new(),
            version: "3.6.4".to_owned(),
            done: true,
            dry_run: false,
            steps: vec![
                step("etcd names registry.example.com/etcd:v3.6.4", Some(0.2)),
                step("both nodes have it", Some(4.1)),
                step("node2 was restarted and votes", Some(6.0)),
                step("node1 was restarted and votes", Some(6.3)),
            ],
            warnings: vec![
                "etcd 3.6.4: a forced new cluster can keep a learner that is gone (mended in 3.6.6)".to_owned(),
            ],
        };
        golden::compare("upgrade", &done);
        let planned = Upgraded {
            done: false,
            dry_run: true,
            steps: vec![
                step("names registry.example.com/etcd:v3.6.4; nothing is restarted by that", None),
                step("restarts etcd on node2, and waits until it votes", None),
                step("restarts etcd on node1, and waits until it votes", None),
            ],
            ..done
        };
        golden::compare("upgrade-dry-run", &planned);
        let with_settings = Upgraded {
            image: String::new(),
            version: String::new(),
            settings: vec!["etcd_settings=heartbeat-interval=200;election-timeout=2000".to_owned()],
            done: true,
            steps: vec![
                step("node2 was restarted and votes", Some(6.0)),
                step("node1 was restarted and votes", Some(6.3)),
                step("it is the setting of both nodes", Some(0.2)),
            ],
            ..Upgraded::default()
        };
        golden::compare("upgrade-settings", &with_settings);
    }
}
