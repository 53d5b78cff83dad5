//! The servers.

use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use super::bodies::Bodies;
use super::certificates::Certificates;
use super::free_port::free_port;
use super::hyper_server::HyperServer;
use super::processes::{Process, python, script};

/// One of each kind, serving the same bodies, until this value is dropped.
pub(super) struct Servers {
    _processes: Vec<Process>,
    _hyper: HyperServer,
    /// Name and port.
    pub(super) ports: Vec<(&'static str, u16)>,
}

impl Servers {
    /// Starts them all, under TLS if there are certificates.
    pub(super) fn start(bodies: &Bodies, certificates: Option<&Certificates>) -> Self {
        let mut words = vec![bodies.folder().to_owned()];
        words.extend(certificates.map(Certificates::certificate));
        words.extend(certificates.map(Certificates::key));
        let (python, node) = (python(), String::from("node"));
        let mut processes = Vec::new();
        let mut ports = Vec::new();
        for (name, program, file) in [
            ("http.server", &python, "servers/http_server.py"),
            ("aiohttp", &python, "servers/aiohttp_server.py"),
            ("node", &node, "servers/node_server.mjs"),
        ] {
            let mut command = Command::new(program);
            let (process, line) = Process::start(command.arg(script(file)).args(&words));
            let port = line.trim().parse();
            ports.push((
                name,
                port.unwrap_or_else(|_| panic!("{name} printed {line:?}")),
            ));
            processes.push(process);
        }
        let (nginx, port) = nginx(bodies, certificates);
        processes.push(nginx);
        ports.push(("nginx", port));
        let hyper = HyperServer::start(bodies.folder(), certificates);
        ports.push(("hyper", hyper.port));
        Self {
            _processes: processes,
            _hyper: hyper,
            ports,
        }
    }

    /// The port of the one with this name.
    pub(super) fn port(&self, name: &str) -> u16 {
        let found = self.ports.iter().find(|(other, _)| *other == name);
        found.unwrap().1
    }
}

fn nginx(bodies: &Bodies, certificates: Option<&Certificates>) -> (Process, u16) {
    let folder = bodies.folder().join("nginx");
    fs::create_dir(&folder).unwrap();
    let port = free_port();
    let (root, own) = (bodies.folder().display(), folder.display());
    let tls = certificates.map(|of| {
        let (certificate, key) = (of.certificate(), of.key());
        let (certificate, key) = (certificate.display(), key.display());
        format!("ssl_certificate {certificate}; ssl_certificate_key {key};")
    });
    let kind = if tls.is_some() { " ssl" } else { "" };
    let tls = tls.unwrap_or_default();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("{what}_temp_path {own};"))
        .concat();
    // A filter that may change the length makes it send chunks.
    let text = format!(
        "daemon off; master_process off; user root; pid {own}/pid; error_log {own}/error.log;\n\
         events {{}}\n\
         http {{ access_log off; client_max_body_size 0; {temporary}\n\
         server {{ listen 127.0.0.1:{port}{kind}; {tls} root {root};\n\
         location /up/ {{ dav_methods PUT; }}\n\
         location /chunked/ {{ alias {root}/files/; sub_filter_types *; \
         sub_filter 'occurs nowhere' ''; }} }} }}\n"
    );
    let config = folder.join("nginx.conf");
    fs::write(&config, text).unwrap();
    let mut command = Command::new("nginx");
    command.arg("-p").arg(&folder).arg("-c").arg(&config);
    let process = Process::start_silent(command.arg("-e").arg(folder.join("error.log")));
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let said = fs::read_to_string(folder.join("error.log")).unwrap_or_default();
        assert!(began.elapsed() < Duration::from_secs(20), "nginx: {said}");
    }
    (process, port)
}
