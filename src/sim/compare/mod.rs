//! Tandem beside other ways to run two members.

pub mod strategy;
pub mod timeline;
