//! The blocks of a pcapng file.

use std::io::Read;

use pcap_parser::pcapng::{
    Block as NgBlock, InterfaceDescriptionBlock, OptionCode, parse_block_be, parse_block_le,
};

use super::block_source::BlockSource;
use super::{Block, FrameBlock, NANOSECONDS, PcapFileError};
use crate::frame::LinkType;

/// Type of the block that begins a section; reads the same in either byte order.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Type, length and, of a section header, the byte order.
const BLOCK_HEAD: usize = 12;

/// Type, length, interface, time and both lengths of a packet block.
const PACKET_HEAD: usize = 28;

/// Most interfaces of one section.
const INTERFACES_CAP: usize = 4096;

/// What the current section has said of how to read it.
#[derive(Default)]
pub(super) struct Section {
    big_endian: bool,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy)]
struct Interface {
    link: LinkType,
    /// Units of time in a second; `None` when finer than any number can tell.
    units: Option<u128>,
    /// Seconds to add to every time.
    offset: i64,
}

impl Section {
    /// Reads the current block and moves past it.
    pub(super) fn block<R: Read>(
        &mut self,
        source: &mut BlockSource<R>,
    ) -> Result<Block, PcapFileError> {
        let Some((kind, length)) = self.head(source.need(BLOCK_HEAD)?) else {
            return Err(source.malformed());
        };
        let bytes = source.need(length)?;
        let parsed = if self.big_endian {
            parse_block_be(bytes)
        } else {
            parse_block_le(bytes)
        };
        let found = match parsed {
            Ok((_, block)) => self.understand(&block),
            Err(_) => None,
        };
        let Some(found) = found else {
            return Err(source.malformed());
        };
        if kind == SECTION_HEADER {
            self.interfaces.clear();
        }
        source.advance(length);
        Ok(found)
    }

    /// Type and length of the block; a section header changes how they are read.
    fn head(&mut self, bytes: &[u8]) -> Option<([u8; 4], usize)> {
        let (kind, rest) = bytes.split_first_chunk::<4>()?;
        let (length, order) = rest.split_first_chunk::<4>()?;
        if *kind == SECTION_HEADER {
            self.big_endian = match order {
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                _ => return None,
            };
        }
        let length = if self.big_endian {
            u32::from_be_bytes(*length)
        } else {
            u32::from_le_bytes(*length)
        };
        Some((*kind, usize::try_from(length).ok()?))
    }

    /// What a block holds; `None` where it contradicts the format.
    fn understand(&mut self, block: &NgBlock<'_>) -> Option<Block> {
        match block {
            NgBlock::InterfaceDescription(description) => {
                if self.interfaces.len() >= INTERFACES_CAP {
                    return None;
                }
                let interface = Interface::described(description, self.big_endian);
                self.interfaces.push(interface);
                Some(Block::Other)
            }
            NgBlock::EnhancedPacket(packet) => {
                let kept = usize::try_from(packet.caplen).ok()?;
                let interface = usize::try_from(packet.if_id)
                    .ok()
                    .and_then(|id| self.interfaces.get(id))?;
                let ticks = (u64::from(packet.ts_high) << 32) | u64::from(packet.ts_low);
                Some(interface.time_ns(ticks).map_or(Block::Unusable, |time_ns| {
                    Block::Frame(FrameBlock {
                        time_ns,
                        resolution_ns: interface.resolution_ns(),
                        link: interface.link,
                        wire_length: packet.origlen,
                        bytes: PACKET_HEAD..PACKET_HEAD.saturating_add(kept),
                    })
                }))
            }
            // A simple packet has no time.
            NgBlock::SimplePacket(_) => Some(Block::Unusable),
            _ => Some(Block::Other),
        }
    }
}

impl Interface {
    fn described(description: &InterfaceDescriptionBlock<'_>, big_endian: bool) -> Self {
        let option = |code| {
            description
                .options
                .iter()
                .find(|option| option.code == code)
                .map(pcap_parser::pcapng::PcapNGOption::value)
        };
        // Without the option, a unit is a microsecond.
        let unit = option(OptionCode::IfTsresol)
            .and_then(<[u8]>::first)
            .copied();
        let offset = option(OptionCode::IfTsoffset).and_then(<[u8]>::first_chunk);
        Self {
            link: LinkType::from_number(description.linktype.0),
            units: units_in_a_second(unit.unwrap_or(6)),
            offset: offset.map_or(0, |seconds| {
                if big_endian {
                    i64::from_be_bytes(*seconds)
                } else {
                    i64::from_le_bytes(*seconds)
                }
            }),
        }
    }

    fn time_ns(&self, ticks: u64) -> Option<i64> {
        let since_offset =
            u128::from(ticks) * u128::from(NANOSECONDS.unsigned_abs()) / self.units?;
        let offset = self.offset.checked_mul(NANOSECONDS)?;
        i64::try_from(since_offset).ok()?.checked_add(offset)
    }

    fn resolution_ns(&self) -> i64 {
        let unit = u128::from(NANOSECONDS.unsigned_abs()) / self.units.unwrap_or(u128::MAX);
        i64::try_from(unit).unwrap_or(NANOSECONDS).max(1)
    }
}

/// A power of two if the top bit is set, else of ten.
fn units_in_a_second(exponent: u8) -> Option<u128> {
    let power = u32::from(exponent & 0x7f);
    if exponent & 0x80 == 0 {
        10_u128.checked_pow(power)
    } else {
        2_u128.checked_pow(power)
    }
}
