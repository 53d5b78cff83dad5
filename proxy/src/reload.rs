//! Taking on new settings while connections are served.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;

use crate::config::Config;
use crate::metrics::Metrics;
use crate::proxy::StartError;
use crate::serving::Serving;

/// Gives a running proxy new settings. Clones stand for the same proxy.
#[derive(Clone, Debug)]
pub struct Reloader {
    serving: watch::Sender<Arc<Serving>>,
    own: Arc<[SocketAddr]>,
    metrics: Arc<Metrics>,
}

impl Reloader {
    pub(crate) fn new(serving: Serving, own: Vec<SocketAddr>, metrics: Arc<Metrics>) -> Self {
        Self {
            serving: watch::Sender::new(Arc::new(serving)),
            own: own.into(),
            metrics,
        }
    }

    /// Serves connections that come from now on by `config`, and those there are as before. Files
    /// are read anew. Gives the names of the settings that cannot change while the proxy runs and
    /// were meant to: they stay as they were.
    ///
    /// # Errors
    /// The new settings cannot be used: all stays as it was.
    pub async fn reload(&self, config: Config) -> Result<Vec<&'static str>, StartError> {
        let before = Arc::clone(&self.serving.borrow().config);
        let (config, fixed) = keep_what_is_fixed(&before, config);
        match Serving::load(config, &self.own).await {
            Ok(serving) => {
                self.serving.send_replace(Arc::new(serving));
                self.metrics.reloaded();
                Ok(fixed)
            }
            Err(error) => {
                self.failed();
                Err(error)
            }
        }
    }

    /// Notes a reload that came to nothing before there were settings to use.
    pub fn failed(&self) {
        self.metrics.reload_failed();
    }

    /// What connections are served by now, and from now on.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Serving>> {
        self.serving.subscribe()
    }
}

/// The new settings with what cannot change as it was before, and the names of what differed.
fn keep_what_is_fixed(before: &Config, mut new: Config) -> (Config, Vec<&'static str>) {
    let mut changed = Vec::new();
    macro_rules! keep {
        ($($field:ident),+ $(,)?) => {
            $(if new.$field != before.$field {
                changed.push(stringify!($field));
                new.$field.clone_from(&before.$field);
            })+
        };
    }
    keep!(
        listen,
        admin,
        transparent,
        otlp,
        kernel_stamps,
        capture,
        queues,
        processes,
        workers,
        max_connections,
        backlog,
        longest_watch,
        activity_wait,
        packet_grace,
        ship_queue,
    );
    (new, changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_bound_at_the_start_stays_and_is_named() {
        let before = Config::default();
        let wanted = Config {
            listen: vec!["127.0.0.1:1".parse().unwrap()],
            workers: 4,
            max_head_bytes: 9_000,
            ..Config::default()
        };
        let (kept, changed) = keep_what_is_fixed(&before, wanted);
        assert_eq!(changed, ["listen", "workers"]);
        assert_eq!((kept.listen, kept.workers), (before.listen, before.workers));
        assert_eq!(kept.max_head_bytes, 9_000);
    }
}
