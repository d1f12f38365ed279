//! Code that must be in one place: the only files of the product that may contain a piece of code.

use crate::tree::{root, rust_files};

/// A piece of code, the only file that may contain it, and what other files use instead.
const ONLY_IN: &[(&str, &str, &str)] = &[
    ("\"/proc", "src/os/proc.rs", "ask crate::os::proc, which knows how odd the kernel's lines may be"),
    ("| \"true\"", "src/adapters/options/yes_no.rs", "choose one of the vocabularies in options::yes_no"),
    ("\"true\" |", "src/adapters/options/yes_no.rs", "choose one of the vocabularies in options::yes_no"),
];

/// The readers of JSON that would each add another copy of a type's deserializer to the binary. The files of
/// [`READ_BY_OTHERS`] use them only for a `Value`, or for secrets. Other files use `crate::base::json`.
const OTHER_READERS: [&str; 3] = ["serde_json::from_str", "serde_json::from_value", "serde_json::from_reader"];
const READ_BY_OTHERS: [&str; 2] = ["src/adapters/kubernetes/kubeconfig.rs", "src/adapters/redfish/reply.rs"];

/// The files that access directories in which etcd's container can create anything under any name. They must not use the
/// functions of [`BY_PATH`], which would follow a link there, wait for a FIFO, or open a device.
const IN_THE_DATA_DIR: [&str; 6] = [
    "src/adapters/data_dir",
    "src/adapters/openshift/revision.rs",
    "src/agent/act",
    "src/agent/observe",
    "src/agent/unconfigured.rs",
    "src/records/own_dir.rs",
];
const BY_PATH: [&str; 17] = [
    "File::open(",
    "File::create(",
    "OpenOptions",
    "regular_file::open",
    "fs::read(",
    "fs::read_to_string(",
    "fs::read_dir(",
    "fs::read_link(",
    "fs::write(",
    "fs::copy(",
    "fs::rename(",
    "fs::hard_link(",
    "fs::metadata(",
    "fs::set_permissions(",
    "fs::create_dir",
    "fs::remove_dir_all(",
    "fs::remove_file(",
];
/// The files of [`IN_THE_DATA_DIR`] that use a function of [`BY_PATH`] outside of the data dir, and how often.
const ELSEWHERE: [(&str, usize); 1] = [
    // The operator's confirmation is in Pacemaker's volatile directory.
    ("src/agent/act/mod.rs", 1),
];

/// Returns the number of times that `text` contains `piece` outside of tests and comments.
fn count(text: &str, piece: &str) -> usize {
    let product = text.split("#[cfg(test)]").next().unwrap_or_default();
    product.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| line.matches(piece).count()).sum()
}

#[test]
fn what_has_its_place_is_nowhere_else() {
    let mut wrong = Vec::new();
    for (piece, home, instead) in ONLY_IN {
        let home_text = std::fs::read_to_string(root().join(home)).unwrap();
        assert!(count(&home_text, piece) > 0, "{home} has no {piece}: tell this test where it is now");
        for path in rust_files(&root().join("src")) {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            if name != *home && count(&std::fs::read_to_string(&path).unwrap(), piece) > 0 {
                wrong.push(format!("{name} has {piece}, which belongs to {home}: {instead}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn types_are_read_from_json_by_one_reader() {
    let is_test = |name: &str| ["/tests", "/fake_", "/samples.rs"].iter().any(|part| name.contains(part));
    let found: Vec<String> = rust_files(&root().join("src"))
        .into_iter()
        .filter_map(|path| {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            let text = std::fs::read_to_string(&path).unwrap();
            let count: usize = OTHER_READERS.iter().map(|reader| count(&text, reader)).sum();
            (count > 0 && !is_test(&name)).then_some(name)
        })
        .collect();
    assert_eq!(found, READ_BY_OTHERS, "take crate::base::json");
}

/// Asserts that the files of [`IN_THE_DATA_DIR`] open nothing by its path. No lint of clippy can do that:
/// `disallowed-methods` has one list for the whole crate. Each other folder of `src/` and each test would need an
/// `allow` of that lint. The `allow` would also lift the rules on processes and clocks.
#[test]
fn nothing_in_the_data_dir_is_opened_by_its_path() {
    let mut wrong = Vec::new();
    let files = |place: &&str| {
        let path = root().join(place);
        if path.is_dir() { rust_files(&path) } else { vec![path] }
    };
    for path in IN_THE_DATA_DIR.iter().flat_map(files) {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        if name.ends_with("tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let found: usize = BY_PATH.iter().map(|piece| count(&text, piece)).sum();
        let expected = ELSEWHERE.iter().find(|(file, _)| *file == name).map_or(0, |(_, count)| *count);
        if found != expected {
            wrong.push(format!(
                "{name} uses {found} functions that take a path, not {expected}: use crate::os::beneath::Dir"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tests_and_comments_do_not_count() {
    let text = "// \"/proc/a\"\nlet x = \"/proc/b\";\n#[cfg(test)]\nmod tests { const Y: &str = \"/proc/c\"; }\n";
    assert_eq!(count(text, "\"/proc"), 1);
}
