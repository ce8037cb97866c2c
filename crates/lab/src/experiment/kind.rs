//! The kinds of single values: how each is recognised, what is said when something else was found, and its schema.

use narrows_load::{RATE_MAX, RATE_MIN};
use serde_json::{Value, json};

use super::mistake::{Wrong, did_you_mean, listed, shortened};
use super::quantity;
use super::request;
use super::tree::{Form, Node, Origin, Scalar};
use super::{address, addresses, expect, objective, published};

/// Weights beyond this are a slip of the pen.
const WEIGHT_MAX: f64 = 1e9;

/// Longer names are refused: they end up in tables and file names.
const NAME_LENGTH_MAX: usize = 64;

/// What a single value looks like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Any text; numbers and booleans count as the text they are written as.
    Text,
    /// An experiment's name: `[a-z0-9-]+`.
    ExperimentName,
    /// A name that `${…}` or `{{…}}` can hold.
    Name,
    /// A variant's name: as [`Kind::Name`], with dots and pluses.
    VariantName,
    /// The name of an environment variable.
    EnvironmentName,
    /// The name of a setting in a server's own configuration.
    Setting,
    /// The name of an HTTP header to send.
    HeaderName,
    /// The name of an HTTP header of an answer.
    AnswerHeader,
    /// One of these words.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Boolean,
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// A whole number, perhaps negative.
    Integer,
    /// A number of processor cores above 0.
    Cores,
    /// A number of 0 or more.
    Amount,
    /// A number from 0 to 1.
    Share,
    /// A length of time, 0 included.
    Duration,
    /// A length of time above 0.
    PositiveDuration,
    /// An amount of memory above 0.
    Memory,
    /// `METHOD /path`.
    Request,
    /// `tcp`, or `METHOD /path`.
    Probe,
    /// The path of a request.
    RequestPath,
    /// `metric < bound`, perhaps with `scenario/request:` before it.
    Objective,
    /// `metric < bound`.
    Limit,
    /// A step's name, perhaps with its flow's and a slash before it.
    RequestName,
    /// A number per second, or a number per unit of time, above 0.
    Rate,
    /// As [`Kind::Rate`], or 0.
    RateOrNone,
    /// A number above 0.
    Weight,
    /// A status, a class of them or a range.
    Status,
    /// A text, or nothing.
    TextOrNothing,
    /// An RFC 6901 JSON pointer.
    JsonPointer,
    /// A regular expression.
    Pattern,
    /// An address, `FIRST-LAST` or `ADDRESS/BITS`.
    Addresses,
    /// The name of a server in its certificate.
    ServerName,
    /// A service's name, a space, and the name of its spans.
    Operation,
    /// A service's name, `http://host:port` or `https://host:port`.
    Target,
}

impl Kind {
    /// Whether a part of the file is a scalar of this kind.
    pub(crate) fn is_met_by(self, node: &Node) -> bool {
        matches!(&node.form, Form::Scalar(scalar) if self.takes(scalar) && self.reads(&scalar.text).is_ok())
    }

    /// Whether a text reads as this kind.
    pub(crate) fn reads_text(self, text: &str) -> bool {
        self.reads(text).is_ok()
    }

