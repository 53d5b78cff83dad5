//! Waiting for what must come.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Long enough for the slowest machine; a test that passes waits for events only.
const LONGEST: Duration = Duration::from_secs(90);

/// Asks again until there is an answer.
pub(super) fn await_some<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LONGEST;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        sleep(Duration::from_millis(100));
    }
}
