//! Exceptions: what a span's events and a log record's attributes say of them.
//!
//! A span's exceptions stay with the span, as one attribute whose value is a list, so that they are kept or refused,
//! sent again and joined with it. A log record's are lines of its text. Other events are not kept.
//!
//! OpenTelemetry semantic conventions, "Exceptions on spans" and "Exceptions in logs".

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::span::Event;
use serde_json::{Map, Value, json};

use super::{cut, instant, values};

/// The attribute of a span that holds its exceptions: a list of at most eight objects, in the order in which they came,
/// with `time_ns` (0 when unknown), `type`, `message` and `stacktrace`.
pub const EXCEPTIONS: &str = "narrows.exceptions";
/// The attribute that says how many more there were.
pub const EXCEPTIONS_LEFT_OUT: &str = "narrows.exceptions.left_out";

const EXCEPTIONS_MAX: usize = 8;
const TYPE_BYTES_MAX: usize = 512;
const MESSAGE_BYTES_MAX: usize = 1 << 10;
const STACKTRACE_BYTES_MAX: usize = 4 << 10;

/// One exception; texts that nobody said are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exception {
    pub(super) kind: String,
    pub(super) message: String,
    pub(super) stacktrace: String,
}

impl Exception {
    /// `None` if no attribute is about an exception.
    pub(super) fn from_attributes(attributes: Vec<KeyValue>) -> Option<Self> {
        let mut found = None;
        for attribute in attributes {
            let Some(part) = attribute.key.strip_prefix("exception.") else { continue };
            if !matches!(part, "type" | "message" | "stacktrace") {
                continue;
            }
            let empty = || Self { kind: String::new(), message: String::new(), stacktrace: String::new() };
            let exception = found.get_or_insert_with(empty);
            let text = values::text(attribute.value);
            match part {
                "type" => exception.kind = cut(text, TYPE_BYTES_MAX),
                "message" => exception.message = cut(text, MESSAGE_BYTES_MAX),
                _ => exception.stacktrace = cut(text, STACKTRACE_BYTES_MAX),
            }
        }
        found
    }
}

/// The exceptions of a span.
pub(super) struct OfSpan {
    kept: Vec<Value>,
    left_out: u64,
}

pub(super) fn of_events(events: Vec<Event>) -> OfSpan {
    let mut found = OfSpan { kept: Vec::new(), left_out: 0 };
    for event in events {
        let time_ns = instant(event.time_unix_nano).unwrap_or(0);
        let Some(Exception { kind, message, stacktrace }) = Exception::from_attributes(event.attributes) else {
            continue;
        };
        if found.kept.len() < EXCEPTIONS_MAX {
            let exception = json!({ "time_ns": time_ns, "type": kind, "message": message, "stacktrace": stacktrace });
            found.kept.push(exception);
        } else {
            found.left_out += 1;
        }
    }
    found
}

impl OfSpan {
    /// Nothing is put where there is no exception.
    pub(super) fn put_into(self, attributes: &mut Map<String, Value>) {
        if !self.kept.is_empty() {
            attributes.insert(EXCEPTIONS.to_owned(), Value::Array(self.kept));
        }
        if self.left_out > 0 {
            attributes.insert(EXCEPTIONS_LEFT_OUT.to_owned(), Value::from(self.left_out));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value};

    fn event(message: &str) -> Event {
        let attribute = |key: &str, value: &str| KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(any_value::Value::StringValue(value.to_owned())) }),
            ..KeyValue::default()
        };
        let attributes = vec![
            attribute("exception.type", "Boom"),
            attribute("exception.message", message),
            attribute("exception.escaped", "False"),
        ];
        Event { time_unix_nano: 7, name: "exception".to_owned(), attributes, ..Event::default() }
    }

    fn attributes(events: Vec<Event>) -> Map<String, Value> {
        let mut attributes = Map::new();
        of_events(events).put_into(&mut attributes);
        attributes
    }

    #[test]
    fn exceptions_become_one_attribute() {
        let other = Event { name: "cache miss".to_owned(), ..Event::default() };
        let got = attributes(vec![other.clone(), event("no")]);
        let expected = json!({ EXCEPTIONS: [{ "time_ns": 7, "type": "Boom", "message": "no", "stacktrace": "" }] });
        assert_eq!(Value::Object(got), expected);
        assert_eq!(attributes(vec![other]), Map::new());
    }

    #[test]
    fn their_number_and_length_are_bounded() {
        let got = attributes(vec![event(&"x".repeat(5000)); EXCEPTIONS_MAX + 3]);
        assert_eq!(got[EXCEPTIONS].as_array().map(Vec::len), Some(EXCEPTIONS_MAX));
        assert_eq!(got[EXCEPTIONS][0]["message"].as_str().map(str::len), Some(MESSAGE_BYTES_MAX));
        assert_eq!(got[EXCEPTIONS_LEFT_OUT], 3);
    }
}
