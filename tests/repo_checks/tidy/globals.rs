//! No globals in libraries. Signals, the process's end, its streams, its environment, the logger and a runtime belong
//! to the whole process. Only the applets' own mains and a few named files use them, and no static keeps state. So
//! several actions can run in one process, and a daemon can call everything that an agent can.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};

use super::sources::is_for_tests;
use crate::tree::{root, rust_files};

/// The globals of a process, with the files or folders that may use each, and the reason. `a::b` is the end of a path. A
/// single word is the last word of a path, or the name of a method.
const OF_THE_PROCESS: &[(&str, &[(&str, &str)])] = &[
    ("static", &[]),
    ("thread_local", &[]),
    // The end of the process.
    (
        "process::exit",
        &[
            ("fence/process.rs", "at a signal, and when the time of all threads is over"),
            ("agent/process.rs", "when the time of all threads is over"),
        ],
    ),
    ("process::abort", &[("os/daemon.rs", "after a panic: without V, the machine resets")]),
    ("panic::set_hook", &[("os/daemon.rs", "a panic of any thread ends the process")]),
    // Signals of the process.
    (
        "thread_block",
        &[
            ("fence/process.rs", "a signal deletes the session before it ends the process"),
            ("os/daemon.rs", "a signal is read between two events"),
        ],
    ),
    ("thread_set_mask", &[]),
    ("thread_swap_mask", &[]),
    ("sigprocmask", &[]),
    ("sigaction", &[]),
    // Properties that the kernel knows.
    ("set_dumpable", &[("applet.rs", "passwords and keys reach no core file")]),
    ("set_current_dir", &[]),
    ("setrlimit", &[]),
    ("umask", &[("applet.rs", "no other user writes what is made")]),
    ("unshare", &[]),
    // The standard streams.
    ("io::stdin", &[("fence/process.rs", "options"), ("admin", "an operator's answers")]),
    (
        "io::stdout",
        &[
            ("os/output.rs", "the one place that prints results"),
            ("fence/process.rs", "a power action is done whether its success can be printed or not"),
            ("admin", "questions to an operator"),
        ],
    ),
    (
        "io::stderr",
        &[
            ("os/output.rs", "the one place that prints complaints"),
            ("os/logging.rs", "Pacemaker logs what an agent writes there"),
            ("adapters/ocf/exit.rs", "the exit reason"),
            ("fence/process.rs", "where the log may be what hangs, and a hint for people at a terminal"),
            ("admin", "questions to an operator, where stdout is for JSON"),
        ],
    ),
    ("print_reason", &[("agent/process.rs", "the exit reason is printed once, in the end")]),
    // The arguments and the environment.
    ("env::args_os", &[("main.rs", "they are passed on"), ("bin", "the same")]),
    ("env::vars_os", &[("adapters/ocf/env.rs", "read once, into a value that is passed on")]),
    (
        "env::var",
        &[
            ("adapters/ocf/exit.rs", "the prefix of exit reasons"),
            ("admin/confirm_recovery.rs", "the user that gave something up"),
        ],
    ),
    (
        "env::var_os",
        &[
            ("adapters/command.rs", "the variables that programs get"),
            ("os/output.rs", "whether the terminal and its user want colours"),
            ("fence/process.rs", "whether the fencer is the caller"),
            ("watchdog/process.rs", "what its service sets"),
            ("fencing_agent/process.rs", "the same"),
            ("adapters/https/tls.rs", "other authorities than the machine's, named as for every TLS program"),
        ],
    ),
    ("env::set_var", &[]),
    ("env::remove_var", &[]),
    // The logger of the process.
    ("set_boxed_logger", &[("os/logging.rs", "a process has one; a second call changes nothing")]),
    ("set_logger", &[]),
    ("set_max_level", &[("os/logging.rs", "with the logger")]),
    (
        "logging::init",
        &[
            ("agent/process.rs", "an applet's own main"),
            ("fence/process.rs", "an applet's own main"),
            ("os/daemon.rs", "an applet's own main calls it"),
            ("admin/release_locks.rs", "an alert agent: nobody sees what it prints"),
            ("admin/alert.rs", "the same"),
            ("admin/prompt.rs", "every step, and every word of an operator, is in the system's log"),
            ("admin/collect/mod.rs", "a timer starts it: nobody sees what it prints"),
            ("admin/lone_boot.rs", "a unit starts it, and the journal has each step"),
        ],
    ),
    // Runtimes, and state that libraries keep for a whole process.
    (
        "Builder::new_current_thread",
        &[
            ("adapters/etcd/blocking.rs", "for the length of one question"),
            ("fencing_agent/process.rs", "one thread for datagrams and local clients"),
        ],
    ),
    ("Builder::new_multi_thread", &[]),
    ("Runtime::new", &[]),
    ("install_default", &[]),
];

