//! The comparison shows what it is there to show, and docs/design/compared.md prints what it shows.

use std::fs;
use std::path::Path;

use tandem::sim::strategy::{ALL, Detector, Strategy};
use tandem::sim::timeline::{Figures, play, scripts, table};

const NODE1: Option<usize> = Some(0);
const NODE2: Option<usize> = Some(1);
const RIGHT: Strategy = Strategy::ActivePassive(Detector::Right);
const WRONG: Strategy = Strategy::ActivePassive(Detector::Wrong);
const OFF: Strategy = Strategy::ActivePassive(Detector::Off);
const TANDEM: [Strategy; 2] = [Strategy::Tandem, Strategy::TandemPrimary];
const CONTROLLERS: [Strategy; 4] = [Strategy::ActiveActive, RIGHT, WRONG, OFF];

const BACK: &str = "the leader loses power, and is back";
const GONE: &str = "the leader is gone for good";
const BOTH: &str = "both lose power under writes";
const RETURNS: &str = "the leader dies, its peer continues and dies, the leader returns";
const PARTS: &str = "the network parts";
const CUT_OFF: &str = "the leader is cut off from its peer and from users";
const ALONE: &str = "a new pair, and the second node never starts";
const SECOND_FIRST: &str = "a new pair, and the second node starts first";

fn figures(name: &str, strategy: Strategy) -> Figures {
    let scripts = scripts();
    let script = scripts.iter().find(|script| script.name == name);
    let Some(script) = script else { panic!("no run is called {name}") };
    play(script, strategy).2
}

/// Asserts that Tandem loses no write in any run, and never has two writers. A loss that an operator accepted by name does
/// not count.
#[test]
fn tandem_loses_nothing_and_never_has_two_writers() {
    for (script, strategy) in scripts().iter().flat_map(|script| TANDEM.map(|strategy| (script, strategy))) {
        let figures = play(script, strategy).2;
        assert!(figures.lost == 0 || figures.manual > 0, "{}, {strategy:?}: {figures:?}", script.name);
        let most = usize::from(script.name != ALONE);
        assert_eq!((figures.writers, figures.serves), (most, most > 0), "{}, {strategy:?}", script.name);
    }
}

#[test]
fn the_shell_agent_loses_what_was_acknowledged() {
    assert!(figures(BOTH, Strategy::ShellAgent).lost > 0);
    assert_eq!(figures(BOTH, Strategy::Tandem).lost, 0);
}

/// Asserts that a secondary continues alone after the primary has failed, and loses nothing. It keeps the end of its log, as
/// any Raft leader does.
#[test]
fn a_secondary_continues_for_a_primary_that_failed_and_keeps_its_log() {
    for strategy in CONTROLLERS {
        let Figures { lost, manual, leader, .. } = figures(GONE, strategy);
        assert_eq!((lost, manual, leader), (0, 0, NODE2), "{strategy:?}");
    }
}

#[test]
fn a_secondary_stands_still_only_where_its_detector_reports_a_partition() {
    for (strategy, writers) in [(Strategy::ActiveActive, 2), (RIGHT, 1), (WRONG, 2), (OFF, 2)] {
        let figures = figures(PARTS, strategy);
        assert_eq!((figures.writers, figures.lost > 0), (writers, writers > 1), "{strategy:?}");
    }
}

/// Asserts that under each strategy the first leader leads in the end, although it is cut off from its peer and from
/// users. Without a detector both nodes take writes meanwhile, and writes are lost. A detector that observes a node's
/// own links stops the leader.
#[test]
fn a_primary_without_users_keeps_its_history_unless_it_knows_of_that() {
    for (strategy, loses) in [(Strategy::ActiveActive, true), (RIGHT, false), (WRONG, false), (OFF, true)] {
        let figures = figures(CUT_OFF, strategy);
        let writers = if loses { 2 } else { 1 };
        assert_eq!((figures.lost > 0, figures.writers, figures.leader), (loses, writers, NODE1), "{strategy:?}");
    }
    let tandem = figures(CUT_OFF, Strategy::Tandem);
    assert_eq!((tandem.lost, tandem.writers, tandem.serves), (0, 1, true));
}

#[test]
fn the_controllers_give_leadership_back() {
    for strategy in CONTROLLERS {
        for name in [BACK, SECOND_FIRST] {
            assert_eq!(figures(name, strategy).leader, NODE1, "{name}, {strategy:?}");
        }
    }
}

/// Asserts that Tandem gives leadership back only to a configured primary, that it loses nothing by that, and that no operator acts.
#[test]
fn tandem_gives_leadership_back_to_a_primary() {
    for name in [BACK, SECOND_FIRST] {
        let Figures { lost, manual, leader, .. } = figures(name, Strategy::TandemPrimary);
        assert_eq!((lost, manual, leader), (0, 0, NODE1), "{name}");
    }
    assert_eq!(figures(BACK, Strategy::Tandem).leader, NODE2);
}

#[test]
fn a_node_of_a_new_pair_begins_alone_under_a_controller_only() {
    for (strategy, _, _) in ALL {
        let begins = CONTROLLERS.contains(&strategy);
        assert_eq!(figures(ALONE, strategy).serves, begins, "{strategy:?}");
    }
}

/// Asserts that each controller lets a node continue from old data, so that the writes of its standalone peer are lost. With Tandem, an
/// operator must decide in the same run.
#[test]
fn a_controller_continues_from_data_of_earlier_and_tandem_asks_for_that() {
    for strategy in CONTROLLERS {
        let figures = figures(RETURNS, strategy);
        assert!(figures.lost > 0 && figures.manual == 0, "{strategy:?}: {figures:?}");
    }
    assert_eq!(figures(RETURNS, Strategy::Tandem).manual, 1);
}

/// Asserts that the table is the one in `tests/data/golden/compare.txt`. `TANDEM_BLESS=1` renews that file; read the difference.
#[test]
fn the_table_is_the_one_that_was_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden/compare.txt");
    if std::env::var_os("TANDEM_BLESS").is_some() {
        fs::write(&path, table()).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), table());
}

/// Asserts that `docs/design/compared.md` has the same rows as the command prints, for each run that the page contains.
#[test]
fn the_page_shows_what_the_command_prints() {
    let (page, table) = (include_str!("../../../docs/design/compared.md"), table());
    let names = [GONE, BOTH, PARTS, CUT_OFF];
    for name in names {
        let block = |text: &str| {
            let (_, rest) = text.split_once(&format!("\n{name}\n"))?;
            Some(rest.lines().take(1 + ALL.len()).collect::<Vec<_>>().join("\n"))
        };
        assert!(block(page).is_some(), "{name}");
        assert_eq!(block(page), block(&table), "{name}");
    }
    let heads = |text: &str| text.lines().filter(|line| line.trim_start().starts_with("acknowledged  lost")).count();
    assert_eq!(heads(page), names.len());
    assert_eq!(heads(&table), scripts().len());
}
