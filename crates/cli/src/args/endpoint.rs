//! Addresses of other programs, as they are given on the command line.

use url::Url;

/// Reads `http://host[:port]`, which is all that may be given of a server or a collector.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn http_origin(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|e| format!("{e}; write it as http://host:port"))?;
    if url.scheme() != "http" {
        return Err(format!(
            "{}: is not supported; write it as http://host:port",
            url.scheme()
        ));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("no host; write it as http://host:port".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("user names and passwords are not supported here".to_owned());
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err("only http://host:port may be given, nothing after it".to_owned());
    }
    Ok(url)
}

/// Reads `http://host[:port]`, `https://host[:port]` or `unix:/path`, for a server behind the
/// proxy.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn server_origin(text: &str) -> Result<Url, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return if path.starts_with('/') && path.len() > 1 && !path.contains(['?', '#']) {
            Url::parse(text).map_err(|e| e.to_string())
        } else {
            Err("write it as unix:/path, with the whole path and neither ? nor #".to_owned())
        };
    }
    match text.strip_prefix("https://") {
        None => http_origin(text),
        // All but the scheme must hold as without TLS.
        Some(rest) => http_origin(&format!("http://{rest}"))
            .and_then(|_| Url::parse(text).map_err(|e| e.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_taken() {
        for good in ["http://127.0.0.1:9000", "http://[::1]:80/", "http://name"] {
            assert!(http_origin(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_server_may_be_under_tls() {
        let url = server_origin("https://name:8443").unwrap();
        assert_eq!((url.scheme(), url.port()), ("https", Some(8443)));
        assert!(server_origin("http://name").is_ok());
        for bad in [
            "https://name/path",
            "https://me@name",
            "https://",
            "ftp://name",
        ] {
            assert!(server_origin(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_server_may_be_behind_a_unix_socket() {
        let url = server_origin("unix:/run/server.sock").unwrap();
        assert_eq!((url.scheme(), url.path()), ("unix", "/run/server.sock"));
        for bad in [
            "unix:",
            "unix:/",
            "unix:server.sock",
            "unix:/a?b",
            "unix:/a#b",
        ] {
            let why = server_origin(bad).unwrap_err();
            assert!(why.contains("unix:/path"), "{bad}: {why}");
        }
        assert!(http_origin("unix:/run/server.sock").is_err());
    }

    #[test]
    fn anything_else_is_refused_with_the_form_to_use() {
        for bad in ["127.0.0.1:9000", "name:80", "https://name", "http://"] {
            let why = http_origin(bad).unwrap_err();
            assert!(why.contains("http://host:port"), "{bad}: {why}");
        }
        for bad in [
            "http://name/path",
            "http://name/?q",
            "http://name/#f",
            "http://me@name",
        ] {
            assert!(http_origin(bad).is_err(), "{bad}");
        }
    }
}
