//! Kinds that are texts of some form.

use narrows_model::load::Arrivals;
use narrows_model::published::Measure;
use serde_json::json;

use super::Refusal;
use super::names::{is_name, owned};
use super::simple::{AS_TEXT, Simple, no_hint};
use crate::experiment::addresses::{self, Range};
use crate::experiment::bound::Ready;
use crate::experiment::error::shortened;
use crate::experiment::objective::{self, Objective};
use crate::experiment::tree::Origin;
use crate::experiment::{address, expect, published, request};

/// As many as there may be virtual users, who send the requests of a burst.
const BURST_MAX: u32 = 100_000;

const AS_ANYTHING: &[Origin] = &[Origin::Boolean, Origin::Integer, Origin::Number, Origin::String];
const AS_ANYTHING_OR_NULL: &[Origin] =
    &[Origin::Boolean, Origin::Integer, Origin::Number, Origin::String, Origin::Null];

/// Any text; numbers and booleans count as the text they are written as.
pub(crate) static TEXT: Simple<String> = Simple {
    expected: "a text",
    name: "text",
    written: AS_ANYTHING,
    read: |text| Ok(text.to_owned()),
    hint: no_hint,
    schema: || json!({ "type": ["string", "number", "boolean"] }),
};

/// A text, or nothing.
pub(crate) static TEXT_OR_NOTHING: Simple<String> = Simple {
    expected: "a text, or nothing",
    name: "text, or nothing",
    written: AS_ANYTHING_OR_NULL,
    read: |text| Ok(text.to_owned()),
    hint: no_hint,
    schema: || json!({ "type": ["string", "number", "boolean", "null"] }),
};

/// `METHOD /path`.
pub(crate) static REQUEST: Simple<(String, String)> = Simple {
    expected: "a request such as `GET /orders`",
    name: "`METHOD /path`",
    written: AS_TEXT,
    read: |text| request::line(text).map(|(method, path)| (method.to_owned(), path.to_owned())).map_err(Some),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": request::line_pattern() }),
};

/// `tcp`, or `METHOD /path`.
pub(crate) static PROBE: Simple<Ready> = Simple {
    expected: "`tcp` or a request such as `GET /health`",
    name: "`tcp` or `METHOD /path`",
    written: AS_TEXT,
    read: probe,
    hint: no_hint,
    schema: || json!({ "anyOf": [{ "const": "tcp" }, { "type": "string", "pattern": request::line_pattern() }] }),
};

/// The path of a request.
pub(crate) static REQUEST_PATH: Simple<String> = Simple {
    expected: "a path such as `/orders`",
    name: "path",
    written: AS_TEXT,
    read: |text| request::path(text).map(|()| text.to_owned()).map_err(Some),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": request::PATH_PATTERN }),
};

/// `metric < bound`, perhaps with `scenario/request:` before it.
pub(crate) static OBJECTIVE: Simple<Objective> = Simple {
    expected: "an objective such as `p95 < 300ms`",
    name: "objective",
    written: AS_TEXT,
    read: |text| objective::parse(text).map_err(Some),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": objective::pattern() }),
};

/// `metric < bound`.
pub(crate) static LIMIT: Simple<Objective> = Simple {
    expected: "an objective such as `p95 < 300ms`",
    name: "metric, operator and bound",
    written: AS_TEXT,
    read: |text| objective::limit(text).map_err(Some),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": objective::limit_pattern() }),
};

/// A status, a class of them or a range: the first and the last.
pub(crate) static STATUS: Simple<(u16, u16)> = Simple {
    expected: "a status such as 200, `2xx` or `200-299`",
    name: "status",
    written: &[Origin::Integer, Origin::String],
    read: |text| expect::statuses(text).ok_or(None),
    hint: no_hint,
    schema: || {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 100, "maximum": 599 },
            { "type": "string", "pattern": expect::STATUS_PATTERN },
        ] })
    },
};

