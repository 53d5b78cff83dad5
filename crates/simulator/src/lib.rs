//! A world whose clocks, delays and causes are known, for tests.
//!
//! A [`scenario::Scenario`] says what truly happens to one call; a [`world::World`] says how the
//! clocks stand and how well each source sees. Together they give what skewtap
//! would have been told, so that a test can hold a verdict against the truth.
#![forbid(unsafe_code)]

pub mod scenario;
pub mod world;
