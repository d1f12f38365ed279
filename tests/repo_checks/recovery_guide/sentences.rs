//! Every sentence that the code can print when it refuses or fails, taken from the sources themselves instead of a
//! manual list.

use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::exceptions;
use crate::tree::{root, rust_files};

/// The files and folders with sentences that reach `crm_mon`, stderr or the journal because of a refusal or a failure.
const SOURCES: &[&str] = &[
    "src/adapters/command.rs",
    "src/adapters/corosync/conf.rs",
    "src/adapters/data_dir/error.rs",
    "src/adapters/etcd/client.rs",
    "src/adapters/etcd/error.rs",
    "src/adapters/https",
    "src/adapters/openshift/replaced.rs",
    "src/adapters/options/value.rs",
    "src/adapters/pacemaker/alerts.rs",
    "src/adapters/pacemaker/attributes.rs",
    "src/adapters/pacemaker/by_hand.rs",
    "src/adapters/pacemaker/cib.rs",
    "src/adapters/pacemaker/duration.rs",
    "src/adapters/pacemaker/element.rs",
    "src/adapters/pacemaker/erased.rs",
    "src/adapters/pacemaker/exit_code.rs",
    "src/adapters/pacemaker/fence_options.rs",
    "src/adapters/pacemaker/fence_update.rs",
    "src/adapters/pacemaker/layout.rs",
    "src/adapters/pacemaker/member_change.rs",
    "src/adapters/pacemaker/mod.rs",
    "src/adapters/pacemaker/resource.rs",
    "src/adapters/pacemaker/wishes.rs",
    "src/adapters/podman",
    "src/adapters/redfish",
    "src/adapters/ssh.rs",
    "src/admin",
    "src/adapters/watchdog",
    "src/adapters/watchdog.rs",
    "src/agent",
    "src/decide/may_stop.rs",
    "src/decide/members/forbidden.rs",
    "src/decide/reason",
    "src/decide/reason.rs",
    "src/fence",
    "src/fencing_agent",
    "src/operate/certs",
    "src/operate/cluster/ask.rs",
    "src/operate/cluster/error.rs",
    "src/operate/collect",
    "src/operate/events",
    "src/operate/failure.rs",
    "src/operate/fencing",
    "src/operate/gather",
    "src/operate/health/passwords.rs",
    "src/operate/health/problems",
    "src/operate/lone_boot/act.rs",
    "src/operate/members",
    "src/operate/node.rs",
    "src/operate/setup",
    "src/operate/upgrade",
    "src/records/data_mount.rs",
    "src/records/events",
    "src/watchdog",
];
/// The macros with texts for the log or for stdout, which are no refusals.
const OTHER_MACROS: &[&str] = &["debug", "error", "info", "log", "warn", "print", "println", "eprintln", "json"];

/// A sentence in a source. It has holes for values that are known only when it is printed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sentence {
    /// The text of the sentence, with `{}` for each hole.
    pub(crate) text: String,
    /// The file and the line of the text.
    pub(crate) place: String,
}

/// Returns the sentences of all sources, in the order of their texts.
pub(crate) fn all() -> Vec<Sentence> {
    let files: Vec<PathBuf> = SOURCES.iter().flat_map(|source| files(&root().join(source))).collect();
    assert!(files.len() > SOURCES.len(), "the sources are not where this test looks for them");
    let mut found: Vec<Sentence> = files.iter().flat_map(|file| of_file(root(), file)).collect();
    found.sort();
    found.dedup_by(|a, b| a.text == b.text);
    found
}

/// Returns the file at `path` or, if `path` is a folder, the files below it that are no tests.
fn files(path: &Path) -> Vec<PathBuf> {
    assert!(path.exists(), "{} is gone: tell this test where its sentences are now", path.display());
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let is_test = |file: &PathBuf| file.iter().any(|part| part == "tests" || part == "tests.rs");
    rust_files(path).into_iter().filter(|file| !is_test(&file.strip_prefix(path).unwrap_or(file).to_owned())).collect()
}

