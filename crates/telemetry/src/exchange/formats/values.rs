//! Values that several JSON formats share: ids, times, and tags that stand for OpenTelemetry fields.

use narrows_model::trace::SpanStatus;
use serde_json::{Map, Number, Value, json};

use crate::otlp::convert::{self, EXCEPTIONS};
use crate::ranges::INSTANT_NS_MAX;

/// The longest name of a span, a scope or a service, in bytes.
const NAME_BYTES_MAX: usize = 512;
/// The longest value that an error shows, in characters.
const SHOWN_CHARS_MAX: usize = 80;
/// Maximum number of exceptions of one span.
const EXCEPTIONS_MAX: usize = 8;
const UNKNOWN_SERVICE: &str = "unknown_service";

/// An id in hexadecimal digits; leading zeros may be missing.
pub(super) fn id<const N: usize>(value: &Value, name: &str) -> Result<[u8; N], String> {
    let text = value.as_str().ok_or_else(|| format!("its {name} is not a text"))?;
    let wrong = || {
        format!("its {name} `{}` is not 1 to {} hexadecimal digits", text.chars().take(40).collect::<String>(), N * 2)
    };
    let is_hex = !text.is_empty() && text.len() <= N * 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = if is_hex { u128::from_str_radix(text, 16).map_err(|_| wrong())? } else { return Err(wrong()) };
    if number == 0 {
        return Err(format!("its {name} is zero"));
    }
    let bytes = number.to_be_bytes();
    bytes[bytes.len() - N..].try_into().map_err(|_| wrong())
}

/// Microseconds as nanoseconds.
pub(super) fn micros(value: Option<&Value>, name: &str) -> Result<i64, String> {
    let whole = |number: &Number| {
        number.as_i64().or_else(|| {
            let fraction = number.as_f64().filter(|us| us.is_finite() && us.abs() < 9e15)?;
            Some(fraction as i64)
        })
    };
    let number = match value {
        Some(Value::Number(number)) => whole(number),
        Some(Value::String(text)) => text.parse().ok(),
        _ => None,
    };
    let number = number.ok_or_else(|| format!("its {name} is not a number of microseconds"))?;
    Ok(number.saturating_mul(1_000))
}

/// Start and end of a span. `name` is the name of the start's field.
pub(super) fn times(start_ns: i64, end_ns: i64, name: &str) -> Result<(i64, i64), String> {
    match (start_ns, end_ns) {
        (..=0, _) => Err(format!("its {name} is not between the years 1970 and 2116")),
        (start_ns, _) if start_ns > INSTANT_NS_MAX => Err(format!("its {name} is not between the years 1970 and 2116")),
        (_, end_ns) if end_ns > INSTANT_NS_MAX => Err("its end is after the year 2116".to_owned()),
        times => Ok(times),
    }
}

/// A name, cut to the maximum length.
pub(super) fn cut(name: String) -> String {
    convert::cut(name, NAME_BYTES_MAX)
}

/// The name of a service, or a placeholder if there is none.
pub(super) fn service(name: Option<&str>) -> String {
    cut(name.filter(|name| !name.is_empty()).unwrap_or(UNKNOWN_SERVICE).to_owned())
}

/// Takes the scope out of the attributes.
pub(super) fn scope(attributes: &mut Map<String, Value>) -> String {
    cut(take_text(attributes, &["otel.scope.name", "otel.library.name"]).unwrap_or_default())
}

/// A value as shown in errors.
pub(super) fn described(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.chars().take(SHOWN_CHARS_MAX).collect()
}

/// Removes the first text with one of these names from the attributes and returns it.
pub(super) fn take_text(attributes: &mut Map<String, Value>, names: &[&str]) -> Option<String> {
    let name = names.iter().find(|name| attributes.get(**name).is_some_and(Value::is_string))?;
    match attributes.remove(*name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Takes the status and its message out of the attributes.
pub(super) fn status(attributes: &mut Map<String, Value>) -> (SpanStatus, String) {
    let is_error = match attributes.get("error") {
        Some(Value::Bool(is_error)) => Some(*is_error),
        Some(Value::String(text)) if text == "true" || text == "false" => Some(text == "true"),
        // Any other value is an application's own tag, such as the text of the error.
        _ => None,
    };
    if is_error.is_some() {
        attributes.remove("error");
    }
    let code = take_text(attributes, &["otel.status_code"]);
    let message = take_text(attributes, &["otel.status_description"]).unwrap_or_default();
    let status = match (code.as_deref(), is_error) {
        (Some("ERROR"), _) | (_, Some(true)) => SpanStatus::Error,
        (Some("OK"), _) => SpanStatus::Ok,
        _ => SpanStatus::Unset,
    };
    (status, message)
}

/// Exceptions among a span's events, in the form in which OTLP exceptions are stored.
#[derive(Debug, Default)]
pub(super) struct Exceptions(Vec<Value>);

impl Exceptions {
    /// Adds an event if it is an exception.
    pub(super) fn see(&mut self, time_ns: i64, fields: &Map<String, Value>) {
        let is_one = fields.keys().any(|key| matches!(key.as_str(), "exception.type" | "exception.message"));
        if !is_one || self.0.len() >= EXCEPTIONS_MAX {
            return;
        }
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        self.0.push(json!({
            "time_ns": time_ns,
            "type": cut(text("exception.type")),
            "message": cut(text("exception.message")),
            "stacktrace": text("exception.stacktrace"),
        }));
    }

    pub(super) fn put_into(self, attributes: &mut Map<String, Value>) {
        if !self.0.is_empty() {
            attributes.insert(EXCEPTIONS.to_owned(), Value::Array(self.0));
        }
    }
}
