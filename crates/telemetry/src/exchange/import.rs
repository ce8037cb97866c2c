//! Imports files of other programs into a store.
//!
//! A file may be compressed with gzip. Its members decide its format. A damaged line of a file of lines loses only that
//! line, a damaged trace only that trace, a damaged record only that record. Text that is not JSON loses the rest of
//! the file. A file without anything usable is an error.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::documents::{self, Interruption, Item, Place};
use super::feed::{Feed, ImportCounts};
use super::formats;
use super::metrics::{self, Mapping};
use crate::Store;
use crate::otlp::Weights;

/// Read from a file at once.
const BUFFER_BYTES: usize = 1 << 16;
/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Why a file could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be opened or read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Nothing but white space.
    #[error("cannot import {}: it is empty", .0.display())]
    Empty(PathBuf),
    /// Text that is no JSON, and nothing before it.
    #[error("cannot import {}: it is not JSON: {what}", path.display())]
    NotJson {
        /// The file.
        path: PathBuf,
        /// With line and column.
        what: String,
    },
    /// A format that is not read, or unknown JSON.
    #[error("cannot import {}: it is {what}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// A description of the file.
        what: String,
        /// Advice.
        hint: Option<&'static str>,
    },
    /// The right form, and nothing in it that could be used.
    #[error("{} holds no span, metric point or log record that could be used{what}", path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
        /// The first complaint, if there is one.
        what: String,
    },
    /// A file of metrics that cannot be read as what it seems to be.
    #[error("cannot import {}: {what}", path.display())]
    Metrics {
        /// The file.
        path: PathBuf,
        /// Fault.
        what: String,
    },
    /// A table of metrics or of calls with a fault.
    #[error("{}, line {line}: {what}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// From 1; 0 if it is unknown.
        line: u64,
        /// Fault.
        what: String,
    },
    /// A Prometheus server that does not respond as expected.
    #[error("cannot import from {url}: {what}")]
    Server {
        /// The server.
        url: String,
        /// Fault.
        what: String,
        /// Advice; empty if there is none.
        hint: &'static str,
    },
    /// The store takes nothing.
    #[error("cannot keep what {} holds: {what}", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// The parser's message.
        what: String,
    },
}

impl Error {
    /// Advice on how to fix the error.
    pub fn hint(&self) -> Option<String> {
        let formats = || {
            let names = formats::names();
            format!("`narrows import` reads JSON of {names}, and metrics as Prometheus' text or JSON or as CSV")
        };
        match self {
            Error::Foreign { hint: Some(hint), .. } => Some((*hint).to_owned()),
            Error::Empty(_) | Error::NotJson { .. } | Error::Foreign { hint: None, .. } => Some(formats()),
            Error::Server { hint, .. } => Some((*hint).to_owned()).filter(|hint| !hint.is_empty()),
            Error::Table { .. } => {
                Some("tables are `metric,role,service,peer,unit` for --mapping and `caller,callee` for --graph".into())
            }
            Error::Read { .. } | Error::Metrics { .. } | Error::Nothing { .. } | Error::Store { .. } => None,
        }
    }
}

/// Reads a file (`-` is standard input) and hands what it holds to `store`; `mapping` names metrics. Adds to `imported` what became of it, with
/// the file's name before each complaint. Blocks; not to be called on a runtime's thread.
///
/// # Errors
/// When it cannot be read, when nothing in it can be used, and when the store cannot be written to.
pub fn import(path: &Path, mapping: &Mapping, store: &dyn Store, imported: &mut ImportCounts) -> Result<(), Error> {
    let read = |source| Error::Read { path: path.to_owned(), source };
    let mut reader = open(path).map_err(read)?;
    if let Some((what, hint)) = formats::of_first_bytes(reader.fill_buf().map_err(read)?) {
        return Err(Error::Foreign { path: path.to_owned(), what: what.to_owned(), hint: Some(hint) });
    }
    if let Some(format) = metrics::format_of(reader.fill_buf().map_err(read)?) {
        return import_metrics(path, format, &mut *reader, mapping, Feed::new(store, imported));
    }
    let mut reading =
        Reading { name: path.display().to_string(), weights: Weights::new(), unknown: None, broken: None };
    let mut feed = Feed::new(store, imported);
    let result = documents::each(&mut *reader, &mut |found| reading.take(found, &mut feed));
    let taken_before_end = feed.finish().map(|()| feed.taken);
    let store_error = |what| Error::Store { path: path.to_owned(), what };
    let has_content = match result {
        Ok(has_content) => has_content,
        Err(Interruption::Read(source)) => return Err(read(source)),
        Err(Interruption::Visitor(what)) => return Err(store_error(what)),
    };
    match taken_before_end.map_err(store_error)? {
        0 => Err(reading.nothing(path, has_content, imported)),
        _ => Ok(()),
    }
}

