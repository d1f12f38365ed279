//! The commands of `tandem setup` for each kind of described cluster, on hosts with nothing but the packages, and its
//! refusals. `tests/setup_real` shows with pcs itself that these commands make the described cluster.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod refusals;
#[path = "../support/setup/variants.rs"]
mod variants;

use std::path::Path;

use tandem::operate::setup::step::State;
use variants::{all, blank, commands, typed};

/// Asserts that the commands for blank hosts are those in `tests/data/golden/setup`, where each variant has a file.
/// `TANDEM_BLESS=1` renews the files; read the difference.
#[test]
fn the_commands_from_blank_are_as_they_were_read() {
    for variant in all() {
        let steps = variant.steps(&blank());
        let of_each = steps.iter().map(|step| {
            let commands = commands(std::slice::from_ref(step));
            let lines: Vec<String> = commands.iter().map(|words| format!("{}\n", typed(words))).collect();
            format!("# {}: {}\n{}", step.id, step.title, lines.concat())
        });
        let text = of_each.collect::<Vec<_>>().join("\n");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/golden/setup/{}.txt", variant.name));
        if std::env::var_os("TANDEM_BLESS").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(text, expected, "{}; TANDEM_BLESS=1 writes it anew, to be read", file.display());
        for step in &steps {
            assert!(matches!(&step.state, State::ToDo(actions) if !actions.is_empty()), "{step:?}");
            assert_eq!(step.on, variants::ON);
        }
    }
}
