//! The program `skewtap`.
#![forbid(unsafe_code)]

mod api_client;
mod args;
mod collector;
mod demo;
mod failure;
mod proxy;
mod run;
mod runtime;
mod shutdown;
mod sources_not_used;
mod start_line;
mod telemetry;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};

fn main() -> ExitCode {
    let Args { log, command } = Args::parse();
    let done = match command {
        Command::Demo(args) => demo::run(&args, &log),
        Command::Run(args) => run::run(&args, &log),
        Command::Proxy(args) => proxy::run(&args, &log),
        Command::Collector(args) => collector::run(&args, &log),
        Command::DemoOrigin(args) => demo::origin::run(&args, &log),
        Command::DemoClient(args) => demo::client::run(&args),
    };
    done.unwrap_or_else(|failure| failure.report()).into()
}
