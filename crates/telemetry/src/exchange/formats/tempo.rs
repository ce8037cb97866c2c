//! A trace as Grafana Tempo's API writes it: OTLP with `batches` in place of resources, in version 2 as the member
//! `trace`.
//!
//! Its ids are base64, as in protobuf's JSON mapping for bytes; OTLP's decoder reads both forms.

use super::{Format, List, otlp};

pub(super) const FORMAT: Format =
    Format { name: "Tempo", lists: &[List { name: "batches", read: otlp::spans }], wrappers: &["trace"], records: &[] };
