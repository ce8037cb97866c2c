//! Metrics of others: files of Prometheus' text, of its API's JSON and of CSV, and a Prometheus server that is queried.
//!
//! Files are kept as they are, counters as counters, under the service that their labels name; what they say of requests is
//! read from the run file (`normalise/requests/`). A server adds up itself: it is asked for rates of known metrics, which
//! are kept under the names of `series/services.rs`.

mod csv;
mod graph;
mod mapping;
mod matrix;
mod server;
mod text;

use std::io::{BufRead, Read as _};

use narrows_model::series::{Point, SeriesKey};

pub use graph::import_graph;
pub use mapping::Mapping;
pub use server::{PrometheusQuery, import_prometheus};

use super::formats::Records;

/// The largest file of Prometheus' text or JSON, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// The longest name, label or label's value that is kept, in bytes.
const TEXT_BYTES_MAX: usize = 512;
/// Bytes in which a format is looked for.
const HEAD_BYTES: usize = 4 << 10;

/// A format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Prometheus' text exposition, with times.
    Text,
    /// The response of Prometheus' API to a range query.
    Matrix,
    /// A table of `time,service,metric,value`.
    Csv,
}

/// The format of a file with these first bytes; `None` if it may be JSON of another program.
pub(super) fn format_of(bytes: &[u8]) -> Option<Format> {
    let head = bytes.get(..HEAD_BYTES).unwrap_or(bytes).trim_ascii_start();
    match head.first()? {
        b'{' if is_matrix(head) => Some(Format::Matrix),
        // A sample without a name before its labels.
        b'{' if head.starts_with(b"{__name__=") => Some(Format::Text),
        b'#' | b'_' | b':' => Some(Format::Text),
        first if first.is_ascii_alphabetic() => {
            let line = head.split(|byte| *byte == b'\n').next().unwrap_or(head);
            if csv::is_header(line) { Some(Format::Csv) } else { text::is_sample(line).then_some(Format::Text) }
        }
        _ => None,
    }
}

/// `"data"` with `"resultType"` at the beginning, as Prometheus writes it.
fn is_matrix(head: &[u8]) -> bool {
    let text: Vec<u8> = head.iter().filter(|byte| !byte.is_ascii_whitespace()).take(200).copied().collect();
    let has = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
    has(b"\"resultType\"") || has(b"{\"status\":\"error\"")
}

/// Reads a file of metrics, handing on what it holds in parts.
///
/// # Errors
/// In words, when it cannot be read, or `take` has no use for more.
pub(super) fn read(
    format: Format,
    reader: &mut dyn BufRead,
    mapping: &Mapping,
    take: &mut dyn FnMut(Records) -> Result<(), String>,
) -> Result<(), String> {
    if format == Format::Csv {
        return csv::read(reader, mapping, take);
    }
    let mut bytes = Vec::new();
    reader.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes; divide it by time"));
    }
    match format {
        Format::Text => text::read(&bytes, mapping, take),
        Format::Matrix | Format::Csv => matrix::read(&bytes, mapping, take),
    }
}

/// A point of Prometheus as it is kept: under the service that its labels name, and the names that OTLP has.
fn kept(mut key: SeriesKey, point: Point, mapping: &Mapping) -> (SeriesKey, Point) {
    if let Some(value) = mapping.apply(&mut key, point.value) {
        return (key, Point { value, ..point });
    }
    if key.service.is_empty() {
        key.service = crate::normalise::service_of(&key).unwrap_or_default();
    }
    let value = crate::scrape::as_by_otlp(&mut key, point.value);
    (key, Point { value, ..point })
}

fn cut(text: String) -> String {
    crate::otlp::convert::cut(text, TEXT_BYTES_MAX)
}

#[cfg(test)]
mod tests;
