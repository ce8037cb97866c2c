//! Checks of a response (`check`) and values taken from it (`extract`).
//!
//! The expected values are the same for every request: `{{name}}` in it is an error, and `{{{{` a plain `{{`, as in
//! requests.

use narrows_model::load::{Check, Extract, Place};
use regex::RegexBuilder;
use serde_json::{Value as Json, json};

use super::request::{REQUEST, RESPONSE_HEADER, to_json};
use crate::experiment::document::at::At;
use crate::experiment::document::tree::{Form, Origin};
use crate::experiment::error::{Problem, Report, shortened};
use crate::experiment::grammar::key::{Key, Value, beside, literal, optional, parameter, trial};
use crate::experiment::grammar::kind::{self, AS_TEXT, Simple, no_hint, owned};
use crate::experiment::grammar::shape::{Field, Map, NamedMap, Rule, Scope, Shape};
use crate::experiment::grammar::values::MANY;
use crate::experiment::placeholders::syntax::{RequestPiece, request_pieces};

/// The checks of a step.
pub(crate) const CHECK: Field = optional(
    "check",
    CHECKS,
    "What the response must look like to count as a success. Without a check of the status, it must be below 400.",
);

/// The checks of a scenario or flow with a single request.
pub(crate) const CHECK_BESIDE_REQUEST: Field = beside(
    "check",
    CHECKS,
    &[REQUEST.name()],
    "What the response to `request` must look like to count as a success. Without a check of the status, it must be below 400.",
);

const CHECKS: Shape = Shape::Either(&[CHECK_MAP, Shape::List { item: &CHECK_MAP, least: 0, most: MANY }]);

const CHECK_MAP: Shape = Shape::Map(Map::new(&[STATUS, BODY_CONTAINS.field, HEADERS, JSON]));

/// A status, a class of them or a range: the first and the last.
pub(crate) static STATUS_TEXT: Simple<(u16, u16)> = Simple {
    expected: "a status such as 200, `2xx` or `200-299`",
    name: "status",
    written: &[Origin::Integer, Origin::String],
    read: |text| statuses(text).ok_or(None),
    hint: no_hint,
    schema: || {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 100, "maximum": 599 },
            { "type": "string", "pattern": STATUS_PATTERN },
        ] })
    },
};

/// An RFC 6901 JSON pointer.
static JSON_POINTER: Simple<String> = Simple {
    expected: "a JSON pointer such as `/items/0/id`",
    name: "JSON pointer",
    written: AS_TEXT,
    read: |text| owned(text, is_pointer(text)),
    hint: |text| (!text.starts_with('/')).then(|| format!("write `/{}`", shortened(text))),
    schema: || json!({ "type": "string", "pattern": POINTER_PATTERN }),
};

/// A regular expression.
static REGULAR_EXPRESSION: Simple<String> = Simple {
    expected: "a regular expression",
    name: "regular expression",
    written: AS_TEXT,
    read: |text| pattern(text).map(|()| text.to_owned()).map_err(Some),
    hint: no_hint,
    schema: || json!({ "type": "string" }),
};

const STATUS_RANGE: Value<(u16, u16)> = parameter(&STATUS_TEXT);

const STATUS: Field = optional(
    "status",
    Shape::Either(&[STATUS_RANGE.shape(), Shape::List { item: &STATUS_RANGE.shape(), least: 1, most: MANY }]),
    "The status, or a list of those allowed: `200`, `2xx`, `200-299`. Without it, it must be below 400.",
);

const BODY_CONTAINS: Key<String> = Key::optional("body_contains", trial(&kind::TEXT), "A text that the body contains.");

const ANY_OR_TEXT: Value<String> = trial(&kind::TEXT_OR_NOTHING);

const HEADERS: Field = optional(
    "header",
    Shape::Named(NamedMap {
        what: "header",
        name: &RESPONSE_HEADER,
        value: &ANY_OR_TEXT.shape(),
        least: 1,
        most: MANY,
    }),
    "Headers that the response has, each with its whole value, or nothing when any value will do. If the response has \
     several headers of one name, one of them must have the value.",
);

