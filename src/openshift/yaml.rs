//! The part of YAML that kubeconfig files are written in by the programs that write them: mappings and lists by
//! indentation, plain and quoted scalars on one line. Anything else is no answer.

use serde_json::{Map, Value};

/// One line that says something.
#[derive(Clone, Copy)]
struct Line<'a> {
    indent: usize,
    text: &'a str,
}

/// Reads a document; JSON is taken as well.
pub(super) fn parse(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let says = |line: &&str| !matches!(line.trim().chars().next(), None | Some('#')) && line.trim() != "---";
    let line = |text: &str| {
        let trimmed = text.trim_end();
        let inner = trimmed.trim_start_matches(' ');
        (!inner.starts_with('\t')).then_some((trimmed.len() - inner.len(), inner.to_owned()))
    };
    let owned: Vec<(usize, String)> = text.lines().filter(says).map(line).collect::<Option<_>>()?;
    let lines: Vec<Line<'_>> = owned.iter().map(|(indent, text)| Line { indent: *indent, text }).collect();
    let (value, rest) = block(&lines, 0)?;
    rest.is_empty().then_some(value)
}

/// The block that begins with the first line, which is at least at `least`; and the lines after it.
fn block<'a, 'l>(lines: &'l [Line<'a>], least: usize) -> Option<(Value, &'l [Line<'a>])> {
    let first = lines.first().filter(|line| line.indent >= least)?;
    if is_item(first.text) { list(lines, first.indent) } else { mapping(lines, first.indent) }
}

fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

fn list<'a, 'l>(mut lines: &'l [Line<'a>], indent: usize) -> Option<(Value, &'l [Line<'a>])> {
    let mut items = Vec::new();
    while let Some(line) = lines.first().filter(|line| line.indent == indent && is_item(line.text)) {
        let after = line.text[1..].trim_start();
        let inner = indent + line.text.len() - after.len();
        let end = 1 + lines[1..].iter().take_while(|next| next.indent > indent).count();
        let mut own = lines[..end].to_vec();
        own[0] = Line { indent: inner, text: after };
        if after.is_empty() {
            own.remove(0);
        }
        items.push(match own.as_slice() {
            [] => Value::Null,
            [only] if colon(only.text).is_none() => scalar(only.text)?,
            own => whole(block(own, 0)?)?,
        });
        lines = &lines[end..];
    }
    Some((Value::Array(items), lines))
}

fn mapping<'a, 'l>(mut lines: &'l [Line<'a>], indent: usize) -> Option<(Value, &'l [Line<'a>])> {
    let mut entries = Map::new();
    while let Some(line) = lines.first().filter(|line| line.indent == indent && !is_item(line.text)) {
        let (key, value) = colon(line.text)?;
        let Value::String(key) = scalar(key)? else { return None };
        lines = &lines[1..];
        let value = if value.is_empty() {
            // A list may stand as far left as the key that it belongs to.
            let below =
                lines.first().is_some_and(|next| next.indent > indent || next.indent == indent && is_item(next.text));
            if below {
                let (value, rest) = block(lines, indent)?;
                lines = rest;
                value
            } else {
                Value::Null
            }
        } else {
            scalar(value)?
        };
        entries.insert(key, value);
    }
    Some((Value::Object(entries), lines))
}

fn whole(parsed: (Value, &[Line<'_>])) -> Option<Value> {
    parsed.1.is_empty().then_some(parsed.0)
}

/// Key and value of a line `key: value`.
fn colon(text: &str) -> Option<(&str, &str)> {
    if let Some(key) = text.strip_suffix(':') {
        return Some((key, ""));
    }
    text.split_once(": ").map(|(key, value)| (key, value.trim()))
}

fn scalar(text: &str) -> Option<Value> {
    match text.chars().next()? {
        '"' => serde_json::from_str(text).ok(),
        '\'' => Some(Value::String(text.strip_prefix('\'')?.strip_suffix('\'')?.replace("''", "'"))),
        '{' if text == "{}" => Some(Value::Object(Map::new())),
        '[' if text == "[]" => Some(Value::Array(Vec::new())),
        '{' | '[' | '|' | '>' | '&' | '*' | '!' | '%' | '@' | '`' => None,
        _ => Some(Value::String(text.split(" #").next().unwrap_or(text).trim_end().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn nested_lists_and_mappings() {
        let text = "# comment\napiVersion: v1\nusers:\n- name: 'a''b'\n  user:\n    token: \"x\\ty\"\n-\n  name: c\nempty: {}\nlist:\n  - 1\n  - two\nnothing:\n";
        let expected = json!({
            "apiVersion": "v1",
            "users": [{"name": "a'b", "user": {"token": "x\ty"}}, {"name": "c"}],
            "empty": {},
            "list": ["1", "two"],
            "nothing": null,
        });
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("{\"a\": 1}"), Some(json!({"a": 1})));
        for strange in ["a: |\n  text", "a: [b]", "a:\n\tb: c", "a: &x b", "just words"] {
            assert_eq!(parse(strange), None, "{strange}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([ \\-a:'\"#\n{}\\[\\]é]{0,40})") {
            let _ = parse(&text);
        }
    }
}
