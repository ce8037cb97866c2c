//! Treatment of telemetry before it is queued, whoever hands it over: secrets are blanked, texts are cut, what it
//! weighs is added up.
//!
//! It happens here and not in the writer, because the queue holds what has passed: cut texts make its bound in bytes
//! tight, and the thread that hands over pays, not the one that writes. Of the text of database queries no more is
//! blanked than passwords that are set and values that the experiment calls secret, of other texts what a name says is
//! secret besides: diagnosis reads both.

use narrows_model::series::{LogLine, LogStream, Point, SeriesKey, names};
use narrows_model::trace::Span;
use serde_json::{Map, Value};

use super::queue::Losses;
use crate::secrets::{
    KnownSecrets, REDACTED, TextKind, is_count, is_plain_text, is_secret_key, redact_argument_list, redact_statement,
    redact_text, redact_url, secret_field,
};

/// Longest text of a span, attribute or label, in bytes; the rest is cut off.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// Longest log line, in bytes.
const LOG_BYTES_MAX: usize = 16 << 10;
/// Longest database query, in bytes.
const QUERY_BYTES_MAX: usize = 64 << 10;

/// Lists and objects of an attribute within each other; what is deeper could not be read back.
const NESTING_MAX: usize = 64;
/// Replacement.
const TOO_DEEP: &str = "(nested too deeply)";

/// Separators in a log record: between its text and its exception, and between the exception's message and its stack
/// trace. The part before a separator may have been cut.
const EXCEPTION_LINES: &str = "\nexception.type=";
const STACKTRACE_LINES: &str = "\nexception.stacktrace=";

/// Bytes of a map's entry beside its key's and value's, roughly.
const ENTRY_BYTES: usize = 48;

/// A record of telemetry at the door.
pub(super) trait Record: Send + 'static {
    /// Blanks secrets, those that are known wherever they stand, and cuts texts.
    fn clean(&mut self, known: &KnownSecrets);

    /// Bytes in memory, roughly.
    fn bytes(&self) -> usize;

    /// Records lost for good when it is refused: none of OTLP, because its sender sends them again.
    fn lost(&self) -> Losses;
}

/// Blanks the secrets of telemetry that another machine will write down, and cuts its texts.
pub(crate) fn clean(spans: &mut [Span], points: &mut [(SeriesKey, Point)], logs: &mut [LogLine]) {
    let known = KnownSecrets::default();
    spans.iter_mut().for_each(|span| span.clean(&known));
    points.iter_mut().for_each(|point| point.clean(&known));
    logs.iter_mut().for_each(|line| line.clean(&known));
}

impl Record for Span {
    fn clean(&mut self, known: &KnownSecrets) {
        clean_attributes(&mut self.attributes, known);
        without_nul(&mut self.status_message);
        let facts = &mut self.facts;
        // Some libraries name spans of calls to stores after the statement: `AUTH X`.
        if facts.db_system.is_some() || facts.db_query.is_some() {
            redact_statement(&mut self.name);
            if let Some(operation) = &mut facts.db_operation {
                redact_statement(operation);
            }
        }
        for text in [&mut self.service, &mut self.scope, &mut self.name, &mut self.status_message] {
            clean_name(text, known);
        }
        if let Some(url) = &mut facts.url {
            redact_url(url);
            without_nul(url);
        }
        if let Some(query) = &mut facts.db_query {
            clean_statement(query, known);
            without_nul(query);
            truncate(query, QUERY_BYTES_MAX);
        }
        if let Some(template) = &mut facts.url_template {
            redact_url(template);
        }
        if let Some(destination) = &mut facts.messaging_destination {
            without_nul(destination);
            clean_name(destination, known);
        }
        facts.texts_mut().into_iter().flatten().for_each(|text| clean_name(text, known));
        if let Some(url) = &mut facts.url {
            known.hide(url);
            truncate(url, TEXT_BYTES_MAX);
        }
    }

    fn bytes(&self) -> usize {
        let facts = &self.facts;
        let texts = [&self.service, &self.scope, &self.name, &self.status_message].map(|text| Some(text.as_str()));
        let texts = texts.into_iter().chain(facts.texts()).chain(facts.templates()).flatten();
        size_of::<Self>() + texts.map(str::len).sum::<usize>() + attributes_bytes(&self.attributes)
    }

