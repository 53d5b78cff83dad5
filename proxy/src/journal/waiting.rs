//! Requests that have arrived before their exchange began.

use std::collections::VecDeque;

use crate::message_log::Message;

/// Most messages whose exchange has not begun; only a client that pipelines makes any.
const WAITING_CAP: usize = 1_024;

/// Requests that have arrived before their exchange began.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    messages: VecDeque<Message<T>>,
}

impl<T: Copy> Waiting<T> {
    pub(super) const fn new() -> Self {
        Self {
            messages: VecDeque::new(),
        }
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether there was room for `message`.
    pub(super) fn push(&mut self, message: Message<T>) -> bool {
        let room = self.messages.len() < WAITING_CAP;
        if room {
            self.messages.push_back(message);
        }
        room
    }

    /// Completes the message with this index, if it is here.
    pub(super) fn end(&mut self, index: u64, end: u64, last: T) {
        let found = self.messages.iter_mut().rev().find(|m| m.index == index);
        if let Some(message) = found {
            (message.end, message.last) = (Some(end), Some(last));
        }
    }

    /// Takes the message with this index out, and forgets those before it.
    pub(super) fn take(&mut self, index: u64) -> Option<Message<T>> {
        while let Some(message) = self.messages.front().copied() {
            if message.index > index {
                return None;
            }
            self.messages.pop_front();
            if message.index == index {
                return Some(message);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(index: u64) -> Message<i64> {
        Message {
            index,
            start: index,
            head_end: index,
            end: None,
            first: 0,
            head: 0,
            last: None,
            interleaved: None,
        }
    }

    #[test]
    fn a_message_is_found_by_its_index_and_those_before_it_go() {
        let mut waiting = Waiting::new();
        for index in 3..6 {
            assert!(waiting.push(message(index)));
        }
        waiting.end(4, 9, 7);
        assert_eq!(waiting.take(2), None);
        let taken = waiting.take(4).unwrap();
        assert_eq!((taken.end, taken.last), (Some(9), Some(7)));
        assert_eq!(waiting.take(3), None);
        assert!(waiting.take(5).is_some());
    }

    #[test]
    fn beyond_the_cap_messages_are_refused() {
        let mut waiting = Waiting::new();
        let taken = (0..2_000).filter(|index| waiting.push(message(*index)));
        assert_eq!(taken.count(), WAITING_CAP);
    }
}
