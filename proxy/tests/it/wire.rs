//! Reading exact bytes from a socket.

use std::io::Read;

/// Reads exactly as many bytes as `expected` has, and compares.
#[track_caller]
pub(crate) fn expect(stream: &mut impl Read, expected: &str) {
    let got = exactly(stream, expected.len());
    assert_eq!(String::from_utf8_lossy(&got), expected);
}

/// Reads exactly `count` bytes.
#[track_caller]
pub(crate) fn exactly(stream: &mut impl Read, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    let mut got = 0;
    while got < count {
        let read = stream.read(&mut bytes[got..]);
        if !matches!(read, Ok(1..)) {
            let end = String::from_utf8_lossy(&bytes[got.saturating_sub(200)..got]);
            panic!("{read:?} after {got} of {count} bytes, of which the last are {end:?}");
        }
        got += read.unwrap();
    }
    bytes
}

/// Reads up to the empty line that ends a head.
#[track_caller]
pub(crate) fn head(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.extend(exactly(stream, 1));
    }
    String::from_utf8(bytes).unwrap()
}

/// Reads to the end of the stream.
#[track_caller]
pub(crate) fn rest(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Asserts that the stream has ended.
#[track_caller]
pub(crate) fn expect_end(stream: &mut impl Read) {
    let bytes = rest(stream);
    assert_eq!(String::from_utf8_lossy(&bytes), "");
}
