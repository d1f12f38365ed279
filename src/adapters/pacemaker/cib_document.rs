//! The CIB as a document. Three views read it: [`super::cib`] for the rules, [`super::configuration`] for operators, and
//! [`super::layout`] for setup.

use roxmltree::{Document, Node as Element};

use super::element::child;

/// A whole CIB as parsed XML.
pub(super) struct CibDocument<'i>(Document<'i>);

impl<'i> CibDocument<'i> {
    /// Parses the output of `cibadmin --query`. An error describes the fault in words that fit into a sentence.
    pub(super) fn parse(xml: &'i str) -> Result<Self, String> {
        let document = Document::parse(xml).map_err(|error| error.to_string())?;
        let root = document.root_element().tag_name().name();
        if root == "cib" { Ok(Self(document)) } else { Err(format!("its root is '{root}'")) }
    }

    /// Returns the root element `cib`. It has `configuration` and `status`. In Pacemaker's file on disk it has no `status`.
    pub(super) fn root(&self) -> Element<'_, 'i> {
        self.0.root_element()
    }

    /// Returns the section `configuration` of the CIB.
    pub(super) fn configuration(&self) -> Result<Element<'_, 'i>, &'static str> {
        child(self.root(), "configuration").ok_or("it has no configuration")
    }
}
