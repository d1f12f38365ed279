//! A writer of the small XML documents that the agents print about themselves.

use std::fmt::Write;

/// A builder of an XML document with indented elements.
#[derive(Debug, Default)]
pub struct Writer {
    text: String,
    open: Vec<String>,
}

impl Writer {
    /// Creates an XML document that begins with the XML declaration and `prolog`, which is a DOCTYPE or empty.
    pub fn document(prolog: &str) -> Self {
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        if !prolog.is_empty() {
            text.push_str(prolog);
            text.push('\n');
        }
        Self { text, open: Vec::new() }
    }

    /// Writes the start tag of an element that will have child elements.
    pub fn open(&mut self, name: &str, attributes: &[(&str, &str)]) -> &mut Self {
        self.tag(name, attributes, ">\n");
        self.open.push(name.to_owned());
        self
    }

    /// Writes the end tag of the element that was opened last.
    pub fn close(&mut self) -> &mut Self {
        if let Some(name) = self.open.pop() {
            self.indent();
            let _ = writeln!(self.text, "</{name}>");
        }
        self
    }

    /// Adds an element without content.
    pub fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) -> &mut Self {
        self.tag(name, attributes, " />\n");
        self
    }

    /// Adds an element with text.
    pub fn text(&mut self, name: &str, attributes: &[(&str, &str)], content: &str) -> &mut Self {
        self.tag(name, attributes, ">");
        let _ = writeln!(self.text, "{}</{name}>", escape(content));
        self
    }

    /// Closes all open elements. Returns the text of the document.
    pub fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, &str)], end: &str) {
        self.indent();
        let _ = write!(self.text, "<{name}");
        for (key, value) in attributes {
            let _ = write!(self.text, " {key}=\"{}\"", escape(value));
        }
        self.text.push_str(end);
    }

    fn indent(&mut self) {
        for _ in 0..self.open.len() {
            self.text.push_str("  ");
        }
    }
}

/// Returns `text` with XML's special characters replaced by entities.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_nested_and_their_text_is_escaped() {
        let mut xml = Writer::document("");
        xml.open("a", &[("n", "x<y & \"z\"")]).text("b", &[], "1 > 0").empty("c", &[]);
        assert_eq!(
            xml.finish(),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a n=\"x&lt;y &amp; &quot;z&quot;\">\n  <b>1 &gt; 0</b>\n  <c />\n</a>\n"
        );
    }
}
