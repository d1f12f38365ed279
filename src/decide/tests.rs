//! The rules, as tables: a situation in a few words, and the plan that must come out of it.

mod alarms;
mod cold_start;
mod disk;
mod golden;
mod in_time;
mod lost_data;
mod membership;
mod monitor_and_notify;
mod newest;
mod no_permission;
mod others;
mod reasons;
mod recovery;
mod room;
mod slow;
mod stand_in;
mod start;
mod start_alone;
mod stop;
mod turn;
mod unreadable_note;
mod unstartable;
mod world;
