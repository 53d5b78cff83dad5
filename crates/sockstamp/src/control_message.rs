//! The walk over the control messages that came with a read.
//!
//! The kernel writes a sequence of headers, each `{ length: usize, level: i32,
//! kind: i32 }` in native byte order, followed by its data, each padded to the
//! size of `usize`. The walk is over bytes, not pointers, so that nothing in
//! the buffer can lead it astray.

const HEADER: usize = size_of::<usize>() + 8;

/// The software receive stamp among the control messages in `bytes`, in nanoseconds of
/// `CLOCK_REALTIME`; `None` when there is none.
pub(crate) fn receive_stamp(mut bytes: &[u8]) -> Option<i64> {
    loop {
        let (length, rest) = bytes.split_first_chunk()?;
        let (level, rest) = rest.split_first_chunk()?;
        let (kind, _) = rest.split_first_chunk()?;
        let length = usize::from_ne_bytes(*length);
        let data = bytes.get(HEADER..length)?;
        let is_stamp = i32::from_ne_bytes(*level) == libc::SOL_SOCKET
            && i32::from_ne_bytes(*kind) == libc::SCM_TIMESTAMPING;
        if is_stamp {
            return software_stamp(data);
        }
        bytes = bytes.get(length.checked_next_multiple_of(size_of::<usize>())?..)?;
    }
}

/// The data are three times: software, a relic, hardware. A software time of zero means none.
fn software_stamp(data: &[u8]) -> Option<i64> {
    let (seconds, rest) = data.split_first_chunk()?;
    let (nanoseconds, _) = rest.split_first_chunk()?;
    let stamp = i64::from_ne_bytes(*seconds)
        .checked_mul(1_000_000_000)?
        .checked_add(i64::from_ne_bytes(*nanoseconds))?;
    (stamp != 0).then_some(stamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let mut bytes = (HEADER + data.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(size_of::<usize>()), 0);
        bytes
    }

    fn times(seconds: i64, nanoseconds: i64) -> Vec<u8> {
        let mut data = seconds.to_ne_bytes().to_vec();
        data.extend(nanoseconds.to_ne_bytes());
        data.extend([0; 32]);
        data
    }

    #[test]
    fn the_stamp_is_found_behind_another_message() {
        let mut bytes = message(libc::SOL_SOCKET, libc::SCM_CREDENTIALS, &[1; 13]);
        bytes.extend(message(
            libc::SOL_SOCKET,
            libc::SCM_TIMESTAMPING,
            &times(1_700_000_000, 5),
        ));
        assert_eq!(receive_stamp(&bytes), Some(1_700_000_000_000_000_005));
    }

    #[test]
    fn no_message_and_a_zero_stamp_are_both_none() {
        assert_eq!(receive_stamp(&[]), None);
        let zero = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &times(0, 0));
        assert_eq!(receive_stamp(&zero), None);
    }

    #[test]
    fn lengths_that_lie_end_the_walk() {
        let honest = message(libc::SOL_SOCKET, libc::SCM_CREDENTIALS, &[1; 16]);
        for length in [0, 1, HEADER - 1, HEADER + 17, usize::MAX - 3, usize::MAX] {
            let mut bytes = honest.clone();
            bytes[..size_of::<usize>()].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(receive_stamp(&bytes), None, "length {length}");
        }
    }
}
