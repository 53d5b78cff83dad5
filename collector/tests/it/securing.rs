//! TLS, certificates of senders and tokens on the OTLP ports.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode, Uri, Version};
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use prost::Message;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ClientConfig;
use rustls::pki_types::PrivateKeyDer;
use skewtap_collector::{Collector, Config, StartError, TlsFiles};
use tempfile::tempdir;
use tonic::Code;

use super::running::{Running, config, post, verdict};
use super::samples;

/// An authority that certificates can be had of.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate and its key.
    fn issue(&self) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap(), key)
    }

    /// Writes a certificate for the collector, and this authority as that of the senders.
    fn write_files(&self, directory: &Path) -> TlsFiles {
        let (certificate, key) = self.issue();
        let written = |name: &str, text: String| {
            let path = directory.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        TlsFiles {
            certificate: written("cert.pem", certificate.pem()),
            key: written("key.pem", key.serialize_pem()),
            client_ca: Some(written("ca.pem", self.0.pem())),
        }
    }

    /// TLS of a sender that trusts this authority, and that shows a certificate `of` another.
    fn sender(&self, of: Option<&Self>) -> ClientConfig {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let Some(of) = of else {
            return builder.with_no_client_auth();
        };
        let (certificate, key) = of.issue();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        builder
            .with_client_auth_cert(vec![certificate.der().clone()], key)
            .unwrap()
    }
}

fn connector(tls: ClientConfig) -> HttpsConnector<HttpConnector> {
    HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only()
        .enable_all_versions()
        .build()
}

/// Sends call number `n` over gRPC and says how that went.
async fn export_grpc(collector: &Running, tls: ClientConfig, n: u64) -> Result<(), tonic::Status> {
    let port = collector.addresses.otlp_grpc.port();
    let client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build(connector(tls));
    let origin: Uri = format!("https://localhost:{port}").parse().unwrap();
    let request = samples::request(&samples::healthy(n));
    let sent = TraceServiceClient::with_origin(client, origin)
        .export(request)
        .await;
    sent.map(drop)
}

/// Sends call number `n` over HTTP, and gives the version of HTTP that was agreed on.
async fn export_http(
    collector: &Running,
    tls: ClientConfig,
    n: u64,
) -> Result<Version, hyper_util::client::legacy::Error> {
    let port = collector.addresses.otlp_http.port();
    let client = Client::builder(TokioExecutor::new()).build(connector(tls));
    let body = samples::request(&samples::healthy(n)).encode_to_vec();
    let request = Request::post(format!("https://localhost:{port}/v1/traces"))
        .header("content-type", "application/x-protobuf")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let answer = client.request(request).await?;
    assert_eq!(answer.status(), StatusCode::OK);
    let version = answer.version();
    answer.into_body().collect().await.unwrap();
    Ok(version)
}

#[tokio::test]
async fn tls_protects_both_ports() {
    let directory = tempdir().unwrap();
    let authority = Authority::new();
    let mut config = config(&directory.path().join("store"));
    config.otlp_tls = Some(TlsFiles {
        client_ca: None,
        ..authority.write_files(directory.path())
    });
    let collector = Running::start(config).await;

    export_grpc(&collector, authority.sender(None), 1)
        .await
        .unwrap();
    let version = export_http(&collector, authority.sender(None), 2)
        .await
        .unwrap();
    assert_eq!(version, Version::HTTP_2);
    let mut old = authority.sender(None);
    old.alpn_protocols = vec![];
    let port = collector.addresses.otlp_http.port();
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(old)
        .https_only()
        .enable_http1()
        .build();
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let body = samples::request(&samples::healthy(3)).encode_to_vec();
    let request = Request::post(format!("https://localhost:{port}/v1/traces"))
        .header("content-type", "application/x-protobuf")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let answer = client.request(request).await.unwrap();
    assert_eq!(
        (answer.status(), answer.version()),
        (StatusCode::OK, Version::HTTP_11)
    );
    for n in 1..=3 {
        verdict(collector.addresses.http, n, |_| true).await;
    }

    // Nobody who trusts another authority sends anything, and neither does plain text.
    let stranger = Authority::new();
    export_grpc(&collector, stranger.sender(None), 4)
        .await
        .unwrap_err();
    export_http(&collector, stranger.sender(None), 4)
        .await
        .unwrap_err();
    let plain = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let uri = format!("http://localhost:{port}/v1/traces")
        .parse()
        .unwrap();
    plain.get(uri).await.unwrap_err();
    collector.stop().await;
}

