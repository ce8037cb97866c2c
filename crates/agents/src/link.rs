//! The connection, and the few requests that are made on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::jetstream::context::{AccountErrorKind, CreateStreamErrorKind, GetStreamErrorKind, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, LastRawMessageErrorKind, StorageType};
use async_nats::jetstream::{Context, ContextBuilder, ErrorCode};
use async_nats::{Client, ConnectOptions, Event, Subject};
use bytes::Bytes;
use narrows_nats::{NatsAddress, innermost};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::messages::Response;
use crate::subjects;

/// How long a request may take.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server that is not there yet is waited for.
const START_WAIT: Duration = Duration::from_secs(15);
const PING_EVERY: Duration = Duration::from_secs(1);
/// How long the last words may take.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait before a failed request is made again.
const PAUSE: Duration = Duration::from_millis(200);
/// Longest time that the messages of a trial are kept.
const KEPT_FOR: Duration = Duration::from_secs(48 * 3600);
/// The most bytes that are kept of a trial.
const STREAM_BYTES_MAX: i64 = 4 << 30;
/// How long a stream may be missing before it counts as removed: a server that restarts takes a while to load its streams.
const MISSING_MAX: Duration = Duration::from_secs(10);
/// For so long a message that is sent again is recognised.
const SENT_AGAIN_WITHIN: Duration = Duration::from_secs(10 * 60);

/// The connection.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) client: Client,
    context: Context,
    server: String,
    /// How often it was connected.
    connects: Arc<AtomicU64>,
}

impl Link {
    /// Connects. A server that is not there yet is waited for; one that refuses is not. From then on a lost connection is sought
    /// again without end.
    pub(crate) async fn open(address: &NatsAddress, name: &str) -> Result<Self, Error> {
        let since = Instant::now();
        let connects = Arc::new(AtomicU64::new(0));
        let client = loop {
            let counted = Arc::clone(&connects);
            let options =
                ConnectOptions::new().name(name).ping_interval(PING_EVERY).request_timeout(Some(CALL_TIMEOUT));
            let options = options.event_callback(move |event| {
                let is_new = matches!(event, Event::Connected);
                counted.fetch_add(u64::from(is_new), Ordering::Relaxed);
                std::future::ready(())
            });
            match address.connect(options).await {
                Ok(client) => break client,
                Err(reason) if is_absent(&reason) && since.elapsed() < START_WAIT => tokio::time::sleep(PAUSE).await,
                Err(reason) => return Err(Error::Connect { server: address.to_string(), reason }),
            }
        };
        let context = ContextBuilder::new().timeout(CALL_TIMEOUT).build(client.clone());
        Ok(Self { client, context, server: address.to_string(), connects })
    }

    /// How often it was connected: a loss that is over at once shows only here.
    pub(crate) fn connects(&self) -> u64 {
        self.connects.load(Ordering::Relaxed)
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// A failed request, as an error.
    pub(crate) fn failed<E: std::error::Error>(&self, action: &'static str) -> impl Fn(E) -> Error {
        let server = self.server.clone();
        move |error| Error::Server { server: server.clone(), action, reason: innermost(&error) }
    }

    /// Sends a command to an agent and waits for its response.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        agent: &str,
        command: &'static str,
        body: Bytes,
    ) -> Result<T, Error> {
        let silent = || Error::Silent { agent: agent.to_owned(), action: command, waited: CALL_TIMEOUT };
        let response = self.client.request(subjects::command(agent, command), body).await.map_err(|_| silent())?;
        let response: Response<T> = serde_json::from_slice(&response.payload).map_err(|error| Error::Refused {
            agent: agent.to_owned(),
            reason: format!("its response says nothing: {error}"),
        })?;
        response.map_err(|reason| Error::Refused { agent: agent.to_owned(), reason })
    }

    /// Publishes a message that may be lost.
    pub(crate) async fn say(&self, subject: String, message: &impl Serialize) {
        // While the connection is lost this would wait, and what it says would be old when it is heard.
        if self.is_connected() {
            let _ = self.client.publish(subject, json(message)).await;
        }
    }

