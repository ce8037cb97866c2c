//! Unpacks spans. Whatever the bytes are, it is spans or a mistake.

use opentelemetry_proto::tonic::trace::v1 as otlp;
use serde_json::Value;

use super::super::plain::{Plain, Scalar};
use super::super::spans::{Whose, unpacked};
use super::*;

/// Calls `take` for each span of [`PackedSpans::bytes`].
///
/// # Errors
/// When the bytes are not packed spans; those before the mistake were taken.
pub(crate) fn unpack(packed: &[u8], mut take: impl FnMut(Span)) -> Result<(), NotPacked> {
    let mut rest = packed;
    let read = each(&mut rest, &mut take);
    read.map_err(|what| NotPacked { what, offset: packed.len() - rest.len(), length: packed.len() })
}

fn each(rest: &mut &[u8], take: &mut impl FnMut(Span)) -> Result<(), &'static str> {
    if first(rest) != Ok([FORM]) {
        return Err("packed in a form that is not known");
    }
    let (mut whose, mut weight, mut keys) = (None, 0.0, Vec::new());
    while let Ok([mark]) = first(rest) {
        match mark {
            ORIGIN => whose = Some(origin(rest)?),
            WEIGHT => weight = f64::from_le_bytes(first(rest)?),
            SPAN => {
                let whose = whose.ok_or("a span without an origin")?;
                let span = span(rest, &mut keys)?;
                take(unpacked(whose, weight, span).ok_or("a span that makes no sense")?);
            }
            _ => return Err("an unknown mark"),
        }
    }
    Ok(())
}

fn origin<'a>(rest: &mut &'a [u8]) -> Result<Whose<'a>, &'static str> {
    let (service, scope) = (text(rest)?, text(rest)?);
    let replica = u64::from_le_bytes(first(rest)?).checked_sub(1);
    let replica = replica.map(u32::try_from).transpose().map_err(|_| "a replica beyond all numbers")?;
    Ok(Whose { service, scope, replica })
}

fn span<'a>(rest: &mut &'a [u8], keys: &mut Vec<&'a str>) -> Result<Plain, &'static str> {
    let mut span = otlp::Span {
        trace_id: first::<16>(rest)?.to_vec(),
        span_id: first::<8>(rest)?.to_vec(),
        parent_span_id: counted(rest)?.to_vec(),
        start_time_unix_nano: u64::from_le_bytes(first(rest)?),
        end_time_unix_nano: u64::from_le_bytes(first(rest)?),
        ..otlp::Span::default()
    };
    let [kind, code] = first(rest)?;
    span.kind = i32::from(kind);
    span.name = text(rest)?.to_owned();
    span.status = Some(otlp::Status { code: i32::from(code), message: text(rest)?.to_owned() });
    let count = u16::from_le_bytes(first(rest)?);
    // An attribute has two bytes at least, so a number beyond what is there makes no room.
    let mut attributes = Vec::with_capacity(usize::from(count).min(rest.len() / 2));
    for _ in 0..count {
        attributes.push((key(rest, keys)?.to_owned(), value(rest)?));
    }
    Ok(Plain { span, attributes })
}

fn key<'a>(rest: &mut &'a [u8], keys: &mut Vec<&'a str>) -> Result<&'a str, &'static str> {
    let [number] = first(rest)?;
    let at = usize::from(number);
    if at == keys.len() && at < KEYS_MAX {
        keys.push(text(rest)?);
    }
    keys.get(at).copied().ok_or("a key that was not there before")
}

fn value(rest: &mut &[u8]) -> Result<Value, &'static str> {
    let value = match first(rest)? {
        [TEXT] => Scalar::Text(text(rest)?),
        [FALSE] => Scalar::Flag(false),
        [TRUE] => Scalar::Flag(true),
        [INT] => Scalar::Int(i64::from_le_bytes(first(rest)?)),
        [DOUBLE] => Scalar::Double(f64::from_le_bytes(first(rest)?)),
        _ => return Err("an unknown kind of value"),
    };
    Ok(value.json())
}

fn first<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], &'static str> {
    let (first, after) = rest.split_first_chunk().ok_or("something is cut short")?;
    *rest = after;
    Ok(*first)
}

fn counted<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], &'static str> {
    let length = usize::from(u16::from_le_bytes(first(rest)?));
    let (bytes, after) = rest.split_at_checked(length).ok_or("something is cut short")?;
    *rest = after;
    Ok(bytes)
}

fn text<'a>(rest: &mut &'a [u8]) -> Result<&'a str, &'static str> {
    str::from_utf8(counted(rest)?).map_err(|_| "a text that is not UTF-8")
}
