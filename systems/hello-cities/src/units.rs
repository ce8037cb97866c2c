//! Throughput units of a log, as Event Hubs sells them: for each unit, 1 MB and 1,000 appends in a second.
//!
//! Beyond that the service is busy: it refuses an append and tells its sender to wait 4 s. Microsoft documents the units
//! in “How exactly does Event Hubs throttling work?”, and the wait is part of the error's text (code 50002). A unit also
//! limits reads, to 2 MB in a second, but nothing reads a log while its hub is open.
//!
//! Each attempt is a span under the request that runs the workload, as of a call over HTTP.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use narrows_durable::PartitionId;
use narrows_durable::store::{AppendLayer, StoreError};
use opentelemetry::trace::{Span, SpanKind, Status, Tracer};
use opentelemetry::{Context, KeyValue};

/// Name of the service in spans.
const LOG: &str = "log";
/// Length of the time over which a quota counts.
const WINDOW: Duration = Duration::from_secs(1);

/// Limits of a second, and the wait that a refusal requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quota {
    bytes: usize,
    appends: usize,
    retry_after: Duration,
}

impl Quota {
    /// The quota of this many throughput units.
    pub(crate) fn of_units(units: usize) -> Self {
        Self { bytes: units * 1_000_000, appends: units * 1_000, retry_after: Duration::from_secs(4) }
    }
}

/// Appends of the current second.
#[derive(Debug, Default)]
struct Window {
    begun: Option<Instant>,
    bytes: usize,
    appends: usize,
}

impl Window {
    /// Counts an append, unless the second has used up its quota. The append that uses it up may exceed it.
    fn admits(&mut self, quota: &Quota, bytes: usize, now: Instant) -> bool {
        if self.begun.is_none_or(|begun| now.duration_since(begun) >= WINDOW) {
            *self = Self { begun: Some(now), ..Self::default() };
        }
        let has_room = self.bytes < quota.bytes && self.appends < quota.appends;
        if has_room {
            self.bytes += bytes;
            self.appends += 1;
        }
        has_room
    }
}

/// Span of the request that runs the workload, if one runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct CurrentRequest(Arc<Mutex<Option<Context>>>);

impl CurrentRequest {
    pub(crate) fn set(&self, request: Option<Context>) {
        *self.lock() = request;
    }

    fn get(&self) -> Option<Context> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Context>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The quota of a log, which all partitions share.
pub(crate) struct ThroughputUnits<T> {
    quota: Quota,
    window: Mutex<Window>,
    request: CurrentRequest,
    tracer: T,
}

impl<T: Tracer> ThroughputUnits<T> {
    pub(crate) fn new(quota: Quota, request: CurrentRequest, tracer: T) -> Self {
        Self { quota, window: Mutex::default(), request, tracer }
    }

    fn admits(&self, bytes: usize) -> bool {
        self.window.lock().unwrap_or_else(PoisonError::into_inner).admits(&self.quota, bytes, Instant::now())
    }

    /// Span of an attempt; `None` if no workload runs.
    fn attempt(&self, partition: PartitionId) -> Option<T::Span> {
        let parent = self.request.get()?;
        let attributes = [
            KeyValue::new("http.request.method", "POST"),
            KeyValue::new("url.full", format!("http://{LOG}/partitions/{partition}/messages")),
            KeyValue::new("server.address", LOG),
        ];
        let builder = self.tracer.span_builder("POST /partitions/{partition}/messages").with_kind(SpanKind::Client);
        Some(self.tracer.build_with_context(builder.with_attributes(attributes), &parent))
    }

    fn refuse(&self, partition: PartitionId) {
        let Some(mut span) = self.attempt(partition) else { return };
        span.set_attribute(KeyValue::new("http.response.status_code", 503_i64));
        let seconds = self.quota.retry_after.as_secs_f64().to_string();
        span.set_attribute(KeyValue::new("http.response.header.retry-after", seconds));
        span.set_attribute(KeyValue::new("error.type", "503"));
        span.set_status(Status::error("the log is busy"));
        span.end();
    }
}

impl<T> AppendLayer for ThroughputUnits<T>
where
    T: Tracer + Send + Sync + 'static,
{
    fn append(
        &self,
        partition: PartitionId,
        bytes: usize,
        append: &mut dyn FnMut() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        while !self.admits(bytes) {
            self.refuse(partition);
            std::thread::sleep(self.quota.retry_after);
        }
        let span = self.attempt(partition);
        let appended = append();
        if let Some(mut span) = span {
            span.set_attribute(KeyValue::new("http.response.status_code", 201_i64));
            span.end();
        }
        appended
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{TraceContextExt, TracerProvider};
    use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};

    use super::*;

    #[test]
    fn a_second_takes_its_quota_of_bytes_and_of_appends() {
        let (quota, begun) = (Quota { bytes: 100, appends: 3, retry_after: WINDOW }, Instant::now());
        let after = |ms| begun + Duration::from_millis(ms);
        let mut window = Window::default();
        let by_bytes = [(0, 60, true), (10, 60, true), (999, 1, false), (1_000, 1, true)];
        let by_appends = [(2_000, 1, true), (2_001, 1, true), (2_002, 1, true), (2_003, 1, false), (3_000, 1, true)];
        for (ms, bytes, expected) in by_bytes.into_iter().chain(by_appends) {
            assert_eq!(window.admits(&quota, bytes, after(ms)), expected, "{bytes} bytes after {ms} ms");
        }
        let two = Quota::of_units(2);
        assert_eq!((two.bytes, two.appends, two.retry_after), (2_000_000, 2_000, Duration::from_secs(4)));
    }

    #[test]
    fn a_refused_append_waits_as_requested_and_is_a_span_of_the_request() {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let (tracer, request) = (provider.tracer("test"), CurrentRequest::default());
        request.set(Some(Context::new().with_span(tracer.start("POST /workloads/{workload}"))));
        let quota = Quota { bytes: 10, appends: 1_000, retry_after: WINDOW };
        let units = ThroughputUnits::new(quota, request.clone(), tracer);
        let begun = Instant::now();
        let mut written = 0;
        for _ in 0..2 {
            let mut append = || {
                written += 1;
                Ok(())
            };
            assert!(units.append(PartitionId(3), 10, &mut append).is_ok());
        }
        assert!(written == 2 && begun.elapsed() >= WINDOW, "{written} after {:?}", begun.elapsed());
        request.set(None);
        let statuses: Vec<String> = exporter
            .get_finished_spans()
            .unwrap_or_default()
            .iter()
            .flat_map(|span| &span.attributes)
            .filter(|attribute| attribute.key.as_str() == "http.response.status_code")
            .map(|attribute| attribute.value.to_string())
            .collect();
        assert_eq!(statuses, ["201", "503", "201"]);
    }
}
