//! Checks of a response, compiled from the plan with the words for their failure.

use std::sync::Arc;

use narrows_model::load::{Check, ErrorKind};
use serde_json::Value;

use super::Failure;
use super::capture::ResponseParts;
use super::response::{Response, Unreadable};
use crate::recorder::Cause;

/// The most of a text from the plan that a cause repeats, in characters.
const SHOWN_CHARS_MAX: usize = 100;

/// See the module.
#[derive(Debug)]
pub(super) struct CompiledCheck {
    check: Check,
    failed: Arc<str>,
}

impl CompiledCheck {
    /// # Errors
    /// Fault of the check.
    pub(super) fn compile(check: &Check) -> Result<Self, String> {
        match check {
            Check::Status(ranges) if ranges.is_empty() => {
                return Err("check of the status: no status is allowed".into());
            }
            Check::Json { pointer, .. } => check_pointer(pointer)?,
            _ => {}
        }
        Ok(Self { check: check.clone(), failed: format!("check failed: {}", words(check)).into() })
    }

    pub(super) fn is_of_status(&self) -> bool {
        matches!(self.check, Check::Status(_))
    }

    /// Parts of a response that it needs.
    pub(super) fn wanted(&self) -> ResponseParts {
        match self.check {
            Check::Status(_) => ResponseParts::Nothing,
            Check::Header { .. } => ResponseParts::Head,
            Check::BodyContains(_) | Check::Json { .. } => ResponseParts::All,
        }
    }

    /// # Errors
    /// When the response is not like that.
    pub(super) fn hold(&self, response: &mut Response<'_>) -> Result<(), Failure> {
        let holds = match &self.check {
            Check::Status(ranges) => {
                let holds = ranges.iter().any(|(first, last)| (*first..=*last).contains(&response.status));
                return if holds { Ok(()) } else { Err(Failure { kind: ErrorKind::Status, cause: None }) };
            }
            Check::BodyContains(text) => response.body().map(|body| contains(body, text.as_bytes())),
            Check::Header { name, value } => {
                Ok(response.headers(name).any(|found| value.as_ref().is_none_or(|value| found == value.as_bytes())))
            }
            Check::Json { pointer, value } => response.json().map(|json| {
                let found = json.pointer(pointer);
                found.is_some_and(|found| value.as_ref().is_none_or(|value| is_same(found, value)))
            }),
        };
        match holds {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::check(Cause::Said(self.failed.clone()))),
            Err(unreadable) => Err(Failure::check(unreadable_body("check failed", unreadable))),
        }
    }
}

/// The cause when a body cannot be looked at.
pub(super) fn unreadable_body(what: &str, unreadable: Unreadable) -> Cause {
    Cause::Said(format!("{what}: body {unreadable}").into())
}

/// # Errors
/// When a text is not an RFC 6901 JSON pointer.
pub(super) fn check_pointer(pointer: &str) -> Result<(), String> {
    let is_escaped = |rest: &str| rest.starts_with('0') || rest.starts_with('1');
    let is_pointer = (pointer.is_empty() || pointer.starts_with('/')) && pointer.split('~').skip(1).all(is_escaped);
    if is_pointer {
        Ok(())
    } else {
        Err(format!("{pointer:?} is not a JSON pointer, expected one such as \"/items/0/id\""))
    }
}

fn words(check: &Check) -> String {
    match check {
        Check::Status(_) => "status".into(),
        Check::BodyContains(text) => format!("body does not contain {:?}", shown(text)),
        Check::Header { name, value: None } => format!("header {} is missing", shown(name)),
        Check::Header { name, value: Some(value) } => format!("header {} is not {:?}", shown(name), shown(value)),
        Check::Json { pointer, value: None } => format!("JSON has no value at {:?}", shown(pointer)),
        Check::Json { pointer, value: Some(value) } => {
            format!("JSON at {:?} is not {}", shown(pointer), shown(&value.to_string()))
        }
    }
}

pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

fn contains(body: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(body, text).is_some()
}

