//! Walks an export request record by record, without decoding it as a whole.
//!
//! The three requests have one shape on the wire: resources (field 1), each with a resource (1) and scopes (2), each
//! with a scope (1) and records (2). Walking it by hand keeps memory proportional to what is kept: decoding a whole
//! request of two-byte records would make thousands of times its size of it. It also knows the place of a mistake.
//!
//! Records themselves, resources and scopes are decoded by `prost`.

use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use prost::Message;

use super::convert::Origin;

/// The largest record, resource or scope, in bytes.
pub(super) const RECORD_BYTES_MAX: usize = 4 << 20;
/// The most resources and scopes of one request.
const GROUPS_MAX: usize = 100_000;

/// Why a request was not understood, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct Malformed {
    /// Such as `resource_spans[0].scope_spans[2].spans[17]`.
    pub place: String,
    /// What is wrong there.
    pub what: String,
}

/// The names of the three levels of a kind of request, for the place of a mistake.
#[derive(Debug, Clone, Copy)]
pub(super) struct Levels(pub(super) [&'static str; 3]);

pub(super) const TRACES: Levels = Levels(["resource_spans", "scope_spans", "spans"]);
pub(super) const METRICS: Levels = Levels(["resource_metrics", "scope_metrics", "metrics"]);
pub(super) const LOGS: Levels = Levels(["resource_logs", "scope_logs", "log_records"]);

/// Calls `visit` for each record with where it comes from; what `visit` complains of ends the walk.
pub(super) fn each_record(
    levels: Levels,
    request: &[u8],
    mut visit: impl FnMut(&Origin, &[u8]) -> Result<(), String>,
) -> Result<(), Malformed> {
    let [resources, scopes, records] = levels.0;
    let root = Place(String::new());
    let mut groups = 0;
    for (r, of_resource) in root.messages(request, 1).enumerate() {
        let of_resource = of_resource?;
        let place = root.at(resources, r);
        let mut origin = Origin::of_resource(place.merged(of_resource)?);
        groups = place.counted(groups)?;
        for (s, of_scope) in place.messages(of_resource, 2).enumerate() {
            let of_scope = of_scope?;
            let place = place.at(scopes, s);
            let scope: InstrumentationScope = place.merged(of_scope)?;
            groups = place.counted(groups)?;
            origin.set_scope(scope.name);
            for (i, record) in place.messages(of_scope, 2).enumerate() {
                visit(&origin, record?).map_err(|what| place.at(records, i).malformed(what))?;
            }
        }
    }
    Ok(())
}

struct Place(String);

impl Place {
    fn at(&self, level: &str, index: usize) -> Place {
        let dot = if self.0.is_empty() { "" } else { "." };
        Place(format!("{}{dot}{level}[{index}]", self.0))
    }

    fn malformed(&self, what: impl Into<String>) -> Malformed {
        let place = if self.0.is_empty() { "request".to_owned() } else { self.0.clone() };
        Malformed { place, what: what.into() }
    }

    fn counted(&self, groups: usize) -> Result<usize, Malformed> {
        if groups < GROUPS_MAX {
            Ok(groups + 1)
        } else {
            Err(self.malformed(format!("more than {GROUPS_MAX} resources and scopes")))
        }
    }

    /// The bytes of each message in field `number`; ends after the first mistake.
    fn messages<'a>(&self, message: &'a [u8], number: u64) -> impl Iterator<Item = Result<&'a [u8], Malformed>> {
        let mut rest = message;
        std::iter::from_fn(move || {
            while !rest.is_empty() {
                match next_field(&mut rest) {
                    Ok((n, Some(bytes))) if n == number => return Some(Ok(bytes)),
                    Ok((n, None)) if n == number => {
                        rest = &[];
                        return Some(Err(self.malformed(format!("field {n} is not a message"))));
                    }
                    Ok(_) => {}
                    Err(what) => {
                        let offset = message.len() - rest.len();
                        rest = &[];
                        return Some(Err(self.malformed(format!("{what}, at or after byte {offset}"))));
                    }
                }
            }
            None
        })
    }

    /// The message in field 1, merged if it is there several times, as protobuf has it.
    fn merged<M: Message + Default>(&self, message: &[u8]) -> Result<M, Malformed> {
        let mut merged = M::default();
        for bytes in self.messages(message, 1) {
            let bytes = bytes?;
            if bytes.len() > RECORD_BYTES_MAX {
                return Err(self.malformed(format!("field 1 is larger than {RECORD_BYTES_MAX} bytes")));
            }
            merged.merge(bytes).map_err(|error| self.malformed(error.to_string()))?;
        }
        Ok(merged)
    }
}

