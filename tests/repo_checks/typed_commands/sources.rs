//! The printed commands, from the sources of `tandem status` and from the recovery guide.

use std::collections::BTreeSet;
use std::fs;

use syn::visit::{self, Visit};

use crate::recovery_guide;
use crate::tree::{root, rust_files};

/// The names of functions and constants in `src/operate/health` that return a command. The sources pass it to `typed`, which makes it a
/// problem's command. All texts in these functions and constants are commands.
const MAKERS: [&str; 9] =
    ["RECLAIM", "WATCH", "command", "fencing_check", "history", "others", "update_command", "way_back", "what_to_type"];
/// The texts in functions of [`MAKERS`] that are no commands: values for placeholders, and names of parameters.
const PARTS: [&str; 4] = ["NODE", "cert_file", "trusted_ca_file", ""];

/// Returns every command that a problem of `tandem status` can print, with `{}` for values that are known only then.
pub(super) fn templates() -> Vec<String> {
    let mut reader = Reader::default();
    for file in rust_files(&root().join("src/operate/health")) {
        if !file.ends_with("tests.rs") {
            reader.visit_file(&syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap());
        }
    }
    assert!(reader.unread.is_empty(), "name what makes these commands in MAKERS: {:?}", reader.unread);
    reader.found.into_iter().collect()
}

#[derive(Default)]
struct Reader {
    /// True while the reader is in a function or constant of [`MAKERS`], so that all texts are commands.
    is_maker: bool,
    found: BTreeSet<String>,
    unread: Vec<String>,
}

impl Reader {
    fn take(&mut self, text: &str) {
        if PARTS.contains(&text) {
            return;
        }
        let mut template = String::new();
        let mut rest = text;
        while let Some((before, hole)) = rest.split_once('{') {
            template.push_str(before);
            template.push_str("{}");
            rest = hole.split_once('}').map_or("", |(_, after)| after);
        }
        self.found.insert(template + rest);
    }

    fn take_macro(&mut self, call: &syn::Macro) {
        let literal = call.parse_body_with(|input: syn::parse::ParseStream<'_>| {
            let literal: syn::LitStr = input.parse()?;
            let _: proc_macro2::TokenStream = input.parse()?;
            Ok(literal)
        });
        if let Ok(literal) = literal {
            self.take(&literal.value());
        }
    }

    /// Reads the command from the argument of a call of `typed`.
    fn read(&mut self, argument: &syn::Expr) {
        match argument {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => self.take(&text.value()),
            syn::Expr::Macro(call) => self.take_macro(&call.mac),
            syn::Expr::Call(call) => match &*call.func {
                // The command after `ssh NODE`, which is about the other node.
                syn::Expr::Path(path) if path.path.is_ident("on") => {
                    call.args.iter().skip(2).for_each(|one| self.read(one));
                }
                syn::Expr::Path(path) => self.must_be_maker(&path.path),
                _ => self.unread.push("a call".to_owned()),
            },
            syn::Expr::MethodCall(call) if MAKERS.contains(&call.method.to_string().as_str()) => {}
            syn::Expr::Path(path) => self.must_be_maker(&path.path),
            syn::Expr::If(choice) => {
                let ways = [Some(&choice.then_branch), choice.else_branch.as_ref().and_then(|(_, other)| block(other))];
                for way in ways.into_iter().flatten() {
                    way.stmts.iter().for_each(|statement| match statement {
                        syn::Stmt::Expr(value, None) => self.read(value),
                        _ => self.unread.push("a statement".to_owned()),
                    });
                }
            }
            _ => self.unread.push("another expression".to_owned()),
        }
    }

    fn must_be_maker(&mut self, path: &syn::Path) {
        let name = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        // The variable must hold the result of such a maker.
        if !MAKERS.contains(&name.as_str()) && name != "way" {
            self.unread.push(name);
        }
    }

    fn within(&mut self, name: &syn::Ident, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.is_maker, MAKERS.contains(&name.to_string().as_str()));
        visit(self);
        self.is_maker = before;
    }
}

fn block(expression: &syn::Expr) -> Option<&syn::Block> {
    if let syn::Expr::Block(block) = expression { Some(&block.block) } else { None }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if call.method == "typed" {
            call.args.iter().for_each(|argument| self.read(argument));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        if self.is_maker {
            self.take(&literal.value());
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if self.is_maker {
            self.take_macro(call);
        }
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.within(&item.sig.ident, |reader| visit::visit_item_fn(reader, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.within(&item.sig.ident, |reader| visit::visit_impl_item_fn(reader, item));
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.within(&item.ident, |reader| visit::visit_item_const(reader, item));
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident != "tests" {
            visit::visit_item_mod(self, module);
        }
    }
}

/// Returns whether a code span of the recovery guide is a command, and not a file, a parameter or another word.
fn is_command(words: &str) -> bool {
    const OTHERS: [&str; 6] = ["PROGRAM", "podman-etcd", "member", "CORRUPT", "debug_file", "password_file"];
    let first = words.split([' ', ';']).next().unwrap_or_default();
    let is_word =
        !first.is_empty() && first.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    is_word && !first.starts_with('-') && !OTHERS.contains(&first) && !first.starts_with("ssl_")
}

/// Returns every command that the recovery guide has in the last columns of its tables, and in its shell blocks.
pub(super) fn remedies() -> Vec<String> {
    let text = fs::read_to_string(root().join(recovery_guide::GUIDE)).unwrap();
    let mut found = Vec::new();
    let mut block: Option<String> = None;
    for line in text.lines() {
        match (&mut block, line) {
            (None, "```sh") => block = Some(String::new()),
            (Some(lines), "```") => {
                // A backslash continues the line.
                let whole = lines.replace("\\\n", " ");
                found.extend(whole.lines().map(str::trim).filter(|line| is_command(line)).map(str::to_owned));
                block = None;
            }
            (Some(lines), line) => lines.extend([line, "\n"]),
            (None, line) if line.starts_with("| `") => {
                let last = line.trim_matches('|').split(" |").last().unwrap_or_default();
                found.extend(last.split('`').skip(1).step_by(2).filter(|words| is_command(words)).map(str::to_owned));
            }
            (None, _) => {}
        }
    }
    found
}

/// Returns every command of `tandem` in the sentences of the recovery guide: in exit reasons, and in refusals of `tandem`
/// itself.
pub(super) fn quoted() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(recovery_guide::GUIDE)).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("| `") || line.starts_with("### `"));
    let code = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
    let quotes = code.flat_map(|words| words.split(['\'']).skip(1));
    quotes.filter(|words| words.starts_with("tandem ")).map(|words| words.trim().to_owned()).collect()
}
