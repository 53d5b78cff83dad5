//! Work that can wait steps back where processors are short.

/// How much: a tenth of the share of a thread that did not.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Lets other threads, and the programs that are watched, go before the calling thread. What was
/// received lies in the log until then, so that a verdict comes later where an acknowledgement
/// would. Elsewhere than on Linux niceness is a matter of whole processes, and nothing is done.
pub(crate) fn step_back() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        let stepped =
            getpriority_process(None).and_then(|now| setpriority_process(None, now.max(NICENESS)));
        if let Err(error) = stepped {
            tracing::debug!(%error, "judging goes on at the priority of the rest");
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn niceness() -> i32 {
        rustix::process::getpriority_process(None).unwrap()
    }

    #[test]
    fn only_the_thread_that_asks_steps_back() {
        let before = niceness();
        let after = std::thread::spawn(|| {
            step_back();
            niceness()
        });
        assert_eq!(after.join().unwrap(), NICENESS.max(before));
        assert_eq!(niceness(), before);
    }
}
