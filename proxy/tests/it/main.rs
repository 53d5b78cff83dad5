//! The proxy from outside: raw sockets on both sides, and a collector that
//! takes its records.

mod collector;
mod harness;
mod wire;

mod connections;
mod context;
mod expect;
mod faults;
mod forward;
mod packets;
mod relay;
mod shipping;
mod stamps;
mod watches;
