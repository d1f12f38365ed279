//! The reports of the commands that change the members.

use crate::admin::exit::Exit;
use crate::admin::report::Report;
use crate::operate::members::changed::Changed;

impl Report for Changed {
    fn text(&self) -> String {
        let (wish, node) = (self.wish, &self.node);
        let figures = format!("{} of {} voters are healthy", self.healthy_voters, self.voters);
        let made: Vec<String> = self.made.iter().map(|what| format!("\n  {what}")).collect();
        let made = made.concat();
        match (&self.rule, &self.because, &self.instead) {
            (Some(rule), Some(because), Some(instead)) => {
                format!(
                    "no: {wish} {node} is not to be done now ({rule}): {because}\ninstead: {instead}\n{figures}{made}"
                )
            }
            _ if self.made.is_empty() => format!("{wish} {node}: nothing was left to do\n{figures}"),
            _ => format!("{wish} {node}: done in {} s\n{figures}{made}", self.seconds),
        }
    }

    fn exit(&self) -> Exit {
        if self.done { Exit::Done } else { Exit::Degraded }
    }
}