    /// What a value of this kind is, to follow "expected".
    pub(crate) fn expected(self) -> String {
        match self {
            Kind::Text => "a text".into(),
            Kind::ExperimentName => "a name of lower-case letters, digits and hyphens".into(),
            Kind::Name => "a name of letters, digits, `_` and `-`".into(),
            Kind::VariantName => "a name of letters, digits, `_`, `-`, `.` and `+`".into(),
            Kind::EnvironmentName => "the name of an environment variable".into(),
            Kind::Setting => "the name of a setting: letters, digits, `_`, `-` and `.`".into(),
            Kind::HeaderName | Kind::AnswerHeader => "the name of a header".into(),
            Kind::Word(words) => format!("one of {}", listed(words)),
            Kind::Boolean => "`true` or `false`".into(),
            Kind::Whole(least, u64::MAX) => format!("a whole number of {least} or more"),
            Kind::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Integer => "a whole number".into(),
            Kind::Cores => "a number of cores above 0".into(),
            Kind::Amount => "a number of 0 or more".into(),
            Kind::Share => "a number from 0 to 1".into(),
            Kind::Duration => "a length of time such as `30s` or `1m30s`".into(),
            Kind::PositiveDuration => "a length of time above 0 such as `30s` or `1m30s`".into(),
            Kind::Memory => "an amount of memory such as `256MiB`".into(),
            Kind::Request => "a request such as `GET /orders`".into(),
            Kind::Probe => "`tcp` or a request such as `GET /health`".into(),
            Kind::RequestPath => "a path such as `/orders`".into(),
            Kind::RequestName => "the name of a step, or `flow/step`".into(),
            Kind::Rate => "a rate above 0 such as 500 or `30/min`".into(),
            Kind::RateOrNone => "a rate such as 500 or `30/min`".into(),
            Kind::Weight => "a number above 0".into(),
            Kind::Status => "a status such as 200, `2xx` or `200-299`".into(),
            Kind::TextOrNothing => "a text, or nothing".into(),
            Kind::JsonPointer => "a JSON pointer such as `/items/0/id`".into(),
            Kind::Pattern => "a regular expression".into(),
            Kind::Addresses => "an address, `FIRST-LAST` or `ADDRESS/BITS`".into(),
            Kind::ServerName => "a DNS name or an address".into(),
            Kind::Objective | Kind::Limit => "an objective such as `p95 < 300ms`".into(),
            Kind::Operation => "a service and the name of its spans such as `orders GET /orders`".into(),
            Kind::Target => "the name of a service or `http://host:port`".into(),
        }
    }

    /// Whether a scalar of the file is of this kind, both its YAML type and its text.
    pub(crate) fn check(self, scalar: &Scalar, described: &str) -> Result<(), Wrong> {
        let expected = || Wrong::new(format!("expected {}, found {described}", self.expected()));
        if !self.takes(scalar) {
            return Err(match (self.reads(&scalar.text), scalar.origin) {
                (Err(_), _) | (_, Origin::Null) => expected(),
                (Ok(()), Origin::String) => expected().hint("write it without quotes"),
                (Ok(()), _) => expected().hint(format!("put it in quotes: `\"{}\"`", shortened(&scalar.text))),
            });
        }
        self.reads(&scalar.text).map_err(|wrong| wrong.unwrap_or_else(|| self.with_advice(expected(), &scalar.text)))
    }

    fn takes(self, scalar: &Scalar) -> bool {
        use Origin::{Boolean, Bound, Broken, Integer, Null, Number, String};
        match (self, scalar.origin) {
            (_, Bound | Broken) => true,
            (Kind::TextOrNothing, _) => true,
            (_, Null) => false,
            (Kind::Text, _) => true,
            (Kind::Boolean, origin) => origin == Boolean,
            (Kind::Whole(..) | Kind::Integer, origin) => origin == Integer,
            (Kind::Cores | Kind::Amount | Kind::Share | Kind::Weight, origin) => matches!(origin, Integer | Number),
            (Kind::Rate | Kind::RateOrNone, origin) => matches!(origin, Integer | Number | String),
            (Kind::Status, origin) => matches!(origin, Integer | String),
            (Kind::Duration | Kind::PositiveDuration | Kind::Memory, origin) => matches!(origin, Integer | String),
            (_, origin) => origin == String,
        }
    }

