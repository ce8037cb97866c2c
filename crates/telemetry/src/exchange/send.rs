//! Telemetry of a trial to another receiver: Jaeger, a Collector, anything that speaks OTLP over HTTP.
//!
//! Protobuf, in batches of [`BATCH_RECORDS`], one after the other on one connection. A receiver that says "later" (429,
//! 502, 503, 504, as OTLP has it) gets the batch again a bounded number of times, after the wait it requests; any other
//! refusal ends it, since the next batch would fare no better. What a receiver accepts but does not keep is counted.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::RETRY_AFTER;

use super::out::Signal;
use crate::http::{Bounds, Client, Response, Url};
use crate::otlp::encode;
use crate::run_file::{self, Reader, SpanOrder};

/// Records of one request.
pub const BATCH_RECORDS: usize = 512;
/// How often one batch is sent at most.
const TRIES_MAX: u32 = 6;
/// The first wait before a batch is sent again, where the receiver names none; each one after it is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait, even where the receiver requests a longer one.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The longest that a response may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The largest response, in bytes.
const RESPONSE_BYTES_MAX: usize = 1 << 20;
/// Batches that wait to be sent.
const BATCHES_WAITING: usize = 4;

/// Why not everything could be sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run file cannot be read.
    #[error(transparent)]
    RunFile(#[from] run_file::Error),
    /// The receiver refused a batch, or there is none.
    #[error("{url}: {why}; {accepted} records were accepted before")]
    Receiver {
        /// Where the batch went.
        url: String,
        /// Its response.
        why: String,
        /// Records of this signal that it had accepted.
        accepted: u64,
    },
    /// No runtime to be had.
    #[error("cannot start the sender")]
    Start(#[source] std::io::Error),
}

/// Fate of the records that were sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SendCounts {
    /// Records that the receiver accepted.
    pub accepted: u64,
    /// Records of accepted requests that it says it did not keep.
    pub rejected: u64,
    /// Why, the first time.
    pub why: Option<String>,
    /// Batches that had to be sent again, each time counted.
    pub repeated: u64,
}

/// Sends one signal of a trial to `base`, whose path `/v1/…` is put behind. `label` is the trial's, which each resource
/// names. Blocks until it is done.
///
/// # Errors
/// When the run file cannot be read, or the receiver refuses, is not there, or stays busy.
pub fn send(reader: &Reader, trial: i64, label: &str, signal: Signal, base: &Url) -> Result<SendCounts, Error> {
    let url = base.with_path(&format!("{}/v1/{}", base.path().trim_end_matches('/'), path_of(signal)));
    let (give, batches) = sync_channel(BATCHES_WAITING);
    let own_url = url.clone();
    // Reading is bound to this thread, waiting to the other one.
    let sender = std::thread::Builder::new().name("export".to_owned()).spawn(move || send_all(&own_url, &batches));
    let sender = sender.map_err(Error::Start)?;
    let read = give_all(reader, trial, label, signal, &give);
    drop(give);
    let (sent, failed) = sender
        .join()
        .unwrap_or_else(|_| (SendCounts::default(), Some(SendFailure::Refused("its thread failed".into()))));
    read?;
    match failed {
        None => Ok(sent),
        Some(SendFailure::Start(error)) => Err(Error::Start(error)),
        Some(SendFailure::Refused(why)) => Err(Error::Receiver { url: url.to_string(), why, accepted: sent.accepted }),
    }
}

fn path_of(signal: Signal) -> &'static str {
    match signal {
        Signal::Spans => "traces",
        Signal::Metrics => "metrics",
        Signal::Logs => "logs",
    }
}

/// A request and how many records it holds.
struct Batch {
    request: Vec<u8>,
    records: u64,
}

enum SendFailure {
    Start(std::io::Error),
    Refused(String),
}

