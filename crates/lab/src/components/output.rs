//! What a process prints: every line goes to the store, the last ones are remembered for error messages.
//!
//! Lines are cut at 8 KiB. A process that prints faster than the store takes is not held up: the pipe is always
//! drained, and lines over the limit are counted there.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use narrows_model::series::{LogLine, LogStream};
use narrows_telemetry::Store;

use crate::environment::now_ns;

const LINE_MAX: u64 = 8 << 10;
const REMEMBERED: usize = 12;

/// The last lines of a process, shared with the threads that read them.
#[derive(Debug, Clone, Default)]
pub struct LastLines {
    inner: Arc<(Mutex<Remembered>, Condvar)>,
}

#[derive(Debug, Default)]
struct Remembered {
    lines: VecDeque<String>,
    wanted: Option<String>,
    seen: bool,
}

impl LastLines {
    /// An empty memory that watches for a text, if one is given, from the first line on.
    pub fn watching(wanted: Option<&str>) -> Self {
        let lines = Self::default();
        lines.lock().wanted = wanted.map(str::to_owned);
        lines
    }

    /// The last lines, oldest first.
    pub fn get(&self) -> Vec<String> {
        self.lock().lines.iter().cloned().collect()
    }

    /// Whether the watched text was printed; waits for it up to `patience`.
    pub fn saw_wanted(&self, patience: Duration) -> bool {
        let waited = self.inner.1.wait_timeout_while(self.lock(), patience, |memory| !memory.seen);
        waited.unwrap_or_else(PoisonError::into_inner).0.seen
    }

    fn add(&self, line: &str) {
        let mut memory = self.lock();
        if memory.wanted.as_deref().is_some_and(|wanted| line.contains(wanted)) {
            memory.seen = true;
            self.inner.1.notify_all();
        }
        if memory.lines.len() == REMEMBERED {
            memory.lines.pop_front();
        }
        memory.lines.push_back(line.to_owned());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Remembered> {
        self.inner.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose output it is.
#[derive(Debug, Clone)]
pub struct Source {
    /// The service.
    pub service: String,
    /// The replica, from 0.
    pub replica: u32,
    /// Which of its streams.
    pub stream: LogStream,
}

/// Reads a stream to its end on a thread of its own.
pub fn capture(stream: impl Read + Send + 'static, source: Source, store: Arc<dyn Store>, last: LastLines) {
    let name = format!("log-{}", source.service);
    let read = move || read_lines(stream, &source, &*store, &last);
    // Without a thread the output is lost but the service still runs until its pipe is full.
    let _ = std::thread::Builder::new().name(name).stack_size(128 << 10).spawn(read);
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
}
