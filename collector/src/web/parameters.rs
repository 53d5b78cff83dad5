//! The parameters that addresses of the API take: one table for reading them and for
//! describing them.

use std::str::FromStr;

use jiff::SignedDuration;

use super::api_error::ApiError;
use super::time_filter;
use crate::store::query::MOST_PER_PAGE;

/// A parameter of an address.
#[derive(Debug)]
pub(super) struct Parameter {
    /// Its name in the address.
    pub(super) name: &'static str,
    /// What it does, in a sentence.
    pub(super) meaning: &'static str,
    /// What it can be.
    pub(super) form: Form,
    /// Something it can be.
    pub(super) example: &'static str,
}

/// What a parameter can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `true` or `false`.
    Flag,
    /// Any text.
    Text,
    /// A whole number from 1 to this.
    Count {
        /// The largest.
        most: usize,
        /// What it is when it is not given.
        otherwise: usize,
    },
}

/// Only flagged exchanges, or only others.
pub(super) const FLAGGED: Parameter = Parameter {
    name: "flagged",
    meaning: "Only exchanges that are flagged, or only those that are not.",
    form: Form::Flag,
    example: "true",
};

/// The start of a stretch of time.
pub(super) const SINCE: Parameter = Parameter {
    name: "since",
    meaning: "Only exchanges that began at or after this: an RFC 3339 time, seconds since 1970, \
              or how long ago, such as 15m.",
    form: Form::Text,
    example: "1h",
};

/// The end of a stretch of time.
pub(super) const UNTIL: Parameter = Parameter {
    name: "until",
    meaning: "Only exchanges that began before this; written like since.",
    form: Form::Text,
    example: "2030-01-31T12:00:00Z",
};

/// A service on either side.
pub(super) const SERVICE: Parameter = Parameter {
    name: "service",
    meaning: "Only exchanges with this service on either side.",
    form: Form::Text,
    example: "shop",
};

/// The client's service.
pub(super) const CLIENT_SERVICE: Parameter = Parameter {
    name: "client_service",
    meaning: "Only exchanges with this service as the client; empty for those whose client's \
              service is not known.",
    form: Form::Text,
    example: "shop-client",
};

/// The server's service.
pub(super) const SERVER_SERVICE: Parameter = Parameter {
    name: "server_service",
    meaning: "Only exchanges with this service as the server; empty for those whose server's \
              service is not known.",
    form: Form::Text,
    example: "shop",
};

/// The route.
pub(super) const ROUTE: Parameter = Parameter {
    name: "route",
    meaning: "Only exchanges with this route, as the server's span has it; empty for those \
              without one.",
    form: Form::Text,
    example: "",
};

/// A cause.
pub(super) const CAUSE: Parameter = Parameter {
    name: "cause",
    meaning: "Only exchanges with a finding of this cause.",
    form: Form::Text,
    example: "client_blind_sleep",
};

/// The smallest gap.
pub(super) const MIN_GAP: Parameter = Parameter {
    name: "min_gap",
    meaning: "Only exchanges whose client observed at least this much more than the server; a \
              time with a unit, such as 50ms.",
    form: Form::Text,
    example: "50ms",
};

/// The length of a page.
pub(super) const LIMIT: Parameter = Parameter {
    name: "limit",
    meaning: "How many exchanges to list at most.",
    form: Form::Count {
        most: MOST_PER_PAGE,
        otherwise: 100,
    },
    example: "10",
};

/// The place where a page starts.
pub(super) const CURSOR: Parameter = Parameter {
    name: "cursor",
    meaning: "Where to go on: the next_cursor of an earlier answer.",
    form: Form::Text,
    example: "1800000000000000000.1",
};

/// The parameters of one address as they were given.
#[derive(Debug)]
pub(super) struct Given<'a>(Vec<(&'static str, &'a str)>);

