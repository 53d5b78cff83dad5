//! Frames from a capture file, pcap or pcapng.

mod block_source;
mod pcapng;

#[cfg(test)]
mod tests;

use std::io::{self, Read};
use std::ops::Range;

use pcap_parser::{
    PcapHeader, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified, parse_pcap_header,
};

use crate::frame::{Frame, LinkType};
use block_source::BlockSource;
use pcapng::Section;

/// Longest block that is read, in bytes; no frame comes near it.
pub const BLOCK_CAP: usize = 4 * 1024 * 1024;

const NANOSECONDS: i64 = 1_000_000_000;

/// Why a capture file cannot be read, or not further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PcapFileError {
    /// The file is neither pcap nor pcapng.
    #[error("not a capture file: expected pcap or pcapng")]
    NotACapture,
    /// The file ends inside a block.
    #[error("capture file ends inside the block at byte {at}; all before it was read")]
    CutOff {
        /// Offset of the block in the file.
        at: u64,
    },
    /// A block contradicts the format.
    #[error("malformed block at byte {at} of the capture file")]
    Malformed {
        /// Offset of the block in the file.
        at: u64,
    },
    /// A block is longer than any frame can be.
    #[error("block at byte {at} of the capture file exceeds {BLOCK_CAP} bytes")]
    TooLong {
        /// Offset of the block in the file.
        at: u64,
    },
    /// The operating system failed to deliver the file's bytes.
    #[error("cannot read the capture file at byte {at}")]
    Read {
        /// Offset of the block that was to be read.
        at: u64,
        /// What the operating system said.
        source: io::Error,
    },
}

/// Reads a capture file frame by frame, in constant memory.
pub struct PcapFile<R> {
    source: BlockSource<R>,
    format: Format,
    resolution_ns: i64,
    skipped: u64,
}

enum Format {
    Pcap(PcapHeader),
    PcapNg(Section),
}

/// What a block holds.
enum Block {
    Frame(FrameBlock),
    /// A frame without a usable time or interface.
    Unusable,
    /// No frame.
    Other,
}

/// A frame within its block.
struct FrameBlock {
    time_ns: i64,
    resolution_ns: i64,
    link: LinkType,
    wire_length: u32,
    bytes: Range<usize>,
}

impl<R: Read> PcapFile<R> {
    /// Begins to read a capture file.
    ///
    /// # Errors
    /// When it cannot be read or does not begin like a capture file.
    pub fn new(source: R) -> Result<Self, PcapFileError> {
        let mut source = BlockSource::new(source);
        let magic = source.need(4).map_err(not_a_capture)?;
        let format = if magic == pcapng::SECTION_HEADER {
            Format::PcapNg(Section::default())
        } else {
            let bytes = source.need(24).map_err(not_a_capture)?;
            let (_, header) = parse_pcap_header(bytes).map_err(|_| PcapFileError::NotACapture)?;
            source.advance(24);
            Format::Pcap(header)
        };
        Ok(Self {
            source,
            format,
            resolution_ns: 1,
            skipped: 0,
        })
    }

    /// The next frame; `None` at the end of the file.
    ///
    /// # Errors
    /// When the file is damaged or cannot be read; every later call fails alike.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, PcapFileError> {
        loop {
            if self.source.at_end()? {
                return Ok(None);
            }
            let block = match &mut self.format {
                Format::Pcap(header) => pcap_block(&mut self.source, header)?,
                Format::PcapNg(section) => section.block(&mut self.source)?,
            };
            match block {
                Block::Frame(found) => {
                    self.resolution_ns = self.resolution_ns.max(found.resolution_ns);
                    return Ok(Some(Frame {
                        time_ns: found.time_ns,
                        link: found.link,
                        wire_length: found.wire_length,
                        bytes: self.source.passed(found.bytes),
                    }));
                }
                Block::Unusable => self.skipped += 1,
                Block::Other => {}
            }
        }
    }

    /// The coarsest unit of time among the frames so far, in nanoseconds: a frame may have passed
    /// the tap up to that much after the time it bears.
    #[must_use]
    pub fn resolution_ns(&self) -> i64 {
        self.resolution_ns
    }

    /// Frames left out so far because they have no usable time or interface.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

/// A file too short for a header is no capture file rather than a damaged one.
fn not_a_capture(error: PcapFileError) -> PcapFileError {
    match error {
        PcapFileError::CutOff { .. } => PcapFileError::NotACapture,
        other => other,
    }
}

fn pcap_block<R: Read>(
    source: &mut BlockSource<R>,
    header: &PcapHeader,
) -> Result<Block, PcapFileError> {
    let head = if header.is_modified_format() { 24 } else { 16 };
    let parse = match (header.is_modified_format(), header.is_bigendian()) {
        (true, _) => parse_pcap_frame_modified,
        (false, true) => parse_pcap_frame_be,
        (false, false) => parse_pcap_frame,
    };
    let lengths = source.need(head)?;
    let kept = match lengths.get(8..).and_then(<[u8]>::first_chunk) {
        Some(kept) if header.is_bigendian() => u32::from_be_bytes(*kept),
        Some(kept) => u32::from_le_bytes(*kept),
        None => return Err(source.malformed()),
    };
    let whole = head.saturating_add(usize::try_from(kept).unwrap_or(usize::MAX));
    let bytes = source.need(whole)?;
    let Ok((_, record)) = parse(bytes) else {
        return Err(source.malformed());
    };
    let (unit_ns, fraction) = if header.is_nanosecond_precision() {
        (1, i64::from(record.ts_usec))
    } else {
        (1000, i64::from(record.ts_usec) * 1000)
    };
    let found = FrameBlock {
        time_ns: i64::from(record.ts_sec) * NANOSECONDS + fraction,
        resolution_ns: unit_ns,
        // The upper half holds flags, not the type.
        link: LinkType::from_number(header.network.0 & 0xffff),
        wire_length: record.origlen,
        bytes: head..whole,
    };
    source.advance(whole);
    Ok(Block::Frame(found))
}
