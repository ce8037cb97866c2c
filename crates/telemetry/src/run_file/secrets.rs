//! What never reaches the disk: credentials in attributes and in addresses, and text without end.
//!
//! An attribute is secret by the last part of its key (`http.request.header.authorization`, `enduser.api-key`), whatever
//! its value is. In attributes that hold an address, the values of secret query keys and the user part are replaced, by
//! the rules of [`crate::normalise::secrets`]; here they hold for every record, whoever hands it over. Everything else, the text of database queries above all, is left as it came: diagnosis reads it, and a pattern that
//! guesses at secrets in free text would be wrong both ways.

use narrows_model::series::{LogLine, SeriesKey};
use narrows_model::trace::Span;
use serde_json::{Map, Value};

use crate::normalise::secrets::{REDACTED, redact_url};

/// Longest text of a span, attribute or label, in bytes; the rest is cut off.
pub(super) const TEXT_BYTES_MAX: usize = 4 << 10;
/// Longest log line, in bytes.
pub(super) const LOG_BYTES_MAX: usize = 16 << 10;
/// Longest database query, in bytes.
pub(super) const QUERY_BYTES_MAX: usize = 64 << 10;

/// Last parts of attribute keys, `-` written as `_`.
const SECRET_KEYS: [&str; 20] = [
    "access_token",
    "api_key",
    "apikey",
    "authorization",
    "client_secret",
    "connection_string",
    "cookie",
    "id_token",
    "passwd",
    "password",
    "private_key",
    "proxy_authorization",
    "refresh_token",
    "secret",
    "set_cookie",
    "token",
    "x_amz_security_token",
    "x_api_key",
    "x_auth_token",
    "x_functions_key",
];

/// Attributes that hold an address, besides `url.query`.
const URL_KEYS: [&str; 5] =
    ["http.request.header.referer", "http.response.header.location", "http.target", "http.url", "url.full"];

/// Attributes that hold the text of a database query.
const QUERY_TEXT_KEYS: [&str; 2] = ["db.query.text", "db.statement"];

/// Cleans a span.
pub(super) fn clean_span(span: &mut Span) {
    clean_attributes(&mut span.attributes);
    for text in [&mut span.service, &mut span.scope, &mut span.name, &mut span.status_message] {
        truncate(text, TEXT_BYTES_MAX);
    }
    let facts = &mut span.facts;
    if let Some(url) = &mut facts.url {
        clean_url(url);
    }
    if let Some(query) = &mut facts.db_query {
        truncate(query, QUERY_BYTES_MAX);
    }
    let short = [
        &mut facts.http_method,
        &mut facts.http_route,
        &mut facts.url,
        &mut facts.db_system,
        &mut facts.db_namespace,
        &mut facts.db_operation,
        &mut facts.db_status,
        &mut facts.server_address,
        &mut facts.error_type,
    ];
    short.into_iter().flatten().for_each(|text| truncate(text, TEXT_BYTES_MAX));
}

/// Cleans what a series is about.
pub(super) fn clean_series(key: &mut SeriesKey) {
    for text in [&mut key.name, &mut key.unit, &mut key.service] {
        truncate(text, TEXT_BYTES_MAX);
    }
    for (label, value) in &mut key.labels {
        clean_text(label, value);
    }
}

/// Cleans a log line.
pub(super) fn clean_log(line: &mut LogLine) {
    truncate(&mut line.text, LOG_BYTES_MAX);
    truncate(&mut line.service, TEXT_BYTES_MAX);
    truncate(&mut line.severity, TEXT_BYTES_MAX);
}

fn clean_attributes(attributes: &mut Map<String, Value>) {
    for (key, value) in attributes {
        clean_value(key, value);
    }
}

fn clean_value(key: &str, value: &mut Value) {
    match value {
        Value::String(text) => clean_text(key, text),
        _ if is_secret_key(key) => *value = Value::String(REDACTED.into()),
        Value::Array(items) => items.iter_mut().for_each(|item| clean_value(key, item)),
        Value::Object(fields) => clean_attributes(fields),
        _ => {}
    }
}

