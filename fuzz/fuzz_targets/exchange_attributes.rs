//! Attributes that read as an exchange are written as the same exchange, and it can be judged.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use skewtap_core::audit::{KnownClocks, Observed, audit};
use skewtap_core::exchange_attributes::{AttributeValue, read, write};
use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::policy::Policy;
use skewtap_core::verdict_json::VerdictJson;

fuzz_target!(|text: &str| {
    // One attribute a line, `key=value`; values that look like numbers are taken for them.
    let attributes: BTreeMap<String, AttributeValue> =
        text.lines().filter_map(|line| line.split_once('=')).map(attribute).collect();
    let (Ok(trace_id), Ok(span_id)) = (TraceId::from_bytes(&[1; 16]), SpanId::from_bytes(&[2; 8]))
    else {
        return;
    };
    let Ok(record) = read(trace_id, span_id, None, &attributes) else { return };
    let span = write(&record);
    assert_eq!(read(trace_id, span_id, None, &span.attributes).as_ref(), Ok(&record));
    let observed = Observed { exchanges: vec![record], ..Observed::default() };
    if let Some(verdict) = audit(&observed, &KnownClocks::default(), &Policy::default()) {
        if let Some(ledger) = &verdict.ledger {
            let sum = ledger.rows.iter().map(|row| i128::from(row.counted_ns)).sum::<i128>();
            let saturated = ledger.rows.iter().any(|row| row.within.width() == i64::MAX);
            assert!(saturated || sum == i128::from(ledger.total_ns), "{ledger:?}");
        }
        let _json = serde_json::to_string(&VerdictJson::from(&verdict));
    }
});

fn attribute((key, value): (&str, &str)) -> (String, AttributeValue) {
    let value = match (value.parse(), value) {
        (Ok(number), _) => AttributeValue::Int(number),
        (_, "true") => AttributeValue::Bool(true),
        (_, "false") => AttributeValue::Bool(false),
        (_, list) if list.starts_with('[') => {
            let items = list.trim_matches(['[', ']']).split(',');
            AttributeValue::Ints(items.filter_map(|item| item.trim().parse().ok()).collect())
        }
        (_, text) => AttributeValue::Text(text.to_owned()),
    };
    (key.to_owned(), value)
}
