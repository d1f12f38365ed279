//! The options of the programs.

pub mod yes_no;
