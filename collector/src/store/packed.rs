//! Packing what is stored for each verdict but never searched.
//!
//! Such documents are short and much alike, so they are packed against a dictionary: a verdict
//! and the observations of a call slept through and of a healthy one. A packed document begins
//! with the number of its dictionary; a dictionary that is in use in stores does not change.

use std::fmt;
use std::io;
use std::sync::LazyLock;

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::DecoderDictionary;

/// The dictionary that documents are packed against.
const DICTIONARY: &[u8] = include_bytes!("dictionary_1.bin");

/// Its number.
const NUMBER: u8 = 1;

/// The quickest level; with the dictionary it packs to about an eighth.
const LEVEL: i32 = 1;

/// More bytes than any packed document has; what claims to hold more is damaged.
const MOST_UNPACKED: usize = 64 << 20;

static DECODER: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

/// Packs one document after the other.
pub(crate) struct Packer(Compressor<'static>);

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Packer")
    }
}

impl Packer {
    /// Ready to pack.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(crate) fn new() -> io::Result<Self> {
        Compressor::with_dictionary(LEVEL, DICTIONARY).map(Self)
    }

    /// `bytes`, packed.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(crate) fn pack(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut packed = self.0.compress(bytes)?;
        packed.insert(0, NUMBER);
        Ok(packed)
    }
}

/// What was packed.
///
/// # Errors
/// When it is not whole, or packed against a dictionary that this version does not know.
pub(crate) fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let damaged = || io::Error::other("a stored document is damaged");
    let Some((&NUMBER, packed)) = packed.split_first() else {
        return Err(damaged());
    };
    let size = Decompressor::upper_bound(packed).filter(|size| *size <= MOST_UNPACKED);
    Decompressor::with_prepared_dictionary(&DECODER)?.decompress(packed, size.ok_or_else(damaged)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_back(bytes in proptest::collection::vec(any::<u8>(), 0..5_000)) {
            let packed = Packer::new().unwrap().pack(&bytes).unwrap();
            prop_assert_eq!(unpack(&packed).unwrap(), bytes);
        }

        #[test]
        fn what_is_damaged_is_an_error_or_something_else_but_no_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..200)
        ) {
            let _anything = unpack(&bytes);
            let mut marked = vec![NUMBER];
            marked.extend(bytes);
            let _anything = unpack(&marked);
        }
    }

    #[test]
    fn the_dictionary_is_the_one_in_stores() {
        let sum = DICTIONARY.iter().fold(0_u64, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(*byte))
        });
        assert_eq!(
            (DICTIONARY.len(), sum),
            (20_452, 14_683_795_689_972_328_043)
        );
    }
}
