//! The recovery guide as entries: the words that an administrator reads, and whether a command follows them.

use std::path::Path;

/// The path of the recovery guide.
pub(crate) const GUIDE: &str = "docs/operate/recovery.md";
/// The heading of the section with the words of Pacemaker's `crm_mon`. All other sections have words of this program.
const OTHERS_WORDS: &str = "## What `crm_mon` shows";

/// An entry of the recovery guide: a row of a table, or a section with a heading in code style.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) line: usize,
    /// The words in code style in the entry's first cell or heading.
    pub(crate) words: Vec<String>,
    pub(crate) has_way_on: bool,
    pub(crate) is_ours: bool,
}

/// Returns all entries of the recovery guide, in order.
pub(crate) fn entries() -> Vec<Entry> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(GUIDE)).unwrap();
    let mut found: Vec<Entry> = Vec::new();
    let mut is_ours = true;
    let mut below_heading = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            is_ours = if line.starts_with("## ") { line != OTHERS_WORDS } else { is_ours };
            below_heading = line.starts_with("### `");
            if below_heading {
                found.push(Entry { line: at + 1, words: code(line), has_way_on: false, is_ours });
            }
        } else if line.starts_with("| `") {
            let cells: Vec<&str> = line.trim_matches('|').split(" |").collect();
            let last = cells.last().copied().unwrap_or_default();
            let has_way_on = cells.len() == 3 && (!code(last).is_empty() || says_that_nothing_is_to_be_done(last));
            found.push(Entry { line: at + 1, words: code(cells[0]), has_way_on, is_ours });
        } else if below_heading && line.starts_with("```sh") {
            found.last_mut().unwrap().has_way_on = true;
        }
    }
    found
}

fn says_that_nothing_is_to_be_done(cell: &str) -> bool {
    ["nothing", "what it prints", "look REASON up"].iter().any(|words| cell.trim().starts_with(words))
}

/// Returns the code spans of a text.
fn code(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
