//! `skewtap ca`.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use skewtap_proxy::authority;

use crate::args::{CaAction, CaArgs};
use crate::failure::{Exit, Failure};

/// Where systems keep certificates that their owner trusts, and what makes them take a new one.
const SYSTEMS: [(&str, &str); 3] = [
    ("/usr/local/share/ca-certificates", "update-ca-certificates"),
    ("/etc/pki/ca-trust/source/anchors", "update-ca-trust"),
    (
        "/etc/ca-certificates/trust-source/anchors",
        "update-ca-trust",
    ),
];

/// Does what was asked with the local authority.
///
/// # Errors
/// A file cannot be read or written, or the system does not take the certificate.
pub(crate) fn run(args: &CaArgs) -> Result<Exit, Failure> {
    let folder = args.folder.path().map_err(Failure::usage)?;
    let certificate = authority::certificate_file(&folder);
    let text = match args.action {
        CaAction::Init => {
            authority::create(&folder)
                .context("no authority was made")
                .map_err(Failure::cannot_start)?;
            format!(
                "made {}\nnext: `skewtap ca trust`, then `skewtap proxy --intercept HOST`\n",
                certificate.display()
            )
        }
        CaAction::Show { path: true } => format!("{}\n", certificate.display()),
        CaAction::Show { path: false } => shown(&certificate)?,
        CaAction::Trust => trust(&certificate)?,
    };
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .context("cannot write to standard output")
        .map_err(Failure::broken)?;
    Ok(Exit::Done)
}

fn shown(certificate: &Path) -> Result<String, Failure> {
    let pem = read(certificate)?;
    let path = certificate.display();
    Ok(format!(
        "{pem}
certificate: {path}
for the whole system: skewtap ca trust
for one command, by one of
  CURL_CA_BUNDLE={path}
  REQUESTS_CA_BUNDLE={path}
  SSL_CERT_FILE={path}
  NODE_EXTRA_CA_CERTS={path}
"
    ))
}

fn trust(certificate: &Path) -> Result<String, Failure> {
    let pem = read(certificate)?;
    let known = SYSTEMS
        .iter()
        .find(|(folder, _)| Path::new(folder).is_dir());
    let Some((folder, update)) = known else {
        let unknown = anyhow::anyhow!("this system keeps its certificates in no place known here");
        return Err(Failure::cannot_start(unknown)
            .advise(format!("add {} to them by hand", certificate.display())));
    };
    let place = Path::new(folder).join("skewtap-development-authority.crt");
    let advice = format!(
        "run it with the right to: sudo cp {} {} && sudo {update}",
        certificate.display(),
        place.display()
    );
    fs::write(&place, pem)
        .with_context(|| format!("cannot write {}", place.display()))
        .map_err(|error| Failure::cannot_start(error).advise(&advice))?;
    let updated = Command::new(update)
        .output()
        .with_context(|| format!("cannot run {update}"))
        .map_err(|error| Failure::cannot_start(error).advise(&advice))?;
    if !updated.status.success() {
        let why = String::from_utf8_lossy(&updated.stderr).trim().to_owned();
        let failed = anyhow::anyhow!("{update} failed: {why}");
        return Err(Failure::cannot_start(failed).advise(&advice));
    }
    Ok(format!(
        "trusted by this system as {}\nto end that, remove the file and run {update}\n",
        place.display()
    ))
}

fn read(certificate: &Path) -> Result<String, Failure> {
    fs::read_to_string(certificate)
        .with_context(|| format!("cannot read {}", certificate.display()))
        .map_err(|error| Failure::cannot_start(error).advise("make one with `skewtap ca init`"))
}
