//! A run told to people: a story, a page.

pub mod page;
pub mod story;
