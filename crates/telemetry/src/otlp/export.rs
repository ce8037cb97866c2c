//! An export, whatever it came by: from a body to the store's receipt to a verdict.
//!
//! The wait for a receipt has no limit of its own: what is queued will be committed, so a "try again" in the meantime
//! would have log lines and points stored twice. The store resolves every receipt, and requests in flight are bounded.
//! A sender that gives up by itself (SDKs do after 10 seconds) and sends again is not helped by this.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::body::{Encoding, INFLATED_BYTES_MAX, Unreadable, inflate};
use super::convert::{self, Conversion, cut};
use super::request::Format;
use super::stats::{Counter, Counters};
use super::weights::Weights;
use crate::{KeptCounts, Receipt, Store, StoreError};

/// Requests in flight at once, those waiting for the store included.
pub(super) const IN_FLIGHT_MAX: usize = 64;
/// The longest a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest message to a sender, in bytes: gRPC carries it in a header.
const MESSAGE_BYTES_MAX: usize = 1 << 10;

/// Exported records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Metrics,
    Logs,
}

/// Why a request is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The request is not what it says it is.
    Malformed,
    /// Its frame, or its compression, is not.
    Framing,
    /// An encoding or a kind of call that is not known here.
    Unsupported,
    /// More than a limit allows.
    TooLarge,
    /// It does not show the token.
    Unauthenticated,
    /// The body did not come in time.
    TooSlow,
    /// It was not kept in the time that its sender gave.
    Late,
    /// Too much at once: the sender should try again.
    Busy,
    /// The store cannot keep anything.
    Broken,
}

/// Reason for which a request is not kept, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) why: Why,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(why: Why, message: impl Into<String>) -> Self {
        Self { why, message: cut(message.into(), MESSAGE_BYTES_MAX) }
    }
}

/// Outcome of a request that was understood.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Verdict {
    /// Records that are not kept and need not be sent again.
    pub(super) rejected: u64,
    /// Why, or what was cut off those that are kept. Empty when all was kept whole.
    pub(super) message: String,
}

/// Receiver of requests.
pub(super) struct Exporter {
    store: Arc<dyn Store>,
    weights: Weights,
    counters: Arc<Counters>,
    in_flight: Semaphore,
}

/// A request that was understood and is on its way into the store.
struct Submission {
    /// `None` if there was nothing to keep.
    receipt: Option<Receipt>,
    malformed: u64,
    over_limit: u64,
    complaint: Option<String>,
    warning: Option<String>,
}

impl Exporter {
    pub(super) fn new(store: Arc<dyn Store>, weights: Weights, counters: Arc<Counters>) -> Self {
        Self { store, weights, counters, in_flight: Semaphore::new(IN_FLIGHT_MAX) }
    }

    /// A place among the requests in flight, to be taken before the body is read.
    pub(super) fn admit(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        let full = |_| Refusal::new(Why::Busy, format!("more than {IN_FLIGHT_MAX} requests in flight"));
        self.in_flight.try_acquire().map_err(full)
    }

    /// Counts a request that was refused.
    pub(super) fn count(&self, refusal: &Refusal) {
        let counter = match refusal.why {
            Why::Late | Why::Busy | Why::Broken => &self.counters.unserved_requests,
            Why::Unauthenticated => &self.counters.unauthenticated_requests,
            Why::Malformed | Why::Framing | Why::Unsupported | Why::TooLarge | Why::TooSlow => {
                &self.counters.malformed_requests
            }
        };
        counter.add(1);
    }

    /// Hands over what is in `body`, and waits until it is kept.
    pub(super) async fn export(
        &self,
        signal: Signal,
        format: Format,
        encoding: Encoding,
        body: Bytes,
    ) -> Result<Verdict, Refusal> {
        let stored = self.store(signal, format, encoding, &body)?;
        drop(body);
        let kept = match stored.receipt {
            Some(receipt) => resolved(receipt).await?,
            None => KeptCounts::default(),
        };
        let over_limit = kept.over_limit + stored.over_limit;
        self.counters.refused.add(over_limit);
        Ok(verdict(over_limit, stored.malformed, stored.complaint, stored.warning))
    }

    /// Not async on purpose: inflated bodies and half-converted records live on a worker's stack only.
    fn store(&self, signal: Signal, format: Format, encoding: Encoding, body: &[u8]) -> Result<Submission, Refusal> {
        let inflated;
        let bytes = match encoding {
            Encoding::Plain => body,
            Encoding::Gzip => {
                inflated = inflate(body, INFLATED_BYTES_MAX).map_err(unreadable)?;
                &inflated
            }
        };
        let malformed = |error: super::MalformedRequest| Refusal::new(Why::Malformed, error.to_string());
        let (store, counters) = (&self.store, &self.counters);
        Ok(match signal {
            Signal::Traces => {
                let (packed, others) = convert::spans_to_keep(bytes, format, &self.weights).map_err(malformed)?;
                let spans = packed.spans();
                self.hand_over(others, spans, &counters.spans, |others| match spans {
                    0 => store.spans(others),
                    _ => store.packed(packed, others),
                })
            }
            Signal::Metrics => {
                let points = convert::points(bytes, format, crate::now_ns()).map_err(malformed)?;
                self.hand_over(points, 0, &counters.points, |points| store.points(points))
            }
            Signal::Logs => {
                let lines = convert::logs(bytes, format, crate::now_ns()).map_err(malformed)?;
                self.hand_over(lines, 0, &counters.logs, |lines| store.logs(lines))
            }
        })
    }

