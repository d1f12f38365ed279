//! The rules, as tables: a situation in a few words, and the plan that must come out of it.

mod alarms;
mod cold_start;
mod golden;
mod lost_data;
mod monitor_and_notify;
mod newest;
mod others;
mod reasons;
mod room;
mod start;
mod stop;
mod world;
