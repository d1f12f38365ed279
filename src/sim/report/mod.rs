//! Reports of a run for people: a story, a page.

pub mod page;
pub mod story;
