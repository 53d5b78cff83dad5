//! Looking up OTLP attributes by name.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{ArrayValue, KeyValue};
use skewtap_core::exchange_attributes::AttributeValue;

/// Longest text kept of a name or an attribute, in bytes; the rest is cut off.
pub(super) const LONGEST_TEXT: usize = 256;

/// A list of attributes. Of several with one key the first counts.
#[derive(Clone, Copy)]
pub(super) struct Attributes<'a>(pub(super) &'a [KeyValue]);

impl Attributes<'_> {
    /// The first of `keys` that is there as a text that is not empty.
    pub(super) fn text(&self, keys: &[&str]) -> Option<String> {
        self.values(keys).find_map(|value| match value {
            Value::StringValue(text) if !text.is_empty() => Some(shortened(text, LONGEST_TEXT)),
            _ => None,
        })
    }

    /// The first of `keys` that is there as an integer, or as a text that is one.
    pub(super) fn int(&self, keys: &[&str]) -> Option<i64> {
        self.values(keys).find_map(|value| match value {
            Value::IntValue(int) => Some(*int),
            Value::StringValue(text) => text.parse().ok(),
            _ => None,
        })
    }

    fn values<'a>(&'a self, keys: &'a [&'a str]) -> impl Iterator<Item = &'a Value> + 'a {
        keys.iter().filter_map(|key| {
            let attribute = self.0.iter().find(|attribute| attribute.key == *key)?;
            attribute.value.as_ref()?.value.as_ref()
        })
    }
}

/// The attributes that an exchange can be made of; those of other kinds are passed over.
pub(super) fn for_exchange(attributes: &[KeyValue]) -> BTreeMap<String, AttributeValue> {
    attributes
        .iter()
        .filter_map(|attribute| {
            let value = match attribute.value.as_ref()?.value.as_ref()? {
                Value::BoolValue(flag) => AttributeValue::Bool(*flag),
                Value::IntValue(int) => AttributeValue::Int(*int),
                Value::StringValue(text) => AttributeValue::Text(text.clone()),
                Value::ArrayValue(list) => AttributeValue::Ints(ints(list)?),
                _ => return None,
            };
            Some((attribute.key.clone(), value))
        })
        .collect()
}

fn ints(list: &ArrayValue) -> Option<Vec<i64>> {
    list.values
        .iter()
        .map(|value| match value.value.as_ref()? {
            Value::IntValue(int) => Some(*int),
            _ => None,
        })
        .collect()
}

/// `text`, cut off after at most `longest` bytes, never within a character.
pub(super) fn shortened(text: &str, longest: usize) -> String {
    text.get(..text.floor_char_boundary(longest))
        .unwrap_or(text)
        .to_owned()
}