    fn lost(&self) -> Losses {
        Losses::default()
    }
}

impl Record for (SeriesKey, Point) {
    fn clean(&mut self, known: &KnownSecrets) {
        let key = &mut self.0;
        for text in [&mut key.name, &mut key.unit, &mut key.service] {
            clean_name(text, known);
        }
        for (label, value) in &mut key.labels {
            clean_text(label, value, known);
        }
        if key.labels.keys().any(|label| has_secret(label, known)) {
            let labels = std::mem::take(&mut key.labels);
            key.labels = labels.into_iter().map(|(label, value)| (cleaned_name(label, known), value)).collect();
        }
    }

    fn bytes(&self) -> usize {
        let key = &self.0;
        let labels = key.labels.iter().map(|(label, value)| ENTRY_BYTES + label.len() + value.len());
        size_of::<Self>() + key.name.len() + key.unit.len() + key.service.len() + labels.sum::<usize>()
    }

    fn lost(&self) -> Losses {
        let sampled = names::SAMPLED.contains(&(self.0.name.as_str(), self.0.unit.as_str()));
        Losses { points: u64::from(sampled), logs: 0 }
    }
}

impl Record for LogLine {
    fn clean(&mut self, known: &KnownSecrets) {
        // First: an object that is cut is none.
        clean_line(&mut self.text, known);
        truncate(&mut self.text, LOG_BYTES_MAX);
        clean_name(&mut self.service, known);
        clean_name(&mut self.severity, known);
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.text.len() + self.service.len() + self.severity.len()
    }

    fn lost(&self) -> Losses {
        Losses { points: 0, logs: u64::from(self.stream != LogStream::Otlp) }
    }
}

/// A line of output or the body of a log record. A JSON object at its beginning, alone or before the lines of an
/// exception, is cleaned as attributes are.
fn clean_line(text: &mut String, known: &KnownSecrets) {
    known.hide(text);
    let body_end = text.find(EXCEPTION_LINES).unwrap_or(text.len());
    let mut exception = text.split_off(body_end);
    let message_end = exception.find(STACKTRACE_LINES).unwrap_or(exception.len());
    let mut stacktrace = exception.split_off(message_end);
    for part in [&mut *text, &mut exception, &mut stacktrace] {
        known.hide(part);
    }
    redact_text(&mut exception);
    redact_text(&mut stacktrace);
    match text.starts_with('{').then(|| serde_json::from_str::<Value>(text)) {
        Some(Ok(Value::Object(mut fields))) => {
            let before = fields.clone();
            clean_object(&mut fields, known, NESTING_MAX);
            // As it came, as long as nothing in it is a secret.
            if fields != before {
                *text = Value::Object(fields).to_string();
            }
        }
        _ => redact_text(text),
    }
    text.push_str(&exception);
    text.push_str(&stacktrace);
}

/// SQLite's `printf()`, which shows texts of spans, ends them at a NUL.
fn without_nul(text: &mut String) {
    if text.contains('\0') {
        *text = text.replace('\0', "\u{fffd}");
    }
}

/// Redacts a name, or another short text without specific rules.
fn clean_name(name: &mut String, known: &KnownSecrets) {
    redact_text(name);
    known.hide(name);
    truncate(name, TEXT_BYTES_MAX);
}

fn cleaned_name(mut name: String, known: &KnownSecrets) -> String {
    clean_name(&mut name, known);
    name
}

/// Whether there is a secret in a name.
fn has_secret(name: &str, known: &KnownSecrets) -> bool {
    !is_plain_text(name) || known.is_in(name.as_bytes())
}

fn clean_attributes(attributes: &mut Map<String, Value>, known: &KnownSecrets) {
    clean_fields(attributes, known, NESTING_MAX);
}

/// Redacts the values and keys of fields, down to `levels` levels of nesting.
fn clean_fields(fields: &mut Map<String, Value>, known: &KnownSecrets, levels: usize) {
    let mut is_open = false;
    for (key, value) in &mut *fields {
        clean_value(key, value, known, levels);
        is_open |= has_secret(key, known);
    }
    if is_open {
        *fields = std::mem::take(fields).into_iter().map(|(key, value)| (cleaned_name(key, known), value)).collect();
    }
}

