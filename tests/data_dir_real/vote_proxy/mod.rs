//! The vote proxy for a dead member, on real pairs of etcds with TLS between them and writers on both. Run it with
//! `cargo test --test data_dir_real vote_proxy -- --test-threads 1 --nocapture`.

mod cut;
mod half_way;
mod hindered;
mod pair;
mod proxy;
mod take_over;
