//! A file with certificates for Java to trust, in the format of its own that every JDK reads (JKS,
//! version 2).
//!
//! The digest at its end protects it against changes under a password. Java looks at it only when
//! it is given that password, and a trust store holds no secret, so it is left empty.

use rustls_pki_types::CertificateDer;

const MAGIC: u32 = 0xFEED_FEED;
const VERSION: u32 = 2;
/// An entry that is a certificate to trust, rather than a key.
const TRUSTED: u32 = 2;
const DIGEST: [u8; 20] = [0; 20];

/// The file's bytes. The certificates are named by their numbers.
pub(super) fn of(certificates: &[CertificateDer<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(MAGIC.to_be_bytes());
    bytes.extend(VERSION.to_be_bytes());
    bytes.extend(length(certificates.len()));
    for (number, certificate) in certificates.iter().enumerate() {
        bytes.extend(TRUSTED.to_be_bytes());
        text(&mut bytes, &number.to_string());
        // When it was added, in milliseconds since 1970; nobody asks.
        bytes.extend(0_u64.to_be_bytes());
        text(&mut bytes, "X.509");
        bytes.extend(length(certificate.len()));
        bytes.extend_from_slice(certificate);
    }
    bytes.extend(DIGEST);
    bytes
}

/// A text of ASCII, with its length before it.
fn text(bytes: &mut Vec<u8>, text: &str) {
    let [_, _, length @ ..] = length(text.len());
    bytes.extend(length);
    bytes.extend_from_slice(text.as_bytes());
}

fn length(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes()
}