/// Redacts an object inside an attribute or a log line. A secret's name and value may be separate members.
fn clean_object(fields: &mut Map<String, Value>, known: &KnownSecrets, levels: usize) {
    if let Some(key) = secret_field(fields) {
        fields.insert(key, REDACTED.into());
    }
    clean_fields(fields, known, levels);
}

/// Cleans a value in which there may be as many more levels.
fn clean_value(key: &str, value: &mut Value, known: &KnownSecrets, levels: usize) {
    match value {
        Value::String(text) => clean_text(key, text, known),
        _ if is_secret_key(key) => {
            let is_count = matches!(value, Value::Number(number) if is_count(key, &number.to_string()));
            *value = if is_count { std::mem::take(value) } else { Value::String(REDACTED.into()) };
        }
        Value::Array(_) | Value::Object(_) if levels == 0 => *value = Value::String(TOO_DEEP.into()),
        Value::Array(items) => {
            redact_argument_list(items);
            items.iter_mut().for_each(|item| clean_value(key, item, known, levels - 1));
        }
        Value::Object(fields) => clean_object(fields, known, levels - 1),
        Value::Number(_) => known.hide_in_json(value),
        Value::Null | Value::Bool(_) => {}
    }
}

fn clean_text(key: &str, text: &mut String, known: &KnownSecrets) {
    if is_secret_key(key) {
        *text = REDACTED.into();
        return;
    }
    let kind = TextKind::of(key);
    let bytes_max = match kind {
        TextKind::Statement => {
            clean_statement(text, known);
            QUERY_BYTES_MAX
        }
        TextKind::Address | TextKind::Query | TextKind::FreeText => {
            kind.redact(text);
            TEXT_BYTES_MAX
        }
    };
    known.hide(text);
    truncate(text, bytes_max);
}

/// Cut before it is blanked: each password that is moves all that follows. One that is cut off is blanked to the end.
fn clean_statement(statement: &mut String, known: &KnownSecrets) {
    known.hide(statement);
    truncate(statement, QUERY_BYTES_MAX);
    redact_statement(statement);
}

/// Cuts text at a character boundary, and gives back what it took.
fn truncate(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.shrink_to_fit();
    }
}