/// An RFC 6901 JSON pointer.
pub(crate) static JSON_POINTER: Simple<String> = Simple {
    expected: "a JSON pointer such as `/items/0/id`",
    name: "JSON pointer",
    written: AS_TEXT,
    read: |text| owned(text, expect::is_pointer(text)),
    hint: |text| (!text.starts_with('/')).then(|| format!("write `/{}`", shortened(text))),
    schema: || json!({ "type": "string", "pattern": expect::POINTER_PATTERN }),
};

/// A regular expression.
pub(crate) static PATTERN: Simple<String> = Simple {
    expected: "a regular expression",
    name: "regular expression",
    written: AS_TEXT,
    read: |text| expect::pattern(text).map(|()| text.to_owned()).map_err(Some),
    hint: no_hint,
    schema: || json!({ "type": "string" }),
};

/// An address, `FIRST-LAST` or `ADDRESS/BITS`.
pub(crate) static ADDRESSES: Simple<Range> = Simple {
    expected: "an address, `FIRST-LAST` or `ADDRESS/BITS`",
    name: "address range",
    written: AS_TEXT,
    read: |text| addresses::range(text).map_err(Some),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": "^[0-9A-Fa-f.:]+([-/][0-9A-Fa-f.:]+)?$" }),
};

/// The name of a server in its certificate.
pub(crate) static SERVER_NAME: Simple<String> = Simple {
    expected: "a DNS name or an address",
    name: "DNS name or address",
    written: AS_TEXT,
    read: |text| owned(text, address::is_server_name(text)),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": address::SERVER_NAME_PATTERN }),
};

/// A service's name, a space, and the name of its spans.
pub(crate) static OPERATION: Simple<(String, String)> = Simple {
    expected: "a service and the name of its spans such as `orders GET /orders`",
    name: "`SERVICE SPAN`",
    written: AS_TEXT,
    read: |text| {
        let (service, name) = published::operation(text).ok_or(None)?;
        Ok((service.to_owned(), name.to_owned()))
    },
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": published::OPERATION_PATTERN }),
};

/// How the arrivals of an open model are spaced.
pub(crate) static ARRIVALS: Simple<Arrivals> = Simple {
    expected: "`uniform`, `poisson` or `bursts of N`, N from 1 to 100000",
    name: "`uniform`, `poisson` or `bursts of N`",
    written: AS_TEXT,
    read: |text| arrivals(text).ok_or(None),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": "^(uniform|poisson|bursts of [1-9][0-9]{0,4}|bursts of 100000)$" }),
};

/// A measure of published figures.
pub(crate) static MEASURE: Simple<Measure> = Simple {
    expected: "a measure",
    name: "measure",
    written: AS_TEXT,
    read: |text| published::measure(text).ok_or(None),
    hint: no_hint,
    schema: || json!({ "type": "string" }),
};

/// A service's name, `http://host:port` or `https://host:port`.
pub(crate) static TARGET: Simple<String> = Simple {
    expected: "the name of a service or `http://host:port`",
    name: "service or URL",
    written: AS_TEXT,
    read: |text| {
        if text.contains([':', '/']) {
            address::parse(text).map(|_| text.to_owned()).map_err(Some)
        } else {
            owned(text, is_name(text))
        }
    },
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": "^([A-Za-z0-9_][A-Za-z0-9_-]*|https?://[^/]+/?)$" }),
};

fn arrivals(text: &str) -> Option<Arrivals> {
    match text {
        "uniform" => Some(Arrivals::Uniform),
        "poisson" => Some(Arrivals::Poisson),
        _ => {
            let digits = text.strip_prefix("bursts of ")?;
            let size =
                digits.starts_with(|first: char| first.is_ascii_digit() && first != '0').then(|| digits.parse().ok());
            size.flatten().filter(|size| *size <= BURST_MAX).map(Arrivals::Bursts)
        }
    }
}

fn probe(text: &str) -> Result<Ready, Refusal> {
    if text == "tcp" {
        return Ok(Ready::Tcp);
    }
    match request::line(text) {
        Ok((method, path)) => Ok(Ready::Http { method: method.to_owned(), path: path.to_owned() }),
        Err(problem) => Err(text.contains('/').then_some(problem)),
    }
}
