//! Telemetry in the file formats of other programs: import and export.
//!
//! In ([`import`]): JSON in the formats of `formats/`, recognised by its members; `documents.rs` streams it and bounds
//! memory. Or metrics in the formats of
//! `metrics/`, also of a Prometheus server. Out: OTLP's JSON and Jaeger's (`out`), rows of a view, OTLP over HTTP to a receiver ([`send`]), and the
//! evidence on which findings are based. Invalid records are counted and named with their place. Nothing here decides
//! which records are kept; that is up to the [`crate::Store`].
//!
//! Not here: export over gRPC, protobuf files.

mod document;
mod documents;
mod evidence;
mod feed;
mod formats;
mod import;
mod kinds;
mod metrics;
mod out;
mod rows;
mod send;
#[cfg(test)]
mod tests;

pub use documents::ELEMENT_BYTES_MAX;
pub use evidence::{EVIDENCE_TRACES, EvidenceError, is_evidence, read_evidence, write_evidence};
pub use feed::ImportCounts;
pub use import::{Error as ImportError, import};
pub use metrics::{Mapping, PrometheusQuery, import_graph, import_prometheus};
pub use out::{Error as ExportError, ExportCounts, Signal, write_jaeger, write_otlp};
pub use rows::{RowFormat, write_rows};
pub use send::{BATCH_RECORDS, Error as SendError, SendCounts, send};
