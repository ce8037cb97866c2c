//! The request of a scenario: `GET /orders?limit={{limit}}`, or a map with method, path, headers and body.

use narrows_model::load::{RequestTemplate, Segment, Template};
use serde_json::{Value as Json, json};

use super::variables::RequestNames;
use crate::experiment::document::at::At;
use crate::experiment::document::tree::{Form, Node, Origin};
use crate::experiment::error::{Problem, Report, shortened};
use crate::experiment::grammar::key::{Key, Value, optional, trial};
use crate::experiment::grammar::kind::{self, AS_TEXT, OneOf, Simple, no_hint};
use crate::experiment::grammar::shape::{Field, Map, NamedMap, Rule, Scope, Shape};
use crate::experiment::grammar::values::MANY;
use crate::experiment::placeholders::syntax::{self, RequestPiece};

/// The methods a request can have.
pub(crate) const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// `METHOD /path`.
pub(crate) static REQUEST_LINE: Simple<(String, String)> = Simple {
    expected: "a request such as `GET /orders`",
    name: "`METHOD /path`",
    written: AS_TEXT,
    read: |text| line(text).map(|(method, path)| (method.to_owned(), path.to_owned())).map_err(Some),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": line_pattern() }),
};

/// The path of a request.
static REQUEST_PATH: Simple<String> = Simple {
    expected: "a path such as `/orders`",
    name: "path",
    written: AS_TEXT,
    read: |text| path(text).map(|()| text.to_owned()).map_err(Some),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": PATH_PATTERN }),
};

/// The name of an HTTP header to send.
static HEADER_NAME: Simple<String> = Simple {
    expected: "the name of a header",
    name: "header name",
    written: AS_TEXT,
    read: |text| header_name(text).map(|()| text.to_owned()).map_err(Some),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": HEADER_NAME_PATTERN }),
};

/// The name of an HTTP header of a response.
pub(crate) static RESPONSE_HEADER: Simple<String> = Simple {
    expected: "the name of a header",
    name: "header name",
    written: AS_TEXT,
    read: |text| token(text).map(|()| text.to_owned()).map_err(Some),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": HEADER_NAME_PATTERN }),
};

const TEXT: Value<String> = trial(&kind::TEXT);

const METHOD: Key<&str> = Key::default("method", trial(&OneOf(METHODS)), "GET", "The method.");

const PATH: Key<String> = Key::required("path", trial(&REQUEST_PATH), "Path and query. It begins with `/`.");

const HEADERS: Field = optional(
    "headers",
    Shape::Named(NamedMap { what: "header", name: &HEADER_NAME, value: &TEXT.shape(), least: 0, most: MANY }),
    "Headers by name. Narrows itself sets `Content-Length` and `Transfer-Encoding`.",
);

const BODY: Key<String> = Key::optional("body", TEXT, "The body as text.");

const JSON: Field = optional(
    "json",
    Shape::Json(Scope::Trial),
    "The body as YAML. It is sent as JSON, with `Content-Type: application/json` unless `headers` has another.",
);

/// A request, as a line or as a map.
pub(crate) const REQUEST_SHAPE: Shape = Shape::Either(&[
    trial(&REQUEST_LINE).shape(),
    Shape::Map(Map {
        fields: &[METHOD.field, PATH.field, HEADERS, BODY.field, JSON],
        rules: &[Rule::AtMostOne([BODY.given(), JSON.given()])],
        others: None,
    }),
]);

pub(crate) const REQUEST: Field =
    optional("request", REQUEST_SHAPE, "The request that is sent repeatedly: `METHOD /path`, or a map.");

/// Regular expression of the texts that [`header_name`] accepts, but for the two names that it refuses.
pub(crate) const HEADER_NAME_PATTERN: &str = "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$";

/// Regular expression of the texts that [`path`] accepts.
pub(crate) const PATH_PATTERN: &str = r"^/((\{\{[^}]*\}\})|\S)*$";

/// Regular expression of the texts that [`line`] accepts.
pub(crate) fn line_pattern() -> String {
    format!("^({}) +{}", METHODS.join("|"), PATH_PATTERN.trim_start_matches('^'))
}

