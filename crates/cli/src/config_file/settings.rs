//! What the file sets, held against the definition of the command line.

use std::ops::Range;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::faults::{Fault, suggestion};
use super::values::{Takes, words};
use super::{FLAG, routes};
use crate::args::RouteArgs;

/// One flag, set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// The subcommand; `None` for a flag of all.
    command: Option<String>,
    /// The id of the flag within it.
    id: String,
    values: Vec<String>,
}

impl Setting {
    /// `program`, with this in place of the flag's usual value.
    pub(super) fn as_usual_value(program: Command, setting: &Self) -> Command {
        let set = |flag: Arg| {
            flag.required(false)
                .default_values(setting.values.iter().cloned())
        };
        match &setting.command {
            None => program.mut_arg(&setting.id, set),
            Some(name) => program.mut_subcommand(name, |command| command.mut_arg(&setting.id, set)),
        }
    }
}

/// The flags of `command` that a file can set.
pub(super) fn flags(command: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    command.get_arguments().filter_map(|flag| {
        let name = flag.get_long()?;
        let is_setting = !flag.is_hide_set() && !["help", "version", FLAG].contains(&name);
        is_setting.then_some((name, flag))
    })
}

/// The subcommands of `program` that a file can set flags of.
pub(super) fn commands(program: &Command) -> impl Iterator<Item = &Command> {
    let visible = program.get_subcommands().filter(|c| !c.is_hide_set());
    visible.filter(|command| own_flags(command).next().is_some())
}

/// The flags of a subcommand that not every other one has, too.
pub(super) fn own_flags(command: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    flags(command).filter(|(_, flag)| !flag.is_global_set())
}

/// Reads all settings, and the routes, by the definition of `program`, which was built.
///
/// # Errors
/// All faults.
pub(super) fn read(
    file: &DeTable<'_>,
    program: &Command,
) -> Result<(Vec<Setting>, Vec<RouteArgs>), Vec<Fault>> {
    let mut found = Found::default();
    for (key, value) in file {
        let name: &str = key.get_ref();
        let command = commands(program).find(|command| command.get_name() == name);
        match (command, value.get_ref()) {
            (Some(command), DeValue::Table(table)) => {
                found.section(command, &format!("[{name}]"), table);
                found.conflicts(command, key);
            }
            (Some(_), _) => {
                found.fault(key.span(), format!("{name} is a table; write [{name}]"));
            }
            (None, value_of_flag) => found.of_all(program, key, value_of_flag),
        }
    }
    if found.faults.is_empty() {
        Ok((found.settings, found.routes))
    } else {
        Err(found.faults)
    }
}

type Key<'a> = Spanned<std::borrow::Cow<'a, str>>;

/// What was found in the file so far.
#[derive(Default)]
pub(super) struct Found {
    pub(super) settings: Vec<Setting>,
    pub(super) routes: Vec<RouteArgs>,
    pub(super) faults: Vec<Fault>,
}

impl Found {
    pub(super) fn fault(&mut self, span: Range<usize>, what: String) {
        self.faults.push(Fault { span, what });
    }

    fn of_all(&mut self, program: &Command, key: &Key<'_>, value: &DeValue<'_>) {
        let name: &str = key.get_ref();
        let flag = flags(program).find(|(known, _)| *known == name);
        if let Some((_, flag)) = flag {
            self.setting(program, None, flag, key, value);
            return;
        }
        let what = if matches!(value, DeValue::Table(_)) {
            let known = commands(program).map(Command::get_name);
            format!("unknown table [{name}]{}", suggestion(name, known))
        } else {
            let owner = commands(program)
                .find(|command| own_flags(command).any(|(known, _)| known == name));
            match owner {
                Some(owner) => format!(
                    "unknown key {name} outside a table; put it under [{}]",
                    owner.get_name()
                ),
                None => {
                    let known = flags(program).map(|(known, _)| known);
                    format!("unknown key {name}{}", suggestion(name, known))
                }
            }
        };
        self.fault(key.span(), what);
    }

    /// Reads the table of `command`, which is written as `label`.
    pub(super) fn section(&mut self, command: &Command, label: &str, table: &DeTable<'_>) {
        let tables = (command.get_name() == routes::OWNER).then_some(routes::KEY);
        for (key, value) in table {
            let name: &str = key.get_ref();
            if tables == Some(name) {
                self.routes(value);
                continue;
            }
            match own_flags(command).find(|(known, _)| *known == name) {
                Some((_, flag)) => {
                    let section = Some(command.get_name());
                    self.setting(command, section, flag, key, value.get_ref());
                }
                None => {
                    let known = own_flags(command).map(|(known, _)| known).chain(tables);
                    let what = format!("unknown key {name} in {label}{}", suggestion(name, known));
                    self.fault(key.span(), what);
                }
            }
        }
    }