    /// `elsewhere` counts the records of the request that `keep` knows of already.
    fn hand_over<T>(
        &self,
        converted: Conversion<T>,
        elsewhere: usize,
        arrived: &Counter,
        keep: impl FnOnce(Vec<T>) -> Receipt,
    ) -> Submission {
        let Conversion { records, malformed, over_limit, complaint, warning, .. } = converted;
        self.counters.batches.add(1);
        self.counters.malformed_records.add(malformed);
        let made_sense = records.len() + elsewhere;
        arrived.add(made_sense as u64 + over_limit);
        let receipt = (made_sense > 0).then(|| keep(records));
        Submission { receipt, malformed, over_limit, complaint, warning }
    }
}

/// All of a body of at most `bytes_max` bytes that arrives in time.
pub(super) async fn read(body: Incoming, bytes_max: usize) -> Result<Bytes, Refusal> {
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, bytes_max).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(bytes_max)),
        // A sender that broke the connection reads no response; one that broke the encoding of chunks may.
        Ok(Err(error)) => Err(Refusal::new(Why::Framing, format!("body broke off: {error}"))),
        Err(_) => Err(Refusal::new(Why::TooSlow, format!("body took longer than {BODY_TIMEOUT:?}"))),
    }
}

pub(super) fn too_large(bytes_max: usize) -> Refusal {
    Refusal::new(Why::TooLarge, format!("body is larger than {bytes_max} bytes"))
}

fn unreadable(error: Unreadable) -> Refusal {
    match error {
        Unreadable::TooLarge => {
            Refusal::new(Why::TooLarge, format!("body inflates to more than {INFLATED_BYTES_MAX} bytes"))
        }
        Unreadable::NotGzip(what) => Refusal::new(Why::Framing, format!("body is not whole gzip: {what}")),
    }
}

async fn resolved(receipt: Receipt) -> Result<KeptCounts, Refusal> {
    match receipt.await {
        Ok(Ok(kept)) => Ok(kept),
        Ok(Err(refused @ StoreError::Busy)) => Err(Refusal::new(Why::Busy, refused.to_string())),
        Ok(Err(refused @ StoreError::Broken(_))) => Err(Refusal::new(Why::Broken, refused.to_string())),
        Err(_) => Err(Refusal::new(Why::Broken, "the run file was left unwritten")),
    }
}

fn verdict(over_limit: u64, malformed: u64, complaint: Option<String>, warning: Option<String>) -> Verdict {
    let mut reasons = Vec::new();
    if over_limit > 0 {
        reasons.push(format!("{over_limit} over the storage limit"));
    }
    if malformed > 0 {
        reasons.push(format!("{malformed} malformed, the first: {}", complaint.unwrap_or_default()));
    }
    reasons.extend(warning);
    Verdict { rejected: over_limit + malformed, message: cut(reasons.join("; "), MESSAGE_BYTES_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_waited_for_however_late_it_comes() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let kept = KeptCounts { kept: 1, ..KeptCounts::default() };
        let outcome = runtime.block_on(async {
            let (tell, receipt) = tokio::sync::oneshot::channel();
            let waiting = tokio::spawn(resolved(receipt));
            // An hour of the paused clock, which takes no time.
            tokio::time::sleep(Duration::from_secs(3600)).await;
            tell.send(Ok(kept)).unwrap();
            waiting.await.unwrap()
        });
        assert_eq!(outcome, Ok(kept));
    }

    #[test]
    fn a_verdict_says_what_was_not_kept_and_what_was_cut() {
        let said = |text: &str| Some(text.to_owned());
        assert_eq!(verdict(0, 0, None, None), Verdict::default());
        let part = verdict(2, 1, said("no id"), said("cut"));
        assert_eq!(
            (part.rejected, part.message.as_str()),
            (3, "2 over the storage limit; 1 malformed, the first: no id; cut")
        );
        assert_eq!(verdict(0, 0, None, said("cut")), Verdict { rejected: 0, message: "cut".to_owned() });
        assert_eq!(verdict(0, 1, said(&"é".repeat(MESSAGE_BYTES_MAX)), None).message.len(), MESSAGE_BYTES_MAX);
    }
}
