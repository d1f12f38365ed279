//! The words for yes and no. The author of a configuration uses the words of the program that reads it, and these differ. So each
//! vocabulary is listed here with its source.
//!
//! | | yes | no | letters |
//! |---|---|---|---|
//! | resource agents | `yes true 1 ja on` | `no false 0 nein off` | yes: as `ocf_is_true` lists them; no: any |
//! | fence agents | `yes true 1 on` | `no false 0 off` | any |
//! | Pacemaker itself | `yes true 1 y on` | `no false 0 n off` | any |
//! | etcd | `true 1` | `false 0` | small |
//!
//! A clone's `promotable` is Pacemaker's own option. The agent receives it as it was typed, and it has Pacemaker's meaning.

/// Parses a resource agent's parameter as yes or no; `None` for an unknown word. The words for yes are those of `ocf_is_true`
/// (resource-agents, `heartbeat/ocf-shellfuncs.in`). `ocf_is_true` itself takes every other word for no.
pub fn of_resource_agents(word: &str) -> Option<bool> {
    if matches!(word, "yes" | "true" | "1" | "YES" | "TRUE" | "True" | "ja" | "on" | "ON") {
        return Some(true);
    }
    matches!(word.to_ascii_lowercase().as_str(), "no" | "false" | "0" | "off" | "nein").then_some(false)
}

/// Parses a fence agent's option as yes or no, as the fencing library does (fence-agents, `lib/fencing.py.py`).
pub fn of_fence_agents(word: &str) -> Option<bool> {
    match word.trim().to_ascii_lowercase().as_str() {
        "1" | "yes" | "on" | "true" => Some(true),
        "0" | "no" | "off" | "false" => Some(false),
        _ => None,
    }
}

/// Parses an option of Pacemaker as yes or no, as Pacemaker's `crm_str_to_boolean` does (`lib/common/strings.c`).
pub fn of_pacemaker(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "y" | "1" => Some(true),
        "false" | "off" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// Parses a setting of etcd as true or false. Accepts `true`, `false`, `1` and `0`. Refuses `t`, `TRUE` and similar words (Go's
/// `strconv.ParseBool`), which only etcd's command line accepts and its configuration file does not.
pub fn of_etcd(word: &str) -> Option<bool> {
    match word {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words, each with its value for resource agents, fence agents, Pacemaker and etcd. `None` is a word that is not accepted.
    const WORDS: &[(&str, [Option<bool>; 4])] = &[
        ("1", [Some(true); 4]),
        ("true", [Some(true); 4]),
        ("0", [Some(false); 4]),
        ("false", [Some(false); 4]),
        ("yes", [Some(true), Some(true), Some(true), None]),
        ("on", [Some(true), Some(true), Some(true), None]),
        ("ON", [Some(true), Some(true), Some(true), None]),
        ("True", [Some(true), Some(true), Some(true), None]),
        ("Yes", [None, Some(true), Some(true), None]),
        ("On", [None, Some(true), Some(true), None]),
        ("tRUE", [None, Some(true), Some(true), None]),
        ("ja", [Some(true), None, None, None]),
        ("JA", [None; 4]),
        ("no", [Some(false), Some(false), Some(false), None]),
        ("Off", [Some(false), Some(false), Some(false), None]),
        ("nein", [Some(false), None, None, None]),
        (" yes ", [None, Some(true), None, None]),
        ("y", [None, None, Some(true), None]),
        ("n", [None, None, Some(false), None]),
        ("t", [None; 4]),
        ("maybe", [None; 4]),
        ("", [None; 4]),
    ];

    #[test]
    fn each_program_has_its_words() {
        for (word, meant) in WORDS {
            assert_eq!(
                [of_resource_agents(word), of_fence_agents(word), of_pacemaker(word), of_etcd(word)],
                *meant,
                "'{word}'"
            );
        }
    }
}
