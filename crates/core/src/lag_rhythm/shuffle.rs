//! Shuffling that gives the same verdict on the same samples, each time.

/// A `SplitMix64` generator: fair enough to shuffle with, and no secret.
pub(super) struct Shuffle {
    state: u64,
}

impl Shuffle {
    pub(super) const fn new() -> Self {
        Self {
            state: 0x5eed_0f7a_c0de_d1ce,
        }
    }

    /// Brings `items` into an order in which each is as likely anywhere.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(self.up_to(end), end);
        }
    }

    /// A number from 0 to `most`.
    fn up_to(&mut self, most: usize) -> usize {
        let choices = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        usize::try_from(self.next() % choices).unwrap_or_default()
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_kept_and_comes_everywhere() {
        let mut shuffle = Shuffle::new();
        let mut seen = [[0_u32; 4]; 4];
        for _ in 0..4_000 {
            let mut items = [0, 1, 2, 3];
            shuffle.shuffle(&mut items);
            let mut sorted = items;
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
            for (at, item) in items.into_iter().enumerate() {
                seen[at][item] += 1;
            }
        }
        for count in seen.into_iter().flatten() {
            assert!((800..1_200).contains(&count), "{seen:?}");
        }
    }
}
