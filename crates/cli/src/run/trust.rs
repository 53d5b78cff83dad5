//! What makes a command trust the proxy in the place of servers whose TLS is intercepted.
//!
//! Unless a folder is named, the authority is made for this one run and ends with it. Clients find
//! it by the variables that they read. Most of those replace the roots that a client trusts, so
//! their files hold all that was trusted before as well.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use pem::{EncodeConfig, LineEnding, Pem};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use skewtap_proxy::authority;
use skewtap_proxy::config::Intercept;
use tempfile::TempDir;

use super::java_trust_store;

/// Variables whose file replaces a client's roots: OpenSSL with all that is built on it, and Go;
/// curl; Python's requests; git; the tools of AWS; pip; cargo; gRPC.
const REPLACING: [&str; 8] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
];

/// Variables whose file adds to a client's roots: Node, Deno.
const ADDING: [&str; 2] = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"];

/// The option of Java that names a trust store.
const JAVA_OPTION: &str = "-Djavax.net.ssl.trustStore=";

/// An authority, and the files that make clients trust it. Gone with this value.
pub(super) struct Trust {
    /// Names and values.
    pub(super) variables: Vec<(&'static str, String)>,
    /// The option that makes Java trust it, where one can be given.
    pub(super) java: Option<String>,
    /// What of the user's own settings keeps clients from trusting it, in words.
    pub(super) notes: Vec<String>,
    authority: PathBuf,
    hosts: Vec<String>,
    files: TempDir,
}

impl Trust {
    /// Makes the files for clients of `hosts`, with the authority in `folder` or a new one. `user`
    /// tells what is set already.
    ///
    /// # Errors
    /// A file cannot be written, or the authority in `folder` not read.
    pub(super) fn new(
        hosts: &[String],
        folder: Option<&Path>,
        user: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let files = tempfile::Builder::new()
            .prefix("skewtap-run-ca-")
            .tempdir()
            .context("cannot make a temporary directory")?;
        let authority = match folder {
            Some(folder) => folder.to_owned(),
            None => {
                authority::create(files.path()).context("no authority was made")?;
                files.path().to_owned()
            }
        };
        let certificate = authority::certificate_file(&authority);
        let own = fs::read_to_string(&certificate).with_context(|| {
            let path = certificate.display();
            format!("cannot read {path}: make an authority with `skewtap ca init`")
        })?;
        let mut trust = Self {
            variables: Vec::new(),
            java: None,
            notes: Vec::new(),
            authority,
            hosts: hosts.to_vec(),
            files,
        };
        trust.point_clients_at(&own, user)?;
        Ok(trust)
    }

    /// What the proxy is told.
    pub(super) fn interception(&self) -> Intercept {
        Intercept {
            hosts: self.hosts.clone(),
            authority: self.authority.clone(),
        }
    }

    fn point_clients_at(
        &mut self,
        own: &str,
        user: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<()> {
        let set = |name: &str| user(name).filter(|value| !value.trim().is_empty());
        // Reads what SSL_CERT_FILE names, where that is set.
        let system = rustls_native_certs::load_native_certs().certs;
        let system_pem: String = system.iter().map(|der| in_pem(der)).collect();
        let everything = self.write("roots.pem", &[&system_pem, own])?;
        let alone = self.write("own.pem", &[own])?;
        let replacing = REPLACING.into_iter().map(|name| (name, &everything));
        let adding = ADDING.into_iter().map(|name| (name, &alone));
        for (name, usual) in replacing.chain(adding) {
            let file = match set(name).map(|path| (fs::read_to_string(&path), path)) {
                None => usual.clone(),
                Some((Ok(theirs), _)) => self.write(&format!("{name}.pem"), &[&theirs, own])?,
                Some((Err(error), path)) => {
                    self.notes.push(format!(
                        "{name} is {path}, which is not a file that can be added to ({error}): \
                         clients that read it will not trust skewtap"
                    ));
                    continue;
                }
            };
            self.variables.push((name, file));
        }
        self.java = self.java_option(system, own, set("JAVA_TOOL_OPTIONS"))?;
        Ok(())
    }

    fn java_option(
        &mut self,
        system: Vec<CertificateDer<'static>>,
        own: &str,
        options: Option<String>,
    ) -> anyhow::Result<Option<String>> {
        if options.is_some_and(|options| options.contains(JAVA_OPTION)) {
            self.notes.push(format!(
                "JAVA_TOOL_OPTIONS has {JAVA_OPTION}: Java will not trust skewtap"
            ));
            return Ok(None);
        }
        let own = CertificateDer::from_pem_slice(own.as_bytes());
        let own = own.context("the authority's certificate cannot be read")?;
        let certificates: Vec<_> = system.into_iter().chain([own]).collect();
        let path = self.files.path().join("roots.jks");
        fs::write(&path, java_trust_store::of(&certificates))
            .with_context(|| format!("cannot write {}", path.display()))?;
        let path = path.to_string_lossy();
        // The variable is split at spaces.
        Ok((!path.contains(char::is_whitespace)).then(|| format!("{JAVA_OPTION}{path}")))
    }

    /// Writes the certificates in PEM, one text after the other.
    fn write(&self, name: &str, certificates: &[&str]) -> anyhow::Result<String> {
        let path = self.files.path().join(name);
        fs::write(&path, certificates.join("\n"))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path.to_string_lossy().into_owned())
    }
}

fn in_pem(certificate: &CertificateDer<'_>) -> String {
    let pem = Pem::new("CERTIFICATE", certificate.to_vec());
    pem::encode_config(&pem, EncodeConfig::new().set_line_ending(LineEnding::LF))
}

#[cfg(test)]
mod tests;