fn attributes_bytes(attributes: &Map<String, Value>) -> usize {
    attributes.iter().map(|(key, value)| ENTRY_BYTES + key.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &Value) -> usize {
    let content = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_bytes).sum(),
        Value::Object(fields) => attributes_bytes(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + content
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secret_attributes_are_replaced_whatever_their_value_is() {
        let Value::Object(mut attributes) = json!({
            "http.request.header.authorization": ["Bearer abc"],
            "http.response.header.set-cookie": ["sid=1", "b=2"],
            "http.request.header.referer": ["/a?token=abc"],
            "app.db_password": "p",
            "user_token": 17,
            "nested": { "password": 1234, "user": "ada" },
            "db.query.text": "SELECT * FROM t WHERE password = 'x' AND token = 'y'",
            "messaging.token_count": 3,
            "session.id": "s",
            "note": "/a?token=abc",
        }) else {
            unreachable!()
        };
        clean_attributes(&mut attributes, &KnownSecrets::default());
        let expected = json!({
            "http.request.header.authorization": REDACTED,
            "http.response.header.set-cookie": REDACTED,
            "http.request.header.referer": ["/a?token=REDACTED"],
            "app.db_password": REDACTED,
            "user_token": REDACTED,
            "nested": { "password": REDACTED, "user": "ada" },
            "db.query.text": "SELECT * FROM t WHERE password = 'x' AND token = 'y'",
            "messaging.token_count": 3,
            "session.id": "s",
            "note": "/a?token=REDACTED",
        });
        assert_eq!(Value::Object(attributes), expected);
    }

    #[test]
    fn addresses_are_cleaned_in_every_attribute_that_holds_one() {
        for key in ["http.request.header.referer", "http.target", "url.full", "url.template"] {
            let mut address = "/a?x=1&API-Key=abc&y=2".to_owned();
            clean_text(key, &mut address, &KnownSecrets::default());
            assert_eq!(address, "/a?x=1&API-Key=REDACTED&y=2", "{key}");
        }
        let mut query = "password=p&a=b".to_owned();
        clean_text("url.query", &mut query, &KnownSecrets::default());
        assert_eq!(query, "password=REDACTED&a=b");
    }

    #[test]
    fn a_line_that_is_json_is_cleaned_by_its_keys_and_another_by_its_words() {
        let cases = [
            (r#"{"b": 1,  "a": 2}"#, r#"{"b": 1,  "a": 2}"#),
            (r#"{"user":"ada","auth":{"password":"hunter2"}}"#, r#"{"auth":{"password":"REDACTED"},"user":"ada"}"#),
            ("{not json} token=abc", "{not json} token=REDACTED"),
            (
                "{\"pwd\":1}\nexception.type=E\nexception.message=GET /a?token=b\nexception.stacktrace=",
                "{\"pwd\":\"REDACTED\"}\nexception.type=E\nexception.message=GET /a?token=REDACTED\n\
                 exception.stacktrace=",
            ),
            (r#"{"message":"at https://u:p@h/"}"#, r#"{"message":"at https://REDACTED:REDACTED@h/"}"#),
            ("hello", "hello"),
        ];
        for (text, expected) in cases {
            let mut got = text.to_owned();
            clean_line(&mut got, &KnownSecrets::default());
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn a_known_value_that_was_cut_before_an_exception_is_blanked() {
        let known = KnownSecrets::new(["Zk4711-qV-secret".to_owned()]);
        let long = "x ".repeat(300);
        let mut line =
            format!("{long}Zk4711\nexception.type=E\nexception.message={long}Zk471\nexception.stacktrace=at a");
        clean_line(&mut line, &known);
        let expected =
            format!("{long}REDACTED\nexception.type=E\nexception.message={long}REDACTED\nexception.stacktrace=at a");
        assert_eq!(line, expected);
    }

    #[test]
    fn secrets_in_keys_lists_and_pairs_are_replaced() {
        let Value::Object(mut attributes) = json!({
            "of token=abc": 1,
            "process.command_args": ["mysql", "-px", "--token", "y", 3],
            "env": [{ "name": "DB_PASSWORD", "value": "x" }, { "name": "PORT", "value": "80" }],
            "headers": { "Key": "Cookie", "Value": ["a=b"] },
            "app.secrets": 3,
            "api_keys": ["x"],
            "name": "password",
            "value": "of the span itself",
        }) else {
            unreachable!()
        };
        clean_attributes(&mut attributes, &KnownSecrets::default());
        let expected = json!({
            "of token=REDACTED": 1,
            "process.command_args": ["mysql", "-pREDACTED", "--token", REDACTED, 3],
            "env": [{ "name": "DB_PASSWORD", "value": REDACTED }, { "name": "PORT", "value": "80" }],
            "headers": { "Key": "Cookie", "Value": REDACTED },
            "app.secrets": 3,
            "api_keys": REDACTED,
            "name": "password",
            "value": "of the span itself",
        });
        assert_eq!(Value::Object(attributes), expected);
    }

    #[test]
    fn long_text_is_cut_at_a_character_and_weighs_no_more() {
        let mut text = "é".repeat(TEXT_BYTES_MAX);
        clean_text("note", &mut text, &KnownSecrets::default());
        assert_eq!(text.len(), TEXT_BYTES_MAX);
        let mut odd = format!("a{}", "é".repeat(TEXT_BYTES_MAX));
        clean_text("note", &mut odd, &KnownSecrets::default());
        assert_eq!((odd.len(), odd.capacity()), (TEXT_BYTES_MAX - 1, TEXT_BYTES_MAX - 1));
        let mut query = "x".repeat(TEXT_BYTES_MAX + 1);
        clean_text("db.statement", &mut query, &KnownSecrets::default());
        assert_eq!(query.len(), TEXT_BYTES_MAX + 1);
    }

    #[test]
    fn every_text_of_an_attribute_weighs() {
        let weight = |value: Value| value_bytes(&value);
        let text = "x".repeat(1000);
        let empty = json!({ "a": [""] });
        assert_eq!(weight(json!({ "a": [text] })) - weight(empty.clone()), 1000);
        let mut keyed = empty.clone();
        keyed[&text] = Value::Null;
        assert!(weight(keyed) - weight(empty) > 1000);
    }
}