#[tokio::test]
async fn senders_show_a_certificate_where_one_is_asked_for() {
    let directory = tempdir().unwrap();
    let (authority, stranger) = (Authority::new(), Authority::new());
    let mut config = config(&directory.path().join("store"));
    config.otlp_tls = Some(authority.write_files(directory.path()));
    let collector = Running::start(config).await;
    for refused in [authority.sender(None), authority.sender(Some(&stranger))] {
        export_grpc(&collector, refused.clone(), 1)
            .await
            .unwrap_err();
        export_http(&collector, refused, 1).await.unwrap_err();
    }
    let trusted = authority.sender(Some(&authority));
    export_grpc(&collector, trusted.clone(), 2).await.unwrap();
    export_http(&collector, trusted, 3).await.unwrap();
    verdict(collector.addresses.http, 2, |_| true).await;
    verdict(collector.addresses.http, 3, |_| true).await;
    collector.stop().await;
}

#[tokio::test]
async fn a_token_is_asked_of_every_sender() {
    let directory = tempdir().unwrap();
    let tokens = directory.path().join("tokens");
    fs::write(&tokens, "# senders\nopen-sesame\nsecond\n").unwrap();
    let mut config = config(&directory.path().join("store"));
    config.otlp_token_file = Some(tokens);
    let collector = Running::start(config).await;
    let http = collector.addresses.otlp_http;
    let body = |n| samples::request(&samples::healthy(n)).encode_to_vec();
    let protobuf = ("content-type", "application/x-protobuf");
    for headers in [
        vec![protobuf],
        vec![protobuf, ("authorization", "Bearer open-sesam")],
    ] {
        for path in ["/v1/traces", "/v1/logs", "/v1/metrics"] {
            let answer = post(http, path, &headers, body(1)).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{answer:?}");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
            let status = tonic_types::Status::decode(answer.body).unwrap();
            assert_eq!(status.code, Code::Unauthenticated as i32);
        }
    }
    let headers = [protobuf, ("authorization", "Bearer second")];
    let answer = post(http, "/v1/traces", &headers, body(2)).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");

    let address = format!("http://{}", collector.addresses.otlp_grpc);
    let mut client = TraceServiceClient::connect(address).await.unwrap();
    let request = samples::request(&samples::healthy(3));
    let status = client.export(request.clone()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated, "{status}");
    let mut allowed = tonic::Request::new(request);
    let token = "Bearer open-sesame".parse().unwrap();
    allowed.metadata_mut().insert("authorization", token);
    client.export(allowed).await.unwrap();
    for n in 2..=3 {
        verdict(collector.addresses.http, n, |_| true).await;
    }
    collector.stop().await;
}

/// The error that keeps a collector with these settings from starting.
async fn refusal(config: Config) -> StartError {
    Collector::bind(config).await.unwrap_err()
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_at_the_start() {
    let directory = tempdir().unwrap();
    let config = || config(&directory.path().join("store"));
    let empty = directory.path().join("empty");
    fs::write(&empty, "").unwrap();
    let files = Authority::new().write_files(directory.path());
    let stranger = directory.path().join("stranger");
    fs::create_dir(&stranger).unwrap();
    let others = Authority::new().write_files(&stranger);
    for (tls, says) in [
        (
            TlsFiles {
                certificate: empty.clone(),
                ..files.clone()
            },
            "no certificate",
        ),
        (
            TlsFiles {
                key: empty.clone(),
                ..files.clone()
            },
            "private key",
        ),
        (
            TlsFiles {
                client_ca: Some(empty.clone()),
                ..files.clone()
            },
            "empty",
        ),
        (
            TlsFiles {
                key: others.key,
                ..files.clone()
            },
            "cannot be used",
        ),
    ] {
        let mut config = config();
        config.otlp_tls = Some(tls);
        let error = refusal(config).await;
        assert!(matches!(error, StartError::Tls(_)), "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert!(error.to_string().contains("--otlp-tls-"), "{error}");
    }
    let mut config = config();
    config.otlp_token_file = Some(empty);
    let error = refusal(config).await.to_string();
    assert!(
        error.contains("--otlp-token-file") && error.contains("no token"),
        "{error}"
    );
}
