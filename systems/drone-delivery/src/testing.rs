//! For tests: services that respond from a script, and spans that are kept to be looked at.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::BaseUrl;
use crate::outgoing::{exchange, request};
use narrows_serving::Telemetry;
use narrows_serving::client::Client;

/// A request that a fake has had.
#[derive(Debug, Clone)]
pub(crate) struct FakeRequest {
    /// How many the fake had before it.
    pub(crate) number: usize,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    pub(crate) at: Instant,
}

impl FakeRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Whether it is for the description of a container: `/dbs/D/colls/C`.
    pub(crate) fn is_description(&self) -> bool {
        self.path.contains("/colls/") && self.path.split('/').count() == 5
    }
}

/// A fake's response.
#[derive(Debug, Clone)]
pub(crate) struct FakeResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl FakeResponse {
    pub(crate) fn new(status: u16, body: impl ToString) -> Self {
        Self { status, headers: Vec::new(), body: body.to_string() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }
}

type Script = dyn Fn(FakeRequest) -> Pin<Box<dyn Future<Output = FakeResponse> + Send>> + Send + Sync;

/// A service that responds from a script and remembers the requests it got.
pub(crate) struct Fake {
    pub(crate) url: BaseUrl,
    state: Arc<FakeState>,
}

struct FakeState {
    script: Box<Script>,
    asked: Mutex<Vec<FakeRequest>>,
    in_flight: AtomicUsize,
    in_flight_max: AtomicUsize,
}

impl Fake {
    /// Gives `responses` one after the other, and the last one from then on.
    pub(crate) async fn start(responses: &[(u16, &str)]) -> Self {
        let responses: Vec<FakeResponse> =
            responses.iter().map(|(status, body)| FakeResponse::new(*status, body)).collect();
        Self::with(move |asked| {
            let response = responses[asked.number.min(responses.len() - 1)].clone();
            async move { response }
        })
        .await
    }

    pub(crate) async fn with<F>(script: impl Fn(FakeRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = FakeResponse> + Send + 'static,
    {
        let state = Arc::new(FakeState {
            script: Box::new(move |asked| Box::pin(script(asked))),
            asked: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            in_flight_max: AtomicUsize::new(0),
        });
        let url = serve(Router::new().fallback(respond).with_state(Arc::clone(&state))).await;
        Self { url, state }
    }

    /// A store whose containers have the partition key `key`; the script responds to everything but their descriptions, and
    /// counts without these.
    pub(crate) async fn container<F>(
        key: &'static str,
        script: impl Fn(FakeRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = FakeResponse> + Send + 'static,
    {
        let descriptions = AtomicUsize::new(0);
        let script = Arc::new(script);
        Self::with(move |mut asked| {
            let script = Arc::clone(&script);
            let is_description = asked.is_description();
            asked.number -= descriptions.fetch_add(usize::from(is_description), Ordering::SeqCst);
            async move { if is_description { described(key) } else { script(asked).await } }
        })
        .await
    }

    pub(crate) fn asked(&self) -> Vec<FakeRequest> {
        self.state.asked.lock().unwrap().clone()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.path).collect()
    }

    /// The header's values, of the requests that had it.
    pub(crate) fn headers(&self, name: &str) -> Vec<String> {
        self.asked().iter().filter_map(|asked| asked.header(name).map(str::to_owned)).collect()
    }

    /// The most requests that were in flight at a time.
    pub(crate) fn in_flight_max(&self) -> usize {
        self.state.in_flight_max.load(Ordering::SeqCst)
    }
}

/// The description of a container with this partition key.
pub(crate) fn described(key: &str) -> FakeResponse {
    FakeResponse::new(200, json!({ "id": "c", "partitionKey": { "paths": [format!("/{key}")], "version": 2 } }))
}

async fn respond(State(state): State<Arc<FakeState>>, request: Request) -> Response<Body> {
    let in_flight = state.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
    state.in_flight_max.fetch_max(in_flight, Ordering::SeqCst);
    let at = Instant::now();
    let (head, body) = request.into_parts();
    let body = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap();
    let asked = {
        let mut all = state.asked.lock().unwrap();
        let (number, path) = (all.len(), head.uri.to_string());
        all.push(FakeRequest { number, path, headers: head.headers, body, at });
        all[number].clone()
    };
    let told = (state.script)(asked).await;
    state.in_flight.fetch_sub(1, Ordering::SeqCst);
    let mut response = Response::new(Body::from(told.body));
    *response.status_mut() = StatusCode::from_u16(told.status).unwrap();
    for (name, value) in told.headers {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::try_from(value).unwrap());
    }
    response
}

/// Serves `router` until the test's runtime ends.
pub(crate) async fn serve(router: Router) -> BaseUrl {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
    url
}

/// An address where nobody listens: its port was free just now.
pub(crate) async fn url_of_nobody() -> BaseUrl {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap()).parse().unwrap()
}

/// Requests `path`, which may have a query: status, headers and body.
pub(crate) async fn ask(base: &BaseUrl, path: &str, headers: &[(&'static str, &str)]) -> (u16, HeaderMap, Value) {
    let url = format!("http://{}{path}", base.authority()).parse().unwrap();
    let mut request = request(Method::GET, url, Bytes::new());
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let client = Client::new(std::time::Duration::from_secs(60), 1);
    let reply = exchange(&client, request).await.unwrap();
    (reply.status.as_u16(), reply.headers, serde_json::from_slice(&reply.body).unwrap())
}

pub(crate) async fn body_of(base: &BaseUrl, path: &str, headers: &[(&'static str, &str)]) -> (u16, Value) {
    let (status, _, body) = ask(base, path, headers).await;
    (status, body)
}

/// Spans that are kept in memory.
#[derive(Default)]
pub(crate) struct SpanRecorder(InMemorySpanExporter);

impl SpanRecorder {
    pub(crate) fn telemetry(&self) -> Telemetry {
        Telemetry::with_provider(
            crate::SCOPE,
            SdkTracerProvider::builder().with_simple_exporter(self.0.clone()).build(),
        )
    }

    /// In the order of their ends.
    pub(crate) fn all(&self) -> Vec<SpanData> {
        self.0.get_finished_spans().unwrap()
    }

    pub(crate) fn spans(&self, name: &str) -> Vec<SpanData> {
        self.all().into_iter().filter(|span| span.name == name).collect()
    }

    pub(crate) fn reset(&self) {
        self.0.reset();
    }
}

/// The attribute's value as text.
pub(crate) fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| attribute.value.to_string())
}
