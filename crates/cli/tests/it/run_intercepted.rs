//! Real clients whose TLS `skewtap run --intercept` looks into: they trust it because of their
//! variables, and no other host is touched.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tempfile::TempDir;

use super::delaying_server::DelayingServer;
use super::measured_run::MeasuredRun;
use super::not_run::not_run;
use super::run_real_clients::{client, has_java, node_reads_variables, python};

const PATH: &str = "/work?delay_ms=250";

/// A server for `localhost` under TLS, and the file with the only authority that vouches for it.
struct Secured {
    server: DelayingServer,
    folder: TempDir,
}

impl Secured {
    fn start() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let name = "authority of a test";
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = rustls::crypto::ring::default_provider();
        let config = ServerConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Self {
            server: DelayingServer::start_tls(config),
            folder,
        }
    }

    fn roots(&self) -> String {
        self.folder.path().join("ca.pem").display().to_string()
    }

    fn url(&self) -> String {
        format!("https://localhost:{}{PATH}", self.server.address.port())
    }
}

/// Runs `command` with a URL behind it, and holds the one request inside TLS that it makes against
/// what the server measured.
fn judge(command: &[&str]) {
    let secured = Secured::start();
    let roots = secured.roots();
    let run = MeasuredRun::new(
        &["--intercept", "localhost", "--upstream-ca", &roots],
        &[command, &[&secured.url()]].concat(),
    );
    assert_eq!(
        (run.code(), run.stdout().as_str()),
        (0, "ok\n"),
        "{}",
        run.stderr()
    );
    let inside: Vec<_> = run
        .requests()
        .iter()
        .filter(|request| request["method"] == "GET")
        .collect();
    assert_eq!(inside.len(), 1, "{:#}", run.document);
    assert_eq!(
        (&inside[0]["path"], &inside[0]["status"]),
        (&"/work".into(), &200.into())
    );
    let bound = |which: &str| inside[0]["stages"]["server_wait"][which].as_f64().unwrap();
    let waited = secured.server.only().waited;
    assert!(bound("hi_seconds") >= waited, "{:#}", inside[0]);
    assert!(
        bound("lo_seconds") <= bound("hi_seconds"),
        "{:#}",
        inside[0]
    );
}

#[test]
fn curl() {
    judge(&["curl", "--silent", "--show-error"]);
}

#[test]
fn python_urllib() {
    judge(&[&python(), &client("get.py"), "urllib"]);
}

#[test]
fn python_requests() {
    judge(&[&python(), &client("get.py"), "requests"]);
}

#[test]
fn python_httpx() {
    judge(&[&python(), &client("get.py"), "httpx"]);
}

#[test]
fn node() {
    judge(&["node", &client("tunnelled.mjs")]);
    if node_reads_variables() {
        judge(&["node", &client("get.mjs"), "fetch"]);
        judge(&["node", &client("get.mjs"), "https"]);
    }
}

#[test]
fn java() {
    if !has_java() {
        not_run("needs a JDK (Debian package default-jdk-headless)");
        return;
    }
    for class in ["HttpClient", "HttpURLConnection"] {
        judge(&["java", &client("Get.java"), class]);
    }
}

#[test]
fn a_host_that_is_not_named_is_not_looked_into() {
    let secured = Secured::start();
    let roots = secured.roots();
    // What the user trusts goes on being trusted, and by the client itself.
    let run = MeasuredRun::with_variables(
        &["--intercept", "other.example"],
        &["curl", "--silent", "--show-error", &secured.url()],
        &[("CURL_CA_BUNDLE", &roots)],
    );
    assert_eq!(run.stdout(), "ok\n", "{}", run.stderr());
    assert_eq!(run.only()["method"], "CONNECT", "{:#}", run.document);
}

#[test]
fn without_being_asked_for_nothing_is_looked_into_or_made() {
    let secured = Secured::start();
    let roots = secured.roots();
    let run = MeasuredRun::new(
        &[],
        &["curl", "--silent", "--cacert", &roots, &secured.url()],
    );
    assert_eq!(run.stdout(), "ok\n", "{}", run.stderr());
    assert_eq!(run.only()["method"], "CONNECT", "{:#}", run.document);
    let run = MeasuredRun::new(&[], &["env"]);
    assert!(!run.stdout().contains("CERT"), "{}", run.stdout());
}

#[test]
fn an_authority_that_is_there_is_used_and_stays() {
    let secured = Secured::start();
    let roots = secured.roots();
    let folder = TempDir::new().unwrap();
    let folder = folder.path().join("authority");
    let folder = folder.to_str().unwrap();
    let made = super::finished::run(&["ca", "--ca-dir", folder, "init"]);
    assert_eq!(super::finished::code(&made), 0);
    let certificate = Path::new(folder).join("ca.pem").display().to_string();
    let run = MeasuredRun::new(
        &[
            "--intercept",
            "localhost",
            "--upstream-ca",
            &roots,
            "--ca-dir",
            folder,
        ],
        &[
            "curl",
            "--silent",
            "--show-error",
            "--cacert",
            &certificate,
            &secured.url(),
        ],
    );
    assert_eq!(run.stdout(), "ok\n", "{}", run.stderr());
    assert!(Path::new(folder).join("ca-key.pem").exists());
}
