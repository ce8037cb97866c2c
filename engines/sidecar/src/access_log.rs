//! The access log: one JSON line for each request and each TCP connection.
//!
//! Lines are collected and written every second or when there are enough; a kill loses those of the last second. A file
//! that has grown to its bound is renamed with `.1` behind its name, in place of an earlier one. Writing happens on the
//! sidecar's only thread: to a file it costs less than handing it to another. What cannot be written is counted.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::Error;

/// Collected before it is written, in bytes.
const BUFFER: usize = 64 << 10;
/// Size of a file, in bytes, at which the next one is begun; there are two at most.
const FILE_MAX: u64 = 64 << 20;

/// Fields of a line. `status` is 0 if the caller got no response.
#[derive(Debug, Serialize)]
pub(crate) struct Entry<'a> {
    pub(crate) hop: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<&'a str>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) received_bytes: Option<u64>,
    pub(crate) sent_bytes: u64,
    pub(crate) duration_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<&'static str>,
}

#[derive(Serialize)]
struct Line<'a> {
    time_unix_us: u64,
    #[serde(flatten)]
    entry: &'a Entry<'a>,
}

fn is_zero(status: &u16) -> bool {
    *status == 0
}

/// An open log.
pub(crate) struct AccessLog {
    path: PathBuf,
    file_max: u64,
    state: Mutex<State>,
    lost: AtomicU64,
}

struct State {
    file: File,
    written_bytes: u64,
    buffer: Vec<u8>,
    lines: u64,
}

impl AccessLog {
    /// Begins a log, in place of the file's content.
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        Self::bounded(path, FILE_MAX)
    }

    fn bounded(path: &Path, file_max: u64) -> Result<Self, Error> {
        let file = File::create(path).map_err(|source| Error::AccessLog { path: path.to_owned(), source })?;
        let buffer = Vec::with_capacity(2 * BUFFER);
        let state = Mutex::new(State { file, written_bytes: 0, buffer, lines: 0 });
        Ok(Self { path: path.to_owned(), file_max, state, lost: AtomicU64::new(0) })
    }

    /// Adds a line.
    pub(crate) fn append(&self, entry: &Entry<'_>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut state = self.lock();
        // Numbers and texts always serialise, and a vector takes them.
        let _ = serde_json::to_writer(&mut state.buffer, &Line { time_unix_us: now.as_micros() as u64, entry });
        state.buffer.push(b'\n');
        state.lines += 1;
        if state.buffer.len() >= BUFFER {
            self.write(&mut state);
        }
    }

    /// Writes the collected lines.
    pub(crate) fn flush(&self) {
        self.write(&mut self.lock());
    }

    /// Lines that could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn write(&self, state: &mut State) {
        if state.buffer.is_empty() {
            return;
        }
        if self.rotate(state).and_then(|()| state.file.write_all(&state.buffer)).is_err() {
            self.lost.fetch_add(state.lines, Ordering::Relaxed);
        }
        state.written_bytes += state.buffer.len() as u64;
        state.buffer.clear();
        state.lines = 0;
    }

    fn rotate(&self, state: &mut State) -> io::Result<()> {
        if state.written_bytes == 0 || state.written_bytes + state.buffer.len() as u64 <= self.file_max {
            return Ok(());
        }
        let mut older = self.path.clone().into_os_string();
        older.push(".1");
        std::fs::rename(&self.path, older)?;
        state.file = File::create(&self.path)?;
        state.written_bytes = 0;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry<'a>(path: &'a str) -> Entry<'a> {
        Entry {
            hop: "in",
            method: Some("GET"),
            path: Some(path),
            status: 200,
            received_bytes: None,
            sent_bytes: 3,
            duration_us: 7,
            error: None,
        }
    }

    #[test]
    fn a_line_is_json_whatever_the_path_holds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = AccessLog::create(&path).unwrap();
        log.append(&entry("/a\"b\\\n\u{e9}"));
        log.flush();
        let text = std::fs::read_to_string(&path).unwrap();
        let line: serde_json::Value = serde_json::from_str(text.strip_suffix('\n').unwrap()).unwrap();
        assert_eq!((&line["path"], &line["status"]), (&"/a\"b\\\n\u{e9}".into(), &200.into()));
        assert!(line["time_unix_us"].as_u64() > Some(1_600_000_000_000_000) && line.get("error").is_none());
    }

    #[test]
    fn a_full_file_makes_place_for_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = AccessLog::bounded(&path, 300).unwrap();
        for number in 0..10 {
            log.append(&entry(&format!("/{number}")));
            log.flush();
        }
        let mut sizes: Vec<(String, u64)> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|file| file.unwrap())
            .map(|file| (file.file_name().into_string().unwrap(), file.metadata().unwrap().len()))
            .collect();
        sizes.sort();
        let names: Vec<&str> = sizes.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["log", "log.1"]);
        assert!(sizes.iter().all(|(_, size)| (1..=300).contains(size)), "{sizes:?}");
        assert!(
            std::fs::read_to_string(&path)
                .unwrap()
                .ends_with("\"path\":\"/9\",\"status\":200,\"sent_bytes\":3,\"duration_us\":7}\n")
        );
        assert_eq!(log.lost(), 0);
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = AccessLog::bounded(&path, 1).unwrap();
        log.append(&entry("/1"));
        log.flush();
        std::fs::remove_file(&path).unwrap();
        log.append(&entry("/2"));
        log.append(&entry("/3"));
        log.flush();
        assert_eq!(log.lost(), 2);
        assert!(matches!(AccessLog::create(folder.path()), Err(Error::AccessLog { .. })));
    }
}
