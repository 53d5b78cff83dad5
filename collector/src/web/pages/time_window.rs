//! The stretch of time that a page is about: from a given past up to now.

use super::error_page::PageError;
use crate::store::query::aggregates::Window;
use crate::web::api_error::ApiError;
use crate::web::time_filter;

/// How far back a page looks where its address does not say.
const DEFAULT: &str = "1h";

/// A stretch of time, and how an address says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageWindow {
    /// As an address has it, such as `1h`.
    pub(super) since: String,
    /// The stretch itself.
    pub(super) window: Window,
}

impl PageWindow {
    /// Takes `since` out of the parameters of an address, and gives the others.
    ///
    /// # Errors
    /// [`PageError::Request`] for what is no time.
    pub(super) fn read(
        parameters: Vec<(String, String)>,
        now_ns: i64,
    ) -> Result<(Self, Vec<(String, String)>), PageError> {
        let (given, rest): (Vec<_>, Vec<_>) = parameters
            .into_iter()
            .partition(|(name, _)| name == "since");
        let mut given = given.into_iter().map(|(_, value)| value);
        let since = given.next().filter(|value| !value.is_empty());
        if given.next().is_some() {
            return Err(ApiError::Twice("since").into());
        }
        let since = since.unwrap_or_else(|| DEFAULT.to_owned());
        let since_ns = time_filter::parse(&since, now_ns).map_err(|source| ApiError::Time {
            name: "since",
            source,
        })?;
        // A moment later, so that what is being written now is within.
        let until_ns = now_ns.saturating_add(1_000_000_000).max(since_ns);
        let window = Window { since_ns, until_ns };
        Ok((Self { since, window }, rest))
    }
}

/// Refuses any parameter.
///
/// # Errors
/// [`PageError::Parameter`] with the first.
pub(super) fn nothing_else(parameters: &[(String, String)]) -> Result<(), PageError> {
    match parameters.first() {
        Some((name, _)) => Err(PageError::Parameter(name.clone())),
        None => Ok(()),
    }
}
