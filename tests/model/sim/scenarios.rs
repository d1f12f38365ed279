//! Every scenario replays to its golden trace, byte by byte, and violates no invariant.

use std::fs;
use std::path::Path;

use tandem::sim::mutant::Mutant;
use tandem::sim::{Bounds, Sim, scenario, story};

fn told(path: &Path, mutant: Mutant) -> (String, Result<(), tandem::sim::Violation>) {
    let text = fs::read_to_string(path).unwrap_or_default();
    let trace = scenario::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    story::tell(&mut Sim::new(Bounds::for_scenarios(), mutant), &trace)
}

#[test]
fn scenarios_replay_to_their_traces() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/model/scenarios");
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "scn"));
    assert!(!paths.is_empty());
    for path in paths {
        let (story, result) = told(&path, Mutant::None);
        assert_eq!(result, Ok(()), "{}", path.display());
        assert_eq!(story, fs::read_to_string(path.with_extension("trace")).unwrap(), "{}", path.display());
    }
}
