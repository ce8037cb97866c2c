//! The connection to the servers, and the few requests that the store makes on it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{GetStreamErrorKind, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{Context, ContextBuilder};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use narrows_durable::store::{Location, StoreError};
use narrows_nats::innermost;

use super::options::{Address, NatsStoreOptions};
use crate::calls::{pause, unique_number};

/// How often the server is pinged. One that has not responded to two of them is left for another: it may have been paused,
/// or its machine may have vanished, and neither ends the connection.
const PING_EVERY: Duration = Duration::from_secs(1);
/// Room that the headers of a message take.
const HEADERS_BYTES: usize = 1 << 10;
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Commands that wait for the connection, and messages that wait for a receiver.
const WAITING_MAX: usize = 256;
const RECEIVED_MAX: usize = 4096;
/// The first version of servers whose purges are exact, also in a cluster.
const PURGES_SINCE: [u32; 3] = [2, 9, 18];
/// The errors of JetStream that say that there is no more room, by their codes.
const FULL: [&str; 3] = ["10047", "10023", "10028"];

/// Predecessor of a message.
///
/// Servers of a cluster check expectations twice: the leader before it proposes the message, as far as the last message of
/// its subject is concerned and there is one, and every replica when it stores the message. In server 2.9, replicas come to
/// differ if one restarts after a message was refused by the second check. So whatever may well be refused expects a message
/// of its subject.
#[derive(Clone, Copy, Debug)]
pub(super) enum Behind {
    /// Anything. What is sent again within two minutes, with this number, is stored once.
    Any(i64),
    /// The last message of the stream, and the last of its subject; 0 if there is none.
    Last { stream: u64, subject: u64 },
    /// The last message of its subject; 0 if there is none.
    LastOfSubject(u64),
}

impl Behind {
    /// Anything, once.
    pub(super) fn any() -> Self {
        Self::Any(unique_number())
    }
}

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum RequestFailure {
    /// The message that it was to follow is not the last one any more.
    Moved,
    /// There was no response, or none that helps. It can be tried again.
    Lost(String),
    /// There is no such stream.
    NoStream,
}

impl RequestFailure {
    /// The error for the caller of the store.
    pub(super) fn at(self, action: &'static str, place: Location) -> StoreError {
        let reason = match self {
            Self::NoStream => {
                let what = "there are no streams of a hub (a hub is created when it is first opened)".to_owned();
                return StoreError::Foreign { place, what };
            }
            Self::Moved => "another node wrote at the same time".to_owned(),
            Self::Lost(reason) => reason,
        };
        let is_full = FULL.iter().any(|code| reason.contains(code));
        StoreError::Io { action, place, reason, is_full }
    }
}

/// A message of a stream.
#[derive(Clone, Debug)]
pub(super) struct StoredMessage {
    pub(super) sequence: u64,
    pub(super) payload: Bytes,
}

/// The connection.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) client: Client,
    context: Context,
    retry_timeout: Duration,
    /// Streams that are known to have had a message.
    begun: Arc<Mutex<HashSet<String>>>,
}

impl Link {
    /// Connects, once.
    pub(super) async fn open(address: &Address, options: &NatsStoreOptions) -> Result<Self, String> {
        let connect = async_nats::ConnectOptions::new()
            .name("narrows-durable")
            .ping_interval(PING_EVERY)
            .request_timeout(Some(options.call_timeout))
            .client_capacity(WAITING_MAX)
            .subscription_capacity(RECEIVED_MAX);
        let client = address.nats.connect(connect).await?;
        let context = ContextBuilder::new().timeout(options.call_timeout).build(client.clone());
        Ok(Self { client, context, retry_timeout: options.retry_timeout, begun: Arc::default() })
    }

    /// The largest body of a message.
    pub(super) fn body_bytes_max(&self) -> usize {
        let server = self.client.server_info().max_payload;
        server.min(MESSAGE_BYTES_MAX).saturating_sub(HEADERS_BYTES + super::record::HEAD_BYTES).max(1)
    }

    /// Makes a stream, or leaves the one of this name as it is.
    pub(super) async fn make_stream(&self, config: Config) -> Result<(), RequestFailure> {
        let mut retry = self.retry();
        loop {
            let Err(error) = self.context.get_or_create_stream(config.clone()).await else { return Ok(()) };
            // Another node may have made it in the meantime.
            if self.context.get_stream(&config.name).await.is_ok() {
                return Ok(());
            }
            retry.after(RequestFailure::Lost(innermost(&error))).await?;
        }
    }

