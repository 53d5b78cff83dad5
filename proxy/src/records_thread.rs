//! The thread on which finished exchanges become records and are shipped: beside the forwarding
//! threads, so that neither waits for the other.

use std::future::Future;
use std::io;

use tokio::runtime::Builder;
use tokio::sync::oneshot;

/// Runs both to their end on a thread of their own; tells when they have ended.
///
/// # Errors
/// When the thread or its runtime cannot be made.
pub(crate) fn start(
    finishing: impl Future<Output = ()> + Send + 'static,
    shipping: impl Future<Output = ()> + Send + 'static,
) -> io::Result<oneshot::Receiver<()>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (ended, end) = oneshot::channel();
    std::thread::Builder::new()
        .name("skewtap-records".to_owned())
        .spawn(move || {
            runtime.block_on(async { tokio::join!(finishing, shipping) });
            // The other end is gone only when serving was given up.
            let (Ok(()) | Err(())) = ended.send(());
        })?;
    Ok(end)
}
