//! The comparison says what it is there to say.

use tandem::sim::strategy::Strategy;
use tandem::sim::timeline::{Figures, play, scripts, table};

fn figures(name: &str, strategy: Strategy) -> Figures {
    let scripts = scripts();
    let script = scripts.iter().find(|script| script.name == name);
    let Some(script) = script else { panic!("no run is called {name}") };
    play(script, strategy).2
}

#[test]
fn tandem_loses_nothing_and_never_has_two_writers() {
    for script in scripts() {
        let figures = play(&script, Strategy::Tandem).2;
        assert_eq!((figures.lost, figures.writers, figures.serves), (0, 1, true), "{}", script.name);
    }
}

#[test]
fn others_lose_what_was_acknowledged() {
    let both = "both lose power under writes";
    assert!(figures(both, Strategy::ShellAgent).lost > 0);
    assert_eq!(figures(both, Strategy::Tandem).lost, 0);
    let parted = figures("the network parts", Strategy::ActiveActive);
    assert_eq!(parted.writers, 2);
    assert!(parted.lost > 0);
}

#[test]
fn the_readme_shows_what_the_command_prints() {
    let (readme, table) = (include_str!("../../README.md"), table());
    for name in ["the leader is gone for good", "both lose power under writes", "the network parts"] {
        let block = |text: &str| {
            let (_, rest) = text.split_once(&format!("\n{name}\n"))?;
            Some(rest.lines().take(6).collect::<Vec<_>>().join("\n"))
        };
        assert!(block(readme).is_some(), "{name}");
        assert_eq!(block(readme), block(&table), "{name}");
    }
}