    /// Waits until what was said has left, as long as a server is there.
    pub(crate) async fn flush(&self) {
        // Without one this would wait until there is one again.
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, self.client.flush()).await;
    }

    /// Whether the stream of a trial is there.
    pub(crate) async fn has_stream(&self, run: &str, trial: i64) -> Result<bool, Error> {
        match self.context.get_stream(subjects::stream(run, trial)).await {
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(said) if said.error_code() == ErrorCode::STREAM_NOT_FOUND => Ok(false),
                _ if self.has_no_jetstream().await => Err(Error::NoJetStream { server: self.server.clone() }),
                _ => Err(self.failed("look for the trial's reports")(error)),
            },
        }
    }

    async fn has_no_jetstream(&self) -> bool {
        let asked = self.context.query_account().await;
        asked.is_err_and(|error| matches!(error.kind(), AccountErrorKind::JetStreamUnavailable))
    }

    /// Makes the stream of a trial.
    pub(crate) async fn make_stream(&self, run: &str, trial: i64) -> Result<(), Error> {
        let config = Config {
            name: subjects::stream(run, trial),
            subjects: vec![subjects::reports(run, trial, "*")],
            max_age: KEPT_FOR,
            max_bytes: STREAM_BYTES_MAX,
            duplicate_window: SENT_AGAIN_WITHIN,
            storage: StorageType::File,
            ..Config::default()
        };
        let error = match self.context.create_stream(config).await {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        Err(match error.kind() {
            CreateStreamErrorKind::JetStreamUnavailable => Error::NoJetStream { server: self.server.clone() },
            _ => self.failed("make a stream for the trial's reports")(error),
        })
    }

    /// Removes the stream of a trial, if it is there.
    pub(crate) async fn remove_stream(&self, run: &str, trial: i64) {
        let _ = self.context.delete_stream(subjects::stream(run, trial)).await;
    }

    /// Adds a message to a stream, once, however often it has to be sent, and gives its number there; `None` if `is_over` said
    /// so before a server could be reached.
    ///
    /// # Errors
    /// Reason of the server against it, once `is_over` says so, or once the stream has been missing for longer than a server takes
    /// to restart: its coordinator has removed it.
    pub(crate) async fn report(
        &self,
        subject: &str,
        id: &str,
        message: Bytes,
        is_over: impl Fn() -> bool,
    ) -> Result<Option<u64>, String> {
        let mut missing_since: Option<Instant> = None;
        loop {
            let message = PublishMessage::build().payload(message.clone()).message_id(id);
            let sent = match self.context.send_publish(subject.to_owned(), message).await {
                Ok(sent) => sent.await,
                Err(error) => Err(error),
            };
            let error = match sent {
                Ok(added) => return Ok(Some(added.sequence)),
                Err(error) => error,
            };
            let is_missing = self.is_connected() && error.kind() == PublishErrorKind::StreamNotFound;
            missing_since = missing_since.or(is_missing.then(Instant::now)).filter(|_| is_missing);
            if is_over() || missing_since.is_some_and(|since| since.elapsed() > MISSING_MAX) {
                return if self.is_connected() { Err(innermost(&error)) } else { Ok(None) };
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The message with this number in the stream of a trial and its subject; `None` as long as there is none, or no server
    /// that has it.
    pub(crate) async fn read(&self, run: &str, trial: i64, sequence: u64) -> Result<Option<(Subject, Bytes)>, Error> {
        let failed = "read the trial's reports";
        let stream =
            self.context.get_stream_no_info(subjects::stream(run, trial)).await.map_err(self.failed(failed))?;
        let error = match stream.get_raw_message(sequence).await {
            Ok(message) => return Ok(Some((message.subject, message.payload))),
            Err(error) => error,
        };
        match error.kind() {
            LastRawMessageErrorKind::NoMessageFound => Ok(None),
            LastRawMessageErrorKind::JetStream(said) if said.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                Err(self.failed(failed)(error))
            }
            // No server responds: after its restart it has the messages again.
            _ => Ok(None),
        }
    }
}

/// Whether a reason says that no server is there, in the system's words: where all start together, it may be soon.
fn is_absent(reason: &str) -> bool {
    reason.contains("Connection refused") || reason.contains("failed to lookup address")
}

/// A message as JSON.
pub(crate) fn json(message: &impl Serialize) -> Bytes {
    // JSON only fails for maps whose keys are not text, and no message has one.
    serde_json::to_vec(message).unwrap_or_default().into()
}
