//! A server and its client in one process, traced by hand: what a Rust program with OpenTelemetry's own crates exports.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Span, SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue, metrics::MeterProvider};
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tokio::runtime::{Handle, Runtime};

/// Set in the process that exports; its value means nothing.
const EXPORTS: &str = "NARROWS_TEST_EXPORTS";
const TIMEOUT: Duration = Duration::from_secs(60);
const ROUTES: [(&str, &str, i64); 2] = [("/hello/world", "/hello/{name}", 200), ("/boom", "/boom", 500)];

/// The words of a command that runs `test` of this program again, as the process that exports.
pub(crate) fn command(test: &str) -> Vec<String> {
    let own = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    ["env", &format!("{EXPORTS}=1"), &own, "--exact", test, "--nocapture"].map(str::to_owned).to_vec()
}

/// Whether this is the process that exports.
pub(crate) fn is_wanted() -> bool {
    std::env::var_os(EXPORTS).is_some()
}

/// Serves and sends the requests, and exports their spans and metrics to the receiver that the environment names.
pub(crate) fn export() {
    let runtime = Runtime::new().unwrap();
    let _within = runtime.enter();
    let (tracing, metering) = match std::env::var("OTEL_EXPORTER_OTLP_PROTOCOL").as_deref() {
        Ok("grpc") => {
            let traces = SpanExporter::builder().with_tonic().build().unwrap();
            providers(traces, MetricExporter::builder().with_tonic().build().unwrap())
        }
        _ => {
            let client = || OnRuntime { runtime: runtime.handle().clone(), client: plain_client() };
            let traces = SpanExporter::builder().with_http().with_http_client(client()).build().unwrap();
            let metrics = MetricExporter::builder().with_http().with_http_client(client()).build().unwrap();
            providers(traces, metrics)
        }
    };
    requests(&tracing, &metering);
    metering.shutdown().unwrap();
    tracing.shutdown().unwrap();
}

fn plain_client() -> HyperClient {
    HyperClient::with_default_connector(TIMEOUT, None)
}

/// The client of HTTP needs a runtime, which the threads of the exporters do not have.
#[derive(Debug)]
struct OnRuntime {
    runtime: Handle,
    client: HyperClient,
}

#[async_trait]
impl HttpClient for OnRuntime {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        self.runtime.spawn(async move { client.send_bytes(request).await }).await?
    }
}

fn providers(traces: SpanExporter, metrics: MetricExporter) -> (SdkTracerProvider, SdkMeterProvider) {
    let tracing = SdkTracerProvider::builder().with_batch_exporter(traces).build();
    (tracing, SdkMeterProvider::builder().with_periodic_exporter(metrics).build())
}

fn requests(tracing: &SdkTracerProvider, metering: &SdkMeterProvider) {
    let tracer = tracing.tracer("exporter");
    let duration = metering.meter("exporter").f64_histogram("http.server.request.duration").with_unit("s").build();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (_, route, status) in ROUTES {
                let began = Instant::now();
                respond(&tracer, listener.accept().unwrap().0, route, status);
                duration.record(began.elapsed().as_secs_f64(), &[KeyValue::new("http.route", route)]);
            }
        });
        for (path, _, status) in ROUTES {
            send(&tracer, &address, path, status);
        }
    });
}

fn send(tracer: &SdkTracer, address: &str, path: &str, status: i64) {
    let attributes = [
        KeyValue::new("http.request.method", "GET"),
        KeyValue::new("url.full", format!("http://{address}{path}")),
        KeyValue::new("http.response.status_code", status),
    ];
    let span = tracer.span_builder("GET").with_kind(SpanKind::Client).with_attributes(attributes).start(tracer);
    let context = Context::new().with_span(span);
    let mut headers = HashMap::new();
    TraceContextPropagator::new().inject_context(&context, &mut headers);
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\ntraceparent: {}\r\n\r\n", headers["traceparent"]).unwrap();
    let mut response = String::new();
    BufReader::new(stream).read_line(&mut response).unwrap();
    assert!(response.contains(&status.to_string()), "{response}");
    context.span().end();
}

fn respond(tracer: &SdkTracer, stream: TcpStream, route: &'static str, status: i64) {
    let mut lines = BufReader::new(stream);
    let mut headers = HashMap::new();
    let mut path = String::new();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        match line.trim().split_once(": ") {
            Some((name, value)) => drop(headers.insert(name.to_owned(), value.to_owned())),
            None if line.trim().is_empty() => break,
            None => path = line.split(' ').nth(1).unwrap().to_owned(),
        }
    }
    let caller = TraceContextPropagator::new().extract(&headers);
    let attributes = [
        KeyValue::new("http.request.method", "GET"),
        KeyValue::new("url.path", path),
        KeyValue::new("url.scheme", "http"),
        KeyValue::new("http.route", route),
        KeyValue::new("http.response.status_code", status),
    ];
    let builder = tracer.span_builder(format!("GET {route}")).with_kind(SpanKind::Server).with_attributes(attributes);
    let mut span = builder.start_with_context(tracer, &caller);
    if status == 500 {
        span.record_error(&std::io::Error::other("boom"));
        span.set_status(Status::error("boom"));
    }
    write!(lines.get_mut(), "HTTP/1.1 {status} Said\r\nContent-Length: 0\r\n\r\n").unwrap();
    span.end();
}
