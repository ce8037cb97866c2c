//! Shared code of the programs: serving axum's routes, with a span for each request where they want one.

use std::io;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{FutureExt, SpanKind, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue, global};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Whether FAULT is set.
pub fn is_faulty() -> bool {
    std::env::var("FAULT").is_ok_and(|fault| !fault.is_empty())
}

/// Serves at PORT until SIGTERM.
pub fn serve(routes: Router) -> io::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let port = std::env::var("PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(8080);
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let mut terminate = signal(SignalKind::terminate())?;
        let stop = async move {
            terminate.recv().await;
        };
        axum::serve(listener, routes).with_graceful_shutdown(stop).await
    })
}

/// Serves with a span for each request, exported over OTLP.
pub fn serve_traced(routes: Router) -> io::Result<()> {
    let exporter = SpanExporter::builder().with_http().build().map_err(io::Error::other)?;
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
    global::set_tracer_provider(provider.clone());
    let served = serve(routes.layer(from_fn(trace)));
    provider.shutdown().map_err(io::Error::other)?;
    served
}

async fn trace(request: Request, next: Next) -> Response {
    let parent = TraceContextPropagator::new().extract(&HeaderExtractor(request.headers()));
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str).to_owned();
    let tracer = global::tracer_provider().tracer("axum");
    let span = tracer
        .span_builder(format!("{} {route}", request.method()))
        .with_kind(SpanKind::Server)
        .with_attributes([
            KeyValue::new("http.request.method", request.method().to_string()),
            KeyValue::new("http.route", route),
        ])
        .start_with_context(&tracer, &parent);
    let context = Context::new().with_span(span);
    let response = next.run(request).with_context(context.clone()).await;
    context.span().set_attribute(KeyValue::new("http.response.status_code", i64::from(response.status().as_u16())));
    response
}
