//! The style and the icon, built into the program.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::error_page::PageError;

const STYLE: &str = include_str!("../../../assets/style.css");
const ICON: &str = include_str!("../../../assets/icon.svg");

/// Where the style is. The address changes with its content, so that browsers may keep it.
pub(super) fn style_href() -> String {
    format!("/assets/style.css?v={:016x}", fingerprint(STYLE.as_bytes()))
}

/// `GET /assets/{name}`
pub(super) async fn asset(Path(name): Path<String>) -> Result<Response, PageError> {
    let (kind, text) = match name.as_str() {
        "style.css" => ("text/css; charset=utf-8", STYLE),
        "icon.svg" => ("image/svg+xml", ICON),
        _ => return Err(PageError::NoPage),
    };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "public, max-age=86400"),
    ];
    Ok((headers, text).into_response())
}

/// FNV-1a: tells one version of a file from another, and protects nothing.
const fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        hash = (hash ^ *byte as u64).wrapping_mul(0x0100_0000_01b3);
        rest = tail;
    }
    hash
}