/// Whether two values are the same; 1 and 1.0 are, outside of objects and arrays.
fn is_same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Number(found), Value::Number(expected)) if found.is_f64() != expected.is_f64() => {
            found.as_f64() == expected.as_f64()
        }
        _ => found == expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::response::Decoder;
    use crate::session::response::tests::captured;
    use serde_json::json;

    fn outcome(check: Check, body: &str) -> Result<(), String> {
        let capture = captured("X-Kind: a b\r\nVia: 1\r\nX-KIND: c\r\n", body.as_bytes());
        let check = CompiledCheck::compile(&check)?;
        let held = check.hold(&mut Response::new(201, &capture, &mut Decoder::default()));
        held.map_err(|failure| failure.cause.map_or(failure.kind.as_str().to_owned(), |cause| cause.to_string()))
    }

    fn header(name: &str, value: Option<&str>) -> Check {
        Check::Header { name: name.into(), value: value.map(Into::into) }
    }

    fn json_at(pointer: &str, value: Option<Value>) -> Check {
        Check::Json { pointer: pointer.into(), value }
    }

    #[test]
    fn each_check_passes_and_fails_with_its_own_words() {
        let body = r#"{"items":[{"id":7,"a/b":"x"}],"ok":true,"none":null,"large":9007199254740993}"#;
        let cases = [
            (Check::Status(vec![(200, 200), (201, 204)]), Ok(())),
            (Check::Status(vec![(200, 200), (202, 204)]), Err("status")),
            (Check::BodyContains("\"id\":7".into()), Ok(())),
            (Check::BodyContains(String::new()), Ok(())),
            (Check::BodyContains("seven".into()), Err("check failed: body does not contain \"seven\"")),
            (header("x-kind", None), Ok(())),
            (header("x-kind", Some("a b")), Ok(())),
            (header("x-kind", Some("c")), Ok(())),
            (header("x-kind", Some("a b, c")), Err("check failed: header x-kind is not \"a b, c\"")),
            (header("x-kind", Some("a")), Err("check failed: header x-kind is not \"a\"")),
            (header("x-other", None), Err("check failed: header x-other is missing")),
            (json_at("/items/0/id", Some(json!(7.0))), Ok(())),
            (json_at("/items/0/a~1b", Some(json!("x"))), Ok(())),
            (json_at("/none", None), Ok(())),
            (json_at("/large", Some(json!(9_007_199_254_740_993_u64))), Ok(())),
            (
                json_at("/large", Some(json!(9_007_199_254_740_992_u64))),
                Err("check failed: JSON at \"/large\" is not 9007199254740992"),
            ),
            (json_at("/items/1", None), Err("check failed: JSON has no value at \"/items/1\"")),
            (json_at("/ok", Some(json!("true"))), Err("check failed: JSON at \"/ok\" is not \"true\"")),
        ];
        for (check, expected) in cases {
            assert_eq!(outcome(check.clone(), body), expected.map_err(String::from), "{check:?}");
        }
        let not_json = Err("check failed: body is not JSON".to_owned());
        assert_eq!(outcome(json_at("", None), "{"), not_json);
        assert_eq!(outcome(json_at("", None), &"[".repeat(100_000)), not_json);
    }

    #[test]
    fn mistakes_in_checks_are_found_before_the_load() {
        let expected = "\"items\" is not a JSON pointer, expected one such as \"/items/0/id\"";
        assert_eq!(outcome(json_at("items", None), "").unwrap_err(), expected);
        assert!(outcome(json_at("/a~2", None), "").is_err() && check_pointer("/a~0~1").is_ok());
        assert_eq!(outcome(Check::Status(Vec::new()), "").unwrap_err(), "check of the status: no status is allowed");
    }

    #[test]
    fn long_texts_are_shown_in_part() {
        let cause = outcome(Check::BodyContains("é".repeat(1_000)), "").unwrap_err();
        assert!(cause.ends_with("é…\"") && cause.chars().count() < SHOWN_CHARS_MAX + 50, "{cause}");
    }
}
