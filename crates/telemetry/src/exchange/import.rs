//! Files of other programs, into a store.
//!
//! A file may be gzip. What a file is, its first members say. A damaged line of a file of lines costs that line, a
//! damaged trace that trace, a damaged record that record; what is left of a file after text that is no JSON is lost. A
//! file of which nothing can be used is an error.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::bufread::MultiGzDecoder;

use super::documents::{self, Found, List, Place, Stopped};
use super::feed::{Feed, Imported};
use super::jaeger;
use crate::Store;
use crate::otlp::convert::{self, Converted};
use crate::otlp::{Format, Malformed, Weights};

/// Read from a file at once.
const BUFFER_BYTES: usize = 1 << 16;
/// What a gzip file begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// What a Zstandard file begins with, which the Collector's file exporter can write.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Why a file could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be opened or read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Nothing but white space.
    #[error("{} is empty, expected JSON of Jaeger or OTLP", .0.display())]
    Empty(PathBuf),
    /// Text that is no JSON, and nothing before it.
    #[error("{} is not JSON of Jaeger or OTLP: {what}", path.display())]
    NotJson {
        /// The file.
        path: PathBuf,
        /// With line and column.
        what: String,
    },
    /// JSON of something else.
    #[error("{} is JSON, but neither Jaeger's nor OTLP's: {what}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it holds instead.
        what: String,
    },
    /// The right form, and nothing in it that could be used.
    #[error("{} holds no span, metric point or log record that could be used{what}", path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
        /// The first complaint, if there is one.
        what: String,
    },
    /// The store takes nothing.
    #[error("cannot keep what {} holds: {what}", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// What it said.
        what: String,
    },
}

/// Reads a file (`-` is standard input) and hands what it holds to `store`. Adds to `imported` what became of it, with
/// the file's name before each complaint. Blocks; not to be called on a runtime's thread.
///
/// # Errors
/// When it cannot be read, when nothing in it can be used, and when the store cannot be written to.
pub fn import(path: &Path, store: &dyn Store, imported: &mut Imported) -> Result<(), Error> {
    let read = |source| Error::Read { path: path.to_owned(), source };
    let mut reader = open(path).map_err(read)?;
    let mut reading =
        Reading { name: path.display().to_string(), weights: Weights::new(), foreign: None, broken: None };
    let mut feed = Feed::new(store, imported);
    let result = documents::each(&mut *reader, &mut |found| reading.take(found, &mut feed));
    let taken_before_end = feed.finish().map(|()| feed.taken);
    let store_error = |what| Error::Store { path: path.to_owned(), what };
    let has_content = match result {
        Ok(has_content) => has_content,
        Err(Stopped::Read(source)) => return Err(read(source)),
        Err(Stopped::Visitor(what)) => return Err(store_error(what)),
    };
    match taken_before_end.map_err(store_error)? {
        0 => Err(reading.nothing(path, has_content, imported)),
        _ => Ok(()),
    }
}

fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path)?),
    };
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let head = reader.fill_buf()?;
    if head.starts_with(&ZSTD) {
        return Err(io::Error::other("it is compressed with Zstandard; decompress it with `zstd -d`"));
    }
    Ok(match head.starts_with(&GZIP) {
        true => Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(reader))),
        false => Box::new(reader),
    })
}

struct Reading {
    name: String,
    weights: Weights,
    /// What the first document without anything known holds.
    foreign: Option<String>,
    /// The first text that was no JSON.
    broken: Option<String>,
}

impl Reading {
    fn take(&mut self, found: Found<'_>, feed: &mut Feed<'_>) -> Result<(), String> {
        match found {
            Found::Element { list, index, text, place } => self.element(list, index, text, place, feed),
            Found::Foreign { members, place } => {
                let what = match members.is_empty() {
                    true => "an object without members".to_owned(),
                    false => format!("an object with {}", members.join(", ")),
                };
                feed.imported.complain(1, || format!("{}: {place}{what}, neither Jaeger's nor OTLP's", self.name));
                self.foreign.get_or_insert(what);
                Ok(())
            }
            Found::Broken { what, place } => {
                feed.imported.complain(1, || format!("{}: {place}{what}", self.name));
                self.broken.get_or_insert_with(|| format!("{place}{what}"));
                Ok(())
            }
        }
    }

    fn element(
        &mut self,
        list: List,
        index: usize,
        text: &str,
        place: Place,
        feed: &mut Feed<'_>,
    ) -> Result<(), String> {
        let at = format!("{}: {place}{}[{index}]", self.name, list.name());
        if list == List::JaegerTraces {
            let trace = jaeger::spans(text, &self.weights);
            let complaint = trace.complaint.unwrap_or_default();
            feed.imported.complain(trace.malformed, || format!("{at}: {complaint}"));
            return feed.spans(trace.spans);
        }
        // OTLP is converted request by request, and a request of one resource is a request.
        let request = format!("{{\"{}\":[{text}]}}", list.name());
        let (request, json) = (request.as_bytes(), Format::Json);
        let own_place = format!("{}[0]", list.name());
        let place = |inner: &str| format!("{at}{}", inner.strip_prefix(&own_place).unwrap_or_default());
        match list {
            List::ResourceSpans => hand_over(convert::spans(request, json, &self.weights), feed, &place, Feed::spans),
            List::ResourceMetrics => hand_over(convert::points(request, json, now_ns()), feed, &place, Feed::points),
            List::ResourceLogs => hand_over(convert::logs(request, json, now_ns()), feed, &place, Feed::logs),
            List::JaegerTraces => Ok(()),
        }
    }

    /// Why nothing of the file could be used.
    fn nothing(self, path: &Path, has_content: bool, imported: &Imported) -> Error {
        let path = path.to_owned();
        match (self.broken, self.foreign) {
            _ if !has_content => Error::Empty(path),
            (Some(what), _) => Error::NotJson { path, what },
            (None, Some(what)) => Error::Foreign { path, what },
            (None, None) => {
                let own = imported.complaints.iter().find(|complaint| complaint.starts_with(&self.name));
                Error::Nothing { path, what: own.map_or_else(String::new, |complaint| format!(": {complaint}")) }
            }
        }
    }
}

fn hand_over<'f, T>(
    converted: Result<Converted<T>, Malformed>,
    feed: &mut Feed<'f>,
    place: &dyn Fn(&str) -> String,
    keep: impl Fn(&mut Feed<'f>, Vec<T>) -> Result<(), String>,
) -> Result<(), String> {
    match converted {
        Ok(Converted { records, malformed, over_limit, complaint, .. }) => {
            feed.imported.complain(malformed, || format!("{}: {}", place(""), complaint.unwrap_or_default()));
            feed.imported.over_limit += over_limit;
            keep(feed, records)
        }
        Err(Malformed { place: inner, what }) => {
            feed.imported.complain(1, || format!("{}: {what}", place(&inner)));
            Ok(())
        }
    }
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
