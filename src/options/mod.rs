//! The options of the programs.

pub mod manpage;
pub mod yes_no;