    /// Whether a text reads as this kind; the error may know better words than "expected …".
    fn reads(self, text: &str) -> Result<(), Option<Wrong>> {
        let holds = |condition: bool| if condition { Ok(()) } else { Err(None) };
        match self {
            Kind::Text | Kind::TextOrNothing => Ok(()),
            Kind::ExperimentName => holds(is_name(text, |b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')),
            Kind::Name => holds(is_name(text, is_name_byte) && !text.starts_with('-')),
            Kind::VariantName => {
                let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
                holds(begins_well && is_name(text, |b| is_name_byte(b) || b == b'.' || b == b'+'))
            }
            Kind::EnvironmentName => holds(!text.is_empty() && !text.contains(['=', '\0'])),
            Kind::Setting => {
                let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
                holds(begins_well && is_name(text, |b| is_name_byte(b) || b == b'.'))
            }
            Kind::HeaderName => request::header_name(text).map_err(Some),
            Kind::AnswerHeader => request::token(text).map_err(Some),
            Kind::Word(words) => holds(words.contains(&text)),
            Kind::Boolean => holds(boolean(text).is_some()),
            Kind::Whole(least, most) => holds(text.parse().is_ok_and(|n: u64| (least..=most).contains(&n))),
            Kind::Integer => holds(text.parse::<i64>().is_ok()),
            Kind::Cores => holds(number(text).is_some_and(|n| n > 0.0 && n <= 1024.0)),
            Kind::Amount => holds(number(text).is_some_and(|n| n >= 0.0)),
            Kind::Share => holds(number(text).is_some_and(|n| (0.0..=1.0).contains(&n))),
            Kind::Duration => holds(quantity::duration(text).is_some()),
            Kind::PositiveDuration => holds(quantity::duration(text).is_some_and(|d| !d.is_zero())),
            Kind::Memory => holds(quantity::bytes(text).is_some_and(|n| n > 0)),
            Kind::Request => request::line(text).map(drop).map_err(Some),
            Kind::Probe if text == "tcp" => Ok(()),
            Kind::Probe => {
                request::line(text).map(drop).map_err(|wrong| if text.contains('/') { Some(wrong) } else { None })
            }
            Kind::RequestPath => request::path(text).map_err(Some),
            Kind::Objective => objective::parse(text).map(drop).map_err(Some),
            Kind::Limit => objective::limit(text).map(drop).map_err(Some),
            Kind::RequestName => {
                let (flow, step) = text.split_once('/').unwrap_or(("flow", text));
                Kind::Name.reads(flow).and(Kind::Name.reads(step))
            }
            Kind::Rate => holds(quantity::rate(text).is_some_and(|rate| (RATE_MIN..=RATE_MAX).contains(&rate))),
            Kind::RateOrNone if quantity::rate(text) == Some(0.0) => Ok(()),
            Kind::RateOrNone => Kind::Rate.reads(text),
            Kind::Weight => holds(number(text).is_some_and(|n| n > 0.0 && n <= WEIGHT_MAX)),
            Kind::Status => holds(expect::statuses(text).is_some()),
            Kind::JsonPointer => holds(expect::is_pointer(text)),
            Kind::Pattern => expect::pattern(text).map_err(Some),
            Kind::Addresses => addresses::range(text).map(drop).map_err(Some),
            Kind::ServerName => holds(address::is_server_name(text)),
            Kind::Operation => holds(published::operation(text).is_some()),
            Kind::Target if text.contains(':') || text.contains('/') => address::parse(text).map(drop).map_err(Some),
            Kind::Target => Kind::Name.reads(text),
        }
    }

    fn with_advice(self, wrong: Wrong, text: &str) -> Wrong {
        match self {
            Kind::Duration | Kind::PositiveDuration if number(text).is_some_and(|n| n > 0.0) => {
                wrong.hint(format!("add a unit: `{0}s`, `{0}ms`", shortened(text)))
            }
            Kind::Duration | Kind::PositiveDuration => Wrong { hint: quantity::advice(text), ..wrong },
            Kind::Rate | Kind::RateOrNone => Wrong { hint: rate_advice(text), ..wrong },
            Kind::JsonPointer if !text.starts_with('/') => wrong.hint(format!("write `/{}`", shortened(text))),
            Kind::Word(words) => Wrong { hint: did_you_mean(text, words), ..wrong },
            _ => wrong,
        }
    }

    /// The JSON Schema of this kind.
    pub(crate) fn schema(self) -> Value {
        let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
        let name = |pattern: &str| json!({ "type": "string", "pattern": pattern, "maxLength": NAME_LENGTH_MAX });
        match self {
            Kind::Text => json!({ "type": ["string", "number", "boolean"] }),
            Kind::ExperimentName => name("^[a-z0-9-]+$"),
            Kind::Name => name("^[A-Za-z0-9_][A-Za-z0-9_-]*$"),
            Kind::VariantName => name("^[A-Za-z0-9_][A-Za-z0-9_.+-]*$"),
            Kind::EnvironmentName => text("^[^=]+$"),
            Kind::Setting => name("^[A-Za-z_][A-Za-z0-9_.-]*$"),
            Kind::HeaderName | Kind::AnswerHeader => text(request::HEADER_NAME_PATTERN),
            Kind::Word(words) => json!({ "type": "string", "enum": words }),
            Kind::Boolean => json!({ "type": "boolean" }),
            Kind::Whole(least, u64::MAX) => json!({ "type": "integer", "minimum": least }),
            Kind::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Kind::Integer => json!({ "type": "integer" }),
            Kind::Cores => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1024 }),
            Kind::Amount => json!({ "type": "number", "minimum": 0 }),
            Kind::Share => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
            Kind::Duration => json!({ "anyOf": [text(quantity::DURATION_PATTERN), { "const": 0 }] }),
            Kind::PositiveDuration => {
                json!({ "type": "string", "pattern": quantity::DURATION_PATTERN, "not": { "pattern": "^[0.hmsuµ]*$" } })
            }
            Kind::Memory => json!({ "anyOf": [
                { "type": "string", "pattern": quantity::BYTES_PATTERN, "not": { "pattern": "^[0.]*[A-Za-z]*$" } },
                { "type": "integer", "minimum": 1 },
            ] }),
            Kind::Request => text(&request::line_pattern()),
            Kind::Probe => json!({ "anyOf": [{ "const": "tcp" }, text(&request::line_pattern())] }),
            Kind::RequestPath => text(request::PATH_PATTERN),
            Kind::Objective => text(&objective::pattern()),
            Kind::Limit => text(&objective::limit_pattern()),
            Kind::RequestName => text("^[A-Za-z0-9_][A-Za-z0-9_-]*(/[A-Za-z0-9_][A-Za-z0-9_-]*)?$"),
            Kind::Rate => json!({ "anyOf": [
                { "type": "number", "minimum": RATE_MIN, "maximum": RATE_MAX },
                { "type": "string", "pattern": quantity::RATE_PATTERN, "not": { "pattern": "^[0.]+(/|$)" } },
            ] }),
            Kind::RateOrNone => {
                json!({ "anyOf": [{ "type": "number", "minimum": 0, "maximum": RATE_MAX }, text(quantity::RATE_PATTERN)] })
            }
            Kind::Weight => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": WEIGHT_MAX }),
            Kind::Status => json!({ "anyOf": [
                { "type": "integer", "minimum": 100, "maximum": 599 },
                text(expect::STATUS_PATTERN),
            ] }),
            Kind::TextOrNothing => json!({ "type": ["string", "number", "boolean", "null"] }),
            Kind::JsonPointer => text(expect::POINTER_PATTERN),
            Kind::Pattern => json!({ "type": "string" }),
            Kind::Addresses => text("^[0-9A-Fa-f.:]+([-/][0-9A-Fa-f.:]+)?$"),
            Kind::ServerName => text(address::SERVER_NAME_PATTERN),
            Kind::Operation => text(published::OPERATION_PATTERN),
            Kind::Target => text("^([A-Za-z0-9_][A-Za-z0-9_-]*|https?://[^/]+/?)$"),
        }
    }
}

