//! The program `skewtap`.
#![forbid(unsafe_code)]

mod api_client;
mod args;
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

fn main() -> ExitCode {
    let done = arguments().and_then(run);
    done.unwrap_or_else(|failure| failure.report()).into()
}

/// The command line, with the variables and the configuration file behind it. Ends the program
/// where the command line asks for help, or for something that there is not.
///
/// # Errors
/// The configuration file cannot be used.
fn arguments() -> Result<Args, Failure> {
    let mut program = Args::command();
    let named = config_file::named_by(&program, env::args_os());
    if let Some(path) = named {
        let file = ConfigFile::read(&path, &program);
        let file = file.map_err(|error| Failure::usage(error.into()))?;
        program = file.as_usual_values(program);
    }
    let matches = program.get_matches();
    Args::from_arg_matches(&matches).map_err(|error| Failure::usage(error.into()))
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
        Command::Proxy(args) => proxy::run(&args, &log),
        Command::Collector(args) => collector::run(&args, &log),
        Command::DemoOrigin(args) => demo::origin::run(&args, &log),
        Command::DemoClient(args) => demo::client::run(&args),
        Command::Config(args) => config::run(&args, config),
    }
}