fn clean_text(key: &str, text: &mut String) {
    if is_secret_key(key) {
        text.clear();
        text.push_str(REDACTED);
    } else if URL_KEYS.contains(&key) {
        clean_url(text);
        truncate(text, TEXT_BYTES_MAX);
    } else if key == "url.query" {
        clean_query(text);
        truncate(text, TEXT_BYTES_MAX);
    } else {
        truncate(text, if QUERY_TEXT_KEYS.contains(&key) { QUERY_BYTES_MAX } else { TEXT_BYTES_MAX });
    }
}

fn is_secret_key(key: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or(key);
    SECRET_KEYS.iter().any(|secret| is_same_key(last, secret))
}

/// Equal but for case and for `-` instead of `_`.
fn is_same_key(key: &str, lower: &str) -> bool {
    key.len() == lower.len()
        && key.bytes().zip(lower.bytes()).all(|(a, b)| a.eq_ignore_ascii_case(&b) || (a == b'-' && b == b'_'))
}

fn clean_url(url: &mut String) {
    *url = redact_url(std::mem::take(url));
}

/// What follows the `?` of an address.
fn clean_query(query: &mut String) {
    let url = redact_url(format!("?{query}"));
    *query = url.strip_prefix('?').unwrap_or(&url).to_owned();
}

/// Cuts text at a character boundary.
fn truncate(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secret_attributes_are_replaced_whatever_their_value_is() {
        let Value::Object(mut attributes) = json!({
            "http.request.header.authorization": ["Bearer abc"],
            "http.request.header.Cookie": "sid=1",
            "http.response.header.set-cookie": ["sid=1", "b=2"],
            "http.request.header.x-api-key": "k",
            "db.connection_string": "Server=db;Password=p",
            "nested": { "password": 1234, "user": "ada" },
            "db.query.text": "SELECT * FROM t WHERE password = 'x' AND token = 'y'",
            "messaging.token_count": 3,
            "session.id": "s",
        }) else {
            unreachable!()
        };
        clean_attributes(&mut attributes);
        let expected = json!({
            "http.request.header.authorization": REDACTED,
            "http.request.header.Cookie": REDACTED,
            "http.response.header.set-cookie": REDACTED,
            "http.request.header.x-api-key": REDACTED,
            "db.connection_string": REDACTED,
            "nested": { "password": REDACTED, "user": "ada" },
            "db.query.text": "SELECT * FROM t WHERE password = 'x' AND token = 'y'",
            "messaging.token_count": 3,
            "session.id": "s",
        });
        assert_eq!(Value::Object(attributes), expected);
    }

    #[test]
    fn addresses_lose_secret_values_in_every_attribute_that_holds_one() {
        let cases = [
            ("url.full", "https://h/a?sv=1&sig=a%2Bb", "https://h/a?sv=1&sig=REDACTED"),
            ("http.target", "/a?x=1&API-Key=abc&y=2", "/a?x=1&API-Key=REDACTED&y=2"),
            ("url.query", "password=p&a=b", "password=REDACTED&a=b"),
            ("url.query", "", ""),
            ("http.request.header.referer", "/a?token=abc", "/a?token=REDACTED"),
            ("note", "/a?token=abc", "/a?token=abc"),
        ];
        for (key, text, expected) in cases {
            let mut got = text.to_owned();
            clean_text(key, &mut got);
            assert_eq!(got, expected, "{key} {text}");
        }
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        let mut text = "é".repeat(TEXT_BYTES_MAX);
        clean_text("note", &mut text);
        assert_eq!(text.len(), TEXT_BYTES_MAX);
        let mut odd = format!("a{}", "é".repeat(TEXT_BYTES_MAX));
        clean_text("note", &mut odd);
        assert_eq!(odd.len(), TEXT_BYTES_MAX - 1);
        let mut query = "x".repeat(TEXT_BYTES_MAX + 1);
        clean_text("db.statement", &mut query);
        assert_eq!(query.len(), TEXT_BYTES_MAX + 1);
    }
}
