//! The two-host lab.

fn main() {}
