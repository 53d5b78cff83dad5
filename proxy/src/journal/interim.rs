//! Interim responses (1xx) of the server on their way to the client.

use bytes::{Buf, Bytes, BytesMut};

/// Most bytes of interim responses that wait for a client that does not read.
const CAP: usize = 64 * 1024;

/// Interim responses as they came, byte for byte.
#[derive(Debug, Default)]
pub(super) struct InterimQueue {
    waiting: BytesMut,
    in_the_middle: bool,
}

impl InterimQueue {
    /// Takes a whole interim response; one that would exceed the cap is left out whole, which
    /// HTTP allows.
    pub(super) fn push(&mut self, response: &[u8]) {
        if self.waiting.len().saturating_add(response.len()) <= CAP {
            self.waiting.extend_from_slice(response);
        } else {
            tracing::warn!(
                bytes = response.len(),
                "interim response dropped, client does not read"
            );
        }
    }

    /// What is to be written now; nothing while a final response is half written.
    pub(super) fn due(&self, between_messages: bool) -> Option<Bytes> {
        let due = !self.waiting.is_empty() && (between_messages || self.in_the_middle);
        due.then(|| Bytes::copy_from_slice(&self.waiting))
    }

    /// Notes that the first `count` bytes were written.
    pub(super) fn sent(&mut self, count: usize) {
        self.waiting.advance(count.min(self.waiting.len()));
        self.in_the_middle = !self.waiting.is_empty();
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_due_inside_a_final_response() {
        let mut queue = InterimQueue::default();
        queue.push(b"HTTP/1.1 103 Early Hints\r\n\r\n");
        assert_eq!(queue.due(false), None);
        assert_eq!(
            queue.due(true).unwrap(),
            &b"HTTP/1.1 103 Early Hints\r\n\r\n"[..]
        );
    }

    #[test]
    fn a_half_written_response_goes_on_where_it_stopped() {
        let mut queue = InterimQueue::default();
        queue.push(b"HTTP/1.1 100 Continue\r\n\r\n");
        queue.sent(9);
        assert_eq!(queue.due(false).unwrap(), &b"100 Continue\r\n\r\n"[..]);
        queue.sent(16);
        assert!(queue.is_empty());
    }

    #[test]
    fn what_exceeds_the_cap_is_left_out_whole() {
        let mut queue = InterimQueue::default();
        queue.push(&[b'a'; CAP - 1]);
        queue.push(b"bb");
        assert_eq!(queue.due(true).unwrap().len(), CAP - 1);
    }
}
