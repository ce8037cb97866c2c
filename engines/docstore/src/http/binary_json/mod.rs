//! Cosmos DB's binary JSON, between the transport and everything else: a body in it becomes JSON text before it is read, and a
//! document becomes binary for a client that accepts nothing else.
//!
//! A buffer is [`PREAMBLE`] and one value. A value begins with a byte that says what it is, numbers and lengths are
//! little-endian, and places within a buffer count from the preamble. No JSON text begins with the preamble, so the first byte
//! tells the two apart. The decoder reads every form that `JsonBinaryEncoding` of azure-cosmos-dotnet-v3 defines for JSON,
//! except for strings of a dictionary that is agreed on elsewhere; the encoder writes a few of them.

mod cursor;
mod encode;
mod read;
mod strings;
#[cfg(test)]
mod tests;

use std::fmt;

pub(super) use self::encode::encoded;
use self::read::Reader;

/// The first byte of every buffer.
const PREAMBLE: u8 = 0x80;
/// How deep arrays and objects may be nested, which is also the limit of JSON text.
const MAX_DEPTH: usize = 128;

/// Why a buffer is not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is not binary JSON from byte `at` on.
    Damaged { at: usize, expected: &'static str },
    /// Its text is longer than the limit.
    TooLarge,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { at, expected } => write!(out, "not binary JSON at byte {at}, expected {expected}"),
            Self::TooLarge => out.write_str("binary JSON whose text is too long"),
        }
    }
}

/// Whether a body is binary JSON rather than text.
pub(super) fn is_binary(body: &[u8]) -> bool {
    body.first() == Some(&PREAMBLE)
}

/// The JSON text, of at most about `limit_bytes`, of a buffer that [`is_binary`].
///
/// # Errors
///
/// [`Fault::Damaged`] for anything but one whole value, [`Fault::TooLarge`] for a longer text.
pub(super) fn text(body: &[u8], limit_bytes: usize) -> Result<Vec<u8>, Fault> {
    Reader::new(body, limit_bytes).whole()
}
