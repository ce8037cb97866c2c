//! The output of a process: every line goes to the store, and the last lines are kept, redacted, for error messages.
//!
//! Lines longer than 8 KiB are redacted, then split. A process that prints faster than the store accepts is not held
//! up: the pipe is always drained, and the store counts the lines that it refuses.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use narrows_model::series::{LogLine, LogStream};
use narrows_telemetry::Store;
use narrows_telemetry::secrets::redact_text;

use crate::environment::now_ns;

/// The longest line that is not split, in bytes.
const LINE_MAX: usize = 8 << 10;
/// Bytes of a line that are read at once. A longer line is cut there, wherever that is.
const READ_MAX: u64 = 1 << 20;
const REMEMBERED: usize = 12;
/// So many lines that tell of an error outlive those that are printed after them.
const ERRORS_REMEMBERED: usize = 3;
/// Mark of such a line: as servers and most loggers write it.
const SIGNS_OF_ERROR: [&str; 5] = ["ERROR", "FATAL", "PANIC", "[ALERT]", "[emerg]"];
/// How long after a process's end its last lines are waited for.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(500);

/// The last lines of a process, shared with the threads that read them.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLines {
    inner: Arc<(Mutex<RecentLines>, Condvar)>,
}

#[derive(Debug, Default)]
struct RecentLines {
    lines: VecDeque<String>,
    /// The last ones that tell of an error and are no longer among `lines`.
    errors: VecDeque<String>,
    wanted: Option<String>,
    seen: bool,
    /// Streams that are still being read.
    open: usize,
}

impl LastLines {
    /// An empty memory that watches for a text, if one is given, from the first line on.
    pub(crate) fn watching(wanted: Option<&str>) -> Self {
        let lines = Self::default();
        lines.lock().wanted = wanted.map(str::to_owned);
        lines
    }

    /// The last lines, oldest first; before them the last ones that told of an error.
    pub(crate) fn get(&self) -> Vec<String> {
        let memory = self.lock();
        memory.errors.iter().chain(&memory.lines).cloned().collect()
    }

    /// The last lines of a process that has ended, once all it printed has been read; a descendant that holds its
    /// streams open is not waited for longer than half a second.
    pub(crate) fn last_words(&self) -> Vec<String> {
        drop(self.inner.1.wait_timeout_while(self.lock(), LAST_WORDS_TIMEOUT, |memory| memory.open > 0));
        self.get()
    }

    /// Whether the watched text was printed; waits for it up to `timeout`.
    pub(crate) fn saw_wanted(&self, timeout: Duration) -> bool {
        let waited = self.inner.1.wait_timeout_while(self.lock(), timeout, |memory| !memory.seen);
        waited.unwrap_or_else(PoisonError::into_inner).0.seen
    }

    fn open(&self) {
        self.lock().open += 1;
    }

    fn close(&self) {
        self.lock().open -= 1;
        self.inner.1.notify_all();
    }

