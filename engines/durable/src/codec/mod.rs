//! Frames, events and messages as bytes.
//!
//! A frame is what one turn of a partition's loop changed: a version byte, the time, then entries one behind another.
//! It is applied whole or not at all. Numbers are LEB128 varints, text and bytes have their length in front, variants
//! are one byte. Nothing here allocates without a bound, trusts a length or panics: these bytes may come from a
//! damaged disk.

mod event;
mod frame;
mod input;
mod message;
mod output;
mod packet;
mod request;
mod response;

pub use event::{Events, put_event};
pub use frame::{EntityDelta, Entry, FrameWriter, KEPT, Patch, read_frame};
pub use message::{get_message, put_message};
pub(crate) use packet::{Outcome, Packet, RemoteRequest, Work};

use crate::ids::PartitionId;
use crate::payload::Payload;

/// The version of the format, the first byte of each frame.
pub const FORMAT: u16 = 1;

/// Bytes that cannot have been written so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {what}")]
pub struct CodecError {
    /// The offset of the byte, from the beginning of the input.
    pub at: usize,
    /// Actual and expected value.
    pub what: String,
}

/// Where a payload is kept that is too large for the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlobRef {
    /// The partition that wrote it.
    pub partition: PartitionId,
    /// Its number there, from 0.
    pub number: u64,
    /// Its length.
    pub bytes: u64,
}

/// Decides which payloads are kept out of line.
pub trait Spill {
    /// Keeps the payload elsewhere and says where, or leaves it in line.
    fn spill(&mut self, payload: &Payload) -> Option<BlobRef>;
}

/// Brings back payloads that are kept out of line.
pub trait Fetch {
    /// The payload.
    ///
    /// # Errors
    /// If it is missing or not as long as the reference says.
    fn fetch(&mut self, blob: BlobRef) -> Result<Payload, CodecError>;
}

/// Keeps every payload in line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Spill for Inline {
    fn spill(&mut self, _: &Payload) -> Option<BlobRef> {
        None
    }
}

/// Gives empty payloads in place of those kept out of line, for who does not look at them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Skip;

impl Fetch for Skip {
    fn fetch(&mut self, _: BlobRef) -> Result<Payload, CodecError> {
        Ok(Payload::EMPTY)
    }
}
