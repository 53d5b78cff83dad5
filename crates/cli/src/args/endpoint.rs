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
