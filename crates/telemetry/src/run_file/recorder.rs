//! The handle everything is written through.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use narrows_model::call_graph::CallGraph;
use narrows_model::caveat::TrialCaveat;
use narrows_model::finding::{Finding, Wording};
use narrows_model::json::Stored;
use narrows_model::load::LoadBatch;
use narrows_model::run::{ServiceInstance, Trial, TrialState, Window};
use narrows_model::series::{LogLine, Point, SeriesKey};
use narrows_model::trace::Span;
use serde_json::Value;
use tokio::sync::oneshot;

use super::error::{Error, Result};
use super::queue::{Admission, Job, Losses, Queue, QueueError, Size};
use super::redaction::Record;
use super::rows::Rows;
use crate::otlp::convert::PackedSpans;
use crate::secrets::{KnownSecrets, REDACTED, is_secret_key, redact_arguments, redact_text};
use crate::{KeptCounts, Receipt, Store, StoreError};

/// Writes into an open run file. Clones write into the same file.
///
/// Telemetry comes in through [`Store`], whose calls never block. The calls below block until what they were given is
/// committed. After the file was finished every call fails with [`Error::Closed`], and with [`Error::WriterFailed`]
/// should the thread behind it have panicked.
///
/// Secrets are blanked and long texts are cut at this door. Sampled points and lines of output that find the queue full
/// are counted as refused for their trial, since nobody brings them again; what came by OTLP is not, since
/// [`StoreError::Busy`] makes its sender send it again.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<RecorderState>,
}

struct RecorderState {
    queue: Arc<Queue>,
    trial: Mutex<Option<i64>>,
    known: OnceLock<KnownSecrets>,
}

impl Recorder {
    pub(super) fn new(queue: Arc<Queue>) -> Self {
        Self { shared: Arc::new(RecorderState { queue, trial: Mutex::new(None), known: OnceLock::new() }) }
    }

    /// Has these values blanked in all that is written from now on, wherever they stand. Only the first call counts.
    pub fn hide(&self, known: KnownSecrets) {
        self.shared.known.get_or_init(|| known);
    }

    fn known(&self) -> &KnownSecrets {
        static NONE: KnownSecrets = KnownSecrets::none();
        self.shared.known.get().unwrap_or(&NONE)
    }

    /// The first write error, most often a full disk. Callers that waited for a write received it; samples and output
    /// lines were lost.
    pub fn failure(&self) -> Option<Error> {
        self.shared.queue.failure()
    }

    /// Decides to which trial telemetry belongs from now on. Without a trial it is refused, and the sender gets that
    /// refusal.
    pub fn set_trial(&self, trial: Option<i64>) {
        *self.shared.trial.lock().unwrap_or_else(PoisonError::into_inner) = trial;
    }

    /// As [`Self::put_worded_trial`], with caveats as data alone.
    pub fn put_trial(&self, trial: &Trial) -> Result<()> {
        self.put_worded_trial(trial, &[])
    }

    /// Adds a trial, or writes its new state, each caveat with its text in `texts`. What was counted for the trial stays.
    /// Before a trial ends, its spans that wait for their rows get them, which may take seven seconds for a million of
    /// them.
    pub fn put_worded_trial(&self, trial: &Trial, texts: &[String]) -> Result<()> {
        if !matches!(trial.state, TrialState::Planned | TrialState::Running) {
            self.settle()?;
        }
        let mut trial = trial.clone();
        clean_trial(&mut trial, self.known());
        let caveats = trial.caveats.iter().enumerate();
        let caveats = caveats.filter_map(|(at, caveat)| clean_caveat(caveat, texts.get(at), self.known())).collect();
        self.call(1, move |rows| rows.put_trial(&trial, &caveats))
    }

    /// Replaces the windows of a trial.
    pub fn put_windows(&self, trial: i64, windows: &[Window]) -> Result<()> {
        let windows = windows.to_vec();
        self.call(windows.len(), move |rows| rows.put_windows(trial, &windows))
    }

    /// Adds a replica to a trial, or replaces what was said about it.
    pub fn put_service(&self, trial: i64, service: &ServiceInstance) -> Result<()> {
        let mut service = service.clone();
        redact_arguments(&mut service.command);
        service.command.iter_mut().for_each(|argument| self.known().hide(argument));
        self.call(1, move |rows| rows.put_service(trial, &service))
    }

