//! Requests to the store, one attempt at a time and repeated while it throttles.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use narrows_serving::client::{CallError, Client};
use opentelemetry::Context;
use opentelemetry_sdk::trace::SdkTracer;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::attempt_span::AttemptSpan;
use super::operation::{Operation, Timeout};
use super::{StoreConfig, StoreError};
use crate::Error;
use crate::base_url::server;
use crate::outgoing::{self, Reply};

/// How long one attempt may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// The wait after a 429 that does not say how long.
const RETRY_AFTER_UNSAID: Duration = Duration::from_secs(5);
/// How much of the store's own words is passed on, in characters.
const MESSAGE_CHARACTERS_MAX: usize = 300;

/// Scope of a request: one range, or the range of a partition key.
#[derive(Debug, Clone)]
pub(super) enum Target {
    Range(Arc<str>),
    /// The header's value: a JSON array of the key.
    Key(String),
}

/// Which container, and where.
#[derive(Debug)]
pub(super) struct ContainerAddress {
    pub(super) database: String,
    pub(super) container: String,
    pub(super) address: String,
    pub(super) port: u16,
}

/// Statements in the headers of a response.
#[derive(Debug)]
pub(super) struct ResponseHead {
    pub(super) status: StatusCode,
    /// In request units.
    pub(super) charge: Option<f64>,
    pub(super) sub_status: Option<i64>,
    pub(super) retry_after: Option<Duration>,
    /// The id of the range that responded.
    pub(super) range: Option<String>,
    continuation: Option<HeaderValue>,
}

/// A page of a query.
#[derive(Debug)]
pub(super) struct Page<D> {
    pub(super) documents: Vec<D>,
    /// Continuation for the request of the next page; `None` on the last.
    pub(super) continuation: Option<HeaderValue>,
}

#[derive(Deserialize)]
struct Documents<D> {
    #[serde(rename = "Documents")]
    documents: Vec<D>,
}

/// The connection to one container.
pub(super) struct Wire {
    client: Client,
    tracer: SdkTracer,
    /// One permit for each request that may be under way. The wait for one is in no attempt's span.
    places: Semaphore,
    retries_max: u32,
    place: ContainerAddress,
    container: Uri,
    documents: Uri,
    ranges: Uri,
}

impl Wire {
    pub(super) fn new(config: &StoreConfig, tracer: SdkTracer) -> Result<Self, Error> {
        let container = format!("/dbs/{}/colls/{}", config.database, config.container);
        let documents = config.url.at(&format!("{container}/docs"))?;
        let (address, port) = server(&documents);
        Ok(Self {
            client: Client::new(ATTEMPT_TIMEOUT, config.connections_max).with_token(config.token.as_ref()),
            tracer,
            places: Semaphore::new(config.connections_max),
            retries_max: config.retries_max,
            place: ContainerAddress {
                database: config.database.clone(),
                container: config.container.clone(),
                address: address.to_owned(),
                port,
            },
            container: config.url.at(&container)?,
            documents,
            ranges: config.url.at(&format!("{container}/pkranges"))?,
        })
    }

    /// The description of the container.
    pub(super) async fn container(&self, parent: &Context) -> Result<Vec<u8>, StoreError> {
        self.description(&self.container, parent).await
    }

    /// The description of the container's ranges.
    pub(super) async fn ranges(&self, parent: &Context) -> Result<Vec<u8>, StoreError> {
        self.description(&self.ranges, parent).await
    }

    async fn description(&self, url: &Uri, parent: &Context) -> Result<Vec<u8>, StoreError> {
        let _place = self.place_on_the_wire().await?;
        let reply = outgoing::get(&self.client, &self.tracer, parent, url.clone(), 0).await;
        let reply = reply.map_err(|error| unreachable(&error))?;
        match reply.status {
            StatusCode::OK => Ok(reply.body.to_vec()),
            StatusCode::TOO_MANY_REQUESTS => {
                let retry_after = ResponseHead::from_reply(&reply).retry_after.unwrap_or(RETRY_AFTER_UNSAID);
                Err(StoreError::Throttled { retries: 0, retry_after })
            }
            _ => Err(refused(&reply)),
        }
    }

    /// A page, requested again after each 429 until the request's deadline or its last retry.
    pub(super) async fn page<D: DeserializeOwned>(
        &self,
        operation: &Operation,
        target: &Target,
        continuation: Option<&HeaderValue>,
    ) -> Result<Page<D>, StoreError> {
        let mut resend = 0;
        let mut timeout = Timeout::new(self.retries_max);
        loop {
            let wait = match self.attempt(operation, target, continuation, resend).await? {
                Outcome::Page(page) => return Ok(page),
                Outcome::Throttled(wait) => wait,
            };
            timeout.take(wait).map_err(|retries| StoreError::Throttled { retries, retry_after: wait })?;
            tokio::time::sleep(wait).await;
            resend += 1;
        }
    }

    async fn attempt<D: DeserializeOwned>(
        &self,
        operation: &Operation,
        target: &Target,
        continuation: Option<&HeaderValue>,
        resend: u32,
    ) -> Result<Outcome<D>, StoreError> {
        let request = self.request(operation, target, continuation)?;
        let _place = self.place_on_the_wire().await?;
        let span = AttemptSpan::begin(&self.tracer, &operation.parent, &self.place, operation.text, target, resend);
        let reply = match outgoing::exchange(&self.client, request).await {
            Ok(reply) => reply,
            Err(error) => {
                span.failed(&error);
                return Err(unreachable(&error));
            }
        };
        let head = ResponseHead::from_reply(&reply);
        let outcome = outcome(&reply, &head);
        let rows = match &outcome {
            Ok(Outcome::Page(page)) => Some(page.documents.len()),
            _ => None,
        };
        span.responded(&head, rows);
        outcome
    }

