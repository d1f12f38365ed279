//! A Redfish service as a fence agent needs it: find one computer system, read its power state, send it a reset.
//!
//! The meaning of an answer is pure, and separate from the request. [`resource`] and [`complaint`] read bodies, [`quirks`] is a
//! table of vendors' differences, and [`select`] chooses among several systems. [`client`] speaks HTTP (a [`request`], its
//! [`reply`]) over one TLS connection to one host (`crate::adapters::https`). [`service`] logs in, with one password or
//! [`several`], and sends requests with that login. With it [`discovery`] finds the configured system, and [`bmc`] combines both.
//! [`mark`] leaves a session that another client sees, and [`flag`] proves that a BMC shows it.

pub mod account;
pub mod bmc;
pub mod client;
pub mod complaint;
pub mod discovery;
pub mod explain;
pub mod failure;
pub mod flag;
pub mod limits;
pub mod mark;
pub mod quirks;
pub mod reply;
pub mod request;
pub mod resource;
pub mod select;
pub mod service;
pub mod session;
mod several;
pub mod task;
