//! Where TLS records end in a stream of ciphertext.

/// Length of a record's header: type, version, length of what follows.
const HEADER: usize = 5;

/// The place within the current record.
#[derive(Debug, Default)]
pub(super) struct RecordEdges {
    header: [u8; HEADER],
    have: usize,
    /// Bytes of the record after its header that have still to come.
    left: usize,
}

impl RecordEdges {
    /// How many of `bytes` belong to the current record, and whether they complete it.
    pub(super) fn next(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut taken = 0;
        for (slot, byte) in self.header.iter_mut().skip(self.have).zip(bytes) {
            *slot = *byte;
            taken += 1;
        }
        let had = self.have;
        self.have += taken;
        if self.have < HEADER {
            return (taken, false);
        }
        if had < HEADER {
            let [_, _, _, high, low] = self.header;
            self.left = usize::from(u16::from_be_bytes([high, low]));
        }
        let body = self.left.min(bytes.len() - taken);
        self.left -= body;
        let complete = self.left == 0;
        if complete {
            self.have = 0;
        }
        (taken + body, complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_end_where_their_headers_say_however_they_are_cut() {
        let stream = [23, 3, 3, 0, 2, 7, 7, 23, 3, 3, 0, 0, 22, 3, 3, 0, 1, 9];
        for size in 1..=stream.len() {
            let mut edges = RecordEdges::default();
            let (mut at, mut ends) = (0, Vec::new());
            for piece in stream.chunks(size) {
                let mut rest = piece;
                while !rest.is_empty() {
                    let (taken, complete) = edges.next(rest);
                    assert!(taken > 0);
                    at += taken;
                    rest = &rest[taken..];
                    if complete {
                        ends.push(at);
                    }
                }
            }
            assert_eq!(ends, [7, 12, 18], "in pieces of {size}");
        }
    }
}
