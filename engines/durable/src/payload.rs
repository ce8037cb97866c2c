//! Payload between user code: a value as bytes.
//!
//! The engine never looks inside. The typed surface writes JSON, so that a history can be read by people and other
//! programs; this file is the only place that knows so.

use std::fmt;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::{Failure, FailureKind};

/// The largest value, in bytes: 256 MiB.
pub const PAYLOAD_BYTES_MAX: usize = 256 << 20;

/// A value as bytes. Cloning counts up a reference.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Payload(Bytes);

impl Payload {
    /// The empty payload, of 0 bytes.
    pub const EMPTY: Self = Self(Bytes::new());

    /// Takes bytes as they are.
    #[must_use]
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// Writes a value as JSON.
    ///
    /// # Errors
    /// A failure of kind [`FailureKind::Payload`] if the value cannot be written or is larger than
    /// [`PAYLOAD_BYTES_MAX`].
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, Failure> {
        let bytes = serde_json::to_vec(value)
            .map_err(|error| Failure::new(FailureKind::Payload, format!("cannot write {}: {error}", short::<T>())))?;
        if bytes.len() > PAYLOAD_BYTES_MAX {
            let text = format!("{} is {} bytes, expected at most {PAYLOAD_BYTES_MAX}", short::<T>(), bytes.len());
            return Err(Failure::new(FailureKind::Payload, text));
        }
        Ok(Self(Bytes::from(bytes)))
    }

    /// Reads a value from JSON. No bytes at all read as `null`.
    ///
    /// # Errors
    /// A failure of kind [`FailureKind::Payload`] that names the type and where the JSON does not fit it.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let bytes: &[u8] = if self.0.is_empty() { b"null" } else { &self.0 };
        serde_json::from_slice(bytes)
            .map_err(|error| Failure::new(FailureKind::Payload, format!("cannot read {}: {error}", short::<T>())))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// How many bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn short<T: ?Sized>() -> &'static str {
    std::any::type_name::<T>()
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 200;
        let text = String::from_utf8_lossy(&self.0[..self.0.len().min(SHOWN)]);
        if self.0.len() > SHOWN { write!(f, "{text}… ({} bytes)", self.0.len()) } else { f.write_str(&text) }
    }
}
