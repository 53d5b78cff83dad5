//! What a page answers when it cannot show what was asked for.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::html;
use crate::store::query::QueryError;
use crate::web::api_error::ApiError;

/// Why there is no page to show.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    #[error("there is no page at this address")]
    NoPage,
    #[error("refresh is {0:?}; it can be 1 to 3600 seconds")]
    Refresh(String),
    #[error("this page has no parameter {0:?}")]
    Parameter(String),
    #[error("the metrics cannot be written: {0}")]
    Metrics(std::fmt::Error),
    #[error("the stored verdict cannot be read: {0}")]
    Document(#[from] serde_json::Error),
    #[error("the page cannot be written: {0}")]
    Template(#[from] askama::Error),
    #[error(transparent)]
    Request(#[from] ApiError),
    #[error(transparent)]
    Store(#[from] QueryError),
}

#[derive(Debug, Template)]
#[template(path = "error.html")]
struct ErrorPage {
    title: &'static str,
    what: String,
}

impl PageError {
    fn status(&self) -> StatusCode {
        match self {
            Self::NoPage => StatusCode::NOT_FOUND,
            Self::Refresh(_) | Self::Parameter(_) => StatusCode::BAD_REQUEST,
            Self::Document(_) | Self::Template(_) | Self::Metrics(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Self::Request(error) => error.status(),
            Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let status = self.status();
        if status.is_server_error() {
            tracing::error!(error = %self, "a page could not be shown");
        }
        let page = ErrorPage {
            title: match status {
                StatusCode::NOT_FOUND => "Not found",
                StatusCode::BAD_REQUEST => "This request cannot be read",
                _ => "This page cannot be shown now",
            },
            what: self.to_string(),
        };
        html(status, &page).unwrap_or_else(|_| status.into_response())
    }
}
