//! Walks an export request in protobuf, record by record.
//!
//! On the wire the three requests have one shape: resources (field 1), each with a resource (1) and scopes (2), each
//! with a scope (1) and records (2). Records themselves, resources and scopes are decoded by `prost`.

use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use prost::Message;

use super::convert::Origin;
use super::request::{Levels, MalformedRequest, RECORD_BYTES_MAX, Record, RecordPath};

/// Calls `visit` for each record with where it comes from; what `visit` complains of ends the walk.
pub(super) fn each_record(
    levels: Levels,
    request: &[u8],
    mut visit: impl FnMut(&Origin, Record<'_>) -> Result<(), String>,
) -> Result<(), MalformedRequest> {
    let [resources, scopes, records] = levels.protobuf;
    let root = RecordPath::root();
    let mut groups = 0;
    for (r, of_resource) in messages(&root, request, 1).enumerate() {
        let of_resource = of_resource?;
        let place = root.at(resources, r);
        let mut origin = Origin::of_resource(merged(&place, of_resource)?);
        groups = place.counted(groups)?;
        for (s, of_scope) in messages(&place, of_resource, 2).enumerate() {
            let of_scope = of_scope?;
            let place = place.at(scopes, s);
            let scope: InstrumentationScope = merged(&place, of_scope)?;
            groups = place.counted(groups)?;
            origin.set_scope(scope.name);
            for (i, record) in messages(&place, of_scope, 2).enumerate() {
                visit(&origin, Record::Protobuf(record?)).map_err(|what| place.at(records, i).malformed(what))?;
            }
        }
    }
    Ok(())
}

/// The bytes of each message in field `number`; ends after the first mistake.
fn messages<'a>(
    place: &RecordPath,
    message: &'a [u8],
    number: u64,
) -> impl Iterator<Item = Result<&'a [u8], MalformedRequest>> {
    let mut rest = message;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            match next_field(&mut rest) {
                Ok((n, Content::Bytes(bytes))) if n == number => return Some(Ok(bytes)),
                Ok((n, _)) if n == number => {
                    rest = &[];
                    return Some(Err(place.malformed(format!("field {n} is not a message"))));
                }
                Ok(_) => {}
                Err(what) => {
                    let offset = message.len() - rest.len();
                    rest = &[];
                    return Some(Err(place.malformed(format!("{what}, at or after byte {offset}"))));
                }
            }
        }
        None
    })
}

/// The message in field 1, merged if it is there several times, as protobuf has it.
fn merged<M: Message + Default>(place: &RecordPath, message: &[u8]) -> Result<M, MalformedRequest> {
    let mut merged = M::default();
    let mut length = 0;
    for bytes in messages(place, message, 1) {
        let bytes = bytes?;
        length += bytes.len();
        if length > RECORD_BYTES_MAX {
            return Err(place.malformed(format!("field 1 is larger than {RECORD_BYTES_MAX} bytes")));
        }
        merged.merge(bytes).map_err(|error| place.malformed(error.to_string()))?;
    }
    Ok(merged)
}

/// Value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

/// Takes one field off the front: its number, and what stands in it.
#[inline(always)]
pub(super) fn next_field<'a>(rest: &mut &'a [u8]) -> Result<(u64, Content<'a>), &'static str> {
    // Nearly every field: a key of one byte, and content whose length has one byte.
    if let [key @ 0x08..0x80, length @ ..0x80, after @ ..] = *rest
        && key & 7 == 2
        && let Some((bytes, after)) = after.split_at_checked(usize::from(*length))
    {
        *rest = after;
        return Ok((u64::from(key >> 3), Content::Bytes(bytes)));
    }
    any_field(rest)
}

/// Takes any field off the front, as [`next_field`] does.
fn any_field<'a>(rest: &mut &'a [u8]) -> Result<(u64, Content<'a>), &'static str> {
    let key = varint(rest)?;
    let number = key >> 3;
    if number == 0 {
        return Err("a field has the number 0");
    }
    let length = match key & 7 {
        0 => return Ok((number, Content::Varint(varint(rest)?))),
        1 => 8,
        2 => varint(rest)?,
        5 => 4,
        _ => return Err("a field has an unknown wire type"),
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= rest.len()).ok_or("a field is cut short")?;
    let (bytes, after) = rest.split_at(length);
    *rest = after;
    let content = match (key & 7, <[u8; 8]>::try_from(bytes)) {
        (1, Ok(bytes)) => Content::Fixed64(u64::from_le_bytes(bytes)),
        (5, _) => Content::Fixed32,
        _ => Content::Bytes(bytes),
    };
    Ok((number, content))
}

#[inline]
fn varint(rest: &mut &[u8]) -> Result<u64, &'static str> {
    match rest.split_first() {
        // Nearly every key and length.
        Some((byte, after)) if *byte < 0x80 => {
            *rest = after;
            Ok(u64::from(*byte))
        }
        _ => long_varint(rest),
    }
}

fn long_varint(rest: &mut &[u8]) -> Result<u64, &'static str> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or("a number is cut short")?;
        *rest = after;
        if shift == 63 && *byte > 1 {
            break;
        }
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
    use crate::otlp::request::{GROUPS_MAX, TRACES};

    fn walk(request: &[u8]) -> Result<Vec<(String, Vec<u8>)>, MalformedRequest> {
        let mut seen = Vec::new();
        each_record(TRACES, request, |origin, record| {
            let Record::Protobuf(record) = record else { return Err("not protobuf".to_owned()) };
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
    fn the_parts_of_a_resource_are_bounded_together() {
        /// Field 1 with a length of four bytes.
        fn long(content: &[u8]) -> Vec<u8> {
            let [l0, l1, l2, l3] = [0, 7, 14, 21].map(|shift| (content.len() >> shift) as u8);
            [&[0x0a, l0 | 0x80, l1 | 0x80, l2 | 0x80, l3], content].concat()
        }
        // A number of a resource that is not kept, over and over.
        let half = long(&[0x10, 0].repeat(RECORD_BYTES_MAX / 4));
        assert_eq!(walk(&long(&half.repeat(2))), Ok(Vec::new()));
        let error = walk(&long(&half.repeat(3))).unwrap_err();
        assert_eq!(error.to_string(), format!("resource_spans[0]: field 1 is larger than {RECORD_BYTES_MAX} bytes"));
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
            ([&[0xff; 9][..], &[2]].concat(), "request: a number is longer than 64 bits, at or after byte 10"),
        ];
        for (request, expected) in cases {
            assert_eq!(walk(&request).unwrap_err().to_string(), expected);
        }
    }
}