const JSON: Field = optional(
    "json",
    Shape::Named(NamedMap {
        what: "place",
        name: &JSON_POINTER,
        value: &Shape::Json(Scope::Trial),
        least: 1,
        most: MANY,
    }),
    "Values in a JSON body by place, or nothing when any value will do. Places are JSON pointers (RFC 6901): `/items/0/id`; \
     `\"\"` is the whole body.",
);

pub(crate) const EXTRACT: Field = optional(
    "extract",
    Shape::Named(NamedMap { what: "variable", name: &kind::NAME, value: &VARIABLE, least: 0, most: MANY }),
    "Values of the response by the name under which later steps of the flow use them as `{{name}}`.",
);

static VARIABLE: Shape = Shape::Map(Map {
    fields: &[FROM_JSON.field, FROM_HEADER.field, FROM_PATTERN.field],
    rules: &[Rule::ExactlyOne(&[FROM_JSON.given(), FROM_HEADER.given(), FROM_PATTERN.given()])],
    others: None,
});

const FROM_JSON: Key<String> = Key::optional(
    "json",
    literal(&JSON_POINTER),
    "A place in a JSON body, a JSON pointer (RFC 6901): a text as it is, anything else as JSON.",
);

const FROM_HEADER: Key<String> =
    Key::optional("header", literal(&RESPONSE_HEADER), "The value of the first header of this name.");

const FROM_PATTERN: Key<String> = Key::optional(
    "regex",
    literal(&REGULAR_EXPRESSION),
    "A regular expression: the first group of its first match in the body, or all of the match when it has no group.",
);

/// The largest compiled pattern, in bytes: what the load engine allows.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Regular expression of the texts that [`is_pointer`] accepts.
pub(crate) const POINTER_PATTERN: &str = "^(/([^~/]|~[01])*)*$";

/// Regular expression of the texts that [`statuses`] accepts.
pub(crate) const STATUS_PATTERN: &str = "^([1-5]xx|[1-5][0-9][0-9](-[1-5][0-9][0-9])?)$";

/// The statuses from the first to the last that a text means: `200`, `2xx`, `200-299`.
pub(crate) fn statuses(text: &str) -> Option<(u16, u16)> {
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
pub(crate) fn is_pointer(text: &str) -> bool {
    let is_escape = |after: &str| after.starts_with(['0', '1']);
    (text.is_empty() || text.starts_with('/')) && text.split('~').skip(1).all(is_escape)
}

/// Checks a regular expression.
pub(crate) fn pattern(text: &str) -> Result<(), Problem> {
    let compiled = RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build();
    compiled.map(drop).map_err(|error| {
        // The last line names the error, those before it its place.
        let said = error.to_string();
        let said = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Problem::new(format!("expected a regular expression, found \"{}\": {}", shortened(text), shortened(said)))
    })
}

/// The checks of a checked part of the file, whether a map of them or a list of such maps.
pub(crate) fn checks(step: At<'_>, report: &mut Report) -> Vec<Check> {
    let Some(at) = step.get(&CHECK) else { return Vec::new() };
    match at.node.form {
        Form::List(_) => at.items().flat_map(|at| checks_of(at, report)).collect(),
        _ => checks_of(at, report),
    }
}

fn checks_of(at: At<'_>, report: &mut Report) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(status) = at.get(&STATUS) {
        let listed = status.items().filter_map(|item| item.value(STATUS_RANGE));
        let ranges: Vec<_> = listed.chain(status.value(STATUS_RANGE)).collect();
        checks.push(Check::Status(ranges));
    }
    checks.extend(at.get(&BODY_CONTAINS).and_then(|at| fixed_text(at, report)).map(Check::BodyContains));
    if let Some(headers) = at.get(&HEADERS) {
        for (name, value) in headers.entries() {
            checks.push(Check::Header { name: name.to_owned(), value: fixed_text(value, report) });
        }
    }
    if let Some(places) = at.get(&JSON) {
        for (pointer, value) in places.entries() {
            checks.push(Check::Json { pointer: pointer.to_owned(), value: fixed_json(value, report) });
        }
    }
    checks
}

