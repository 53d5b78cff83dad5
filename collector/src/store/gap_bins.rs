//! Exchanges by size class of the gap, as one value of the store.
//!
//! A plot over a week reads thousands of periods; a row for each size class of each of them would
//! be a hundred times as many rows.

use std::collections::BTreeMap;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

/// Exchanges of one size class, or a change of their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BinCount {
    /// Exchanges.
    pub(super) exchanges: i64,
    /// Flagged ones among them.
    pub(super) flagged: i64,
}

/// Exchanges by size class; the classes are those of `gap_bin.rs`.
///
/// In the store it is three variable-length integers for each class that occurs, lowest first:
/// how far it is above the one before (the first: above 0, its sign in the lowest bit), exchanges,
/// flagged ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GapBins(BTreeMap<i64, BinCount>);

impl GapBins {
    /// Adds to one class; a negative number takes away.
    pub(super) fn add(&mut self, bin: i64, count: BinCount) {
        let sum = self.0.entry(bin).or_default();
        sum.exchanges = sum.exchanges.saturating_add(count.exchanges);
        sum.flagged = sum.flagged.saturating_add(count.flagged);
    }

    /// Adds all of `others`.
    pub(super) fn add_all(&mut self, others: &Self) {
        for (bin, count) in others.iter() {
            self.add(bin, count);
        }
    }

    /// Forgets the classes that nothing is left of.
    pub(super) fn drop_empty(&mut self) {
        self.0.retain(|_, count| count.exchanges > 0);
    }

    /// The classes that occur, lowest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, BinCount)> {
        self.0.iter().map(|(bin, count)| (*bin, *count))
    }

    /// All classes together.
    pub(super) fn total(&self) -> BinCount {
        self.iter()
            .fold(BinCount::default(), |sum, (_, count)| BinCount {
                exchanges: sum.exchanges.saturating_add(count.exchanges),
                flagged: sum.flagged.saturating_add(count.flagged),
            })
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len() * 4);
        let mut before = None;
        for (bin, count) in self.iter() {
            let step = match before.replace(bin) {
                None => ((bin << 1) ^ (bin >> 63)).cast_unsigned(),
                Some(before) => bin.abs_diff(before),
            };
            for number in [
                step,
                count.exchanges.max(0).unsigned_abs(),
                count.flagged.max(0).unsigned_abs(),
            ] {
                put(&mut bytes, number);
            }
        }
        bytes
    }

    /// `None` where the bytes are not what [`GapBins::encode`] gives.
    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut bins = BTreeMap::new();
        let mut before = None;
        while !bytes.is_empty() {
            let step = take(&mut bytes)?;
            let bin = match before {
                None => (step >> 1).cast_signed() ^ -(step & 1).cast_signed(),
                Some(before) => i64::checked_add_unsigned(before, step)?,
            };
            before = Some(bin);
            let mut count = || i64::try_from(take(&mut bytes)?).ok();
            bins.insert(
                bin,
                BinCount {
                    exchanges: count()?,
                    flagged: count()?,
                },
            );
        }
        Some(Self(bins))
    }
}

impl ToSql for GapBins {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.encode().into())
    }
}

impl FromSql for GapBins {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let damaged = || FromSqlError::Other("counts of gaps are damaged".into());
        Self::decode(value.as_blob()?).ok_or_else(damaged)
    }
}

/// Seven bits in each byte, the lowest first; the highest bit says that more follow.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            bytes.push(low & 0x7f);
            return;
        }
        bytes.push(low | 0x80);
    }
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        let moved = bits << shift;
        if moved >> shift != bits {
            return None;
        }
        number |= moved;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            counts in proptest::collection::btree_map(
                -500_i64..1_000_001, (1_i64..i64::MAX, 0_i64..i64::MAX), 0..50
            )
        ) {
            let mut bins = GapBins::default();
            for (bin, (exchanges, flagged)) in counts {
                bins.add(bin, BinCount { exchanges, flagged });
            }
            prop_assert_eq!(GapBins::decode(&bins.encode()), Some(bins));
        }

        #[test]
        fn damage_is_seen_or_gives_something_but_no_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..60)
        ) {
            let _anything = GapBins::decode(&bytes);
        }
    }

    #[test]
    fn the_bytes_are_those_in_stores() {
        let mut bins = GapBins::default();
        for (bin, exchanges, flagged) in [(-3, 1, 1), (143, 300, 0), (1_000_000, 2, 0)] {
            bins.add(bin, BinCount { exchanges, flagged });
        }
        let steps = [0x92, 0x01];
        let to_unknown = [0xb1, 0x83, 0x3d];
        let bytes = [
            &[5, 1, 1][..],
            &steps,
            &[0xac, 0x02, 0],
            &to_unknown,
            &[2, 0],
        ];
        assert_eq!(bins.encode(), bytes.concat());
        assert_eq!(GapBins::decode(&[5, 1]), None);
    }

    #[test]
    fn what_is_taken_back_is_gone() {
        let one = BinCount {
            exchanges: 1,
            flagged: 1,
        };
        let less = BinCount {
            exchanges: -1,
            flagged: -1,
        };
        let mut bins = GapBins::default();
        bins.add(7, one);
        bins.add(8, one);
        bins.add(7, less);
        bins.drop_empty();
        assert_eq!(bins.iter().collect::<Vec<_>>(), [(8, one)]);
        assert_eq!(bins.total(), one);
    }
}