    /// Folds data of this trial that is older than ten minutes, from now on: the distributions of the load's seconds
    /// into one per minute, samples and sampled points into fewer. No minute crosses one of these instants, so the
    /// distribution between any two of them stays exact. Further calls add instants.
    pub fn fold_between(&self, trial: i64, boundaries_ns: &[i64]) -> Result<()> {
        let boundaries_ns = boundaries_ns.to_vec();
        self.call(0, move |rows| {
            rows.folding.begin(trial, &boundaries_ns);
            Ok(())
        })
    }

    /// Adds seconds and samples of the load. Every second is kept; says how many samples were.
    pub fn put_load(&self, trial: i64, batch: LoadBatch) -> Result<KeptCounts> {
        let records = batch.seconds.len() + batch.samples.len();
        self.call_counted(records, move |rows| rows.put_load(trial, &batch))
    }

    /// Replaces the findings of a trial and their texts; the first is the dearest.
    /// Errors with [`Error::NotFinite`] when a cost is not finite; other such numbers are kept as `null`.
    pub fn put_findings(&self, trial: i64, findings: &[(Finding, Wording)]) -> Result<()> {
        let findings = findings.to_vec();
        self.call(findings.len(), move |rows| rows.put_findings(trial, &findings))
    }

    /// Replaces the calls of a trial that sockets show. `labels` name the levels of its load, in order of time.
    pub fn put_call_graph(&self, trial: i64, graph: &CallGraph, labels: Vec<String>) -> Result<()> {
        let graph = graph.clone();
        self.call(graph.edges.len() * labels.len(), move |rows| rows.put_call_graph(trial, &graph, &labels))
    }

    /// Keeps what was concluded from the whole run under a name, and replaces what was there.
    pub fn put_conclusion(&self, key: &str, value: &serde_json::Value) -> Result<()> {
        let mut value = value.clone();
        self.known().hide_in_json(&mut value);
        let (key, value) = (key.to_owned(), value.to_string());
        self.call(1, move |rows| rows.put_conclusion(&key, &value))
    }

    /// Turns all spans that wait into rows.
    pub(super) fn settle(&self) -> Result<()> {
        let some = |rows: &mut Rows| rows.settle_some().map(|kept| KeptCounts { kept, ..KeptCounts::default() });
        while self.call_counted(0, some)?.kept > 0 {}
        Ok(())
    }

    pub(super) fn restart_trial(&self, trial: i64) -> Result<()> {
        self.call(1, move |rows| rows.restart_trial(trial))
    }

    pub(super) fn close(&self) {
        self.shared.queue.close();
    }

    pub(super) fn call(
        &self,
        records: usize,
        apply: impl FnOnce(&mut Rows) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.call_counted(records, move |rows| apply(rows).map(|()| KeptCounts::default())).map(drop)
    }

    fn call_counted(
        &self,
        records: usize,
        apply: impl FnOnce(&mut Rows) -> Result<KeptCounts> + Send + 'static,
    ) -> Result<KeptCounts> {
        let (report, done) = sync_channel(1);
        // The caller waits for the result below, so its receiver is always there.
        let report = move |result| drop(report.send(result));
        // Its bytes are the caller's own, who waits with them.
        let job = Job { size: Size { records, bytes: 0 }, apply: Box::new(apply), done: Box::new(report) };
        self.shared.queue.push(job, Admission::Always).map_err(why_closed)?;
        // A job is dropped without a result only when the writer panics over it or one beside it.
        done.recv().unwrap_or(Err(Error::WriterFailed))
    }

    fn store<R: Record>(
        &self,
        records: Vec<R>,
        apply: impl FnOnce(&mut Rows, i64, Vec<R>) -> Result<KeptCounts> + Send + 'static,
    ) -> Receipt {
        self.store_with(Size::default(), records, apply)
    }

