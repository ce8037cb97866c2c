//! The load second by second as comma-separated values, one record for each second and request.
//!
//! Quantiles are of that second alone and cannot be averaged; for others take the distributions ([`super::hdr_log`]).

use std::fmt::Write;

use narrows_model::histogram::Histogram;
use narrows_model::load::{ErrorKind, LoadSecond};

use super::csv_field;

const DISTRIBUTIONS: [&str; 3] = ["latency", "service", "lateness"];
const FIGURES: [&str; 7] = ["mean", "min", "p50", "p90", "p95", "p99", "max"];

/// The table with its header. `start_ns` is nanoseconds since the Unix epoch, every other column of time nanoseconds;
/// those of a distribution without a value are empty.
pub fn csv_seconds(rows: &[LoadSecond]) -> String {
    let mut out = "start_ns,length_ns,scenario,request".to_owned();
    LoadSecond::default().counts().iter().for_each(|(name, _)| push(&mut out, name));
    ErrorKind::ALL.iter().for_each(|kind| push(&mut out, &format!("errors_{}", kind.as_str())));
    push(&mut out, "bytes");
    for name in DISTRIBUTIONS {
        FIGURES.iter().for_each(|figure| push(&mut out, &format!("{name}_{figure}_ns")));
    }
    out.push('\n');
    for row in rows {
        add_record(&mut out, row);
    }
    out
}

fn push(out: &mut String, field: &str) {
    out.push(',');
    out.push_str(field);
}

fn add_record(out: &mut String, row: &LoadSecond) {
    // Writing to a `String` cannot fail.
    let _ = write!(out, "{},{},{},{}", row.start_ns, row.length_ns, csv_field(&row.scenario), csv_field(&row.request));
    for (_, count) in row.counts() {
        let _ = write!(out, ",{count}");
    }
    for kind in ErrorKind::ALL {
        let _ = write!(out, ",{}", row.errors.of(kind));
    }
    let _ = write!(out, ",{}", row.bytes);
    for histogram in [&row.latency, &row.service, &row.lateness] {
        add_figures(out, histogram);
    }
    out.push('\n');
}

fn add_figures(out: &mut String, histogram: &Histogram) {
    if histogram.count() == 0 {
        out.push_str(&",".repeat(FIGURES.len()));
        return;
    }
    let q = histogram.quantiles();
    let _ = write!(out, ",{:.0}", q.mean_ns);
    for figure in [q.min_ns, q.p50_ns, q.p90_ns, q.p95_ns, q.p99_ns, q.max_ns] {
        let _ = write!(out, ",{figure}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{EVIL, START_NS, records, rows};
    use super::*;

    #[test]
    fn every_row_reads_back_under_its_header() {
        let rows = rows();
        let table = csv_seconds(&rows);
        let records = records(&table);
        assert_eq!(records.len(), rows.len() + 1);
        let cell = |row: usize, name: &str| {
            let at = records[0].iter().position(|column| column == name).unwrap_or_else(|| panic!("no {name}"));
            records[row + 1][at].as_str()
        };
        assert_eq!((cell(0, "start_ns"), cell(0, "request")), (START_NS.to_string().as_str(), "list"));
        assert_eq!((cell(1, "scenario"), cell(1, "request")), ("shop", EVIL));
        assert_eq!((cell(0, "due"), cell(0, "late"), cell(0, "dropped"), cell(1, "due")), ("14", "2", "1", "0"));
        assert_eq!(
            (cell(0, "sent"), cell(0, "repeated"), cell(0, "cut"), cell(0, "succeeded")),
            ("13", "5", "1", "10")
        );
        assert_eq!((cell(0, "errors_timeout"), cell(0, "errors_check"), cell(0, "bytes")), ("1", "2", "1234"));
        assert_eq!((cell(0, "latency_mean_ns"), cell(0, "latency_max_ns")), ("9500000", "14000000"));
        assert_eq!((cell(2, "latency_min_ns"), cell(2, "service_min_ns")), ("7000000", "6000000"));
        assert_eq!((cell(3, "sent"), cell(3, "latency_mean_ns"), cell(3, "lateness_max_ns")), ("0", "", ""));
    }
}
