//! The model: its scenarios, its searches and their coverage, the mutants that they must catch, and the comparison of
//! strategies.

mod compare;
mod coverage;
mod fencing;
mod members;
mod mutants;
mod race;
mod scenarios;
mod search;
