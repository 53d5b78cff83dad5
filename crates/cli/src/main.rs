//! The program `skewtap`.
#![forbid(unsafe_code)]

mod api_client;
mod args;
mod ca;
mod collector;
mod config;
mod config_file;
mod demo;
mod failure;
mod proxy;
mod run;
mod runtime;
mod shutdown;
mod sources_not_used;
mod start_line;
mod telemetry;

use std::env;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use args::{Args, Command};
use config_file::ConfigFile;
use failure::{Exit, Failure};

/// The system's allocator keeps what connections give back when they rest, and takes a lock where
/// one thread frees what another has taken, as it is with every exchange and its record.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let args = arguments().map_err(|error| match error.downcast::<clap::Error>() {
        // Also a wish for help, which is none.
        Ok(of_command_line) => of_command_line.exit(),
        Err(of_file) => Failure::usage(of_file),
    });
    let done = args.and_then(run);
    done.unwrap_or_else(|failure| failure.report()).into()
}

/// The command line, with the variables and the configuration file behind it, as they are now.
///
/// # Errors
/// The configuration file cannot be used, or, as a [`clap::Error`], the command line asks for help
/// or for something that there is not.
fn arguments() -> anyhow::Result<Args> {
    let mut program = Args::command();
    let mut routes = Vec::new();
    if let Some(path) = config_file::named_by(&program, env::args_os()) {
        let file = ConfigFile::read(&path, &program)?;
        program = file.as_usual_values(program);
        routes = file.into_routes();
    }
    let mut args = Args::from_arg_matches(&program.try_get_matches()?)?;
    if let Command::Proxy(proxy) = &mut args.command {
        proxy.routes = routes;
    }
    Ok(args)
}

fn run(args: Args) -> Result<Exit, Failure> {
    let Args {
        log,
        config,
        command,
    } = args;
    match command {
        Command::Demo(args) => demo::run(&args, &log),
        Command::Run(args) => run::run(&args, &log),
        Command::Ca(args) => ca::run(&args),
        Command::Proxy(args) => proxy::run(&args, &log),
        Command::Collector(args) => collector::run(&args, &log),
        Command::DemoOrigin(args) => demo::origin::run(&args, &log),
        Command::DemoClient(args) => demo::client::run(&args),
        Command::Config(args) => config::run(&args, config),
    }
}