    /// Keeps records and, of that size, something that is clean already.
    fn store_with<R: Record>(
        &self,
        mut size: Size,
        mut records: Vec<R>,
        apply: impl FnOnce(&mut Rows, i64, Vec<R>) -> Result<KeptCounts> + Send + 'static,
    ) -> Receipt {
        let (tell, receipt) = oneshot::channel();
        let trial = *self.shared.trial.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(trial) = trial else {
            let _ = tell
                .send(Ok(KeptCounts { over_limit: (size.records + records.len()) as u64, ..KeptCounts::default() }));
            return receipt;
        };
        let mut or_lost = Losses::default();
        for record in &mut records {
            record.clean(self.known());
            size += Size { records: 1, bytes: record.bytes() };
            or_lost += record.lost();
        }
        // A sender may drop its receipt; what it sent is kept all the same.
        let done = move |result: Result<KeptCounts>| drop(tell.send(result.map_err(|error| broken(&error))));
        let job = Job { size, apply: Box::new(move |rows| apply(rows, trial, records)), done: Box::new(done) };
        match self.shared.queue.push(job, Admission::IfThereIsRoom { trial, or_lost }) {
            Ok(()) => receipt,
            Err(QueueError::Full) => resolved(StoreError::Busy),
            Err(closed) => resolved(broken(&why_closed(closed))),
        }
    }
}

/// Errors are reported in words of programs, which may quote what they were given.
fn clean_trial(trial: &mut Trial, known: &KnownSecrets) {
    for (name, value) in &mut trial.parameters {
        if is_secret_key(name) {
            *value = REDACTED.to_owned();
        }
        known.hide(value);
    }
    let thresholds = trial.load_program.iter_mut().flat_map(|program| &mut program.thresholds);
    let texts = trial.error.iter_mut().chain(&mut trial.validity.reasons);
    for text in texts.chain(thresholds.map(|threshold| &mut threshold.text)) {
        redact_text(text);
        known.hide(text);
    }
}

/// Data and text of a caveat without secrets; `None` if what is left is no caveat.
fn clean_caveat(caveat: &TrialCaveat, text: Option<&String>, known: &KnownSecrets) -> Option<Value> {
    let mut value = Value::from_json(&caveat.to_json().ok()?).ok()?;
    if let Some(text) = text {
        value["text"] = text.as_str().into();
    }
    redact_texts(&mut value);
    known.hide_in_json(&mut value);
    TrialCaveat::from_json(&value.to_string()).is_ok().then_some(value)
}

fn redact_texts(value: &mut Value) {
    match value {
        Value::String(text) => redact_text(text),
        Value::Array(values) => values.iter_mut().for_each(redact_texts),
        Value::Object(fields) => fields.values_mut().for_each(redact_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn why_closed(turned: QueueError) -> Error {
    match turned {
        QueueError::WriterFailed => Error::WriterFailed,
        QueueError::Closed | QueueError::Full => Error::Closed,
    }
}

fn broken(error: &Error) -> StoreError {
    StoreError::Broken(error.to_string())
}

fn resolved(refused: StoreError) -> Receipt {
    let (tell, receipt) = oneshot::channel();
    let _ = tell.send(Err(refused));
    receipt
}

impl Store for Recorder {
    fn spans(&self, spans: Vec<Span>) -> Receipt {
        self.store(spans, |rows, trial, spans| rows.put_spans(trial, &spans))
    }

    fn packed(&self, packed: PackedSpans, mut others: Vec<Span>) -> Receipt {
        if self.known().is_in(packed.bytes()) {
            return match packed.unpack() {
                Ok(mut spans) => {
                    spans.append(&mut others);
                    self.spans(spans)
                }
                Err(error) => resolved(StoreError::Broken(error.to_string())),
            };
        }
        let size = Size { records: packed.spans(), bytes: packed.bytes().len() };
        self.store_with(size, others, move |rows, trial, others| rows.put_packed(trial, &packed, &others))
    }

    fn redact(&self, text: &mut String) {
        redact_text(text);
        self.known().hide(text);
    }

    fn points(&self, points: Vec<(SeriesKey, Point)>) -> Receipt {
        self.store(points, Rows::put_points)
    }

    fn logs(&self, lines: Vec<LogLine>) -> Receipt {
        self.store(lines, Rows::put_logs)
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("trial", &self.shared.trial).finish_non_exhaustive()
    }
}
