//! Reading pages back.

use std::collections::HashSet;

/// Elements that have no end tag.
const VOID: [&str; 4] = ["meta", "link", "img", "input"];

/// The text between the tags, with references resolved and space made single.
pub(in crate::web::pages) fn text_of(html: &str) -> String {
    let mut text = String::new();
    for part in html.split('<') {
        text.push_str(part.split_once('>').map_or(part, |(_, after)| after));
    }
    let plain = unescape(&text);
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(in crate::web::pages) fn unescape(text: &str) -> String {
    text.replace("&#60;", "<")
        .replace("&#62;", ">")
        .replace("&#34;", "\"")
        .replace("&#39;", "'")
        .replace("&#38;", "&")
}

/// The values of an attribute, in order.
pub(in crate::web::pages) fn values(html: &str, attribute: &str) -> Vec<String> {
    let start = format!(" {attribute}=\"");
    html.split(&start)
        .skip(1)
        .map(|rest| unescape(rest.split('"').next().unwrap()))
        .collect()
}

/// Every tag is closed by its own end tag, no identifier is given twice, everything that is named
/// by an identifier is there, and there is no inline script, no inline style and no other host.
pub(in crate::web::pages) fn assert_well_formed(html: &str) {
    assert_tags_match(html);
    let ids = values(html, "id");
    let known: HashSet<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(
        known.len(),
        ids.len(),
        "an identifier is given twice: {ids:?}"
    );
    for named in values(html, "aria-labelledby") {
        for id in named.split(' ') {
            assert!(known.contains(id), "nothing is called {id}");
        }
    }
    for href in values(html, "href") {
        match href.strip_prefix('#') {
            Some(id) => assert!(known.contains(id), "nothing is called {id}"),
            None => assert!(href.starts_with('/') && !href.starts_with("//"), "{href}"),
        }
    }
    for src in values(html, "src") {
        assert!(src.starts_with("/assets/"), "{src}");
    }
    assert!(values(html, "style").is_empty() && !html.contains("<style"));
    for script in html.split("<script").skip(1) {
        assert!(script.starts_with(" src=\"/assets/"), "{script}");
        assert!(script.contains(" defer></script>"), "{script}");
    }
    for handler in ["onclick", "onerror", "onload"] {
        assert!(values(html, handler).is_empty());
    }
}

fn assert_tags_match(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    for part in html.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("a tag that ends");
        if let Some(name) = tag.strip_prefix('/') {
            let opened = open.pop();
            assert_eq!(opened, Some(name), "before {part}");
        } else if !tag.starts_with('!') && !tag.ends_with('/') {
            let name = tag.split_whitespace().next().unwrap();
            if !VOID.contains(&name) {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "still open: {open:?}");
}