    /// Adds a message to the stream of its subject; its sequence number. It is added once, also if it is sent again.
    pub(super) async fn publish(
        &self,
        stream: &str,
        subject: &str,
        payload: Bytes,
        behind: Behind,
    ) -> Result<u64, RequestFailure> {
        let mut retry = self.retry();
        loop {
            match self.publish_once(subject, payload.clone(), behind).await {
                Ok(sequence) => return Ok(sequence),
                Err(RequestFailure::Moved) if retry.attempts > 0 => {
                    let found = match behind {
                        Behind::Last { stream: last, .. } => self.at(stream, last + 1).await?,
                        Behind::Any(_) | Behind::LastOfSubject(_) => self.last(stream, subject).await?,
                    };
                    let is_ours = |found: &StoredMessage| found.payload == payload;
                    return found.filter(is_ours).map(|found| found.sequence).ok_or(RequestFailure::Moved);
                }
                Err(failed) => retry.after(failed).await?,
            }
        }
    }

    async fn publish_once(&self, subject: &str, payload: Bytes, behind: Behind) -> Result<u64, RequestFailure> {
        let message = PublishMessage::build().payload(payload);
        let message = match behind {
            Behind::Any(once) => message.message_id(once.to_string()),
            Behind::Last { stream, subject: 0 } => message.expected_last_sequence(stream),
            Behind::Last { stream, subject } => {
                message.expected_last_sequence(stream).expected_last_subject_sequence(subject)
            }
            Behind::LastOfSubject(sequence) => message.expected_last_subject_sequence(sequence),
        };
        let failed = |error: PublishError| match error.kind() {
            PublishErrorKind::WrongLastSequence => RequestFailure::Moved,
            _ => RequestFailure::Lost(innermost(&error)),
        };
        let sent = self.context.send_publish(subject.to_owned(), message).await.map_err(failed)?;
        sent.await.map(|acknowledged| acknowledged.sequence).map_err(failed)
    }

    /// The message of a number, if it is there.
    pub(super) async fn at(&self, stream: &str, sequence: u64) -> Result<Option<StoredMessage>, RequestFailure> {
        self.get(stream, MessageChoice::At(sequence)).await
    }

    /// The last message of a subject.
    pub(super) async fn last(&self, stream: &str, subject: &str) -> Result<Option<StoredMessage>, RequestFailure> {
        self.get(stream, MessageChoice::Last(subject)).await
    }

