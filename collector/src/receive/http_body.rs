//! Reading the body of an OTLP/HTTP request, with a limit on either side of the compression.

use std::io::Read;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};

/// How long a sender may take to send a request.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// Logarithm of the most bytes that a zstd body may ask to look back on, which is memory taken
/// whatever its size: 8 MiB, as every decoder must support.
const ZSTD_WINDOW_LOG: u32 = 23;

/// Bytes a body may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    /// As it is sent.
    pub(crate) sent: usize,
    /// Once decompressed.
    pub(crate) decompressed: usize,
}

/// Why a body cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// It did not arrive in full.
    #[error("the body could not be read: {0}")]
    Broken(Box<dyn std::error::Error + Send + Sync>),
    /// It did not arrive in time.
    #[error("the body did not arrive within {} s", READ_TIMEOUT.as_secs())]
    TooSlow,
    /// It is too long as sent.
    #[error("the body has more than {most} bytes; send smaller batches")]
    TooLong {
        /// The limit.
        most: usize,
    },
    /// It is too long once decompressed.
    #[error("the body has more than {most} bytes once decompressed; send smaller batches")]
    TooLongDecompressed {
        /// The limit.
        most: usize,
    },
    /// It is not what its header says.
    #[error("the body cannot be read as {encoding}: {source}")]
    NotDecoded {
        /// What its header says.
        encoding: &'static str,
        /// What is wrong with it.
        source: std::io::Error,
    },
    /// An encoding that is not read here.
    #[error("content encoding {0:?} is not known here; send gzip, zstd, deflate or none")]
    UnknownEncoding(String),
    /// The collector is going down.
    #[error("the collector is shutting down")]
    ShuttingDown,
}

impl BodyError {
    /// The status to answer with.
    pub(super) const fn status(&self) -> StatusCode {
        match self {
            Self::Broken(_) | Self::NotDecoded { .. } => StatusCode::BAD_REQUEST,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooLong { .. } | Self::TooLongDecompressed { .. } => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::UnknownEncoding(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Reads a body and decompresses it as its headers say.
///
/// # Errors
/// [`BodyError`], without having held more than the limits allow.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    limits: BodyLimits,
) -> Result<Bytes, BodyError> {
    let encoding = Encoding::of(headers)?;
    let sent = tokio::time::timeout(READ_TIMEOUT, Limited::new(body, limits.sent).collect())
        .await
        .map_err(|_| BodyError::TooSlow)?
        .map_err(|error| {
            if error.is::<LengthLimitError>() {
                BodyError::TooLong { most: limits.sent }
            } else {
                BodyError::Broken(error)
            }
        })?
        .to_bytes();
    let Some(encoding) = encoding else {
        return within(sent, limits.decompressed);
    };
    tokio::task::spawn_blocking(move || encoding.decompress(&sent, limits.decompressed))
        .await
        .map_err(|_| BodyError::ShuttingDown)?
}

fn within(body: Bytes, most: usize) -> Result<Bytes, BodyError> {
    if body.len() > most {
        return Err(BodyError::TooLongDecompressed { most });
    }
    Ok(body)
}

/// A way to make bodies smaller.
#[derive(Clone, Copy, Debug)]
enum Encoding {
    Gzip,
    Zstd,
    /// HTTP's name for the zlib format.
    Deflate,
}

impl Encoding {
    /// The encoding that a request says it has; `None` for none.
    fn of(headers: &HeaderMap) -> Result<Option<Self>, BodyError> {
        let Some(value) = headers.get(CONTENT_ENCODING) else {
            return Ok(None);
        };
        match value.as_bytes().to_ascii_lowercase().as_slice() {
            b"" | b"identity" => Ok(None),
            b"gzip" | b"x-gzip" => Ok(Some(Self::Gzip)),
            b"zstd" => Ok(Some(Self::Zstd)),
            b"deflate" => Ok(Some(Self::Deflate)),
            other => Err(BodyError::UnknownEncoding(
                String::from_utf8_lossy(other).into_owned(),
            )),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Deflate => "deflate",
        }
    }

    fn decompress(self, sent: &[u8], most: usize) -> Result<Bytes, BodyError> {
        let one_too_many = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        let mut out = Vec::new();
        let read = match self {
            Self::Gzip => MultiGzDecoder::new(sent)
                .take(one_too_many)
                .read_to_end(&mut out),
            Self::Deflate => ZlibDecoder::new(sent)
                .take(one_too_many)
                .read_to_end(&mut out),
            Self::Zstd => {
                zstd(sent).and_then(|decoder| decoder.take(one_too_many).read_to_end(&mut out))
            }
        };
        read.map_err(|source| BodyError::NotDecoded {
            encoding: self.name(),
            source,
        })?;
        within(out.into(), most)
    }
}

fn zstd(sent: &[u8]) -> std::io::Result<impl Read> {
    let mut decoder = zstd::Decoder::with_buffer(sent)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG)?;
    Ok(decoder)
}
