//! Values kept of a response, compiled from the plan with the words for those that cannot be found.

use std::sync::Arc;

use narrows_model::load::{Extract, Place};
use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;

use super::capture::ResponseParts;
use super::checks::{check_pointer, shown, unreadable_body};
use super::response::Response;
use super::{Failure, VARIABLE_BYTES_MAX, VARIABLES_MAX};
use crate::recorder::Cause;

/// The largest compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct CompiledExtract {
    /// The variable's index.
    pub(super) variable: usize,
    name: String,
    place: CompiledPlace,
    missing: Arc<str>,
}

#[derive(Debug)]
enum CompiledPlace {
    Json(String),
    Header(String),
    Regex(Regex),
}

impl CompiledExtract {
    /// # Errors
    /// Fault of the extraction.
    pub(super) fn compile(extract: &Extract) -> Result<Self, String> {
        let problem = |problem: String| format!("extract {}: {problem}", extract.name);
        if extract.variable >= VARIABLES_MAX {
            return Err(problem(format!("variable {}, expected less than {VARIABLES_MAX}", extract.variable)));
        }
        let (place, words) = match &extract.from {
            Place::Json(pointer) => {
                check_pointer(pointer).map_err(problem)?;
                (CompiledPlace::Json(pointer.clone()), format!("JSON has no value at {:?}", shown(pointer)))
            }
            Place::Header(name) => (CompiledPlace::Header(name.clone()), format!("header {} is missing", shown(name))),
            Place::Regex(pattern) => {
                let regex = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build();
                let regex = regex.map_err(|error| problem(format!("{pattern:?} is not a pattern: {error}")))?;
                (CompiledPlace::Regex(regex), format!("body does not match {:?}", shown(pattern)))
            }
        };
        let missing = format!("no value for {}: {words}", extract.name).into();
        Ok(Self { variable: extract.variable, name: extract.name.clone(), place, missing })
    }

    /// Parts of a response that it needs.
    pub(super) fn wanted(&self) -> ResponseParts {
        match self.place {
            CompiledPlace::Header(_) => ResponseParts::Head,
            CompiledPlace::Json(_) | CompiledPlace::Regex(_) => ResponseParts::All,
        }
    }

    /// Puts the value into `out`, in place of what was there.
    ///
    /// # Errors
    /// When there is none, or it is too long.
    pub(super) fn take(&self, response: &mut Response<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        out.clear();
        let found = match &self.place {
            CompiledPlace::Header(name) => Ok(response.headers(name).next().map(|value| out.extend_from_slice(value))),
            CompiledPlace::Json(pointer) => {
                response.json().map(|json| json.pointer(pointer).map(|value| append_json(value, out)))
            }
            CompiledPlace::Regex(regex) => response.body().map(|body| {
                let found = regex.captures(body)?;
                let group = if regex.captures_len() > 1 { found.get(1) } else { found.get(0) };
                group.map(|group| out.extend_from_slice(group.as_bytes()))
            }),
        };
        match found {
            Ok(Some(())) if out.len() <= VARIABLE_BYTES_MAX => Ok(()),
            Ok(Some(())) => {
                *out = Vec::new();
                Err(Failure::check(Cause::Said(format!("value for {} is longer than 64 KiB", self.name).into())))
            }
            Ok(None) => Err(Failure::check(Cause::Said(self.missing.clone()))),
            Err(unreadable) => Err(Failure::check(unreadable_body(&format!("no value for {}", self.name), unreadable))),
        }
    }
}

fn append_json(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::String(text) => out.extend_from_slice(text.as_bytes()),
        other => out.extend_from_slice(other.to_string().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::response::Decoder;
    use crate::session::response::tests::captured;

    fn taken(from: Place, body: &str) -> Result<String, String> {
        let extract = CompiledExtract::compile(&Extract { variable: 0, name: "token".into(), from })?;
        let capture = captured("X-Token:  abc \r\nX-Token: second\r\n", body.as_bytes());
        let mut out = b"from before".to_vec();
        let taken = extract.take(&mut Response::new(200, &capture, &mut Decoder::default()), &mut out);
        taken.map_err(|failure| failure.cause.unwrap().to_string()).map(|()| String::from_utf8(out).unwrap())
    }

    fn json(pointer: &str) -> Place {
        Place::Json(pointer.into())
    }

    fn regex(pattern: &str) -> Place {
        Place::Regex(pattern.into())
    }

    #[test]
    fn a_value_is_found_at_each_place() {
        let body = r#"{"a":["x \"y\"",7,1.5,true,null,{"b":[]}],"ü":""}"#;
        let cases = [
            (json("/a/0"), "x \"y\""),
            (json("/a/1"), "7"),
            (json("/a/2"), "1.5"),
            (json("/a/3"), "true"),
            (json("/a/4"), "null"),
            (json("/a/5"), "{\"b\":[]}"),
            (json("/ü"), ""),
            (Place::Header("x-token".into()), "abc"),
            (regex(r#""a":\["(x)"#), "x"),
            (regex(r"\d+\.\d+"), "1.5"),
            (regex(r"(?:true),(\w+)"), "null"),
        ];
        for (place, expected) in cases {
            assert_eq!(taken(place.clone(), body).as_deref(), Ok(expected), "{place:?}");
        }
    }

    #[test]
    fn what_cannot_be_found_is_named() {
        let long = format!("\"{}\"", "x".repeat(VARIABLE_BYTES_MAX + 1));
        let cases = [
            (json("/b"), "{}", "no value for token: JSON has no value at \"/b\""),
            (json("/b"), "<html>", "no value for token: body is not JSON"),
            (json(""), &long, "value for token is longer than 64 KiB"),
            (Place::Header("x-b".into()), "", "no value for token: header x-b is missing"),
            (regex("b(c)"), "abd", "no value for token: body does not match \"b(c)\""),
            (regex("b(c)?d"), "abd", "no value for token: body does not match \"b(c)?d\""),
        ];
        for (place, body, expected) in cases {
            assert_eq!(taken(place.clone(), body).unwrap_err(), expected, "{place:?}");
        }
    }

    #[test]
    fn mistakes_name_the_variable_and_the_pattern() {
        let error = taken(regex("(x"), "").unwrap_err();
        assert!(error.starts_with("extract token: \"(x\" is not a pattern: "), "{error}");
        assert!(taken(regex("(a{1000}){1000}"), "").is_err());
        let expected = "extract token: \"b\" is not a JSON pointer, expected one such as \"/items/0/id\"";
        assert_eq!(taken(json("b"), "").unwrap_err(), expected);
    }
}