/// A text that no request changes; `None` if there is none.
fn fixed_text(at: At<'_>, report: &mut Report) -> Option<String> {
    let text = at.text()?;
    Some(fixed(text).unwrap_or_else(|problem| {
        report.add(at.place(), at.path(), problem);
        text.to_owned()
    }))
}

/// A value that no request changes; `None` if nothing stands after the colon, which any value will do for.
fn fixed_json(at: At<'_>, report: &mut Report) -> Option<Json> {
    let mut value = serde_json::from_str(&to_json(at.node)).ok().filter(|value: &Json| !value.is_null())?;
    if let Err(problem) = fix_within(&mut value) {
        report.add(at.place(), at.path(), problem);
    }
    Some(value)
}

/// As [`fixed`], for every text in a value; the file's depth is bounded, and so is the value's.
fn fix_within(value: &mut Json) -> Result<(), Problem> {
    match value {
        Json::String(text) => *text = fixed(text)?,
        Json::Array(items) => items.iter_mut().try_for_each(fix_within)?,
        Json::Object(members) => {
            for (key, mut value) in std::mem::take(members) {
                fix_within(&mut value)?;
                members.insert(fixed(&key)?, value);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
    Ok(())
}

/// A text without places to fill in.
fn fixed(text: &str) -> Result<String, Problem> {
    let (pieces, end) = request_pieces(text);
    end?;
    pieces.into_iter().map(plain).collect()
}

/// The text of a piece, which must not be a place to fill in.
fn plain(piece: RequestPiece<'_>) -> Result<String, Problem> {
    match piece {
        RequestPiece::Text(text) => Ok(text.into_owned()),
        RequestPiece::Field(source, column) => {
            let name = column.map_or_else(|| source.to_owned(), |column| format!("{source}.{column}"));
            let problem = Problem::new(format!("a check cannot contain `{{{{{}}}}}`", shortened(&name)));
            Err(problem.hint("a check is the same for every request; `{{{{` is a plain `{{`"))
        }
    }
}

/// Values that a checked step keeps of its response; `index_of` knows the scenario's variables.
pub(crate) fn extracts(step: At<'_>, index_of: impl Fn(&str) -> Option<usize>) -> Vec<Extract> {
    let Some(at) = step.get(&EXTRACT) else { return Vec::new() };
    let extracts = at
        .entries()
        .filter_map(|(name, at)| Some(Extract { variable: index_of(name)?, name: name.to_owned(), from: place(at)? }));
    extracts.collect()
}

/// The place in a response from which a value is taken.
fn place(at: At<'_>) -> Option<Place> {
    (at.read(&FROM_JSON).map(Place::Json))
        .or_else(|| at.read(&FROM_HEADER).map(Place::Header))
        .or_else(|| at.read(&FROM_PATTERN).map(Place::Regex))
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

    #[test]
    fn what_is_expected_has_no_places_but_may_have_braces() {
        assert_eq!(fixed("{ \"a\": { \"b\": 1 }}").unwrap(), "{ \"a\": { \"b\": 1 }}");
        assert_eq!(fixed("{{{{x}}").unwrap(), "{{x}}");
        assert_eq!(fixed("a {{x.y}}").unwrap_err().message, "a check cannot contain `{{x.y}}`");
        let mut value = serde_json::json!({"{{{{k": ["{{{{v", 1, null]});
        fix_within(&mut value).unwrap();
        assert_eq!(value, serde_json::json!({"{{k": ["{{v", 1, null]}));
        for problem in [serde_json::json!([{"a": "{{b}}"}]), serde_json::json!({"{{b}}": 1})] {
            assert!(fix_within(&mut problem.clone()).is_err(), "{problem}");
        }
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
