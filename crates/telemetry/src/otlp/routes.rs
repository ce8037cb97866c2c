//! The three export routes: from a request to the store's receipt to an answer.
//!
//! The wait for a receipt has no limit of its own: what is queued will be committed, so a "try again" in the meantime
//! would have log lines and points stored twice. The store answers every call, and requests in flight are bounded. A
//! sender that gives up by itself (SDKs do after 10 seconds) and sends again is not helped by this.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::post;
use tokio::sync::Semaphore;

use super::answer;
use super::body::{COMPRESSED_BYTES_MAX, ContentType, Encoding, INFLATED_BYTES_MAX, Unreadable, inflate};
use super::convert::{self, Converted};
use super::stats::{Counter, Counters};
use super::weights::Weights;
use crate::{Kept, Receipt, Refused, Store};

/// Requests in flight at once, those waiting for the store included.
pub(super) const IN_FLIGHT_MAX: usize = 64;
/// The longest a body may take to arrive.
const BODY_PATIENCE: Duration = Duration::from_secs(10);

pub(super) const EXPECTS_PROTOBUF: &str =
    "expected content type application/x-protobuf; OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf sets it";

/// What a request is not kept for.
type Refusal = (StatusCode, String);

#[derive(Clone, Copy)]
enum Signal {
    Traces,
    Metrics,
    Logs,
}

struct Shared {
    store: Arc<dyn Store>,
    weights: Weights,
    counters: Arc<Counters>,
    in_flight: Semaphore,
}

pub(super) fn router(store: Arc<dyn Store>, weights: Weights, counters: Arc<Counters>) -> Router {
    let in_flight = Semaphore::new(IN_FLIGHT_MAX);
    let shared = Arc::new(Shared { store, weights, counters, in_flight });
    let route =
        |signal| post(move |State(shared): State<Arc<Shared>>, request: Request| shared.answer(signal, request));
    Router::new()
        .route("/v1/traces", route(Signal::Traces))
        .route("/v1/metrics", route(Signal::Metrics))
        .route("/v1/logs", route(Signal::Logs))
        .with_state(shared)
}

/// A request that was understood and is on its way into the store.
struct Stored {
    /// None when there was nothing to keep.
    receipt: Option<Receipt>,
    malformed: u64,
    over_limit: u64,
    complaint: Option<String>,
}

impl Shared {
    async fn answer(self: Arc<Self>, signal: Signal, request: Request) -> Response<Body> {
        let content_type = ContentType::of(request.headers());
        match self.export(signal, content_type, request).await {
            Ok(response) => response,
            Err((status, message)) => {
                let is_ours = status.is_server_error();
                let counter =
                    if is_ours { &self.counters.unserved_requests } else { &self.counters.malformed_requests };
                counter.add(1);
                answer::refused(status, content_type, message)
            }
        }
    }

    async fn export(
        &self,
        signal: Signal,
        content_type: ContentType,
        request: Request,
    ) -> Result<Response<Body>, Refusal> {
        if content_type != ContentType::Protobuf {
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, EXPECTS_PROTOBUF.to_owned()));
        }
        let Ok(_permit) = self.in_flight.try_acquire() else {
            return Err(unavailable(format!("more than {IN_FLIGHT_MAX} requests in flight")));
        };
        let (parts, body) = request.into_parts();
        let body = read(&parts.headers, body).await?;
        let stored = self.store(signal, &parts.headers, &body)?;
        drop(body);
        let kept = match stored.receipt {
            Some(receipt) => resolved(receipt).await?,
            None => Kept::default(),
        };
        let over_limit = kept.over_limit + stored.over_limit;
        self.counters.refused.add(over_limit);
        Ok(verdict(over_limit, stored.malformed, stored.complaint))
    }

    /// Not async on purpose: inflated bodies and half-converted records live on a worker's stack only.
    fn store(&self, signal: Signal, headers: &HeaderMap, body: &[u8]) -> Result<Stored, Refusal> {
        let inflated;
        let bytes = match encoding(headers)? {
            Encoding::Plain => body,
            Encoding::Gzip => {
                inflated = inflate(body, INFLATED_BYTES_MAX).map_err(unreadable)?;
                &inflated
            }
        };
        let malformed = |error: super::Malformed| (StatusCode::BAD_REQUEST, error.to_string());
        let (store, counters) = (&self.store, &self.counters);
        Ok(match signal {
            Signal::Traces => {
                let spans = convert::spans(bytes, &self.weights).map_err(malformed)?;
                self.hand_over(spans, &counters.spans, |spans| store.spans(spans))
            }
            Signal::Metrics => {
                let points = convert::points(bytes, now_ns()).map_err(malformed)?;
                self.hand_over(points, &counters.points, |points| store.points(points))
            }
            Signal::Logs => {
                let lines = convert::logs(bytes, now_ns()).map_err(malformed)?;
                self.hand_over(lines, &counters.logs, |lines| store.logs(lines))
            }
        })
    }

    fn hand_over<T>(&self, converted: Converted<T>, arrived: &Counter, keep: impl Fn(Vec<T>) -> Receipt) -> Stored {
        let Converted { records, malformed, over_limit, complaint } = converted;
        self.counters.batches.add(1);
        self.counters.malformed_records.add(malformed);
        arrived.add(records.len() as u64 + over_limit);
        let receipt = (!records.is_empty()).then(|| keep(records));
        Stored { receipt, malformed, over_limit, complaint }
    }
}

