//! What a process prints: every line goes to the store, the last ones are remembered without secrets for error messages.
//!
//! Longer lines than 8 KiB become several. A process that prints faster than the store takes is not held up: the pipe
//! is always drained, and lines that the store refuses are counted there.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use narrows_model::series::{LogLine, LogStream};
use narrows_telemetry::Store;
use narrows_telemetry::secrets::redact_text;

use crate::environment::now_ns;

const LINE_MAX: u64 = 8 << 10;
const REMEMBERED: usize = 12;
/// So many lines that tell of an error outlive those that are printed after them.
const ERRORS_REMEMBERED: usize = 3;
/// What such a line has in it: as servers and most loggers write it.
const SIGNS_OF_ERROR: [&str; 5] = ["ERROR", "FATAL", "PANIC", "[ALERT]", "[emerg]"];
/// How long after a process's end its last lines are waited for.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(500);

/// The last lines of a process, shared with the threads that read them.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLines {
    inner: Arc<(Mutex<Remembered>, Condvar)>,
}

#[derive(Debug, Default)]
struct Remembered {
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

    fn lock(&self) -> std::sync::MutexGuard<'_, Remembered> {
        self.inner.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Remembered {
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
        match reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        last.add(text);
        drop(store.logs(vec![LogLine {
            time_ns: now_ns(),
            service: source.service.clone(),
            replica: source.replica,
            stream: source.stream,
            severity: String::new(),
            text: text.to_owned(),
            trace_id: None,
        }]));
    }
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
}