fn import_metrics(
    path: &Path,
    format: metrics::Format,
    reader: &mut dyn BufRead,
    mapping: &Mapping,
    mut feed: Feed<'_>,
) -> Result<(), Error> {
    let mut first = None;
    let result = metrics::read(format, reader, mapping, &mut |mut records| {
        if let Some(complaint) = records.complaint.take() {
            let separator = if complaint.place.is_empty() { "" } else { ": " };
            let what = format!("{}{separator}{}", complaint.place, complaint.what);
            feed.imported.complain(records.malformed, || format!("{}: {what}", path.display()));
            first.get_or_insert(format!(": {what}"));
        }
        feed.take(records)
    });
    result.map_err(|what| Error::Metrics { path: path.to_owned(), what })?;
    feed.finish().map_err(|what| Error::Store { path: path.to_owned(), what })?;
    match feed.taken {
        0 => Err(Error::Nothing { path: path.to_owned(), what: first.unwrap_or_default() }),
        _ => Ok(()),
    }
}

fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(narrows_files::open(path)?),
    };
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    Ok(match reader.fill_buf()?.starts_with(&GZIP) {
        true => Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(reader))),
        false => Box::new(reader),
    })
}

struct Reading {
    name: String,
    weights: Weights,
    /// Description of the first document without known parts.
    unknown: Option<String>,
    /// The first text that was no JSON.
    broken: Option<String>,
}

impl Reading {
    fn take(&mut self, found: Item<'_>, feed: &mut Feed<'_>) -> Result<(), String> {
        match found {
            Item::Part { read, path, text, place } => {
                let mut records = read(text, &self.weights);
                if let Some(complaint) = records.complaint.take() {
                    let complaint = || self.complaint(place, &format!("{path}{}", complaint.place), &complaint.what);
                    feed.imported.complain(records.malformed, complaint);
                }
                feed.take(records)
            }
            Item::Unknown { what, path, place } => {
                feed.imported.complain(1, || self.complaint(place, path, &format!("{what}, which is not imported")));
                self.unknown.get_or_insert(what);
                Ok(())
            }
            Item::Broken { what, place } => {
                feed.imported.complain(1, || self.complaint(place, "", &what));
                self.broken.get_or_insert_with(|| format!("{place}{what}"));
                Ok(())
            }
        }
    }

    /// A complaint with its place: `a.jsonl: line 7: resourceSpans[0]: …`.
    fn complaint(&self, place: Place, path: &str, what: &str) -> String {
        let path = path.trim_start_matches('.');
        let colon = if path.is_empty() { "" } else { ": " };
        format!("{}: {place}{path}{colon}{what}", self.name)
    }

    /// Why nothing of the file could be used.
    fn nothing(self, path: &Path, has_content: bool, imported: &ImportCounts) -> Error {
        let path = path.to_owned();
        let own = imported.complaints.iter().find_map(|complaint| complaint.strip_prefix(&self.name));
        match (self.broken, self.unknown) {
            _ if !has_content => Error::Empty(path),
            (Some(what), _) => Error::NotJson { path, what },
            (None, Some(what)) => Error::Foreign { path, what, hint: None },
            (None, None) => Error::Nothing { path, what: own.unwrap_or_default().to_owned() },
        }
    }
}
