//! The bytes of a capture file, a block at a time.

use std::io::{ErrorKind, Read};
use std::ops::Range;

use super::{BLOCK_CAP, PcapFileError};

/// How much is asked of the file at once, in bytes.
const READ: usize = 64 * 1024;

/// A window onto the file that begins at the current block.
pub(super) struct BlockSource<R> {
    inner: R,
    buffer: Vec<u8>,
    /// Where in `buffer` the block before the current one begins.
    passed: usize,
    /// Where in `buffer` the current block begins.
    start: usize,
    /// Offset of the current block in the file.
    offset: u64,
}

impl<R: Read> BlockSource<R> {
    pub(super) fn new(inner: R) -> Self {
        Self {
            inner,
            buffer: Vec::new(),
            passed: 0,
            start: 0,
            offset: 0,
        }
    }

    /// The first `length` bytes of the current block.
    pub(super) fn need(&mut self, length: usize) -> Result<&[u8], PcapFileError> {
        if length > BLOCK_CAP {
            return Err(PcapFileError::TooLong { at: self.offset });
        }
        while self.available() < length {
            if self.read_more()? == 0 {
                return Err(PcapFileError::CutOff { at: self.offset });
            }
        }
        let end = self.start.saturating_add(length);
        Ok(self.buffer.get(self.start..end).unwrap_or_default())
    }

    /// Whether no block follows.
    pub(super) fn at_end(&mut self) -> Result<bool, PcapFileError> {
        Ok(self.available() == 0 && self.read_more()? == 0)
    }

    /// Moves past the current block, which is `length` bytes long and has been read.
    pub(super) fn advance(&mut self, length: usize) {
        self.passed = self.start;
        self.start = self.start.saturating_add(length).min(self.buffer.len());
        self.offset = self.offset.saturating_add(length as u64);
    }

    /// Part of the block that was moved past last; good until more is read.
    pub(super) fn passed(&self, part: Range<usize>) -> &[u8] {
        self.buffer
            .get(self.passed..self.start)
            .and_then(|block| block.get(part))
            .unwrap_or_default()
    }

    /// The error of a current block that cannot be understood.
    pub(super) fn malformed(&self) -> PcapFileError {
        PcapFileError::Malformed { at: self.offset }
    }

    fn available(&self) -> usize {
        self.buffer.len().saturating_sub(self.start)
    }

    fn read_more(&mut self) -> Result<usize, PcapFileError> {
        self.buffer.drain(..self.start);
        (self.passed, self.start) = (0, 0);
        let held = self.buffer.len();
        self.buffer.resize(held + READ, 0);
        let read = loop {
            let space = self.buffer.get_mut(held..).unwrap_or_default();
            match self.inner.read(space) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer
            .truncate(held + read.as_ref().copied().unwrap_or(0));
        read.map_err(|source| PcapFileError::Read {
            at: self.offset,
            source,
        })
    }
}
