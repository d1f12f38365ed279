//! The rules, as tables.
