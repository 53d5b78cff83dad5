//! Sequence numbers that wrap around, on a line that does not.

/// Gives each sequence number a position; a later byte always has a higher one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequence {
    /// The furthest number seen and its position.
    furthest: Option<(u32, i64)>,
}

impl Sequence {
    /// The position of `number`, taken to be less than 2 GiB away from the furthest one.
    pub(super) fn position(&mut self, number: u32) -> i64 {
        let Some((furthest, at)) = self.furthest else {
            self.furthest = Some((number, 0));
            return 0;
        };
        let distance = number.wrapping_sub(furthest).cast_signed();
        let position = at.saturating_add(i64::from(distance));
        if distance > 0 {
            self.furthest = Some((number, position));
        }
        position
    }
}