    async fn get(&self, stream: &str, which: MessageChoice<'_>) -> Result<Option<StoredMessage>, RequestFailure> {
        if !self.has_begun(stream).await? {
            return Ok(None);
        }
        let stream = self.stream(stream).await?;
        let mut retry = self.retry();
        loop {
            let request = stream.raw_message_builder();
            let request = match which {
                MessageChoice::At(sequence) => request.sequence(sequence),
                MessageChoice::Last(subject) => request.last_by_subject(subject),
            };
            let error = match request.send().await {
                Ok(found) => return Ok(Some(StoredMessage { sequence: found.sequence, payload: found.payload })),
                Err(error) => error,
            };
            match error.kind() {
                LastRawMessageErrorKind::NoMessageFound => return Ok(None),
                LastRawMessageErrorKind::JetStream(said) if said.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    return Err(RequestFailure::NoStream);
                }
                _ => retry.after(RequestFailure::Lost(innermost(&error))).await?,
            }
        }
    }

    /// Whether a stream has ever had a message. Server 2.9 crashes when a client asks for messages or subjects of a stream
    /// that it is still creating for another client; such a stream has had no message yet.
    pub(super) async fn has_begun(&self, stream: &str) -> Result<bool, RequestFailure> {
        let begun = || self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if begun().contains(stream) {
            return Ok(true);
        }
        let mut retry = self.retry();
        loop {
            let error = match self.context.get_stream(stream).await {
                Ok(found) if found.cached_info().state.last_sequence == 0 => return Ok(false),
                Ok(_) => break,
                Err(error) => error,
            };
            match error.kind() {
                GetStreamErrorKind::JetStream(said) if said.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    return Err(RequestFailure::NoStream);
                }
                _ => retry.after(RequestFailure::Lost(innermost(&error))).await?,
            }
        }
        begun().insert(stream.to_owned());
        Ok(true)
    }

    /// The numbers of the first and the last message of a stream. Which is the first of a subject, server 2.9 does not know
    /// once messages before it were forgotten.
    pub(super) async fn ends(&self, stream: &str) -> Result<(u64, u64), RequestFailure> {
        let stream = self.stream(stream).await?;
        let mut retry = self.retry();
        loop {
            match stream.get_info().await {
                Ok(info) => return Ok((info.state.first_sequence, info.state.last_sequence)),
                Err(error) => retry.after(RequestFailure::Lost(innermost(&error))).await?,
            }
        }
    }

    /// The subjects of a stream that fit a filter.
    pub(super) async fn subjects(&self, stream: &str, filter: &str) -> Result<Vec<String>, RequestFailure> {
        if !self.has_begun(stream).await? {
            return Ok(Vec::new());
        }
        let stream = self.stream(stream).await?;
        let mut retry = self.retry();
        loop {
            let found = match stream.info_with_subjects(filter).await {
                Ok(pages) => pages.try_collect::<Vec<_>>().await,
                Err(error) => Err(error),
            };
            match found {
                Ok(found) => return Ok(found.into_iter().map(|(subject, _)| subject).collect()),
                Err(error) => retry.after(RequestFailure::Lost(innermost(&error))).await?,
            }
        }
    }

    /// Whether the servers purge no more than they should. In a cluster, a server before 2.9.18 that restarts repeats a
    /// purge of a subject, or up to a number, as one of the whole stream (nats-server issue 4196).
    pub(super) fn purges_are_exact(&self) -> bool {
        let server = self.client.server_info();
        server.cluster.is_none() || is_since(&server.version, PURGES_SINCE)
    }

    /// Forgets the messages of a subject.
    pub(super) async fn forget(&self, stream: &str, subject: &str) -> Result<(), RequestFailure> {
        if !self.purges_are_exact() {
            while let Some(found) = self.last(stream, subject).await? {
                self.delete(stream, found.sequence).await?;
            }
            return Ok(());
        }
        let stream = self.stream(stream).await?;
        let mut retry = self.retry();
        loop {
            match stream.purge().filter(subject).await {
                Ok(_) => return Ok(()),
                Err(error) => retry.after(RequestFailure::Lost(innermost(&error))).await?,
            }
        }
    }

    /// Deletes all messages of a stream before a number. Servers without exact purges take long: messages are deleted
    /// one by one, so that no gap remains if a server or this process ends meanwhile.
    pub(super) async fn forget_before(&self, stream: &str, sequence: u64) -> Result<(), RequestFailure> {
        if !self.purges_are_exact() {
            let (first, _) = self.ends(stream).await?;
            for sequence in first..sequence {
                self.delete(stream, sequence).await?;
            }
            return Ok(());
        }
        let stream = self.stream(stream).await?;
        let mut retry = self.retry();
        loop {
            match stream.purge().sequence(sequence).await {
                Ok(_) => return Ok(()),
                Err(error) => retry.after(RequestFailure::Lost(innermost(&error))).await?,
            }
        }
    }

    /// Forgets a message, if it is there.
    async fn delete(&self, stream: &str, sequence: u64) -> Result<(), RequestFailure> {
        let of = self.stream(stream).await?;
        let mut retry = self.retry();
        loop {
            let Err(error) = of.delete_message(sequence).await else { return Ok(()) };
            if self.at(stream, sequence).await?.is_none() {
                return Ok(());
            }
            retry.after(RequestFailure::Lost(innermost(&error))).await?;
        }
    }

    async fn stream(&self, name: &str) -> Result<Stream<()>, RequestFailure> {
        self.context.get_stream_no_info(name).await.map_err(|error| RequestFailure::Lost(innermost(&error)))
    }

    fn retry(&self) -> Retry {
        Retry { begun: Instant::now(), timeout: self.retry_timeout, attempts: 0 }
    }
}

/// Whether a version such as `2.9.10` is this one or a later one.
fn is_since(version: &str, since: [u32; 3]) -> bool {
    let mut numbers = version.split(['.', '-']).map(|number| number.parse().unwrap_or(0));
    [(); 3].map(|()| numbers.next().unwrap_or(0)) >= since
}

/// Which message of a stream.
#[derive(Clone, Copy)]
enum MessageChoice<'a> {
    At(u64),
    Last(&'a str),
}

/// Attempts of one call.
struct Retry {
    begun: Instant,
    timeout: Duration,
    /// How many have failed.
    attempts: u32,
}

impl Retry {
    /// Waits before the next attempt.
    ///
    /// # Errors
    /// Why the last one failed, if another would not help or the time for it is over.
    async fn after(&mut self, failed: RequestFailure) -> Result<(), RequestFailure> {
        self.attempts += 1;
        let pause = pause(self.attempts);
        if !matches!(failed, RequestFailure::Lost(_)) || self.begun.elapsed() + pause > self.timeout {
            return Err(failed);
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (version, is_exact) in [
            ("2.9.10", false),
            ("2.9.17", false),
            ("2.9.18", true),
            ("2.10.0", true),
            ("2.11.0-RC.1", true),
            ("", false),
        ] {
            assert_eq!(is_since(version, PURGES_SINCE), is_exact, "{version}");
        }
    }
}