/// Takes one field off the front: its number, and its bytes if it is length-delimited.
fn next_field<'a>(rest: &mut &'a [u8]) -> Result<(u64, Option<&'a [u8]>), &'static str> {
    let key = varint(rest)?;
    let number = key >> 3;
    if number == 0 {
        return Err("a field has the number 0");
    }
    let length = match key & 7 {
        0 => {
            varint(rest)?;
            return Ok((number, None));
        }
        1 => 8,
        2 => varint(rest)?,
        5 => 4,
        _ => return Err("a field has an unknown wire type"),
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= rest.len()).ok_or("a field is cut short")?;
    let (bytes, after) = rest.split_at(length);
    *rest = after;
    Ok((number, (key & 7 == 2).then_some(bytes)))
}

fn varint(rest: &mut &[u8]) -> Result<u64, &'static str> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or("a number is cut short")?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number is longer than 64 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(request: &[u8]) -> Result<Vec<(String, Vec<u8>)>, Malformed> {
        let mut seen = Vec::new();
        each_record(TRACES, request, |origin, record| {
            seen.push((origin.scope.clone(), record.to_vec()));
            if record == b"!" { Err("not a span".to_owned()) } else { Ok(()) }
        })?;
        Ok(seen)
    }

    /// A length-delimited field.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
    }

    #[test]
    fn records_come_with_their_scope_wherever_it_stands() {
        let scope = field(1, &field(1, b"lib"));
        let of_scope = [field(2, b"a"), scope, field(2, b"b"), field(3, b"schema")].concat();
        let request = field(1, &[field(2, &of_scope), field(2, &field(2, b"c"))].concat());
        let expected = [("lib", b"a"), ("lib", b"b"), ("", b"c")].map(|(s, r)| (s.to_owned(), r.to_vec()));
        assert_eq!(walk(&request), Ok(expected.to_vec()));
        assert_eq!(walk(&[]), Ok(Vec::new()));
    }

    #[test]
    fn groups_are_bounded() {
        let empty_resources = |count| field(1, &[]).repeat(count);
        assert_eq!(walk(&empty_resources(GROUPS_MAX)), Ok(Vec::new()));
        assert!(walk(&empty_resources(GROUPS_MAX + 1)).is_err());
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let in_scope = |record: &[u8]| field(1, &field(2, record));
        let cases = [
            (
                in_scope(&[field(2, b"ok"), field(2, b"!")].concat()),
                "resource_spans[0].scope_spans[0].spans[1]: not a span",
            ),
            (in_scope(&[0x12, 9]), "resource_spans[0].scope_spans[0]: a field is cut short, at or after byte 2"),
            (vec![0x0a], "request: a number is cut short, at or after byte 1"),
            (vec![0x0b], "request: a field has an unknown wire type, at or after byte 1"),
            (vec![0x02, 0], "request: a field has the number 0, at or after byte 1"),
            (vec![0x08, 1], "request: field 1 is not a message"),
            (vec![0xff; 11], "request: a number is longer than 64 bits, at or after byte 10"),
        ];
        for (request, expected) in cases {
            assert_eq!(walk(&request).unwrap_err().to_string(), expected);
        }
    }
}
