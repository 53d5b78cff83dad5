//! Trace and span identifiers as W3C trace context has them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text or a byte string is not an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Not the number of bytes or hex digits the identifier has.
    #[error("wrong length")]
    Length,
    /// A character that is not a hex digit.
    #[error("not hexadecimal")]
    Digit,
    /// All bytes are zero, which the specification calls invalid.
    #[error("all zero")]
    Zero,
}

macro_rules! identifier {
    ($name:ident, $bytes:literal, $what:literal) => {
        #[doc = $what]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// Takes the bytes as they travel in OTLP.
            ///
            /// # Errors
            /// [`IdError::Length`] or [`IdError::Zero`].
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, IdError> {
                let bytes: [u8; $bytes] = bytes.try_into().map_err(|_| IdError::Length)?;
                if bytes == [0; $bytes] {
                    Err(IdError::Zero)
                } else {
                    Ok(Self(bytes))
                }
            }

            /// The bytes as they travel in OTLP.
            #[must_use]
            pub const fn bytes(self) -> [u8; $bytes] {
                self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let digits = text.as_bytes();
                if digits.len() != 2 * $bytes {
                    return Err(IdError::Length);
                }
                let mut bytes = [0; $bytes];
                for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
                    *byte = pair.iter().try_fold(0, |so_far, digit| {
                        Ok(so_far << 4 | hex_value(*digit).ok_or(IdError::Digit)?)
                    })?;
                }
                Self::from_bytes(&bytes)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = [0; 2 * $bytes];
                for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
                    pair.copy_from_slice(&hex_digits(byte));
                }
                // Digits are always text.
                f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

identifier!(TraceId, 16, "The identifier all spans of one trace share.");
identifier!(SpanId, 8, "The identifier of one span within its trace.");

fn hex_digits(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 0xf].map(|value| match value {
        0..=9 => b'0' + value,
        _ => b'a' + value - 10,
    })
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_agree() {
        let id: TraceId = "4bf92f3577b34da6a3ce929d0e0e4736".parse().unwrap();
        assert_eq!(id.bytes()[..2], [0x4b, 0xf9]);
        assert_eq!(id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(TraceId::from_bytes(&id.bytes()), Ok(id));
    }

    #[test]
    fn what_is_not_an_identifier_is_refused() {
        assert_eq!("0000000000000000".parse::<SpanId>(), Err(IdError::Zero));
        assert_eq!("00f067aa0ba902".parse::<SpanId>(), Err(IdError::Length));
        assert_eq!("00f067aa0ba902bx".parse::<SpanId>(), Err(IdError::Digit));
        assert_eq!(SpanId::from_bytes(&[1; 7]), Err(IdError::Length));
    }
}
