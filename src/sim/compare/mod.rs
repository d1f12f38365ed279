//! Tandem, compared with other ways to run two members.

pub mod strategy;
pub mod timeline;
