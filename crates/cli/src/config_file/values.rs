//! Values of the file as the words that a flag would take.

use clap::{Arg, ArgAction};
use toml::de::DeValue;

/// What flags there are, by what they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Nothing: being there is what it says.
    Nothing,
    /// One value.
    One,
    /// Any number of values.
    Many,
}

impl Takes {
    /// What `flag` of a command that was built takes.
    pub(super) fn of(flag: &Arg) -> Self {
        match flag.get_action() {
            ArgAction::SetTrue | ArgAction::SetFalse | ArgAction::Count => Self::Nothing,
            ArgAction::Append => Self::Many,
            _ if flag.get_num_args().is_some_and(|n| n.max_values() > 1) => Self::Many,
            _ => Self::One,
        }
    }
}

/// The words for `value`.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn words(value: &DeValue<'_>, takes: Takes) -> Result<Vec<String>, String> {
    match (takes, value) {
        (Takes::Nothing, DeValue::Boolean(set)) => Ok(vec![set.to_string()]),
        (Takes::Nothing, other) => Err(format!("is {}; write true or false", kind(other))),
        (Takes::One | Takes::Many, DeValue::Array(values)) => {
            if takes == Takes::One {
                return Err("is a list; it takes one value".to_owned());
            }
            if values.is_empty() {
                return Err("is an empty list; leave it out instead".to_owned());
            }
            values.iter().map(|value| word(value.get_ref())).collect()
        }
        (Takes::One | Takes::Many, single) => Ok(vec![word(single)?]),
    }
}

fn word(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        other => Err(format!("is {}; write a text or a number", kind(other))),
    }
}

const fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number in another base or a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
