//! The model: its scenarios, its searches, what they reach, the rules that they would miss, and the comparison of strategies.

mod compare;
mod coverage;
mod fencing;
mod members;
mod mutants;
mod race;
mod scenarios;
mod search;