impl<'a> Given<'a> {
    /// Takes `parameters` if all of them are `known` and none is given twice.
    ///
    /// # Errors
    /// [`ApiError::UnknownParameter`] and [`ApiError::Twice`].
    pub(super) fn read(
        parameters: &'a [(String, String)],
        known: &[&'static Parameter],
    ) -> Result<Self, ApiError> {
        let mut given: Vec<(&'static str, &str)> = Vec::new();
        for (name, value) in parameters {
            let found = known.iter().find(|parameter| parameter.name == name);
            let Some(parameter) = found else {
                return Err(ApiError::UnknownParameter {
                    name: name.clone(),
                    known: enumerated(known),
                });
            };
            if given.iter().any(|(other, _)| *other == parameter.name) {
                return Err(ApiError::Twice(parameter.name));
            }
            given.push((parameter.name, value));
        }
        Ok(Self(given))
    }

    /// Any text.
    pub(super) fn text(&self, parameter: &Parameter) -> Option<&'a str> {
        let mut given = self.0.iter();
        let found = given.find(|(name, _)| *name == parameter.name);
        found.map(|(_, value)| *value)
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// [`ApiError::Value`] for anything else.
    pub(super) fn flag(&self, parameter: &Parameter) -> Result<Option<bool>, ApiError> {
        self.parsed(parameter, || "true or false".to_owned())
    }

    /// A whole number from 1 to the most of the parameter's form.
    ///
    /// # Errors
    /// [`ApiError::Value`] for anything else.
    pub(super) fn count(&self, parameter: &Parameter) -> Result<Option<usize>, ApiError> {
        let most = match parameter.form {
            Form::Count { most, .. } => most,
            Form::Flag | Form::Text => usize::MAX,
        };
        let wanted = || format!("1 to {most}");
        let count: Option<usize> = self.parsed(parameter, wanted)?;
        match count {
            Some(count) if !(1..=most).contains(&count) => Err(self.wrong(parameter, wanted())),
            count => Ok(count),
        }
    }

    /// A time in nanoseconds since the Unix epoch, as `since` and `until` take it.
    ///
    /// # Errors
    /// [`ApiError::Time`].
    pub(super) fn time(&self, parameter: &Parameter, now_ns: i64) -> Result<Option<i64>, ApiError> {
        let name = parameter.name;
        let parse = |text| {
            time_filter::parse(text, now_ns).map_err(|source| ApiError::Time { name, source })
        };
        self.text(parameter).map(parse).transpose()
    }

    /// A length of time with a unit, in nanoseconds; it can be negative.
    ///
    /// # Errors
    /// [`ApiError::Value`].
    pub(super) fn length_ns(&self, parameter: &Parameter) -> Result<Option<i64>, ApiError> {
        let wanted = || "a time with a unit, such as 50ms".to_owned();
        let length: Option<SignedDuration> = self.parsed(parameter, wanted)?;
        let ns = |length: SignedDuration| i64::try_from(length.as_nanos());
        let ns = length.map(ns).transpose();
        ns.map_err(|_| self.wrong(parameter, wanted()))
    }

    fn parsed<T: FromStr>(
        &self,
        parameter: &Parameter,
        wanted: impl Fn() -> String,
    ) -> Result<Option<T>, ApiError> {
        let parsed = self.text(parameter).map(str::parse).transpose();
        parsed.map_err(|_| self.wrong(parameter, wanted()))
    }

    fn wrong(&self, parameter: &Parameter, wanted: String) -> ApiError {
        ApiError::Value {
            name: parameter.name,
            text: self.text(parameter).unwrap_or_default().to_owned(),
            wanted,
        }
    }
}

/// `a, b and c`
fn enumerated(known: &[&'static Parameter]) -> String {
    let names: Vec<&str> = known.iter().map(|parameter| parameter.name).collect();
    match names.split_last() {
        None => "none".to_owned(),
        Some((only, [])) => (*only).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}