    fn setting(
        &mut self,
        owner: &Command,
        section: Option<&str>,
        flag: &Arg,
        key: &Key<'_>,
        value: &DeValue<'_>,
    ) {
        let name: &str = key.get_ref();
        let values = match words(value, Takes::of(flag)) {
            Ok(values) => values,
            Err(why) => return self.fault(key.span(), format!("{name} {why}")),
        };
        if let Some(why) = refusal(owner, name, &values, Takes::of(flag)) {
            let what = format!("{name} = {}: {why}", quoted(&values));
            return self.fault(key.span(), what);
        }
        self.settings.push(Setting {
            command: section.map(str::to_owned),
            id: flag.get_id().to_string(),
            values,
        });
    }

    /// Adds a fault if the settings of `command`, each right by itself, exclude each other.
    fn conflicts(&mut self, command: &Command, key: &Key<'_>) {
        let section = Some(command.get_name());
        let of_section = self
            .settings
            .iter()
            .filter(|setting| setting.command.as_deref() == section);
        if let Some(why) = conflict(command, of_section) {
            self.fault(key.span(), format!("[{}]: {why}", command.get_name()));
        }
    }
}

/// Why `settings` of `command`, each right by itself, exclude each other; `None` if they do not.
pub(super) fn conflict<'a>(
    command: &Command,
    settings: impl IntoIterator<Item = &'a Setting>,
) -> Option<String> {
    let arguments = settings
        .into_iter()
        .flat_map(|setting| flag_of(command, setting));
    let error = alone(command).try_get_matches_from(arguments).err()?;
    matches!(
        error.kind(),
        ErrorKind::ArgumentConflict | ErrorKind::MissingRequiredArgument
    )
    .then(|| first_words(&error))
}

/// A setting of `command` as it stands on a command line.
pub(super) fn flag_of(command: &Command, setting: &Setting) -> Vec<String> {
    let flag = command
        .get_arguments()
        .find(|flag| flag.get_id().as_str() == setting.id);
    let name = flag.and_then(Arg::get_long).unwrap_or_default();
    let takes = flag.map_or(Takes::One, Takes::of);
    arguments(name, &setting.values, takes)
}

/// Why a flag does not take `values`; `None` if it does.
fn refusal(owner: &Command, name: &str, values: &[String], takes: Takes) -> Option<String> {
    let arguments = arguments(name, values, takes);
    let error = alone(owner).try_get_matches_from(arguments).err()?;
    match error.kind() {
        // What goes with what is looked at when everything is there.
        ErrorKind::ArgumentConflict | ErrorKind::MissingRequiredArgument => None,
        _ => Some(
            std::error::Error::source(&error)
                .map_or_else(|| first_words(&error), ToString::to_string),
        ),
    }
}

fn arguments(name: &str, values: &[String], takes: Takes) -> Vec<String> {
    let words = values.iter();
    match takes {
        Takes::Nothing => words
            .filter(|value| *value == "true")
            .map(|_| format!("--{name}"))
            .collect(),
        Takes::One | Takes::Many => words.map(|value| format!("--{name}={value}")).collect(),
    }
}

/// `command` as it would be with flags only: no variables, nothing to be required before the
/// command line is there, no subcommand.
pub(super) fn alone(command: &Command) -> Command {
    let says_something =
        |flag: &&Arg| !matches!(flag.get_action(), ArgAction::Help | ArgAction::Version);
    let flags: Vec<Arg> = command
        .get_arguments()
        .filter(says_something)
        .cloned()
        .collect();
    let groups = command.get_groups().cloned();
    Command::new("file")
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(
            flags
                .into_iter()
                .map(|flag| flag.required(false).env(None::<&'static str>)),
        )
        .groups(groups.map(|group| group.required(false)))
}

/// What clap says, without its advice on the command line.
fn first_words(error: &clap::Error) -> String {
    let text = error.to_string();
    let words = text.lines().take_while(|line| !line.is_empty());
    let words: Vec<&str> = words.map(str::trim).collect();
    let words = words.join(" ");
    words.trim_start_matches("error: ").to_owned()
}

fn quoted(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    values.join(", ")
}
