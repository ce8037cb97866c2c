//! OTLP's values as JSON.

use narrows_model::trace::hex;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use serde_json::{Map, Number, Value};

/// Attributes as an object; of two with one key the later stays.
pub(super) fn object(attributes: Vec<KeyValue>) -> Map<String, Value> {
    pairs(attributes).collect()
}

/// Attributes with their values as JSON.
pub(super) fn pairs(attributes: Vec<KeyValue>) -> impl Iterator<Item = (String, Value)> {
    attributes.into_iter().map(|attribute| (attribute.key, json(attribute.value)))
}

/// A value. Bytes become lower-case hexadecimal; doubles that JSON cannot write become the words that protobuf's JSON
/// mapping has for them. `prost` bounds how deeply values nest.
pub(super) fn json(value: Option<AnyValue>) -> Value {
    use any_value::Value as Any;
    match value.and_then(|value| value.value) {
        Some(Any::StringValue(text)) => Value::String(text),
        Some(Any::BoolValue(value)) => Value::Bool(value),
        Some(Any::IntValue(value)) => Value::from(value),
        Some(Any::DoubleValue(value)) => double(value),
        Some(Any::ArrayValue(array)) => array.values.into_iter().map(|value| json(Some(value))).collect(),
        Some(Any::KvlistValue(list)) => Value::Object(object(list.values)),
        Some(Any::BytesValue(bytes)) => Value::String(hex(&bytes)),
        // A reference into a table that only the profiling signal has.
        Some(Any::StringValueStrindex(_)) | None => Value::Null,
    }
}

/// A value as text: a string as it is, everything else as JSON; empty for none.
pub(super) fn text(value: Option<AnyValue>) -> String {
    match json(value) {
        Value::String(text) => text,
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

pub(super) fn double(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => Value::from("NaN"),
        None if value > 0.0 => Value::from("Infinity"),
        None => Value::from("-Infinity"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use any_value::Value as Any;
    use opentelemetry_proto::tonic::common::v1::{ArrayValue, KeyValueList};
    use serde_json::json as literal;

    fn any(value: Any) -> AnyValue {
        AnyValue { value: Some(value) }
    }

    #[test]
    fn every_kind_of_value_has_its_json() {
        let list = ArrayValue { values: vec![any(Any::IntValue(-1)), AnyValue { value: None }] };
        let pair = |key: &str, value| KeyValue { key: key.to_owned(), value: Some(any(value)), ..KeyValue::default() };
        let map = KeyValueList { values: vec![pair("k", Any::BoolValue(false)), pair("k", Any::BoolValue(true))] };
        let cases = [
            (Any::StringValue("é".to_owned()), literal!("é")),
            (Any::IntValue(i64::MIN), literal!(i64::MIN)),
            (Any::DoubleValue(0.5), literal!(0.5)),
            (Any::DoubleValue(f64::NAN), literal!("NaN")),
            (Any::DoubleValue(f64::NEG_INFINITY), literal!("-Infinity")),
            (Any::ArrayValue(list), literal!([-1, null])),
            (Any::KvlistValue(map), literal!({ "k": true })),
            (Any::BytesValue(vec![0, 255]), literal!("00ff")),
            (Any::StringValueStrindex(1), literal!(null)),
        ];
        for (value, expected) in cases {
            assert_eq!(json(Some(any(value))), expected);
        }
        assert_eq!(json(None), literal!(null));
    }

    #[test]
    fn text_is_plain_for_strings_and_json_for_the_rest() {
        assert_eq!(text(Some(any(Any::StringValue("a \"b\"".to_owned())))), "a \"b\"");
        assert_eq!(text(Some(any(Any::ArrayValue(ArrayValue { values: vec![any(Any::BoolValue(true))] })))), "[true]");
        assert_eq!(text(None), "");
    }
}
