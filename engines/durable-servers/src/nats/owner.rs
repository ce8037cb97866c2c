//! Owner of a partition: the last message of its `.own` subject, in the same stream as its frames.
//!
//! Taking a partition adds such a message, if no other was added since it was looked at. It lies behind all that former
//! owners have written, and since they expect their own last message to be the last of the stream, they can write
//! nothing more. When an owner forgets the beginning of its log, it adds the message again, so that all before a number
//! can be forgotten, whatever its subject is.

use narrows_durable::PartitionId;
use serde::{Deserialize, Serialize};

use super::link::{Behind, Link, RequestFailure, StoredMessage};
use super::record::{Head, Sort, decode, encode};
use super::subjects::Subjects;
use crate::calls::unique_number;

/// Content of the message.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Body {
    owner: Option<String>,
    session: i64,
    /// Tells it from others that say the same.
    once: i64,
}

/// Who has a partition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Ownership {
    pub(super) epoch: u64,
    pub(super) owner: Option<String>,
    pub(super) session: i64,
    /// The number of the message; 0 if there is none.
    pub(super) sequence: u64,
}

/// Why it is not known.
pub(super) enum ReadFailure {
    Failed(RequestFailure),
    /// Fault of a message, with its number.
    Damaged(u64, String),
}

impl From<RequestFailure> for ReadFailure {
    fn from(failed: RequestFailure) -> Self {
        Self::Failed(failed)
    }
}

/// Reads who has a partition.
pub(super) async fn read(link: &Link, subjects: &Subjects, partition: PartitionId) -> Result<Ownership, ReadFailure> {
    let (stream, subject) = (subjects.log_stream(partition), subjects.of_partition(partition, "own"));
    let Some(StoredMessage { sequence, payload }) = link.last(&stream, &subject).await? else {
        return Ok(Ownership::default());
    };
    let damaged = |what| ReadFailure::Damaged(sequence, what);
    let (head, body) = decode(&payload).map_err(damaged)?;
    let body: Body = serde_json::from_slice(body).map_err(|error| damaged(error.to_string()))?;
    Ok(Ownership { epoch: head.epoch, owner: body.owner, session: body.session, sequence })
}

/// Writes who has a partition from now on, if nothing came in between; the number of the message.
pub(super) async fn write(
    link: &Link,
    subjects: &Subjects,
    partition: PartitionId,
    after: &Ownership,
    behind: Behind,
) -> Result<u64, RequestFailure> {
    let (stream, subject) = (subjects.log_stream(partition), subjects.of_partition(partition, "own"));
    link.publish(&stream, &subject, message(partition, after)?.into(), behind).await
}

/// Writes the same among the frames, behind the message that says so; the number of the mark. The leader then refuses what
/// former owners write without a look at the other replicas.
pub(super) async fn mark(
    link: &Link,
    subjects: &Subjects,
    partition: PartitionId,
    own: &Ownership,
) -> Result<u64, RequestFailure> {
    let (stream, subject) = (subjects.log_stream(partition), subjects.of_partition(partition, "log"));
    let last = link.last(&stream, &subject).await?.map_or(0, |found| found.sequence);
    let behind = Behind::Last { stream: own.sequence, subject: last };
    link.publish(&stream, &subject, message(partition, own)?.into(), behind).await
}

fn message(partition: PartitionId, own: &Ownership) -> Result<Vec<u8>, RequestFailure> {
    let body = Body { owner: own.owner.clone(), session: own.session, once: unique_number() };
    let body = serde_json::to_vec(&body).map_err(|error| RequestFailure::Lost(error.to_string()))?;
    Ok(encode(Head::new(Sort::Owner, partition, own.epoch), &body))
}
