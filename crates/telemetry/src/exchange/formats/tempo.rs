//! A trace as Grafana Tempo's API writes it: OTLP's, with `batches` for resources, in version 2 as the member `trace`.
//!
//! Its ids are base64, as protobuf's JSON mapping has bytes; OTLP's decoder reads either.

use super::{Format, List, otlp};

pub(super) const FORMAT: Format =
    Format { name: "Tempo", lists: &[List { name: "batches", read: otlp::spans }], wrappers: &["trace"], records: &[] };