async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Refusal> {
    let too_large = || (StatusCode::PAYLOAD_TOO_LARGE, format!("body is larger than {COMPRESSED_BYTES_MAX} bytes"));
    let length = headers.get("content-length").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > COMPRESSED_BYTES_MAX as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_PATIENCE, axum::body::to_bytes(body, COMPRESSED_BYTES_MAX)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        // Without a length that is too large, the limit and a broken connection are the two ways to fail; the sender
        // of the latter reads no answer.
        Ok(Err(_)) => Err(too_large()),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, format!("body took longer than {BODY_PATIENCE:?}"))),
    }
}

fn encoding(headers: &HeaderMap) -> Result<Encoding, Refusal> {
    Encoding::of(headers).map_err(|name| {
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("content encoding {name:?} is unknown, expected gzip or none"))
    })
}

fn unreadable(error: Unreadable) -> Refusal {
    match error {
        Unreadable::TooLarge => {
            (StatusCode::PAYLOAD_TOO_LARGE, format!("body inflates to more than {INFLATED_BYTES_MAX} bytes"))
        }
        Unreadable::NotGzip(what) => (StatusCode::BAD_REQUEST, format!("body is not whole gzip: {what}")),
    }
}

async fn resolved(receipt: Receipt) -> Result<Kept, Refusal> {
    match receipt.await {
        Ok(Ok(kept)) => Ok(kept),
        Ok(Err(refused @ Refused::Busy)) => Err(unavailable(refused.to_string())),
        Ok(Err(refused @ Refused::Broken(_))) => Err((StatusCode::INTERNAL_SERVER_ERROR, refused.to_string())),
        Err(_) => Err((StatusCode::INTERNAL_SERVER_ERROR, "the run file was left unwritten".to_owned())),
    }
}

fn unavailable(message: String) -> Refusal {
    (StatusCode::SERVICE_UNAVAILABLE, message)
}

fn verdict(over_limit: u64, malformed: u64, complaint: Option<String>) -> Response<Body> {
    let mut reasons = Vec::new();
    if over_limit > 0 {
        reasons.push(format!("{over_limit} over the limit of what is kept"));
    }
    if malformed > 0 {
        reasons.push(format!("{malformed} malformed, the first: {}", complaint.unwrap_or_default()));
    }
    match reasons.is_empty() {
        true => answer::kept(),
        false => answer::kept_in_part(over_limit + malformed, reasons.join("; ")),
    }
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_waited_for_however_late_it_comes() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let kept = Kept { kept: 1, over_limit: 0 };
        let answer = runtime.block_on(async {
            let (tell, receipt) = tokio::sync::oneshot::channel();
            let waiting = tokio::spawn(resolved(receipt));
            // An hour of the paused clock, which takes no time.
            tokio::time::sleep(Duration::from_secs(3600)).await;
            tell.send(Ok(kept)).unwrap();
            waiting.await.unwrap()
        });
        assert_eq!(answer, Ok(kept));
    }
}
