//! Why a request is answered with an error.

use super::http_body::BodyError;
use crate::store::writer::AppendError;

/// Why a request is answered with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Too much is waiting already.
    Busy,
    /// The observation log has reached its cap.
    LogFull,
    /// The store cannot be written.
    Store,
    /// The sender may not send.
    Unauthenticated,
    /// The body is in no form that is read here.
    ContentType,
    /// It is compressed in no way that is read here.
    ContentEncoding,
    /// It is no request.
    Malformed,
    /// It is too large.
    TooLarge,
    /// It was not complete in time.
    TooSlow,
    /// The collector is going down.
    ShuttingDown,
}

impl Refusal {
    /// Every reason.
    pub(crate) const ALL: [Self; 10] = [
        Self::Busy,
        Self::LogFull,
        Self::Store,
        Self::Unauthenticated,
        Self::ContentType,
        Self::ContentEncoding,
        Self::Malformed,
        Self::TooLarge,
        Self::TooSlow,
        Self::ShuttingDown,
    ];

    /// The name used in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::LogFull => "log_full",
            Self::Store => "store",
            Self::Unauthenticated => "unauthenticated",
            Self::ContentType => "content_type",
            Self::ContentEncoding => "content_encoding",
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::TooSlow => "too_slow",
            Self::ShuttingDown => "shutting_down",
        }
    }
}

impl From<&AppendError> for Refusal {
    fn from(error: &AppendError) -> Self {
        match error {
            AppendError::Busy => Self::Busy,
            AppendError::LogFull => Self::LogFull,
            AppendError::Store(_) => Self::Store,
        }
    }
}

impl From<&BodyError> for Refusal {
    fn from(error: &BodyError) -> Self {
        match error {
            BodyError::Broken(_) | BodyError::NotDecoded { .. } => Self::Malformed,
            BodyError::TooSlow => Self::TooSlow,
            BodyError::TooLong { .. } | BodyError::TooLongDecompressed { .. } => Self::TooLarge,
            BodyError::UnknownEncoding(_) => Self::ContentEncoding,
            BodyError::ShuttingDown => Self::ShuttingDown,
        }
    }
}
