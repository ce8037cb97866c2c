//! A load for other programs: tables, distributions, counters and JSON, one file for each format.
//!
//! Every renderer is pure: rows in, text or a value out. All take what a finished run and a one-shot load both have.
//! Nothing here chooses what to export, and none of it is read again by Narrows: that is what the run file is for.

use narrows_model::printable;

mod csv_requests;
mod csv_seconds;
mod hdr_log;
mod load_json;
mod openmetrics;

pub use csv_requests::csv_requests;
pub use csv_seconds::csv_seconds;
pub use hdr_log::HdrLog;
pub use load_json::load_json;
pub use openmetrics::openmetrics;

/// A field of a table of comma-separated values (RFC 4180): in quotes only where it must be.
fn csv_field(text: &str) -> String {
    let text = printable::cell(text);
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into_owned() }
}

#[cfg(test)]
mod testing {
    //! Rows to export, and a reader of comma-separated values that shares nothing with the writer.

    use narrows_model::histogram::Histogram;
    use narrows_model::load::{ErrorCounts, LoadSecond};

    /// Half past twelve on a day in November.
    pub(super) const START_NS: i64 = 1_763_728_200_000_000_000;
    /// A name that every format must quote.
    pub(super) const EVIL: &str = "buy,\"pay\\\" \nnow";

    pub(super) fn second(at: i64, request: &str, latency_ms: u64) -> LoadSecond {
        let histogram = |from: u64| {
            let mut histogram = Histogram::new();
            (0..10).for_each(|n| histogram.record((from + n) * 1_000_000));
            histogram
        };
        LoadSecond {
            scenario: "shop".into(),
            request: request.into(),
            start_ns: START_NS + at * 1_000_000_000,
            length_ns: 1_000_000_000,
            vus: 3,
            due: 14,
            late: 2,
            dropped: 1,
            sent: 13,
            repeated: 5,
            cut: 1,
            succeeded: 10,
            errors: ErrorCounts { timeout: 1, check: 2, ..ErrorCounts::default() },
            bytes: 1_234,
            latency: histogram(latency_ms),
            service: histogram(latency_ms - 1),
            lateness: histogram(1),
        }
    }

    pub(super) fn rows() -> Vec<LoadSecond> {
        let mut pay = second(0, EVIL, 40);
        (pay.vus, pay.due, pay.late, pay.dropped) = (0, 0, 0, 0);
        let empty = LoadSecond { scenario: "shop".into(), start_ns: START_NS + 2_000_000_000, ..LoadSecond::default() };
        vec![second(0, "list", 5), pay, second(1, "list", 7), empty]
    }

    /// The records of a table, field by field (RFC 4180).
    pub(super) fn records(table: &str) -> Vec<Vec<String>> {
        let mut records = vec![vec![String::new()]];
        let (mut in_quotes, mut chars) = (false, table.chars().peekable());
        while let Some(c) = chars.next() {
            let record = records.last_mut().unwrap();
            match c {
                '"' if in_quotes && chars.peek() == Some(&'"') => {
                    chars.next();
                    record.last_mut().unwrap().push('"');
                }
                '"' => in_quotes = !in_quotes,
                ',' if !in_quotes => record.push(String::new()),
                '\n' if !in_quotes => records.push(vec![String::new()]),
                c => record.last_mut().unwrap().push(c),
            }
        }
        assert!(!in_quotes && records.pop() == Some(vec![String::new()]), "it ends with a line feed");
        assert!(records.iter().all(|record| record.len() == records[0].len()), "all records are of one length");
        records
    }
}
