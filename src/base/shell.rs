//! Words as a shell takes them.

/// Returns `word` as it is typed in a shell: in quotes where a shell would split or change it.
pub fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@+%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_split_is_quoted_and_nothing_else() {
        assert_eq!(shell_word("/var/lib/etcd"), "/var/lib/etcd");
        assert_eq!(
            shell_word("node_ip_map=node1:192.0.2.1;node2:192.0.2.2"),
            "'node_ip_map=node1:192.0.2.1;node2:192.0.2.2'"
        );
        assert_eq!(shell_word("/srv/it's here"), "'/srv/it'\\''s here'");
        assert_eq!(shell_word(""), "''");
    }
}
