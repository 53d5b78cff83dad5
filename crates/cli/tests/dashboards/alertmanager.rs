//! A real Alertmanager on the shipped configuration, with a receiver.

use std::fs;
use std::net::SocketAddr;

use super::go_server::GoServer;
use super::{shipped, speed_up};

/// A running Alertmanager.
pub(super) struct Alertmanager {
    server: GoServer,
    _home: tempfile::TempDir,
}

impl Alertmanager {
    /// Starts it with a webhook at `receiver` for whoever is on call.
    pub(super) fn start(receiver: SocketAddr) -> Self {
        let home = tempfile::tempdir().unwrap();
        let shipped = shipped::read("dashboards/alertmanager/alertmanager.yml");
        let on_call = "  - name: on-call\n";
        assert!(
            shipped.contains(on_call),
            "nobody is on call in alertmanager.yml"
        );
        let webhook = format!("{on_call}    webhook_configs: [{{url: 'http://{receiver}/'}}]\n");
        let file = home.path().join("alertmanager.yml");
        fs::write(
            &file,
            speed_up::more_often(&shipped).replace(on_call, &webhook),
        )
        .unwrap();
        let mut command = shipped::tool("prometheus-alertmanager", "prometheus-alertmanager");
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.path={}",
                home.path().join("data").display()
            ))
            .arg("--cluster.listen-address=");
        Self {
            server: GoServer::start(&mut command),
            _home: home,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.server.address
    }
}
