//! How far back a page looks.

/// What forms offer, and how that is written in an address.
const OFFERED: [(&str, &str); 6] = [
    ("", "any time"),
    ("5m", "last 5 minutes"),
    ("15m", "last 15 minutes"),
    ("1h", "last hour"),
    ("24h", "last day"),
    ("168h", "last 7 days"),
];

/// What a form offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// As an address has it.
    pub(super) value: String,
    /// As people read it.
    pub(super) words: String,
    /// Whether it is what was asked for.
    pub(super) chosen: bool,
}

/// What a list's form offers; what an address asks for beyond that is offered as well.
pub(super) fn choices(asked: &str) -> Vec<Choice> {
    offered(&OFFERED, asked)
}

/// The same for a page that draws time, which has a beginning.
pub(super) fn bounded_choices(asked: &str) -> Vec<Choice> {
    let bounded = OFFERED.get(1..).unwrap_or_default();
    offered(bounded, asked)
}

fn offered(choices: &[(&str, &str)], asked: &str) -> Vec<Choice> {
    let mut choices: Vec<Choice> = choices
        .iter()
        .map(|(value, words)| Choice {
            value: (*value).to_owned(),
            words: (*words).to_owned(),
            chosen: *value == asked,
        })
        .collect();
    if !choices.iter().any(|choice| choice.chosen) {
        choices.push(Choice {
            value: asked.to_owned(),
            words: format!("since {asked}"),
            chosen: true,
        });
    }
    choices
}
