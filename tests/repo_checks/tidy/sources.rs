//! The parsed sources of `src/`, and the imports between their modules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

use crate::tree::{root, rust_files};

/// The path of a module below the crate, such as `decide::start`. The path of the crate's root is empty.
pub(crate) type Module = Vec<String>;

/// The imports of one source file.
pub(crate) struct File {
    pub(crate) path: PathBuf,
    /// The paths in the file's code, made absolute: `crate::decide::Request` is `["decide", "Request"]`.
    uses: BTreeSet<Module>,
    /// The names that the file's `use` items introduce, with their targets. Re-exports are among them.
    names: BTreeMap<String, Module>,
}

pub(crate) struct Sources {
    pub(crate) files: BTreeMap<Module, File>,
}

impl Sources {
    /// Reads all files of `src/`, except code that is compiled only for tests, which may import anything.
    pub(crate) fn of_the_product() -> Self {
        let src = root().join("src");
        let mut files = BTreeMap::new();
        for path in rust_files(&src) {
            let relative = path.strip_prefix(&src).unwrap().to_owned();
            if relative.iter().any(|part| part == "tests" || part == "tests.rs") {
                continue;
            }
            let module = module_of(&relative);
            let syntax = syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let mut reader = Reader { at: module.clone(), uses: BTreeSet::new(), names: BTreeMap::new() };
            reader.visit_file(&syntax);
            files.insert(module, File { path: relative, uses: reader.uses, names: reader.names });
        }
        assert!(files.len() > 150, "the sources are not where this test looks for them");
        Self { files }
    }

    /// Returns the modules from which `module` imports items. A re-export counts as the module that defines the item.
    pub(crate) fn taken_by(&self, module: &Module) -> BTreeSet<Module> {
        let uses = self.files[module].uses.iter();
        uses.filter_map(|path| self.home_of(path, 0)).filter(|home| home != module).collect()
    }

    /// Returns the module with the file that defines the item `path`; `None` if no file does. `depth` is the number
    /// of re-exports followed so far.
    fn home_of(&self, path: &Module, depth: usize) -> Option<Module> {
        let known = (0..=path.len()).rev().find(|length| self.files.contains_key(&path[..*length]))?;
        let (module, rest) = path.split_at(known);
        let reexported = rest.first().and_then(|name| self.files[module].names.get(name));
        match reexported {
            // A glob may import a name under itself. Such a circle ends here.
            Some(target) if depth < 8 && target != path => {
                let whole = target.iter().chain(&rest[1..]).cloned().collect();
                self.home_of(&whole, depth + 1)
            }
            _ => Some(module.to_vec()),
        }
    }
}

/// Returns the module of a source file: `decide/start.rs` is `decide::start`, and `decide/mod.rs` is `decide`.
fn module_of(relative: &Path) -> Module {
    let mut parts: Module =
        relative.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// A reader of one file. It collects the paths that begin with `crate`, `self` or `super`, in `use` items and in the code.
struct Reader {
    at: Module,
    uses: BTreeSet<Module>,
    names: BTreeMap<String, Module>,
}

impl Reader {
    /// Converts a path in the source to an absolute path from the crate's root. Returns `None` if the path does not
    /// begin with `crate`, `self` or `super`.
    fn absolute(&self, written: &[String]) -> Option<Module> {
        let (first, rest) = written.split_first()?;
        let mut base = match first.as_str() {
            "crate" => Vec::new(),
            "self" => self.at.clone(),
            "super" => parent(&self.at),
            _ => return None,
        };
        let mut rest = rest;
        while let [first, more @ ..] = rest
            && first == "super"
        {
            base = parent(&base);
            rest = more;
        }
        Some(base.into_iter().chain(rest.iter().cloned()).collect())
    }

    fn take(&mut self, written: &[String]) {
        // In `pub(crate)`, only `crate` is a path.
        if let Some(target) = self.absolute(written).filter(|target| !target.is_empty()) {
            self.uses.insert(target);
        }
    }

    fn tree(&mut self, tree: &syn::UseTree, prefix: &[String]) {
        let with = |name: &syn::Ident| prefix.iter().cloned().chain([name.to_string()]).collect::<Vec<_>>();
        match tree {
            syn::UseTree::Path(path) => self.tree(&path.tree, &with(&path.ident)),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(item, prefix)),
            syn::UseTree::Name(name) if name.ident == "self" => {
                let own = prefix.last().cloned().unwrap_or_default();
                self.import(prefix, Some(own));
            }
            syn::UseTree::Name(name) => self.import(&with(&name.ident), Some(name.ident.to_string())),
            syn::UseTree::Rename(rename) => self.import(&with(&rename.ident), Some(rename.rename.to_string())),
            syn::UseTree::Glob(_) => self.import(prefix, None),
        }
    }

    fn import(&mut self, written: &[String], name: Option<String>) {
        // In `use child::Item`, a name that is no module of this crate is found nowhere.
        let target = self.absolute(written).unwrap_or_else(|| self.at.iter().chain(written).cloned().collect());
        self.uses.insert(target.clone());
        if let Some(name) = name {
            self.names.insert(name, target);
        }
    }
}

fn parent(module: &Module) -> Module {
    module[..module.len().saturating_sub(1)].to_vec()
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_none() || is_for_tests(&item.attrs) {
            return;
        }
        self.at.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.at.pop();
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.tree(&item.tree, &[]);
        }
    }

    /// Visits the arguments of a macro such as `format!` or `matches!`, if they are expressions.
    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        let arguments =
            item.parse_body_with(syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated);
        for path in arguments.iter().flatten().flat_map(paths_in) {
            self.take(&path);
        }
        visit::visit_macro(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.take(&written(path));
        visit::visit_path(self, path);
    }
}

fn written(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// Returns the paths in an expression. The expression is the parsed argument of a macro, which does not outlive this
/// call.
fn paths_in(expression: &syn::Expr) -> Vec<Vec<String>> {
    struct Paths(Vec<Vec<String>>);
    impl<'ast> Visit<'ast> for Paths {
        fn visit_path(&mut self, path: &'ast syn::Path) {
            self.0.push(written(path));
            visit::visit_path(self, path);
        }
    }
    let mut found = Paths(Vec::new());
    found.visit_expr(expression);
    found.0
}

pub(crate) fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|argument| argument == "test")
    })
}
