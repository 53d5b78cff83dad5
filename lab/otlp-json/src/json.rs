//! JSON strings.

/// The text as a JSON string, quotation marks included.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            control if control < ' ' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn a_json_reader_gets_every_character_back() {
        let all: String = (0..0x3000)
            .filter_map(char::from_u32)
            .chain(['🦀'])
            .collect();
        let read: String = serde_json::from_str(&quote(&all)).unwrap();
        assert_eq!(read, all);
    }

    #[test]
    fn a_quotation_mark_cannot_end_the_string() {
        assert_eq!(quote(r#"a","b":"\"#), r#""a\",\"b\":\"\\""#);
    }
}
