//! Helpers for the elements of Pacemaker's XML.

use roxmltree::Node as Element;

use crate::base::printable::one_line;

/// Returns the first child element of `element` with the name `name`.
pub(crate) fn child<'a, 'i>(element: Element<'a, 'i>, name: &str) -> Option<Element<'a, 'i>> {
    element.children().find(|child| child.has_tag_name(name))
}

/// Returns the elements called `name` in the section called `section` directly below `parent`.
pub(crate) fn children<'a, 'i>(
    parent: Element<'a, 'i>,
    section: &str,
    name: &'static str,
) -> impl Iterator<Item = Element<'a, 'i>> + use<'a, 'i> {
    let section = child(parent, section).into_iter();
    section.flat_map(|section| section.children()).filter(move |child| child.has_tag_name(name))
}

/// Returns the attribute `name` as one line without control characters. The text is empty if the attribute is missing.
pub(crate) fn text(element: Element<'_, '_>, name: &str) -> String {
    one_line(element.attribute(name).unwrap_or_default()).into_owned()
}

/// Returns the attribute `name`; `None` if it is missing or empty.
pub(crate) fn given(element: Element<'_, '_>, name: &str) -> Option<String> {
    element.attribute(name).filter(|value| !value.is_empty()).map(|value| one_line(value).into_owned())
}

/// Returns the attribute `name`, a text of an agent, as [`text`] does. Also decodes XML entities, because Pacemaker 2.1.5 escapes such
/// texts twice.
pub(crate) fn words(element: Element<'_, '_>, name: &str) -> String {
    const ENTITIES: [(&str, &str); 5] =
        [("&amp;", "&"), ("&apos;", "'"), ("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">")];
    let said = text(element, name);
    if !said.contains('&') {
        return said;
    }
    ENTITIES.iter().fold(said, |said, (entity, letter)| said.replace(entity, letter))
}

pub(crate) fn is_true(element: Element<'_, '_>, name: &str) -> bool {
    element.attribute(name) == Some("true")
}

/// Returns the name and the value of each nvpair in a set.
pub(crate) fn pairs_of<'a, 'i>(set: Element<'a, 'i>) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a, 'i> {
    let pairs = set.children().filter(|child| child.has_tag_name("nvpair"));
    pairs.filter_map(|pair| Some((pair.attribute("name")?, pair.attribute("value")?)))
}

/// Returns the name and the value of each nvpair in the sets called `sets` directly below `element`.
pub(crate) fn nvpairs<'a, 'i>(
    element: Element<'a, 'i>,
    sets: &'static str,
) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a, 'i> {
    element.children().filter(move |child| child.has_tag_name(sets)).flat_map(pairs_of)
}
