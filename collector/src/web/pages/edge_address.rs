//! An edge as addresses and titles have it.

use skewtap_core::verdict_json::VerdictJson;
use url::form_urlencoded::Serializer;

use super::error_page::PageError;
use crate::store::query::EdgeFilter;
use crate::store::query::aggregates::EdgeSummary;
use crate::web::api_error::ApiError;

/// The names that tell an edge from others. `None` stands for any name, an empty one for an edge
/// that nothing gives that name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EdgeAddress {
    /// `service.name` of the client.
    pub(super) client_service: Option<String>,
    /// `service.name` of the server.
    pub(super) server_service: Option<String>,
    /// Low-cardinality path.
    pub(super) route: Option<String>,
}

impl EdgeAddress {
    /// The address of one edge.
    pub(super) fn of(edge: &EdgeSummary) -> Self {
        let name = |name: &Option<String>| Some(name.clone().unwrap_or_default());
        Self {
            client_service: name(&edge.client_service),
            server_service: name(&edge.server_service),
            route: name(&edge.route),
        }
    }

    /// The edge that an exchange is on.
    pub(super) fn of_verdict(verdict: &VerdictJson) -> Self {
        let name = |name: &Option<String>| Some(name.clone().unwrap_or_default());
        Self {
            client_service: name(&verdict.client_service),
            server_service: name(&verdict.server_service),
            route: name(&verdict.route),
        }
    }

    /// The edge that the parameters of an address name.
    ///
    /// # Errors
    /// [`PageError`] for a parameter that is given twice or not known.
    pub(super) fn read(parameters: Vec<(String, String)>) -> Result<Self, PageError> {
        let mut address = Self::default();
        for (name, value) in parameters {
            let (place, name) = match name.as_str() {
                "client_service" => (&mut address.client_service, "client_service"),
                "server_service" => (&mut address.server_service, "server_service"),
                "route" => (&mut address.route, "route"),
                _ => return Err(PageError::Parameter(name)),
            };
            if place.replace(value).is_some() {
                return Err(ApiError::Twice(name).into());
            }
        }
        Ok(address)
    }

    /// What the store looks for.
    pub(super) fn filter(&self) -> EdgeFilter {
        EdgeFilter {
            service: None,
            client_service: self.client_service.clone(),
            server_service: self.server_service.clone(),
            route: self.route.clone(),
        }
    }

    /// The parameters that say which edge is meant.
    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("client_service", &self.client_service),
            ("server_service", &self.server_service),
            ("route", &self.route),
        ];
        let given = all.into_iter();
        given
            .filter_map(|(name, value)| Some((name, value.clone()?)))
            .collect()
    }

    /// Where the page on this edge is.
    pub(super) fn href(&self, since: &str) -> String {
        let mut query = Serializer::new(String::new());
        query.extend_pairs(self.parameters());
        query.append_pair("since", since);
        format!("/edge?{}", query.finish())
    }

    /// Where the list of its exchanges is.
    pub(super) fn list_href(&self) -> String {
        let mut query = Serializer::new(String::new());
        query.extend_pairs(self.parameters());
        format!("/exchanges?{}", query.finish())
    }

    /// The client in words.
    pub(super) fn client(&self) -> String {
        in_words(self.client_service.as_deref(), "unknown client")
    }

    /// The server in words.
    pub(super) fn server(&self) -> String {
        in_words(self.server_service.as_deref(), "unknown server")
    }

    /// The route in words; empty where none is given.
    pub(super) fn route(&self) -> String {
        self.route.clone().unwrap_or_default()
    }
}

fn in_words(name: Option<&str>, unknown: &str) -> String {
    match name {
        None => "any".to_owned(),
        Some("") => unknown.to_owned(),
        Some(name) => name.to_owned(),
    }
}
