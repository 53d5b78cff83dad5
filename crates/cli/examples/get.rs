//! Gets a URL with reqwest, as a program in Rust does, and prints the body.
//!
//!     skewtap run -- cargo run --example get -- http://127.0.0.1:9000/
#![forbid(unsafe_code)]

use std::io::{self, Write as _};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: get URL")?;
    let body = reqwest::blocking::get(url)?.bytes()?;
    io::stdout().write_all(&body)?;
    Ok(())
}