fn rate_advice(text: &str) -> Option<String> {
    match quantity::rate(text) {
        Some(rate) if rate > 0.0 => Some(format!("from {RATE_MIN} to {RATE_MAX} per second")),
        Some(_) => None,
        None => text.contains('/').then(|| "use `/s`, `/min` or `/h`".to_owned()),
    }
}

fn is_name(text: &str, is_allowed: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.len() <= NAME_LENGTH_MAX && text.bytes().all(is_allowed)
}

/// Whether a text can be a service's name.
pub(crate) fn is_service_name(text: &str) -> bool {
    Kind::Name.reads_text(text)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// `true` or `false` as YAML writes them.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    text.to_ascii_lowercase().parse().ok()
}

/// A finite number as YAML writes it.
pub(crate) fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|n| n.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::mistake::Report;
    use crate::experiment::tree::parse;

    fn said(kind: Kind, yaml: &str) -> String {
        let node = parse(yaml, &mut Report::new("e.yaml")).unwrap();
        let Form::Scalar(scalar) = &node.form else { panic!("{yaml} is no scalar") };
        match kind.check(scalar, &node.described()) {
            Ok(()) => "fine".to_owned(),
            Err(Wrong { message, hint: None }) => message,
            Err(Wrong { message, hint: Some(hint) }) => format!("{message} ({hint})"),
        }
    }

    #[test]
    fn each_kind_says_what_it_expected_and_what_it_found() {
        let words = Kind::Word(&["keep-alive", "per-request"]);
        let vus = Kind::Whole(1, 100);
        let cases = [
            (Kind::Text, "1.50", "fine"),
            (Kind::Text, "~", "expected a text, found nothing"),
            (Kind::ExperimentName, "my-test", "fine"),
            (
                Kind::ExperimentName,
                "My test",
                "expected a name of lower-case letters, digits and hyphens, found \"My test\"",
            ),
            (
                Kind::ExperimentName,
                "7",
                "expected a name of lower-case letters, digits and hyphens, found 7 (put it in quotes: `\"7\"`)",
            ),
            (Kind::Name, "a.b", "expected a name of letters, digits, `_` and `-`, found \"a.b\""),
            (Kind::VariantName, "3-nodes+retry", "fine"),
            (
                words,
                "keepalive",
                "expected one of `keep-alive`, `per-request`, found \"keepalive\" (did you mean `keep-alive`?)",
            ),
            (Kind::Boolean, "yes", "expected `true` or `false`, found \"yes\""),
            (vus, "many", "expected a whole number from 1 to 100, found \"many\""),
            (vus, "0", "expected a whole number from 1 to 100, found 0"),
            (vus, "1.5", "expected a whole number from 1 to 100, found 1.5"),
            (vus, "\"8\"", "expected a whole number from 1 to 100, found \"8\" (write it without quotes)"),
            (Kind::Whole(1, u64::MAX), "-1", "expected a whole number of 1 or more, found -1"),
            (Kind::Cores, "0.25", "fine"),
            (Kind::Cores, "0", "expected a number of cores above 0, found 0"),
            (Kind::Share, "10", "expected a number from 0 to 1, found 10"),
            (Kind::Duration, "0", "fine"),
            (
                Kind::Duration,
                "10",
                "expected a length of time such as `30s` or `1m30s`, found 10 (add a unit: `10s`, `10ms`)",
            ),
            (
                Kind::Duration,
                "31d",
                "expected a length of time such as `30s` or `1m30s`, found \"31d\" (`d` is not a unit; use `h`, `m`, `s`, `ms` or `us`)",
            ),
            (
                Kind::PositiveDuration,
                "800h",
                "expected a length of time above 0 such as `30s` or `1m30s`, found \"800h\" (the longest is 30 days, `720h`)",
            ),
            (Kind::PositiveDuration, "0s", "expected a length of time above 0 such as `30s` or `1m30s`, found \"0s\""),
            (Kind::Memory, "256MiB", "fine"),
            (Kind::Memory, "256M", "expected an amount of memory such as `256MiB`, found \"256M\""),
            (Kind::Probe, "tcp", "fine"),
            (Kind::Probe, "udp", "expected `tcp` or a request such as `GET /health`, found \"udp\""),
            (Kind::Target, "orders", "fine"),
            (Kind::Target, "http://10.0.0.1:8080", "fine"),
        ];
        for (kind, yaml, expected) in cases {
            assert_eq!(said(kind, yaml), expected, "{kind:?} {yaml}");
        }
    }
}
