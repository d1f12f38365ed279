//! Draws doc comments by a seed, for a reader without the code: at most six of sixty may have to be read twice.
//!
//! `TANDEM_SEED=1 cargo test --test repo_checks drawn -- --ignored --nocapture` prints them with their places. Take a new seed each time.

#![allow(clippy::unwrap_used, reason = "a failure ends the test")]

use std::collections::BTreeMap;
use std::fs;

use crate::tree::{root, rust_files};

const COUNT: usize = 60;

/// A doc comment, and the line of code that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Comment {
    place: String,
    text: String,
    item: String,
}

/// Returns the doc comments of a source text, in order.
fn comments(place: &str, source: &str) -> Vec<Comment> {
    let mut found = Vec::new();
    let mut text: Vec<&str> = Vec::new();
    for (number, line) in source.lines().map(str::trim_start).enumerate() {
        if let Some(words) = line.strip_prefix("///") {
            text.push(words.trim_start());
        } else if !text.is_empty() && !line.starts_with("#[") {
            let place = format!("{place}:{}", number + 1);
            found.push(Comment { place, text: text.join(" "), item: line.to_owned() });
            text.clear();
        }
    }
    found
}

/// Returns `COUNT` of `all`, or all where there are fewer. A seed draws the same ones each time.
fn drawn(all: &[Comment], seed: u64) -> Vec<Comment> {
    let mut state = seed;
    let mut chosen = BTreeMap::new();
    while chosen.len() < COUNT.min(all.len()) {
        // SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let at = usize::try_from((mixed ^ (mixed >> 31)) % all.len() as u64).unwrap();
        chosen.insert(at, all[at].clone());
    }
    chosen.into_values().collect()
}

fn all() -> Vec<Comment> {
    let files = ["src", "tests"].into_iter().flat_map(|folder| rust_files(&root().join(folder)));
    let of_file = |path: std::path::PathBuf| {
        let place = path.strip_prefix(root()).unwrap().display().to_string();
        comments(&place, &fs::read_to_string(&path).unwrap())
    };
    files.flat_map(of_file).collect()
}

#[test]
fn a_seed_draws_sixty_different_comments_and_the_same_ones_again() {
    let all = all();
    let first = drawn(&all, 1);
    assert_eq!(first.len(), COUNT);
    assert_eq!(drawn(&all, 1), first);
    assert_ne!(drawn(&all, 2), first);
    let source = "/// Reads it.\n/// Twice.\n#[inline]\nfn read() {}\n// No doc comment.\nfn other() {}\n";
    let read =
        Comment { place: "a.rs:4".to_owned(), text: "Reads it. Twice.".to_owned(), item: "fn read() {}".to_owned() };
    assert_eq!(comments("a.rs", source), [read]);
}

#[test]
#[ignore = "prints for a reader"]
fn drawn_for_a_reader() {
    let seed = std::env::var("TANDEM_SEED").unwrap_or_else(|_| "1".to_owned());
    for Comment { place, text, item } in drawn(&all(), seed.parse().unwrap()) {
        println!("{place}\n  {text}\n  {item}\n");
    }
}