    fn request(
        &self,
        operation: &Operation,
        target: &Target,
        continuation: Option<&HeaderValue>,
    ) -> Result<Request<Bytes>, StoreError> {
        let mut request = outgoing::request(Method::POST, self.documents.clone(), operation.body.clone().into());
        let (name, value) = match target {
            Target::Range(id) => ("x-ms-documentdb-partitionkeyrangeid", &**id),
            Target::Key(key) => ("x-ms-documentdb-partitionkey", key.as_str()),
        };
        let value = header_value(value)
            .ok_or_else(|| StoreError::Malformed(format!("{value:?} cannot stand in the header {name}")))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/query+json"));
        headers.insert("x-ms-documentdb-isquery", HeaderValue::from_static("true"));
        headers.insert(HeaderName::from_static(name), value);
        if let Some(continuation) = continuation {
            headers.insert("x-ms-continuation", continuation.clone());
        }
        Ok(request)
    }

    async fn place_on_the_wire(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        // Nobody closes the semaphore.
        self.places.acquire().await.map_err(|_| StoreError::Interrupted)
    }
}

enum Outcome<D> {
    Page(Page<D>),
    Throttled(Duration),
}

fn outcome<D: DeserializeOwned>(reply: &Reply, head: &ResponseHead) -> Result<Outcome<D>, StoreError> {
    match head.status {
        StatusCode::OK => {
            let read: Documents<D> = serde_json::from_slice(&reply.body)
                .map_err(|error| StoreError::Malformed(format!("a page of documents: {error}")))?;
            let continuation = head.continuation.clone();
            Ok(Outcome::Page(Page { documents: read.documents, continuation }))
        }
        StatusCode::TOO_MANY_REQUESTS => Ok(Outcome::Throttled(head.retry_after.unwrap_or(RETRY_AFTER_UNSAID))),
        StatusCode::GONE => Err(StoreError::RangesGone),
        _ => Err(refused(reply)),
    }
}

fn refused(reply: &Reply) -> StoreError {
    let body: Option<Value> = serde_json::from_slice(&reply.body).ok();
    let message = body.as_ref().and_then(|body| body["message"].as_str()).unwrap_or("no message");
    let message = message.chars().take(MESSAGE_CHARACTERS_MAX).collect();
    let status = reply.status.as_u16();
    if reply.status.is_server_error() {
        StoreError::Unavailable { status, message }
    } else {
        StoreError::Refused { status, message }
    }
}

fn unreachable(error: &CallError) -> StoreError {
    match error {
        CallError::Connection(_) | CallError::Timeout => StoreError::Unreachable(error.to_string()),
        CallError::TooLarge => StoreError::Malformed(error.to_string()),
    }
}

impl ResponseHead {
    fn from_reply(reply: &Reply) -> Self {
        let headers = &reply.headers;
        let retry_after = number::<f64>(headers, "x-ms-retry-after-ms").filter(|wait_ms| *wait_ms >= 0.0);
        Self {
            status: reply.status,
            charge: number(headers, "x-ms-request-charge"),
            sub_status: number(headers, "x-ms-substatus"),
            retry_after: retry_after.and_then(|wait_ms| Duration::try_from_secs_f64(wait_ms / 1_000.0).ok()),
            range: text(headers, "x-ms-session-token").and_then(range_of_session),
            continuation: headers.get("x-ms-continuation").filter(|token| !token.is_empty()).cloned(),
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn number<T: std::str::FromStr>(headers: &HeaderMap, name: &str) -> Option<T> {
    text(headers, name).and_then(|text| text.parse().ok())
}

/// A session token is the range's id, a colon and the session.
fn range_of_session(token: &str) -> Option<String> {
    token.split_once(':').map(|(range, _)| range.to_owned())
}

/// Headers are ASCII: in JSON, other characters have an escape that is.
fn header_value(text: &str) -> Option<HeaderValue> {
    let mut ascii = String::with_capacity(text.len());
    for unit in text.chars() {
        if unit.is_ascii() {
            ascii.push(unit);
        } else {
            let mut units = [0; 2];
            ascii.extend(unit.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    HeaderValue::try_from(ascii).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_any_letters_can_stand_in_a_header() {
        for key in ["o0001", "ö", "鳥", "🛸", "a\"b\\c", "tab\t"] {
            let sent = header_value(&serde_json::json!([key]).to_string()).unwrap();
            let read: Vec<String> = serde_json::from_str(sent.to_str().unwrap()).unwrap();
            assert_eq!(read, [key]);
        }
    }

    #[test]
    fn headers_that_say_nothing_are_as_if_they_were_not_there() {
        for value in ["", "x", "-1", "1e999", "NaN"] {
            let mut headers = HeaderMap::new();
            headers.insert("x-ms-retry-after-ms", HeaderValue::from_static(value));
            headers.insert("x-ms-session-token", HeaderValue::from_static(value));
            headers.insert("x-ms-continuation", HeaderValue::from_static(""));
            let reply = Reply { status: StatusCode::OK, headers, body: Vec::new().into() };
            let head = ResponseHead::from_reply(&reply);
            assert_eq!((head.retry_after, head.range, head.continuation), (None, None, None), "{value}");
        }
    }
}