/// Takes `METHOD /path` apart.
pub(crate) fn line(text: &str) -> Result<(&str, &str), Problem> {
    let expected = || Problem::new(format!("expected a request such as `GET /orders`, found \"{}\"", shortened(text)));
    if text.starts_with('/') {
        return Err(expected().hint(format!("write the method first: `GET {}`", shortened(text))));
    }
    let (method, rest) = text.split_once(' ').ok_or_else(expected)?;
    if !METHODS.contains(&method) {
        let upper = method.to_ascii_uppercase();
        let is_known = METHODS.contains(&upper.as_str());
        return Err(if is_known { expected().hint(format!("write `{upper}`")) } else { expected() });
    }
    let rest = rest.trim_start_matches(' ');
    path(rest)?;
    Ok((method, rest))
}

/// Checks a path with its query.
pub(crate) fn path(text: &str) -> Result<(), Problem> {
    let expected = |problem: &str| Problem::new(format!("{problem} in the path \"{}\"", shortened(text)));
    if !text.starts_with('/') {
        return Err(Problem::new(format!("expected a path that begins with `/`, found \"{}\"", shortened(text))));
    }
    let (pieces, end) = syntax::request_pieces(text);
    end?;
    let has_blank = pieces.iter().any(
        |piece| matches!(piece, RequestPiece::Text(text) if text.contains(|c: char| c.is_whitespace() || c.is_control())),
    );
    if !has_blank {
        return Ok(());
    }
    let is_version = text.ends_with(" HTTP/1.1") || text.ends_with(" HTTP/1.0");
    Err(expected("a blank").hint(if is_version { "leave out the protocol version" } else { "write a space as `%20`" }))
}

/// Checks the name of a header of a response.
pub(crate) fn token(text: &str) -> Result<(), Problem> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if text.is_empty() || !text.bytes().all(is_token) {
        return Err(Problem::new(format!("expected the name of a header, found \"{}\"", shortened(text))));
    }
    Ok(())
}

/// Checks the name of a header to send.
pub(crate) fn header_name(text: &str) -> Result<(), Problem> {
    token(text)?;
    match text.to_ascii_lowercase().as_str() {
        "content-length" | "transfer-encoding" => {
            Err(Problem::new(format!("the header `{text}` is set by Narrows from the body")).hint("leave it out"))
        }
        _ => Ok(()),
    }
}

/// Where in a request a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Plain,
    Json,
}

/// Builds a request from its checked part of the file. `host` is the value of its `Host` header.
pub(crate) fn build(at: At<'_>, host: &str, drawn: &RequestNames<'_>, report: &mut Report) -> Option<RequestTemplate> {
    if let Some(text) = at.text() {
        // A line that is no request may still draw from data that nobody describes.
        let (_, rest) = text.split_once(' ')?;
        let path = template(at, rest.trim_start_matches(' '), Part::Plain, drawn, report);
        let (method, _) = line(text).ok()?;
        return Some(RequestTemplate {
            method: method.into(),
            path: path?,
            headers: Vec::new(),
            body: None,
            host: host.into(),
        });
    }
    let path = at.get(&PATH).and_then(|path| template(path, path.text()?, Part::Plain, drawn, report));
    let mut headers = headers(at, drawn, report);
    let body = body(at, drawn, report);
    let has_type = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if at.has(&JSON) && !has_type {
        headers.push(("Content-Type".to_owned(), Template::text("application/json")));
    }
    let method = at.read(&METHOD)?.to_owned();
    Some(RequestTemplate { method, path: path?, headers, body, host: host.into() })
}

fn headers(at: At<'_>, drawn: &RequestNames<'_>, report: &mut Report) -> Vec<(String, Template)> {
    let Some(at) = at.get(&HEADERS) else { return Vec::new() };
    let mut headers = Vec::new();
    for (name, value) in at.entries() {
        let Some(text) = value.text() else { continue };
        if text.contains(|c: char| c.is_control() && c != '\t') {
            report.add(value.place(), value.path(), Problem::new("a control character, which headers cannot hold"));
        } else if let Some(template) = template(value, text, Part::Plain, drawn, report) {
            headers.push((name.to_owned(), template));
        }
    }
    headers
}

fn body(at: At<'_>, drawn: &RequestNames<'_>, report: &mut Report) -> Option<Template> {
    if let Some(body) = at.get(&BODY) {
        return template(body, body.text()?, Part::Plain, drawn, report);
    }
    let json = at.get(&JSON)?;
    template(json, &to_json(json.node), Part::Json, drawn, report)
}

