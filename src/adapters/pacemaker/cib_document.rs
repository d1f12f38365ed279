//! The CIB as a document. Three views read it: [`super::cib`] for the rules, [`super::configuration`] for people, and
//! [`super::layout`] for setup.

use roxmltree::{Document, Node as Element};

use super::element::child;

/// A whole CIB.
pub(super) struct CibDocument<'i>(Document<'i>);

impl<'i> CibDocument<'i> {
    /// Parses what `cibadmin --query` prints. Returns what is wrong with it as words for a sentence.
    pub(super) fn parse(xml: &'i str) -> Result<Self, String> {
        let document = Document::parse(xml).map_err(|error| error.to_string())?;
        let root = document.root_element().tag_name().name();
        if root == "cib" { Ok(Self(document)) } else { Err(format!("its root is '{root}'")) }
    }

    /// Returns its root, which has `configuration` and, unless it is the file on disk, `status` in it.
    pub(super) fn root(&self) -> Element<'_, 'i> {
        self.0.root_element()
    }

    /// Returns its section `configuration`.
    pub(super) fn configuration(&self) -> Result<Element<'_, 'i>, &'static str> {
        child(self.root(), "configuration").ok_or("it has no configuration")
    }
}
