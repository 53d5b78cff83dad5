//! Who may send: those that name one of the tokens of a file.

use std::path::Path;
use std::sync::Arc;
use std::{fmt, fs, io};

use http::HeaderMap;
use http::header::AUTHORIZATION;
use subtle::{Choice, ConstantTimeEq};

/// What a sender without a token is told.
pub(super) const MISSING: &str =
    "send the header `authorization: Bearer TOKEN` with a token of this collector";

/// The tokens that are taken; clones share them. None at all lets everybody in.
#[derive(Clone, Default)]
pub(crate) struct BearerTokens(Option<Arc<[Box<[u8]>]>>);

/// Why a file of tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read.
    #[error("cannot read it: {0}")]
    Read(#[from] io::Error),
    /// There is no token in it.
    #[error("it holds no token; write one on a line")]
    Empty,
    /// A token has a character that cannot stand in a header.
    #[error("line {line} has characters that no token may have: use letters, digits and -._~+/=")]
    Character {
        /// Counted from 1.
        line: usize,
    },
}

impl BearerTokens {
    /// Reads a file with one token a line; empty lines and those that begin with `#` are passed over.
    ///
    /// # Errors
    /// [`TokenError`], when nothing useful is in it.
    pub(crate) fn read(path: &Path) -> Result<Self, TokenError> {
        let text = fs::read_to_string(path)?;
        let mut tokens = Vec::new();
        for (line, token) in (1..).zip(text.lines().map(str::trim)) {
            if token.is_empty() || token.starts_with('#') {
                continue;
            }
            if !token.bytes().all(may_be_in_a_token) {
                return Err(TokenError::Character { line });
            }
            tokens.push(token.as_bytes().into());
        }
        if tokens.is_empty() {
            return Err(TokenError::Empty);
        }
        Ok(Self(Some(tokens.into())))
    }

    /// Whether a request with these headers is let in.
    ///
    /// Every token is compared to its end, so the time taken tells nothing but lengths.
    pub(super) fn admit(&self, headers: &HeaderMap) -> bool {
        let Some(tokens) = &self.0 else {
            return true;
        };
        let Some(given) = headers.get(AUTHORIZATION).and_then(|v| token(v.as_bytes())) else {
            return false;
        };
        tokens
            .iter()
            .fold(Choice::from(0), |found, token| found | token.ct_eq(given))
            .into()
    }
}

/// Tokens are secrets: how many there are is all that may reach a log.
impl fmt::Debug for BearerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.as_ref().map(|tokens| tokens.len());
        f.debug_tuple("BearerTokens").field(&count).finish()
    }
}

/// The characters of RFC 6750.
const fn may_be_in_a_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
}

/// The token in a header's value; the name of the scheme may be written in any case.
fn token(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(text: &str) -> Result<BearerTokens, TokenError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        BearerTokens::read(file.path())
    }

    fn admits(tokens: &BearerTokens, value: &str) -> bool {
        let value = HeaderValue::from_str(value).unwrap();
        tokens.admit(&HeaderMap::from_iter([(AUTHORIZATION, value)]))
    }

    #[test]
    fn each_token_of_the_file_is_taken_and_no_other() {
        let tokens = read("# old\nfirst-token\n\n  second/token==  \n").unwrap();
        assert!(admits(&tokens, "Bearer first-token"));
        assert!(admits(&tokens, "bearer second/token=="));
        for wrong in [
            "Bearer first",
            "Bearer first-token2",
            "Bearer # old",
            "Bearer ",
            "Basic first-token",
            "first-token",
        ] {
            assert!(!admits(&tokens, wrong), "{wrong}");
        }
        assert!(!tokens.admit(&HeaderMap::new()));
        assert!(BearerTokens::default().admit(&HeaderMap::new()));
    }

    #[test]
    fn a_file_without_a_usable_token_is_refused() {
        assert!(matches!(read("\n# none\n"), Err(TokenError::Empty)));
        let odd = read("good\nnot good\n");
        assert!(matches!(odd, Err(TokenError::Character { line: 2 })));
        let missing = BearerTokens::read(Path::new("/nonexistent/tokens"));
        assert!(matches!(missing, Err(TokenError::Read(_))));
    }

    #[test]
    fn no_token_is_ever_printed() {
        let printed = format!("{:?}", read("sesame").unwrap());
        assert!(!printed.contains("sesame"), "{printed}");
    }
}