/// The words of [`OF_THE_PROCESS`] that were found in a file.
#[derive(Default)]
struct Found(Vec<&'static str>);

impl Found {
    fn path(&mut self, path: &[String]) {
        let ends_so = |word: &str| {
            let word: Vec<&str> = word.split("::").collect();
            path.len() >= word.len() && path[path.len() - word.len()..].iter().eq(word.iter())
        };
        self.0.extend(OF_THE_PROCESS.iter().map(|(word, _)| *word).filter(|word| ends_so(word)));
    }

    fn tree(&mut self, tree: &syn::UseTree, prefix: &[String]) {
        let with = |name: &syn::Ident| prefix.iter().cloned().chain([name.to_string()]).collect::<Vec<_>>();
        match tree {
            syn::UseTree::Path(path) => self.tree(&path.tree, &with(&path.ident)),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(item, prefix)),
            syn::UseTree::Name(name) => self.path(&with(&name.ident)),
            syn::UseTree::Rename(rename) => self.path(&with(&rename.ident)),
            syn::UseTree::Glob(_) => {}
        }
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Static(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.path(&["static".to_owned()]);
        visit::visit_item_static(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        // The crate's own items are checked where they are called.
        if !matches!(&item.tree, syn::UseTree::Path(path) if ["crate", "super", "self"].iter().any(|own| path.ident == own))
        {
            self.tree(&item.tree, &[]);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.path(&path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>());
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.path(&[call.method.to_string()]);
        visit::visit_expr_method_call(self, call);
    }

    /// Visits the arguments of a macro such as `writeln!`, if they are expressions.
    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        let arguments =
            item.parse_body_with(syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated);
        for argument in arguments.iter().flatten() {
            let mut inside = Found::default();
            inside.visit_expr(argument);
            self.0.extend(inside.0);
        }
        visit::visit_macro(self, item);
    }
}

fn found_in(text: &str) -> Vec<&'static str> {
    let mut found = Found::default();
    found.visit_file(&syn::parse_file(text).unwrap());
    found.0
}

#[test]
fn what_belongs_to_the_process_is_touched_where_it_is_listed() {
    let src = root().join("src");
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for path in rust_files(&src) {
        let relative = path.strip_prefix(&src).unwrap();
        if relative.iter().any(|part| part == "tests" || part == "tests.rs") {
            continue;
        }
        for word in found_in(&std::fs::read_to_string(&path).unwrap()) {
            found.entry(word).or_default().push(relative.display().to_string());
        }
    }
    let mut wrong = Vec::new();
    for (word, places) in OF_THE_PROCESS {
        let files = found.remove(word).unwrap_or_default();
        let is_in = |file: &str, place: &str| file == place || file.starts_with(&format!("{place}/"));
        for file in files.iter().filter(|file| !places.iter().any(|(place, _)| is_in(file, place))) {
            wrong.push(format!(
                "src/{file}: {word} belongs to the process: pass in what is needed, or list it with a reason"
            ));
        }
        for (place, _) in places.iter().filter(|(place, _)| !files.iter().any(|file| is_in(file, place))) {
            wrong.push(format!("src/{place} does not touch {word} any more: strike it out of the list"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_global_is_found_in_every_spelling() {
    for (text, word) in [
        ("static LIMIT: OnceLock<u32> = OnceLock::new();", "static"),
        ("fn f() { static LIMIT: AtomicU32 = AtomicU32::new(0); }", "static"),
        ("thread_local! { static A: Cell<u32> = Cell::new(0); }", "thread_local"),
        ("fn f() { std::process::exit(1) }", "process::exit"),
        ("use std::process::{self, exit};", "process::exit"),
        ("fn f(set: &SigSet) { let _ = set.thread_block(); }", "thread_block"),
        ("fn f() { let _ = writeln!(std::io::stderr(), \"{}\", 1); }", "io::stderr"),
        ("mod inner { fn f() { crate::logging::init(settings()); } }", "logging::init"),
        ("impl A { fn f() { Builder::new_current_thread().build() } }", "Builder::new_current_thread"),
    ] {
        assert!(found_in(text).contains(&word), "{text}");
    }
    assert!(found_in("#[cfg(test)] mod tests { static A: u32 = 0; fn f() { std::process::exit(1) } }").is_empty());
}
