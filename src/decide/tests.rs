//! The rules, as tables: a situation in a few words, and the plan that must come out of it.

mod cold_start;
mod monitor_and_notify;
mod reasons;
mod start;
mod stop;
mod world;
