//! The reference of the configuration file, and a file to start from: both written from the
//! definition of the command line.

use std::fmt::Write as _;

use clap::{Arg, Command};

use super::routes;
use super::settings::{commands, flags, own_flags};
use super::values::Takes;

const INTRODUCTION: &str = "\
# Configuration

Everything but routes, which only the file has, can be set in four ways. A flag goes before a variable of the environment, a variable before the
configuration file, and the file before the usual value.

The file is TOML and is named by `--config FILE` or `SKEWTAP_CONFIG`. Keys at the top hold for every subcommand, a table
for the subcommand whose name it bears. A key is the name of the flag without `--`. Times have a unit (`15s`, `50ms`,
`2h30m`), sizes too (`4GiB`), a flag without a value is `true` or `false`, and a flag that can be repeated takes a list.
Relative paths start where the program does.

    skewtap config example > skewtap.toml     # a file with every key, commented out
    skewtap config check skewtap.toml         # all faults together, each with its line
    skewtap collector --config skewtap.toml

What is unknown or not understood is refused, with the nearest name there is. A switch that the file sets to `true` is
switched off again by its variable, as in `SKEWTAP_NO_CAPTURE=false`; the command line can only switch it on.

This page is written from the definition of the command line, and a test holds it against that. Write it anew with
`SKEWTAP_WRITE_DOCS=1 cargo test -p skewtap-cli configuration_page`.
";

const ROUTES: &str = "A server for requests to certain hosts and paths; there may be any number of these tables.

    [[proxy.route]]
    host = \"api.example.com\"
    path = \"/v2\"
    upstream = \"http://127.0.0.1:9000\"

Of all routes that a request with a plain path fits, the one with the most exact host is taken (a name before `*.name`, a
longer one of those before a shorter, any before none), and of those the one with the longest path, whatever their order.
What fits none goes to `upstream` of `[proxy]`; without that, it is answered with 404 and `x-skewtap-reason: no-route`.
Paths are compared as the client sends them and passed on unchanged.
";

/// `docs/configuration.md`.
pub(crate) fn page(program: &Command) -> String {
    let mut program = program.clone();
    program.build();
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## Keys at the top\n\n");
    table(&mut page, flags(&program));
    for command in commands(&program) {
        let name = command.get_name();
        let about = command.get_about().map(ToString::to_string);
        let about = about.unwrap_or_default();
        append(&mut page, format_args!("\n## `[{name}]`\n\n{about}.\n\n"));
        table(&mut page, own_flags(command));
        if name == routes::OWNER {
            let label = routes::LABEL;
            append(&mut page, format_args!("\n## `{label}`\n\n{ROUTES}\n"));
            table(&mut page, own_flags(&routes::definition()));
        }
    }
    page
}

/// A file that sets nothing: every key with its usual value, commented out.
pub(crate) fn example(program: &Command) -> String {
    let mut program = program.clone();
    program.build();
    let mut file = String::from(
        "# Configuration of skewtap. Check it with `skewtap config check FILE`.\n\
         # Values shown are the usual ones; empty ones have none.\n\n",
    );
    for (name, flag) in flags(&program) {
        key(&mut file, name, flag);
    }
    for command in commands(&program) {
        append(&mut file, format_args!("[{}]\n\n", command.get_name()));
        for (name, flag) in own_flags(command) {
            key(&mut file, name, flag);
        }
        if command.get_name() == routes::OWNER {
            append(&mut file, format_args!("# {}\n\n", routes::LABEL));
            for (name, flag) in own_flags(&routes::definition()) {
                key(&mut file, name, flag);
            }
        }
    }
    file
}

fn table<'a>(page: &mut String, flags: impl Iterator<Item = (&'a str, &'a Arg)>) {
    page.push_str("| key | value | usual | variable | meaning |\n|---|---|---|---|---|\n");
    for (name, flag) in flags {
        let usual = usual(flag);
        let usual = if usual.is_empty() {
            "-".to_owned()
        } else {
            format!("`{usual}`")
        };
        let variable = flag
            .get_env()
            .map(|name| name.to_string_lossy().into_owned());
        let variable = variable.map_or_else(|| "-".to_owned(), |name| format!("`{name}`"));
        let (form, meaning) = (form(flag), meaning(flag).replace('|', "\\|"));
        append(
            page,
            format_args!("| `{name}` | {form} | {usual} | {variable} | {meaning} |\n"),
        );
    }
}

fn key(file: &mut String, name: &str, flag: &Arg) {
    let wrapped = meaning(flag);
    append(file, format_args!("# {wrapped}\n"));
    let usual = usual(flag);
    let value = match Takes::of(flag) {
        Takes::Nothing => "false".to_owned(),
        Takes::One => format!("{usual:?}"),
        Takes::Many => format!("[{usual:?}]"),
    };
    append(file, format_args!("# {name} = {value}\n\n"));
}

fn meaning(flag: &Arg) -> String {
    let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    help.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn form(flag: &Arg) -> String {
    let choices: Vec<String> = flag
        .get_possible_values()
        .iter()
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    let takes = Takes::of(flag);
    if takes == Takes::Nothing {
        return "`true`, `false`".to_owned();
    }
    if !choices.is_empty() {
        return choices.join(", ");
    }
    let names = flag.get_value_names().unwrap_or_default();
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let list = if takes == Takes::Many { "list of " } else { "" };
    format!("{list}{}", names.join(" "))
}

fn usual(flag: &Arg) -> String {
    if Takes::of(flag) == Takes::Nothing {
        return "false".to_owned();
    }
    let values = flag.get_default_values().iter();
    let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
    values.join(", ")
}

fn append(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    text.write_fmt(more).unwrap_or_default();
}
