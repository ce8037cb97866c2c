//! Telemetry in the files and words of other programs: what they wrote in, what a run holds out.
//!
//! In ([`import`]): JSON of the formats in `formats/`, known by the members that they have, streamed and bounded by
//! `documents.rs`. Out: OTLP's JSON and Jaeger's (`out`), rows of a view, OTLP over HTTP to a receiver ([`send`]), and
//! the evidence that findings are made from. What makes no sense is counted and named with its place; nothing here
//! decides what is kept, which is the [`crate::Store`]'s business.
//!
//! Not here: gRPC out, protobuf files.

mod document;
mod documents;
mod evidence;
mod feed;
mod formats;
mod import;
mod kinds;
mod out;
mod rows;
mod send;
#[cfg(test)]
mod tests;

pub use documents::ELEMENT_BYTES_MAX;
pub use evidence::{EVIDENCE_TRACES, EvidenceError, is_evidence, read_evidence, write_evidence};
pub use feed::Imported;
pub use import::{Error as ImportError, import};
pub use out::{Error as ExportError, Signal, Written, write_jaeger, write_otlp};
pub use rows::{RowFormat, write_rows};
pub use send::{BATCH_RECORDS, Error as SendError, Sent, send};
