//! What is transferred.

use std::fs;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Name and length of each body.
const BODIES: [(&str, usize); 4] = [
    ("empty", 0),
    ("byte", 1),
    ("some", 64 * 1024),
    ("much", 5 * 1024 * 1024),
];

/// A folder with the bodies below `files`, and room for what servers take below `up`.
pub(super) struct Bodies(TempDir);

/// One body to get or to put.
pub(super) struct Transfer {
    pub(super) url: String,
    /// What to put; `None` for a body to get.
    pub(super) file: Option<PathBuf>,
    pub(super) chunked: bool,
    /// Where the server keeps what it took.
    stored: Option<PathBuf>,
    /// The hash that the body has at its other end.
    sha256: String,
}

/// What a client found.
#[derive(serde::Deserialize, Debug)]
pub(super) struct Found {
    pub(super) status: u16,
    pub(super) sha256: String,
}

impl Bodies {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["files", "up"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        for (name, length) in BODIES {
            let path = folder.path().join("files").join(name);
            fs::write(path, noise(length)).unwrap();
        }
        Self(folder)
    }

    pub(super) fn folder(&self) -> &Path {
        self.0.path()
    }

    /// All that a client transfers from and to a server at `base`; `row` names the pair.
    pub(super) fn transfers(&self, base: &str, row: &str) -> Vec<Transfer> {
        let get = |kind: &str, name: &str| Transfer {
            url: format!("{base}/{kind}/{name}"),
            file: None,
            chunked: false,
            stored: None,
            sha256: sha256_of(&self.file(name)),
        };
        let put = |name: &str, chunked: bool| {
            let kept = format!("up/{row}-{name}-{chunked}");
            Transfer {
                url: format!("{base}/{kept}"),
                file: Some(self.file(name)),
                chunked,
                stored: Some(self.folder().join(kept)),
                sha256: sha256_of(&self.file(name)),
            }
        };
        let names = BODIES.map(|(name, _)| name);
        let mut all: Vec<_> = names.iter().map(|name| get("files", name)).collect();
        all.push(get("chunked", "some"));
        all.extend(names.iter().map(|name| put(name, false)));
        all.push(put("some", true));
        all
    }

    /// Messages to what echoes them at `url`.
    pub(super) fn messages(&self, url: &str) -> Vec<Transfer> {
        let message = |(name, _)| Transfer {
            url: url.to_owned(),
            file: Some(self.file(name)),
            chunked: false,
            stored: None,
            sha256: sha256_of(&self.file(name)),
        };
        BODIES.map(message).into()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder().join("files").join(name)
    }
}

impl Transfer {
    /// As the clients read it.
    pub(super) fn plan(&self) -> Value {
        json!({"url": self.url, "file": self.file, "chunked": self.chunked})
    }

    /// What is wrong with what came of it, if anything is.
    pub(super) fn fault(&self, found: &Found) -> Option<String> {
        let (status, sha256) = match &self.stored {
            None => (found.status, found.sha256.clone()),
            Some(path) if path.exists() => {
                let sha256 = sha256_of(path);
                fs::remove_file(path).unwrap();
                (found.status, sha256)
            }
            Some(_) => (found.status, String::from("nothing was stored")),
        };
        let good = matches!(status, 101 | 200 | 201 | 204) && sha256 == self.sha256;
        (!good).then(|| format!("{}: {status}, {sha256}, not {}", self.url, self.sha256))
    }
}

/// The hash of a file, as every client writes it.
pub(super) fn sha256_of(path: &Path) -> String {
    sha256(&fs::read(path).unwrap())
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    let hash = digest(&SHA256, bytes);
    hash.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Bytes without a pattern, the same every time.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 7_u64;
    std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state.to_be_bytes()[0]
    })
    .take(length)
    .collect()
}
