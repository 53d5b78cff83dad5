//! What one read gave.

/// What one read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes written to the start of the buffer; 0 at the end of the stream, or for an empty buffer.
    pub bytes: usize,
    /// When the last byte of what was read arrived in this machine's kernel, in nanoseconds of
    /// `CLOCK_REALTIME`; `None` where the kernel gave no stamp.
    pub kernel_ns: Option<i64>,
}
