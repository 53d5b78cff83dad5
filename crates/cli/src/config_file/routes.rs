//! The tables `[[proxy.route]]`: what each can set is defined as if it were the flags of a
//! subcommand, so that they are read, checked and described like all the rest.

use clap::{Args as _, Command, FromArgMatches as _};
use toml::Spanned;
use toml::de::DeValue;

use super::settings::{Found, alone, conflict, flag_of, own_flags};
use crate::args::RouteArgs;

/// The subcommand whose table they lie in.
pub(super) const OWNER: &str = "proxy";

/// Their key there.
pub(super) const KEY: &str = "route";

/// How they are written.
pub(super) const LABEL: &str = "[[proxy.route]]";

/// What one of them can set.
pub(super) fn definition() -> Command {
    let mut definition = RouteArgs::augment_args(Command::new(LABEL));
    definition.build();
    definition
}

impl Found {
    /// Reads all of them.
    pub(super) fn routes(&mut self, value: &Spanned<DeValue<'_>>) {
        let DeValue::Array(tables) = value.get_ref() else {
            return self.fault(value.span(), format!("{KEY} is a list; write {LABEL}"));
        };
        let definition = definition();
        for table in tables {
            if let Some(route) = self.route(&definition, table) {
                let same = |other: &RouteArgs| other.route().is_for_same_as(&route.route());
                if self.routes.iter().any(same) {
                    let what = format!("another {LABEL} before it has the same host and path");
                    self.fault(table.span(), what);
                }
                self.routes.push(route);
            }
        }
    }

    /// Reads one of them; `None` if it has a fault.
    fn route(&mut self, definition: &Command, value: &Spanned<DeValue<'_>>) -> Option<RouteArgs> {
        let DeValue::Table(table) = value.get_ref() else {
            self.fault(
                value.span(),
                format!("{KEY} is a list of tables; write {LABEL}"),
            );
            return None;
        };
        let faults = self.faults.len();
        let others = self.settings.len();
        self.section(definition, LABEL, table);
        let settings = self.settings.split_off(others);
        let missing = own_flags(definition)
            .filter(|(_, flag)| flag.is_required_set())
            .find(|(name, _)| !table.keys().any(|key| key.get_ref() == name));
        if let Some((name, _)) = missing {
            self.fault(value.span(), format!("{LABEL} needs {name}"));
        } else if let Some(why) = conflict(definition, &settings) {
            self.fault(value.span(), format!("{LABEL}: {why}"));
        }
        if self.faults.len() > faults {
            return None;
        }
        let arguments = settings.iter().flat_map(|set| flag_of(definition, set));
        let matches = alone(definition).try_get_matches_from(arguments);
        // What is there was taken one by one, and nothing is missing.
        let route = matches.and_then(|matches| RouteArgs::from_arg_matches(&matches));
        match route {
            Ok(route) => Some(route),
            Err(error) => {
                self.fault(value.span(), format!("{LABEL}: {error}"));
                None
            }
        }
    }
}
