//! Finds the known word that is nearest to a mistyped one.

/// Largest number of letters that may be wrong, missing or added in a mistyped word.
const FAR: usize = 3;

/// Returns the word of `known` that is nearest to `word`; `None` if all differ too much.
pub(super) fn of<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let limit = FAR.min(word.chars().count() / 2);
    let near = known.map(|one| (distance(&word.to_lowercase().replace('-', "_"), &one.replace('-', "_")), one));
    near.filter(|(distance, _)| *distance <= limit).min_by_key(|(distance, _)| *distance).map(|(_, one)| one)
}

/// Returns the number of insertions, deletions and replacements between two words. It is the maximum for words over 100
/// letters.
fn distance(one: &str, other: &str) -> usize {
    const LONGEST: usize = 100;
    let other: Vec<char> = other.chars().collect();
    if one.chars().count() > LONGEST || other.len() > LONGEST {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], at + 1);
        for (column, wanted) in other.iter().enumerate() {
            let exchanged = before + usize::from(letter != *wanted);
            before = row[column + 1];
            row[column + 1] = exchanged.min(before + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_word_finds_its_own() {
        let known = ["cluster", "preferred", "token", "data_dir"];
        for (word, found) in [
            ("clutser", Some("cluster")),
            ("prefered", Some("preferred")),
            ("Data-Dir", Some("data_dir")),
            ("x", None),
            ("nodes", None),
        ] {
            assert_eq!(of(word, known.into_iter()), found, "{word}");
        }
        assert_eq!((distance("abc", "abc"), distance("abc", "ab"), distance("", "ab")), (0, 1, 2));
    }
}
