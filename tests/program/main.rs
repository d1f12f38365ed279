//! The program as it is called: by its names, with its actions, by Pacemaker, a package manager or ShellSpec. Also the
//! texts that it prints about itself.

mod arrival;
mod boundaries;
mod dispatch;
mod etcdctl;
mod events;
#[path = "../support/executable.rs"]
mod executable;
mod fingers;
mod formats;
mod full_disk;
mod generated;
mod hostile_cib;
mod killed_agent;
mod metadata;
#[path = "../support/namespaces.rs"]
mod namespaces;
mod planted;
mod removal;
mod replay;
mod rust;
mod security;
mod shellspec_runner;
mod slow_podman;
#[path = "../support/tree.rs"]
mod tree;
mod units;
mod unmounted;
