//! Styles, scripts and the icon, built into the program.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::error_page::PageError;

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Each with its address below `/assets/`.
const ALL: [Asset; 6] = [
    Asset {
        name: "style.css",
        kind: CSS,
        text: include_str!("../../../assets/style.css"),
    },
    Asset {
        name: "icon.svg",
        kind: "image/svg+xml",
        text: include_str!("../../../assets/icon.svg"),
    },
    Asset {
        name: "live.js",
        kind: SCRIPT,
        text: include_str!("../../../assets/live.js"),
    },
    Asset {
        name: "charts.js",
        kind: SCRIPT,
        text: include_str!("../../../assets/charts.js"),
    },
    Asset {
        name: "uplot.js",
        kind: SCRIPT,
        text: include_str!("../../../assets/uplot/uPlot.iife.min.js"),
    },
    Asset {
        name: "uplot.css",
        kind: CSS,
        text: include_str!("../../../assets/uplot/uPlot.min.css"),
    },
];

struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

/// Where the asset of that name is. The address changes with its content, so that browsers may
/// keep it.
pub(super) fn href(name: &str) -> String {
    let text = find(name).map_or("", |asset| asset.text);
    format!("/assets/{name}?v={:016x}", fingerprint(text.as_bytes()))
}

/// `GET /assets/{name}`
pub(super) async fn asset(Path(name): Path<String>) -> Result<Response, PageError> {
    let asset = find(&name).ok_or(PageError::NoPage)?;
    let headers = [
        (header::CONTENT_TYPE, asset.kind),
        (header::CACHE_CONTROL, "public, max-age=86400"),
    ];
    Ok((headers, asset.text).into_response())
}

fn find(name: &str) -> Option<&'static Asset> {
    ALL.iter().find(|asset| asset.name == name)
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
