//! What the sources hold besides refusals. Everything counts as a refusal unless a row here says why it is none.

/// Files that print no refusal of their own.
const FILES: &[(&str, &str)] = &[
    ("src/admin/evidence.rs", "shows what was found"),
    ("src/admin/explain.rs", "shows what was decided"),
    ("src/admin/replay.rs", "for developers"),
    ("src/admin/sim.rs", "for developers"),
    ("src/fence/metadata.rs", "meta-data, help and the man page"),
    ("src/fence/trace.rs", "the debug file's lines; its one refusal is checked by name"),
];

/// Functions that make other texts: `Type::function` or `function`.
const FUNCTIONS: &[(&str, &str)] = &[
    ("root_cause", "takes podman's words apart"),
    ("is_no_permission", "takes etcd's words apart"),
    ("grant", "fills a hole"),
    ("some_of", "fills a hole"),
    ("fenced", "takes Pacemaker's words apart"),
    ("Rule::write", "a decision, not a refusal: the README explains the rules"),
    ("Step::fmt", "a step on the way"),
    ("NoStandIn::fmt", "why a step is taken and not another one; the guide has a section"),
    ("Reason::fmt", "frames for the others"),
    ("LastWritten::fmt", "a fragment of others"),
    ("Shown::text", "tandem data-dir show, as a report"),
    ("for_people", "the same"),
    ("Advanced::text", "tandem data-dir advance-commit, as a report"),
    ("Released::text", "tandem release-locks, as a report"),
    ("exit_status", "a section of the man pages"),
    ("ask", "a question"),
    ("grant_quorum", "questions"),
    ("confirm_fencing", "questions"),
    ("type_of", "fills a hole"),
    ("describe", "fills a hole"),
    ("OptionKind::wanted", "fills a hole"),
];

/// Texts that are fragments, progress or success.
const TEXTS: &[&str] = &[
    "container inspect",
    "image inspect",
    "no such image",
    "not known",
    "started again",
    "tar failed ({}): {}",
    "waiting for OpenShift's etcd operator to write it",
    "no OpenShift? Give image and certificates",
    "no such container",
    "{json .State}",
    "it said nothing",
    "Success: ",
    ", which reaches",
    "Status: ",
    "Type the name of the node that is given up",
    "fence_redfish_rs: type options",
    "fence_redfish_rs {}",
    "error: {}",
    "tandem: {}",
    "Value({} bytes)",
    "Basic {}",
    "session opened",
    "session deleted",
    "redirected to {}{}",
    "{}: {} in {} ms: {}",
    "{} (after {} ms)",
    "{}; once more",
    "a system that is not there",
    "not listed",
    "without a name",
    "nothing to do",
    "unknown ({})",
    "unknown status",
    "its root is '{}'",
    "its PowerState is \"{}\"",
    "{} times",
];

/// Whether `text`, in `function` of `file`, is no refusal.
pub(crate) fn is_none_of(file: &str, function: &str, text: &str) -> bool {
    FILES.iter().any(|(name, _)| file == *name)
        || FUNCTIONS.iter().any(|(name, _)| function == *name)
        || TEXTS.iter().any(|known| text.starts_with(known))
}
