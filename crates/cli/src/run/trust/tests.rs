use super::*;

fn count(file: &str) -> usize {
    let certificates = CertificateDer::pem_file_iter(file).unwrap();
    certificates.map(Result::unwrap).count()
}

fn value<'a>(trust: &'a Trust, name: &str) -> Option<&'a str> {
    let found = trust.variables.iter().find(|(key, _)| *key == name);
    found.map(|(_, value)| value.as_str())
}

fn hosts() -> [String; 1] {
    ["one.example".to_owned()]
}

#[test]
fn what_was_trusted_before_stays_trusted() {
    let system = rustls_native_certs::load_native_certs().certs.len();
    let theirs = tempfile::tempdir().unwrap();
    authority::create(theirs.path()).unwrap();
    let theirs = authority::certificate_file(theirs.path());
    let curl = |name: &str| (name == "CURL_CA_BUNDLE").then(|| theirs.display().to_string());
    let trust = Trust::new(&hosts(), None, curl).unwrap();
    assert_eq!(count(value(&trust, "SSL_CERT_FILE").unwrap()), system + 1);
    assert_eq!(count(value(&trust, "NODE_EXTRA_CA_CERTS").unwrap()), 1);
    // Theirs and ours, and nothing that they did not trust.
    assert_eq!(count(value(&trust, "CURL_CA_BUNDLE").unwrap()), 2);
    assert!(trust.notes.is_empty(), "{:?}", trust.notes);
}

#[test]
fn a_setting_that_cannot_be_added_to_is_left_and_told() {
    let user = |name: &str| match name {
        "REQUESTS_CA_BUNDLE" => Some("/nowhere/roots.pem".to_owned()),
        "JAVA_TOOL_OPTIONS" => Some("-Djavax.net.ssl.trustStore=/mine".to_owned()),
        _ => None,
    };
    let trust = Trust::new(&hosts(), None, user).unwrap();
    assert_eq!(value(&trust, "REQUESTS_CA_BUNDLE"), None);
    assert_eq!(trust.java, None);
    assert!(
        trust.notes[0].contains("/nowhere/roots.pem"),
        "{:?}",
        trust.notes
    );
    assert!(
        trust.notes[1].contains("JAVA_TOOL_OPTIONS"),
        "{:?}",
        trust.notes
    );
}

#[test]
fn an_authority_that_is_there_is_used_and_one_that_is_not_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Trust::new(&hosts(), Some(folder.path()), |_| None);
    let why = format!("{:#}", missing.err().unwrap());
    assert!(why.contains("skewtap ca init"), "{why}");
    authority::create(folder.path()).unwrap();
    let trust = Trust::new(&hosts(), Some(folder.path()), |_| None).unwrap();
    assert_eq!(trust.interception().authority, folder.path());
    let file = value(&trust, "NODE_EXTRA_CA_CERTS").unwrap();
    let ours = authority::certificate_file(folder.path());
    assert_eq!(
        CertificateDer::from_pem_file(file).unwrap(),
        CertificateDer::from_pem_file(ours).unwrap()
    );
}

#[test]
fn the_files_and_the_key_are_gone_afterwards() {
    let trust = Trust::new(&hosts(), None, |_| None).unwrap();
    let folder = trust.interception().authority;
    assert!(folder.join("ca-key.pem").exists());
    drop(trust);
    assert!(!folder.exists());
}