    fn add(&self, line: &str) {
        let mut memory = self.lock();
        if memory.wanted.as_deref().is_some_and(|wanted| line.contains(wanted)) {
            memory.seen = true;
            self.inner.1.notify_all();
        }
        memory.remember(line);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RecentLines> {
        self.inner.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecentLines {
    fn remember(&mut self, line: &str) {
        if self.lines.len() == REMEMBERED
            && let Some(oldest) = self.lines.pop_front().filter(|line| tells_of_error(line))
        {
            if self.errors.len() == ERRORS_REMEMBERED {
                self.errors.pop_front();
            }
            self.errors.push_back(oldest);
        }
        let mut line = line.to_owned();
        redact_text(&mut line);
        self.lines.push_back(line);
    }
}

fn tells_of_error(line: &str) -> bool {
    SIGNS_OF_ERROR.iter().any(|sign| line.contains(sign))
}

/// Whose output it is.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// The service.
    pub(crate) service: String,
    /// The replica, from 0.
    pub(crate) replica: u32,
    /// Which of its streams.
    pub(crate) stream: LogStream,
}

/// Reads a stream to its end on a thread of its own.
pub(crate) fn capture(stream: impl Read + Send + 'static, source: Source, store: Arc<dyn Store>, last: LastLines) {
    let name = format!("log-{}", source.service);
    last.open();
    let reader_last = last.clone();
    let read = move || {
        read_lines(stream, &source, &*store, &reader_last);
        reader_last.close();
    };
    // Without a thread the pipe closes and the process is reported so by the kernel when it prints.
    if std::thread::Builder::new().name(name).stack_size(128 << 10).spawn(read).is_err() {
        last.close();
    }
}

fn read_lines(stream: impl Read, source: &Source, store: &dyn Store, last: &LastLines) {
    let mut reader = BufReader::new(stream);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match reader.by_ref().take(READ_MAX).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&bytes);
        let mut text = text.trim_end_matches(['\n', '\r']).to_owned();
        if text.len() > LINE_MAX {
            store.redact(&mut text);
        }
        let time_ns = now_ns();
        let line = |part: &str| LogLine {
            time_ns,
            service: source.service.clone(),
            replica: source.replica,
            stream: source.stream,
            severity: String::new(),
            text: part.to_owned(),
            trace_id: None,
        };
        for part in parts(&text) {
            last.add(part);
            drop(store.logs(vec![line(part)]));
        }
    }
}

/// The parts into which a line is split, each of at most [`LINE_MAX`] bytes; an empty line has one part.
fn parts(line: &str) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), line);
    while rest.len() > LINE_MAX {
        let end = (0..=LINE_MAX).rev().find(|end| rest.is_char_boundary(*end)).unwrap_or(LINE_MAX);
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_remembered_and_a_text_is_watched_for() {
        let last = LastLines::watching(Some("listening"));
        (0..20).for_each(|i| last.add(&format!("line {i}")));
        assert_eq!(last.get().len(), REMEMBERED);
        assert_eq!(last.get().last().map(String::as_str), Some("line 19"));
        assert!(!last.saw_wanted(Duration::ZERO));
        last.add("now listening on 80");
        assert!(last.saw_wanted(Duration::ZERO));
    }

    #[test]
    fn what_told_of_an_error_outlives_what_came_after_it() {
        let last = LastLines::default();
        (0..5).for_each(|i| last.add(&format!("[ERROR] {i}")));
        (0..20).for_each(|i| last.add(&format!("[Note] {i}")));
        let lines = last.get();
        assert_eq!(lines.len(), ERRORS_REMEMBERED + REMEMBERED);
        assert_eq!(lines[..4], ["[ERROR] 2", "[ERROR] 3", "[ERROR] 4", "[Note] 8"]);
    }

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl Store for Lines {
        fn spans(&self, _: Vec<narrows_model::trace::Span>) -> narrows_telemetry::Receipt {
            unreachable!("no spans are printed")
        }

        fn points(
            &self,
            _: Vec<(narrows_model::series::SeriesKey, narrows_model::series::Point)>,
        ) -> narrows_telemetry::Receipt {
            unreachable!("no points are printed")
        }

        fn logs(&self, lines: Vec<LogLine>) -> narrows_telemetry::Receipt {
            self.0.lock().unwrap().extend(lines.into_iter().map(|line| line.text));
            tokio::sync::oneshot::channel().1
        }
    }

    #[test]
    fn a_secret_is_found_before_its_line_is_cut() {
        let source = Source { service: "web".to_owned(), replica: 0, stream: LogStream::Stdout };
        let kept = Lines::default();
        // The first part would end after the name, and the second begin with the value.
        let long = format!("{}password=hunter2-{} end", "é ".repeat(LINE_MAX / 3 - 3), "x".repeat(3 * LINE_MAX));
        read_lines(format!("short\n\n{long}\n").as_bytes(), &source, &kept, &LastLines::default());
        let lines = kept.0.into_inner().unwrap();
        assert_eq!(lines[..2], ["short".to_owned(), String::new()]);
        assert!(lines.iter().all(|line| line.len() <= LINE_MAX && !line.contains("xx") && !line.contains("hunter")));
        assert!(lines.concat().ends_with("password=REDACTED end"), "{lines:?}");
    }
}
