//! The formats that are read: one file each, and one entry in [`ALL`].
//!
//! A format names the parts of a document that hold its records, and reads these parts. So a document need not be of
//! one format, and a file may contain several. Formats that are recognised but not read are in [`foreign`].

mod foreign;
mod jaeger;
mod otlp;
mod stdouttrace;
mod tempo;
mod values;
mod zipkin;

use narrows_model::series::{LogLine, Point, SeriesKey};
use narrows_model::trace::{Span, SpanKind};
use serde_json::Value;

use crate::otlp::Weights;

pub(super) use foreign::{described, of_first_bytes};

/// Every format that is read, in the order in which errors name them.
const ALL: &[&Format] = &[&otlp::FORMAT, &tempo::FORMAT, &jaeger::FORMAT, &zipkin::FORMAT, &stdouttrace::FORMAT];

/// A format of another program.
pub(super) struct Format {
    /// Its name in a list: `OTLP`.
    name: &'static str,
    /// Members of a document that are lists whose elements are read one by one.
    lists: &'static [List],
    /// Members that hold a nested document.
    wrappers: &'static [&'static str],
    /// Objects that are read as a whole.
    records: &'static [Record],
}

/// A list whose elements are read one by one.
pub(super) struct List {
    name: &'static str,
    pub(super) read: Read,
}

/// An object that is read as a whole.
pub(super) struct Record {
    /// Members by which it is recognised; it must have all of them.
    marks: &'static [&'static str],
    /// All members that are read.
    pub(super) members: &'static [&'static str],
    pub(super) read: Read,
}

/// Reads the text of one part of a document.
pub(super) type Read = fn(text: &str, weights: &Weights) -> Records;

/// Everything that one part of a document holds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Records {
    pub(super) spans: Vec<Span>,
    /// Positions of the spans without a kind; they are internal until it is inferred.
    pub(super) without_kind: Vec<usize>,
    pub(super) points: Vec<(SeriesKey, Point)>,
    pub(super) logs: Vec<LogLine>,
    /// Number of records left out because they are invalid.
    pub(super) malformed: u64,
    /// Number of records left out because a part holds too many.
    pub(super) over_limit: u64,
    /// The problem with the first malformed record.
    pub(super) complaint: Option<Complaint>,
}

/// A problem with a record, and the record's path within the part, such as `.spans[3]`; may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Complaint {
    pub(super) place: String,
    pub(super) what: String,
}

impl Records {
    /// Records of a part that is invalid as a whole.
    fn malformed(what: impl Into<String>) -> Self {
        let mut records = Self::default();
        records.leave_out(String::new, what.into());
        records
    }

    /// The span of a part that is one span.
    fn of_span(text: &str, read: impl FnOnce(Value) -> Result<(Span, HasKind), String>) -> Self {
        match serde_json::from_str(text) {
            Ok(span) => {
                let mut records = Self::default();
                records.push(read(span), String::new);
                records
            }
            Err(error) => Self::malformed(error.to_string()),
        }
    }

    /// Keeps a span, or counts it as malformed.
    fn push(&mut self, read: Result<(Span, HasKind), String>, place: impl FnOnce() -> String) {
        match read {
            Ok((span, has_kind)) => {
                if has_kind == HasKind::No {
                    self.without_kind.push(self.spans.len());
                }
                self.spans.push(span);
            }
            Err(what) => self.leave_out(place, what),
        }
    }

    fn leave_out(&mut self, place: impl FnOnce() -> String, what: String) {
        self.malformed += 1;
        self.complaint.get_or_insert_with(|| Complaint { place: place(), what });
    }
}

/// Whether a span states its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HasKind {
    Yes,
    No,
}

impl From<Option<SpanKind>> for HasKind {
    fn from(kind: Option<SpanKind>) -> Self {
        if kind.is_some() { Self::Yes } else { Self::No }
    }
}

/// The list in the member with this name.
pub(super) fn list(name: &str) -> Option<&'static List> {
    ALL.iter().flat_map(|format| format.lists).find(|list| list.name == name)
}

/// Whether a member holds a nested document.
pub(super) fn is_wrapper(name: &str) -> bool {
    ALL.iter().any(|format| format.wrappers.contains(&name))
}

/// Whether a member may belong to an object that is read as a whole.
pub(super) fn is_of_record(name: &str) -> bool {
    records().any(|record| record.members.contains(&name))
}

/// The record type of an object with these members.
pub(super) fn record(has: impl Fn(&str) -> bool) -> Option<&'static Record> {
    records().find(|record| record.marks.iter().all(|mark| has(mark)))
}

fn records() -> impl Iterator<Item = &'static Record> {
    ALL.iter().flat_map(|format| format.records)
}

/// The formats that are read: `OTLP, Tempo, … and Go's stdouttrace`.
pub(super) fn names() -> String {
    let names: Vec<&str> = ALL.iter().map(|format| format.name).collect();
    match names.as_slice() {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        names => names.join(""),
    }
}

/// Reads the object `given` with other values of some members. Returns the span and whether it states its kind, or the
/// problem.
#[cfg(test)]
fn read_changed(read: Read, mut given: Value, changes: &Value) -> Result<(Span, bool), String> {
    for (name, value) in changes.as_object().into_iter().flatten() {
        given[name] = value.clone();
    }
    let mut read = read(&given.to_string(), &Weights::new());
    let problem = read.complaint.map(|complaint| complaint.place + &complaint.what);
    read.spans.pop().map(|span| (span, read.without_kind.is_empty())).ok_or_else(|| problem.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_formats_claim_the_same() {
        let lists: Vec<&str> = ALL.iter().flat_map(|format| format.lists).map(|list| list.name).collect();
        assert_eq!(lists.iter().collect::<BTreeSet<_>>().len(), lists.len());
        for record in records() {
            assert!(record.marks.iter().all(|mark| record.members.contains(mark)), "{:?}", record.marks);
            let claims = |other: &Record| other.marks.iter().all(|mark| record.members.contains(mark));
            assert_eq!(records().filter(|other| claims(other)).count(), 1, "{:?}", record.marks);
        }
    }

    #[test]
    fn each_format_has_its_file() {
        const THIS: &str = include_str!("mod.rs");
        let entries = THIS.lines().find(|line| line.starts_with("const ALL")).unwrap();
        let formats: BTreeSet<&str> = entries
            .split('&')
            .filter_map(|entry| entry.trim_end_matches([',', ' ', ']', ';']).strip_suffix("::FORMAT"))
            .collect();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/exchange/formats");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let files: BTreeSet<String> = files.filter_map(|name| name.strip_suffix(".rs").map(str::to_owned)).collect();
        let others = ["foreign", "mod", "values"];
        assert_eq!(
            files.iter().map(String::as_str).filter(|name| !others.contains(name)).collect::<BTreeSet<_>>(),
            formats
        );
        assert_eq!(names(), "OTLP, Tempo, Jaeger, Zipkin v2 and Go's stdouttrace");
    }
}
