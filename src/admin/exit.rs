//! The exit codes of all subcommands: one table for the program, its help, the man pages and scripts.

/// The exit code of a subcommand of `tandem`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Degraded = 3,
    Worst = 4,
}

/// The meaning of each exit code. A code above 2 is a result of a subcommand, and the help of that subcommand explains it.
pub(super) const TABLE: [(Exit, &str); 5] = [
    (Exit::Done, "done, or the answer is good"),
    (Exit::Failed, "failed, refused, or not known; a sentence on stderr has the reason and what to type instead"),
    (Exit::Usage, "the arguments are wrong, and nothing was done"),
    (
        Exit::Degraded,
        "the answer is not good: degraded, not now, or warnings; the help of the subcommand has the meaning",
    ),
    (Exit::Worst, "the answer is the worst: no writes, a node that cannot be fenced, or a certificate that has ended"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_is_explained_once_and_in_order() {
        let codes: Vec<u8> = TABLE.iter().map(|(exit, _)| *exit as u8).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4]);
    }
}
