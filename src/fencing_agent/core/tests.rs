//! The rules of the core.
