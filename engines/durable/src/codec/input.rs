//! Plain values read from untrusted bytes.

use bytes::Bytes;

use super::{BlobRef, CodecError, Fetch};
use crate::event::Caller;
use crate::failure::{Failure, FailureKind};
use crate::ids::{EntityId, INSTANCE_ID_BYTES_MAX, InstanceId, NAME_BYTES_MAX, Name, PartitionId, Time};
use crate::payload::{PAYLOAD_BYTES_MAX, Payload};

/// A place in bytes, and what stands from there on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes have been read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// An error about the value that begins at `at`.
    pub(super) fn wrong<T>(at: usize, what: impl Into<String>) -> Result<T, CodecError> {
        Err(CodecError { at, what: what.into() })
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn byte(&mut self) -> Result<u8, CodecError> {
        let Some(byte) = self.bytes.get(self.at) else { return Self::wrong(self.at, "the end, expected a byte") };
        self.at += 1;
        Ok(*byte)
    }

    pub(super) fn number(&mut self) -> Result<u64, CodecError> {
        let began = self.at;
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Self::wrong(began, "a number of more than 64 bits")
    }

    pub(super) fn small<T: TryFrom<u64>>(&mut self) -> Result<T, CodecError> {
        let began = self.at;
        let value = self.number()?;
        let bits = 8 * size_of::<T>();
        T::try_from(value).or_else(|_| Self::wrong(began, format!("{value}, expected a number of {bits} bits")))
    }

    /// A length, or a count of things of at least a byte each: at most what is left, and at most `most`.
    fn length(&mut self, most: usize, what: &str) -> Result<usize, CodecError> {
        let began = self.at;
        let length = self.number()?;
        let limit = most.min(self.left());
        match usize::try_from(length) {
            Ok(length) if length <= limit => Ok(length),
            _ => Self::wrong(began, format!("{what} of {length}, expected at most {limit}")),
        }
    }

    pub(super) fn slice(&mut self) -> Result<&'a [u8], CodecError> {
        let length = self.length(usize::MAX, "a length")?;
        Ok(self.take(length))
    }

    /// The caller has seen that they are there.
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, _) = self.bytes[self.at..].split_at(length);
        self.at += length;
        taken
    }

    pub(super) fn text(&mut self, most: usize) -> Result<&'a str, CodecError> {
        let length = self.length(most, "a text")?;
        let began = self.at;
        let bytes = self.take(length);
        std::str::from_utf8(bytes)
            .or_else(|error| Self::wrong(began + error.valid_up_to(), "a byte that is no UTF-8 text"))
    }

    pub(super) fn string(&mut self) -> Result<String, CodecError> {
        Ok(self.text(usize::MAX)?.to_owned())
    }

    pub(super) fn name(&mut self) -> Result<Name, CodecError> {
        Ok(Name::from(self.text(NAME_BYTES_MAX)?))
    }

    pub(super) fn instance_text(&mut self) -> Result<&'a str, CodecError> {
        let began = self.at;
        let id = self.text(INSTANCE_ID_BYTES_MAX)?;
        if id.is_empty() {
            return Self::wrong(began, "an empty identifier");
        }
        Ok(id)
    }

    pub(super) fn instance(&mut self) -> Result<InstanceId, CodecError> {
        Ok(InstanceId::trusted(self.instance_text()?))
    }

    pub(super) fn entity(&mut self) -> Result<EntityId, CodecError> {
        let began = self.at;
        EntityId::try_from(self.instance()?).or_else(|error| Self::wrong(began, error.to_string()))
    }

    pub(super) fn entities(&mut self) -> Result<Vec<EntityId>, CodecError> {
        self.list(Self::entity)
    }

    pub(super) fn list<T>(
        &mut self,
        mut get: impl FnMut(&mut Self) -> Result<T, CodecError>,
    ) -> Result<Vec<T>, CodecError> {
        let count = self.length(usize::MAX, "a list")?;
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(get(self)?);
        }
        Ok(all)
    }

    pub(super) fn caller(&mut self) -> Result<Caller, CodecError> {
        Ok(Caller { instance: self.instance()?, generation: self.number()?, id: self.small()? })
    }

    pub(super) fn time(&mut self) -> Result<Time, CodecError> {
        Ok(Time(self.number()?))
    }

    pub(super) fn flag(&mut self) -> Result<bool, CodecError> {
        let began = self.at;
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Self::wrong(began, format!("{other}, expected 0 or 1")),
        }
    }

    pub(super) fn optional<T>(
        &mut self,
        get: impl FnOnce(&mut Self) -> Result<T, CodecError>,
    ) -> Result<Option<T>, CodecError> {
        if self.flag()? { get(self).map(Some) } else { Ok(None) }
    }

    pub(super) fn payload(&mut self, fetch: &mut dyn Fetch) -> Result<Payload, CodecError> {
        let began = self.at;
        let tag = self.number()?;
        if tag & 1 == 1 {
            return self.blob(began, tag, fetch);
        }
        let limit = PAYLOAD_BYTES_MAX.min(self.left());
        match usize::try_from(tag >> 1) {
            Ok(length) if length <= limit => Ok(Payload::from_bytes(Bytes::copy_from_slice(self.take(length)))),
            _ => Self::wrong(began, format!("a payload of {} bytes, expected at most {limit}", tag >> 1)),
        }
    }

    fn blob(&mut self, began: usize, tag: u64, fetch: &mut dyn Fetch) -> Result<Payload, CodecError> {
        if tag != 1 {
            return Self::wrong(began, format!("{tag}, expected 1 or an even number before a payload"));
        }
        let blob = BlobRef { partition: PartitionId(self.small()?), number: self.number()?, bytes: self.number()? };
        if blob.bytes > PAYLOAD_BYTES_MAX as u64 {
            return Self::wrong(
                began,
                format!("a payload of {} bytes, expected at most {PAYLOAD_BYTES_MAX}", blob.bytes),
            );
        }
        fetch.fetch(blob).map_err(|error| CodecError { at: began, what: error.what })
    }

    pub(super) fn failure(&mut self, fetch: &mut dyn Fetch) -> Result<Failure, CodecError> {
        let began = self.at;
        let number = self.byte()?;
        let Some(kind) = FailureKind::ALL.get(usize::from(number)) else {
            return Self::wrong(began, format!("{number}, expected the kind of a failure"));
        };
        let message = self.string()?;
        let details = self.optional(|input| input.payload(fetch))?;
        Ok(Failure { kind: *kind, message, details })
    }

    pub(super) fn result(&mut self, fetch: &mut dyn Fetch) -> Result<Result<Payload, Failure>, CodecError> {
        if self.flag()? { self.failure(fetch).map(Err) } else { self.payload(fetch).map(Ok) }
    }
}
