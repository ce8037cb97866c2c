//! The formats that are read: one file each, and one entry in [`ALL`].
//!
//! A format names the parts of a document that hold its records, and reads such a part. So a document needs no format
//! of its own, and a file may hold several. What is recognised and not read stands in [`foreign`].

mod foreign;
mod jaeger;
mod otlp;
mod stdouttrace;
mod tempo;
mod values;
mod zipkin;

use narrows_model::series::{LogLine, Point, SeriesKey};
use narrows_model::trace::Span;

use crate::otlp::Weights;

pub(super) use foreign::{described, of_first_bytes};

/// Every format that is read, in the order in which errors name them.
const ALL: &[&Format] = &[&otlp::FORMAT, &tempo::FORMAT, &jaeger::FORMAT, &zipkin::FORMAT, &stdouttrace::FORMAT];

/// What other programs write.
pub(super) struct Format {
    /// Its name in a list: `OTLP`.
    name: &'static str,
    /// Members of a document that are lists, with elements to be read one by one.
    lists: &'static [List],
    /// Members that are a document of their own.
    wrappers: &'static [&'static str],
    /// Objects that are read as they are.
    records: &'static [Record],
}

/// A list with elements to be read one by one.
pub(super) struct List {
    name: &'static str,
    pub(super) read: Read,
}

/// An object that is read as it is.
pub(super) struct Record {
    /// Members by which it is recognised: it has all of them.
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
    /// Positions of the spans that do not say their kind; until it is inferred they are internal.
    pub(super) without_kind: Vec<usize>,
    pub(super) points: Vec<(SeriesKey, Point)>,
    pub(super) logs: Vec<LogLine>,
    /// Records left out because they make no sense.
    pub(super) malformed: u64,
    /// Records left out because a part holds too many.
    pub(super) over_limit: u64,
    /// What is wrong with the first malformed record.
    pub(super) complaint: Option<Complaint>,
}

/// What is wrong with a record, and where it stands in the part that was read: `.spans[3]`, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Complaint {
    pub(super) place: String,
    pub(super) what: String,
}

impl Records {
    /// A part that makes no sense as a whole.
    fn malformed(what: impl Into<String>) -> Self {
        let mut records = Self::default();
        records.leave_out(String::new, what.into());
        records
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

/// Whether a span says its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HasKind {
    Yes,
    No,
}

/// The list that a member of a document is.
pub(super) fn list(name: &str) -> Option<&'static List> {
    ALL.iter().flat_map(|format| format.lists).find(|list| list.name == name)
}

/// Whether a member of a document is a document of its own.
pub(super) fn is_wrapper(name: &str) -> bool {
    ALL.iter().any(|format| format.wrappers.contains(&name))
}

/// Whether a member may be one of an object that is read as it is.
pub(super) fn is_of_record(name: &str) -> bool {
    records().any(|record| record.members.contains(&name))
}

/// How an object with these members is read as it is.
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
