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
The image is pulled here and by the other node's agent, and its etcd is asked for its release: one that is older than the data, or more
than one minor release ahead, is refused, and known defects are named. Then the resource names it, which restarts nothing, and etcd is
restarted on the follower, and, once both vote again, on the leader, which hands leadership over first. Each restart waits until
'tandem status --may-stop' would answer yes. Cut off anywhere, it continues when it is typed again on the same node; an image that does not start
is taken back by the same command with the old one.

With --settings each node gets the new values while its etcd is stopped, the follower first, in the same way; in the end they are the
values of both. A value replaces the one before: name all that 'etcd_settings' is to have.

Exit codes: 0 both members run from the image or with the settings, or with --dry-run what would be done; 1 refused, failed, or not in time.

With --json: image; settings, where these are changed; version of the etcd in it; done (both members run from it); dry_run; steps, each what and seconds (null where it is
only planned); warnings, known defects of that release among them.";

/// Runs etcd from another image, or with other settings, on both nodes, one after the other, while writes are taken
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    /// The image, as podman names it, such as registry.example.com/etcd:v3.5.21
    #[arg(value_name = "IMAGE", required_unless_present = "settings")]
    image: Option<String>,
    /// Changes etcd_settings, run_opts, run_cmd or run_cmd_opts in place of the image
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = setting, conflicts_with = "image")]
    settings: Vec<(String, String)>,
    /// Shows what would be done; only the image is pulled here
    #[arg(long)]
    dry_run: bool,
    /// How long all of it may take
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
