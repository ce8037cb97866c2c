//! Plain values written behind one another.

use super::Spill;
use crate::event::Caller;
use crate::failure::Failure;
use crate::ids::{EntityId, Time};
use crate::payload::Payload;

/// Seven bits a byte, the lowest first; the high bit says that more follow.
pub(super) fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// In line: twice its length, then its bytes. Out of line: 1, then where.
pub(super) fn payload(out: &mut Vec<u8>, payload: &Payload, spill: &mut dyn Spill) {
    match spill.spill(payload) {
        Some(blob) => {
            out.push(1);
            number(out, u64::from(blob.partition.0));
            number(out, blob.number);
            number(out, blob.bytes);
        }
        None => {
            number(out, (payload.len() as u64) << 1);
            out.extend_from_slice(payload.as_bytes());
        }
    }
}

pub(super) fn failure(out: &mut Vec<u8>, failure: &Failure, spill: &mut dyn Spill) {
    out.push(failure.kind as u8);
    text(out, &failure.message);
    optional(out, failure.details.as_ref(), |out, details| payload(out, details, spill));
}

pub(super) fn result(out: &mut Vec<u8>, result: &Result<Payload, Failure>, spill: &mut dyn Spill) {
    match result {
        Ok(value) => {
            out.push(0);
            payload(out, value, spill);
        }
        Err(error) => {
            out.push(1);
            failure(out, error, spill);
        }
    }
}

pub(super) fn caller(out: &mut Vec<u8>, caller: &Caller) {
    text(out, caller.instance.as_str());
    number(out, caller.generation);
    number(out, u64::from(caller.id));
}

pub(super) fn entities(out: &mut Vec<u8>, entities: &[EntityId]) {
    number(out, entities.len() as u64);
    for entity in entities {
        text(out, entity.instance().as_str());
    }
}

pub(super) fn time(out: &mut Vec<u8>, time: &Time) {
    number(out, time.0);
}

/// 0, or 1 and the value.
pub(super) fn optional<T>(out: &mut Vec<u8>, value: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    match value {
        None => out.push(0),
        Some(value) => {
            out.push(1);
            put(out, value);
        }
    }
}