/// Reads and encodes; ends early when nobody takes what it gives.
fn give_all(
    reader: &Reader,
    trial: i64,
    label: &str,
    signal: Signal,
    give: &SyncSender<Batch>,
) -> Result<(), run_file::Error> {
    // An inner error says that the sender has gone; it will say why.
    match signal {
        Signal::Spans => {
            let mut batches = Batches::new(give, |spans| encode::spans(spans, label));
            let _ = reader.each_span(trial, SpanOrder::Any, &mut |span| batches.push(span))?;
            batches.flush();
        }
        Signal::Metrics => {
            let mut batches = Batches::new(give, |points| encode::points(points, label));
            let _ = reader.each_point(trial, &mut |point| batches.push(point))?;
            batches.flush();
        }
        Signal::Logs => {
            let mut batches = Batches::new(give, |lines| encode::logs(lines, label));
            let _ = reader.each_log(trial, &mut |line| batches.push(line))?;
            batches.flush();
        }
    }
    Ok(())
}

struct Batches<'g, T, F> {
    give: &'g SyncSender<Batch>,
    encode: F,
    waiting: Vec<T>,
}

impl<'g, T, F: Fn(Vec<T>) -> Vec<u8>> Batches<'g, T, F> {
    fn new(give: &'g SyncSender<Batch>, encode: F) -> Self {
        Self { give, encode, waiting: Vec::with_capacity(BATCH_RECORDS) }
    }

    fn push(&mut self, record: T) -> Result<(), ()> {
        self.waiting.push(record);
        if self.waiting.len() < BATCH_RECORDS || self.flush() { Ok(()) } else { Err(()) }
    }

    /// Whether someone takes it.
    fn flush(&mut self) -> bool {
        let records = std::mem::take(&mut self.waiting);
        if records.is_empty() {
            return true;
        }
        let count = records.len() as u64;
        self.give.send(Batch { request: (self.encode)(records), records: count }).is_ok()
    }
}

fn send_all(url: &Url, batches: &Receiver<Batch>) -> (SendCounts, Option<SendFailure>) {
    let mut sent = SendCounts::default();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => return (sent, Some(SendFailure::Start(error))),
    };
    let mut client = Client::new(url.clone(), Bounds { timeout: TIMEOUT, body_bytes_max: RESPONSE_BYTES_MAX });
    while let Ok(batch) = batches.recv() {
        if let Err(why) = runtime.block_on(send_one(&mut client, url, batch, &mut sent)) {
            return (sent, Some(SendFailure::Refused(why)));
        }
    }
    (sent, None)
}

async fn send_one(client: &mut Client, url: &Url, batch: Batch, sent: &mut SendCounts) -> Result<(), String> {
    let request = Bytes::from(batch.request);
    let mut wait = FIRST_WAIT;
    for try_number in 1..=TRIES_MAX {
        let response = client.post(url.path(), "application/x-protobuf", request.clone()).await;
        let response = response.map_err(|error| error.to_string())?;
        if response.status.is_success() {
            let (rejected, why) = encode::rejected(&response.body);
            let rejected = rejected.min(batch.records);
            sent.accepted += batch.records - rejected;
            sent.rejected += rejected;
            if rejected > 0 {
                sent.why.get_or_insert(why);
            }
            return Ok(());
        }
        if !is_for_later(response.status) || try_number == TRIES_MAX {
            return Err(refusal(&response, try_number));
        }
        sent.repeated += 1;
        tokio::time::sleep(requested_wait(&response).unwrap_or(wait).min(WAIT_MAX)).await;
        wait *= 2;
    }
    Ok(())
}

fn is_for_later(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

/// `Retry-After` in seconds; its other form, a date, is not read.
fn requested_wait(response: &Response) -> Option<Duration> {
    response.headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

fn refusal(response: &Response, tries: u32) -> String {
    let message = encode::refusal(&response.body);
    let because = if message.is_empty() { String::new() } else { format!(" ({message})") };
    let times = if tries > 1 { format!(", for the {tries}th time") } else { String::new() };
    format!("it returned {}{because}{times}", response.status)
}
