//! Which hosts a setting is about.

/// One host, or all whose names lie below one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostPattern {
    /// A name or an address, in small letters.
    Exact(String),
    /// What names must end in, with the dot before it.
    Below(String),
}

impl HostPattern {
    /// Reads a name or an address, or `*.name`.
    pub(crate) fn new(text: &str) -> Self {
        let text = text.to_ascii_lowercase();
        match text.strip_prefix('*').filter(|rest| rest.starts_with('.')) {
            Some(suffix) => Self::Below(suffix.to_owned()),
            None => Self::Exact(text),
        }
    }

    /// Whether `host`, without a port, is one of them.
    pub(crate) fn matches(&self, host: &str) -> bool {
        match self {
            Self::Exact(name) => name.eq_ignore_ascii_case(host),
            Self::Below(suffix) => {
                let start = host.len().checked_sub(suffix.len()).filter(|at| *at > 0);
                let end = start.and_then(|at| host.get(at..));
                end.is_some_and(|end| end.eq_ignore_ascii_case(suffix))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_that_are_named_match() {
        let any = |patterns: &[&str], host: &str| {
            let mut patterns = patterns.iter().map(|text| HostPattern::new(text));
            patterns.any(|pattern| pattern.matches(host))
        };
        let named = ["One.example", "*.two.example", "127.0.0.1"];
        for covered in ["one.example", "ONE.example", "a.Two.example", "127.0.0.1"] {
            assert!(any(&named, covered), "{covered}");
        }
        for other in [
            "a.one.example",
            "two.example",
            ".two.example",
            "xtwo.example",
            "ü",
            "",
        ] {
            assert!(!any(&named, other), "{other}");
        }
    }
}
