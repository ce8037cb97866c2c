//! What is expected of an answer (`check`) and taken from it (`extract`).

use narrows_model::load::{Check, Extract, Place};
use regex::RegexBuilder;

use super::mistake::{Wrong, shortened};
use super::request::to_json;
use super::tree::{At, Form};

/// The largest compiled pattern, in bytes: what the load engine allows.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// What [`is_pointer`] accepts, as a regular expression.
pub(super) const POINTER_PATTERN: &str = "^(/([^~/]|~[01])*)*$";

/// What [`statuses`] accepts of texts, as a regular expression.
pub(super) const STATUS_PATTERN: &str = "^([1-5]xx|[1-5][0-9][0-9](-[1-5][0-9][0-9])?)$";

/// The statuses from the first to the last that a text means: `200`, `2xx`, `200-299`.
pub(super) fn statuses(text: &str) -> Option<(u16, u16)> {
    let one = |text: &str| {
        let number = text.parse::<u16>().ok().filter(|_| text.len() == 3)?;
        (100..=599).contains(&number).then_some(number)
    };
    if let Some(class) = text.strip_suffix("xx") {
        let hundreds = one(&format!("{class}00"))?;
        return Some((hundreds, hundreds + 99));
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (one(first)?, one(last)?);
    (first <= last).then_some((first, last))
}

/// Whether a text is a JSON pointer: RFC 6901 §3.
pub(super) fn is_pointer(text: &str) -> bool {
    let is_escape = |after: &str| after.starts_with(['0', '1']);
    (text.is_empty() || text.starts_with('/')) && text.split('~').skip(1).all(is_escape)
}

/// Checks a regular expression.
pub(super) fn pattern(text: &str) -> Result<(), Wrong> {
    let compiled = RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build();
    compiled.map(drop).map_err(|error| {
        // The last line says what is wrong, those before it where.
        let said = error.to_string();
        let said = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Wrong::new(format!("expected a regular expression, found \"{}\": {}", shortened(text), shortened(said)))
    })
}

/// The checks of a checked part of the file, whether a map of them or a list of such maps.
pub(super) fn checks(step: At<'_>) -> Vec<Check> {
    let Some(at) = step.get("check") else { return Vec::new() };
    match at.node.form {
        Form::List(_) => at.items().flat_map(checks_of).collect(),
        _ => checks_of(at),
    }
}

fn checks_of(at: At<'_>) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(status) = at.get("status") {
        let listed = status.items().filter_map(|item| statuses(item.text()?));
        let ranges: Vec<_> = listed.chain(status.text().and_then(statuses)).collect();
        checks.push(Check::Status(ranges));
    }
    let text = at.get("body_contains").and_then(|at| at.text().map(str::to_owned));
    checks.extend(text.map(Check::BodyContains));
    if let Some(headers) = at.get("header") {
        let header = |(name, value): (&str, At<'_>)| Check::Header {
            name: name.to_owned(),
            value: value.text().map(str::to_owned),
        };
        checks.extend(headers.entries().map(header));
    }
    if let Some(places) = at.get("json") {
        checks.extend(places.entries().map(|(pointer, value)| {
            // Nothing after the colon: any value.
            let value =
                serde_json::from_str(&to_json(value.node)).ok().filter(|value: &serde_json::Value| !value.is_null());
            Check::Json { pointer: pointer.to_owned(), value }
        }));
    }
    checks
}

/// What a checked step keeps of its answer; `index_of` knows the scenario's variables.
pub(super) fn extracts(step: At<'_>, index_of: impl Fn(&str) -> Option<usize>) -> Vec<Extract> {
    let Some(at) = step.get("extract") else { return Vec::new() };
    let extract = |(name, at): (&str, At<'_>)| {
        let text = |key| at.get(key).and_then(|at| at.text().map(str::to_owned));
        let from =
            text("json").map(Place::Json).or(text("header").map(Place::Header)).or(text("regex").map(Place::Regex));
        Some(Extract { variable: index_of(name)?, name: name.to_owned(), from: from? })
    };
    at.entries().filter_map(extract).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn statuses_are_one_a_class_or_a_range() {
        let cases = [
            ("200", Some((200, 200))),
            ("2xx", Some((200, 299))),
            ("200-299", Some((200, 299))),
            ("599", Some((599, 599))),
            ("600", None),
            ("99", None),
            ("6xx", None),
            ("xx", None),
            ("20x", None),
            ("299-200", None),
            ("200-", None),
            ("0200", None),
            ("+20", None),
        ];
        for (text, expected) in cases {
            assert_eq!(statuses(text), expected, "{text}");
        }
    }

    #[test]
    fn pointers_and_patterns_are_judged() {
        for (text, expected) in
            [("", true), ("/", true), ("/a~0b/~1", true), ("a", false), ("/a~2", false), ("/~", false)]
        {
            assert_eq!(is_pointer(text), expected, "{text}");
        }
        assert_eq!(pattern(r#"name="csrf" value="([^"]+)""#), Ok(()));
        let unclosed = pattern("(a").unwrap_err().message;
        assert_eq!(unclosed, "expected a regular expression, found \"(a\": unclosed group");
        assert!(pattern("(a{1000}){1000}").is_err());
    }

    proptest! {
        #[test]
        fn schema_and_check_agree(text in "[/~01ab]{0,8}", status in "[0-9x-]{0,7}") {
            let holds = |pattern: &str, text: &str| regex_lite::Regex::new(pattern).unwrap().is_match(text);
            prop_assert_eq!(is_pointer(&text), holds(POINTER_PATTERN, &text));
            prop_assert!(statuses(&status).is_none() || holds(STATUS_PATTERN, &status));
        }
    }
}