fn of_file(root: &Path, path: &Path) -> Vec<Sentence> {
    let file = syn::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap();
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let mut reader = Reader { file: name, owner: String::new(), function: String::new(), found: Vec::new() };
    reader.visit_file(&file);
    reader.found
}

struct Reader {
    file: String,
    /// The type with the methods that are being read, or an empty string outside of an `impl`.
    owner: String,
    /// The name of the function that is being read.
    function: String,
    found: Vec<Sentence>,
}

impl Reader {
    fn take(&mut self, literal: &syn::LitStr) {
        let mut text = without_holes(&literal.value());
        if text.ends_with(": ") {
            // A separate call writes the text that follows.
            text.push_str("{}");
        }
        if is_sentence(&text) && !exceptions::is_none_of(&self.file, &self.function, &text) {
            let line = literal.span().start().line;
            self.found.push(Sentence { text, place: format!("{}:{line}", self.file) });
        }
    }

    /// Takes the string literals among a macro's arguments: its format string, and texts that are inserted into it.
    fn take_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Literal(literal) => {
                    if let Ok(syn::Lit::Str(text)) = syn::parse_str::<syn::Lit>(&literal.to_string()) {
                        self.take(&syn::LitStr::new(&text.value(), literal.span()));
                    }
                }
                TokenTree::Group(group) => self.take_tokens(group.stream()),
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.take(literal);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let name = call.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        if !OTHER_MACROS.contains(&name.as_str()) {
            self.take_tokens(call.tokens.clone());
        }
    }

    /// Skips the arguments of `output::say`, because that function prints a result or a question.
    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let says = matches!(&*call.func, syn::Expr::Path(function) if function.path.is_ident("say"));
        if !says {
            visit::visit_expr_call(self, call);
        }
    }

    /// Skips the texts of `Prompt::tell`, which belong to a question, and those of `typed`, which are a problem's command.
    /// The guide has its own words for such a command.
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        match call.method.to_string().as_str() {
            "tell" => {}
            "typed" => self.visit_expr(&call.receiver),
            _ => visit::visit_expr_method_call(self, call),
        }
    }

    /// Skips the field `long` of a refusal, which is the journal's longer form of an exit reason. The guide has the exit
    /// reason.
    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        let is_long = matches!(&field.member, syn::Member::Named(name) if name == "long");
        if !is_long || self.owner != "Refusal" {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if attribute.path().is_ident("error")
            && let syn::Meta::List(list) = &attribute.meta
        {
            self.take_tokens(list.tokens.clone());
        }
    }

    /// Forgets the function that was read before, because the attributes of an enum do not belong to it.
    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.function.clear();
        visit::visit_item_enum(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.function.clear();
        visit::visit_item_struct(self, item);
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let for_tests = module.attrs.iter().any(|attribute| {
            attribute.path().is_ident("cfg")
                && attribute.meta.require_list().is_ok_and(|of| of.tokens.to_string() == "test")
        });
        if !for_tests {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        // `impl fmt::Display for Rule`, and methods of `Rule`, are read as functions of `Rule`.
        self.owner = match &*block.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default(),
            _ => String::new(),
        };
        visit::visit_item_impl(self, block);
        self.owner.clear();
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        let name = &signature.ident;
        self.function = if self.owner.is_empty() { name.to_string() } else { format!("{}::{name}", self.owner) };
    }
}

/// Returns whether a text is a sentence. A single word is a key or a name, and a pattern without words would fit everything.
fn is_sentence(text: &str) -> bool {
    let words = text.split(|character: char| !character.is_alphanumeric() && character != '_');
    text.trim().contains(' ') && words.filter(|word| word.len() > 1).count() > 0
}

/// Returns a format string with `{}` for each hole: `"a {b:?} c"` becomes `"a {} c"`. `{{` stays a brace.
fn without_holes(format: &str) -> String {
    let mut text = String::new();
    let mut rest = format.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '{' if rest.peek() == Some(&'{') => {
                rest.next();
                text.push('{');
            }
            '{' => {
                rest.by_ref().find(|character| *character == '}');
                text.push_str("{}");
            }
            '}' if rest.peek() == Some(&'}') => {
                rest.next();
                text.push('}');
            }
            other => text.push(other),
        }
    }
    text
}
