//! Packing what is stored for each verdict but never searched.

use std::io;

use zstd::bulk::{Compressor, Decompressor};

/// The quickest level that packs JSON to about a quarter.
const LEVEL: i32 = 1;

/// More bytes than any packed document has; what claims to hold more is damaged.
const MOST_UNPACKED: usize = 64 << 20;

/// Packs one document after the other.
pub(crate) struct Packer(Compressor<'static>);

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Packer")
    }
}

impl Packer {
    /// Ready to pack.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(crate) fn new() -> io::Result<Self> {
        Compressor::new(LEVEL).map(Self)
    }

    /// `bytes`, packed.
    pub(crate) fn pack(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.0.compress(bytes)
    }
}

/// What was packed.
///
/// # Errors
/// When it is not whole.
pub(crate) fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let size = Decompressor::upper_bound(packed).filter(|size| *size <= MOST_UNPACKED);
    let size = size.ok_or_else(|| io::Error::other("a stored document is damaged"))?;
    zstd::bulk::decompress(packed, size)
}