/// A part of the file as JSON, keys in their order. Text that was put together with `${…}` stays text.
pub(crate) fn to_json(node: &Node) -> String {
    match &node.form {
        Form::List(items) => format!("[{}]", joined(items.iter().map(to_json))),
        Form::Map(entries) => {
            let entries = entries.iter().map(|entry| format!("{}:{}", json_text(&entry.key), to_json(&entry.value)));
            format!("{{{}}}", joined(entries))
        }
        Form::Scalar(scalar) => match scalar.origin {
            Origin::Null => "null".to_owned(),
            Origin::Boolean => scalar.text.to_ascii_lowercase(),
            Origin::Integer => integer(&scalar.text).to_string(),
            Origin::Number => Json::from(scalar.text.parse::<f64>().unwrap_or_default()).to_string(),
            Origin::String | Origin::Bound | Origin::Broken => json_text(&scalar.text),
        },
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

fn json_text(text: &str) -> String {
    Json::from(text).to_string()
}

fn integer(text: &str) -> i128 {
    let radix = |prefix, radix| text.strip_prefix(prefix).and_then(|digits| i128::from_str_radix(digits, radix).ok());
    radix("0x", 16).or_else(|| radix("0o", 8)).or_else(|| text.parse().ok()).unwrap_or_default()
}

fn template(at: At<'_>, text: &str, part: Part, drawn: &RequestNames<'_>, report: &mut Report) -> Option<Template> {
    let mut add = |problem| report.add(at.place(), at.path(), problem);
    let (pieces, end) = syntax::request_pieces(text);
    let mut segments = Vec::new();
    let mut is_whole = end.map_err(&mut add).is_ok();
    for piece in pieces {
        match segment(piece, part, drawn) {
            Ok(Some(segment)) => segments.push(segment),
            Ok(None) => is_whole = false,
            Err(problem) => {
                is_whole = false;
                add(problem);
            }
        }
    }
    is_whole.then_some(Template { segments })
}

/// `None` if the source has an error that was reported already.
fn segment(piece: RequestPiece<'_>, part: Part, drawn: &RequestNames<'_>) -> Result<Option<Segment>, Problem> {
    match piece {
        RequestPiece::Text(text) => Ok(Some(Segment::Text(text.into_owned()))),
        RequestPiece::Field(name, column) => {
            let segment = drawn.find(name, column)?;
            if let (Part::Json, Some(Segment::Field { source, column })) = (part, &segment) {
                drawn.sources.check_for_json(*source, *column)?;
            }
            Ok(segment)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_method_and_a_path() {
        assert_eq!(line("GET  /a?x={{ user.name }}").unwrap(), ("GET", "/a?x={{ user.name }}"));
        let cases = [
            (
                "/orders",
                "expected a request such as `GET /orders`, found \"/orders\"",
                Some("write the method first: `GET /orders`"),
            ),
            ("get /", "expected a request such as `GET /orders`, found \"get /\"", Some("write `GET`")),
            ("FETCH /", "expected a request such as `GET /orders`, found \"FETCH /\"", None),
            ("GET", "expected a request such as `GET /orders`, found \"GET\"", None),
            ("GET orders", "expected a path that begins with `/`, found \"orders\"", None),
            ("GET / HTTP/1.1", "a blank in the path \"/ HTTP/1.1\"", Some("leave out the protocol version")),
            ("GET /a b", "a blank in the path \"/a b\"", Some("write a space as `%20`")),
            ("GET /{{a", "`{{` without `}}` in \"{{a\"", Some("`{{{{` is a plain `{{`")),
        ];
        for (text, message, hint) in cases {
            let problem = line(text).unwrap_err();
            assert_eq!((problem.message.as_str(), problem.hint.as_deref()), (message, hint), "{text}");
        }
    }

    #[test]
    fn headers_that_frame_the_body_are_refused() {
        assert!(header_name("X-Tenant").is_ok());
        assert!(header_name("Content-length").unwrap_err().message.contains("set by Narrows"));
        assert_eq!(header_name("a b").unwrap_err().message, "expected the name of a header, found \"a b\"");
    }
}
