//! The log of a partition: messages on its `.log` subject, each a batch of frames or a part of one.
//!
//! The parts of a batch are sent one after another, each behind the one before. A batch of which the last part is not
//! there was never acknowledged; the next batch has its position.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_durable::PartitionId;
use narrows_durable::store::FrameBatch;

use super::link::{Behind, Link, RequestFailure, StoredMessage};
use super::owner::{self, Ownership};
use super::record::{Head, Sort, decode, encode};
use super::subjects::Subjects;
use crate::row;

/// Messages that are fetched at a time, of at most 1 MiB each.
const PAGE: u64 = 32;
/// Messages that are looked at to find the end of a log: the parts of one batch that was cut short, about.
const LOOKED_AT_MAX: u64 = 4096;
/// How often, and how far apart, a message is looked for that should be there.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);
/// Batches whose beginnings the owner remembers, to truncate the log there.
const STARTS_MAX: usize = 1 << 14;

/// State of a partition's log, as its owner knows it.
#[derive(Debug, Default)]
pub(super) struct LogState {
    /// Its own record of the ownership.
    pub(super) own: Ownership,
    /// The number of the last message of the stream.
    pub(super) last: u64,
    /// The number of the last message of the subject of frames.
    last_log: u64,
    /// Where the log ends.
    pub(super) ends: u64,
    /// Whether an append had an unknown outcome.
    pub(super) is_unsure: bool,
    /// Whether messages are being forgotten one by one.
    pub(super) is_forgetting: Arc<AtomicBool>,
    /// Position and message of beginnings of batches, in order.
    starts: Vec<(u64, u64)>,
}

impl LogState {
    /// The state right after the owner's mark, which is the last message of all.
    pub(super) fn new(own: Ownership, mark: u64, ends: u64) -> Self {
        Self { last: mark, last_log: mark, own, ends, ..Self::default() }
    }

    /// Remembers where a batch begins.
    pub(super) fn begins(&mut self, position: u64, sequence: u64) {
        if self.starts.last().is_some_and(|(last, _)| *last >= position) {
            return;
        }
        self.starts.push((position, sequence));
        if self.starts.len() > STARTS_MAX {
            let mut is_kept = false;
            self.starts.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
    }

    /// The last known message before which nothing is needed if frames before `before` are not. The last batch stays.
    pub(super) fn cut(&mut self, before: u64) -> Option<u64> {
        let before = before.min(self.ends.saturating_sub(1));
        let known = self.starts.partition_point(|(position, _)| *position <= before);
        let (_, sequence) = *self.starts.get(known.checked_sub(1)?)?;
        self.starts.drain(..known - 1);
        Some(sequence)
    }
}

/// Appends a batch behind `held.last`, which is moved.
pub(super) async fn append(
    link: &Link,
    subjects: &Subjects,
    partition: PartitionId,
    held: &mut LogState,
    batch: &FrameBatch,
) -> Result<(), RequestFailure> {
    let (stream, subject) = (subjects.log_stream(partition), subjects.of_partition(partition, "log"));
    let bytes = row::encode(batch);
    let parts = bytes.chunks(link.body_bytes_max());
    let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let mut head = Head {
        position: held.ends,
        frames: short(batch.len()),
        parts: short(parts.len()),
        ..Head::new(Sort::Frames, partition, held.own.epoch)
    };
    let first = held.last + 1;
    for part in parts {
        let payload = encode(head, part);
        let behind = Behind::Last { stream: held.last, subject: held.last_log };
        held.last = link.publish(&stream, &subject, payload.into(), behind).await?;
        held.last_log = held.last;
        head.part += 1;
    }
    held.begins(held.ends, first);
    held.ends += batch.len() as u64;
    Ok(())
}

/// Forgets messages, which only the present owner can. Gives the number before which all are to be forgotten one by one, if
/// they could not be at once.
pub(super) async fn truncate(
    link: &Link,
    subjects: &Subjects,
    partition: PartitionId,
    held: &mut LogState,
    before: u64,
) -> Result<Option<u64>, RequestFailure> {
    let behind = Behind::Last { stream: held.last, subject: held.own.sequence };
    held.last = owner::write(link, subjects, partition, &held.own, behind).await?;
    held.own.sequence = held.last;
    match held.cut(before) {
        Some(sequence) if link.purges_are_exact() => {
            link.forget_before(&subjects.log_stream(partition), sequence).await.map(|()| None)
        }
        left => Ok(left),
    }
}

/// Restarts a log at a position, after a batch with one frame that is never read, and deletes everything before it.
pub(super) async fn restart(
    link: &Link,
    subjects: &Subjects,
    partition: PartitionId,
    held: &mut LogState,
    at: u64,
) -> Result<(), RequestFailure> {
    held.ends = at.saturating_sub(1);
    held.starts.clear();
    let mut last = FrameBatch::default();
    last.push(&[0]);
    append(link, subjects, partition, held, &last).await?;
    let first = held.last;
    let behind = Behind::Last { stream: held.last, subject: held.own.sequence };
    held.last = owner::write(link, subjects, partition, &held.own, behind).await?;
    held.own.sequence = held.last;
    link.forget_before(&subjects.log_stream(partition), first).await
}

/// Where a log ends, of which nothing is known but that it has message `known`: behind the last batch that is whole.
pub(super) async fn end(
    link: &Link,
    subjects: &Subjects,
    partition: PartitionId,
    known: u64,
) -> Result<u64, RequestFailure> {
    let stream = subjects.log_stream(partition);
    let (first, last) = link.ends(&stream).await?;
    if last < known {
        return Err(RequestFailure::Lost(format!("the server knows {last} messages of {known}")));
    }
    let mut behind = last + 1;
    for _ in 0..LOOKED_AT_MAX {
        behind = behind.saturating_sub(1);
        if behind < first.max(1) {
            return Ok(0);
        }
        let Some(found) = present(link, &stream, behind).await? else { continue };
        // Damage is reported when the log is read.
        let head = decode(&found.payload).map(|(head, _)| head).ok().filter(|head| head.sort == Sort::Frames);
        match head {
            Some(head) if head.part + 1 == head.parts => return Ok(head.position + u64::from(head.frames)),
            Some(head) => behind = behind.saturating_sub(u64::from(head.part)),
            None => {}
        }
    }
    Err(RequestFailure::Lost(format!("the end of the log is not among its last {LOOKED_AT_MAX} messages")))
}

/// A message that should be there. A server that stood still and believes for a moment that it still leads may not have it.
async fn present(link: &Link, stream: &str, sequence: u64) -> Result<Option<StoredMessage>, RequestFailure> {
    for _ in 0..ATTEMPTS {
        if let Some(found) = link.at(stream, sequence).await? {
            return Ok(Some(found));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(None)
}

/// Reads a page of messages from number `from` to `to`, at most [`PAGE`]; and the number to go on with.
pub(super) async fn page(
    link: &Link,
    stream: &str,
    from: u64,
    to: u64,
) -> Result<(Vec<StoredMessage>, u64), RequestFailure> {
    use futures_util::{StreamExt as _, TryStreamExt as _};
    let behind = to.min(from.saturating_add(PAGE - 1)) + 1;
    let fetched = futures_util::stream::iter(from..behind).map(|sequence| link.at(stream, sequence));
    let found: Vec<Option<StoredMessage>> = fetched.buffered(PAGE as usize).try_collect().await?;
    Ok((found.into_iter().flatten().collect(), behind))
}

/// The message from which a log can be read to find frame `wanted`: the first part of a batch at or before that frame,
/// or else the first message. Positions increase with message numbers, so this is a binary search.
pub(super) async fn beginning(
    link: &Link,
    stream: &str,
    messages: RangeInclusive<u64>,
    wanted: u64,
) -> Result<u64, RequestFailure> {
    let (mut low, mut high) = messages.into_inner();
    while high.saturating_sub(low) > PAGE {
        let middle = low + (high - low) / 2;
        let (page, _) = page(link, stream, middle, high).await?;
        let heads = page.iter().filter_map(|found| Some((found.sequence, decode(&found.payload).ok()?.0)));
        let mut begins = heads.filter(|(_, head)| head.sort == Sort::Frames && head.part == 0);
        match begins.next() {
            Some((sequence, head)) if head.position <= wanted => low = sequence,
            // None of these messages begins a batch: the messages before them are read anyway.
            _ => high = middle,
        }
    }
    Ok(low)
}

/// A batch out of its parts.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) head: Head,
    /// The number of its first message.
    pub(super) sequence: u64,
    pub(super) bytes: Vec<u8>,
}

/// Puts parts together.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    begun: Option<Batch>,
    /// Whether there was a beginning before. Of what comes first, the beginning may be forgotten already.
    has_begun: bool,
}

impl Joiner {
    /// Takes the next message of a stream; the batch that it completes, if it does.
    pub(super) fn push(&mut self, found: &StoredMessage) -> Result<Option<Batch>, String> {
        let (head, body) = decode(&found.payload)?;
        if head.sort != Sort::Frames {
            self.begun = None;
            return Ok(None);
        }
        if head.part == 0 {
            (self.begun, self.has_begun) = (Some(Batch { head, sequence: found.sequence, bytes: body.to_vec() }), true);
        } else if !self.has_begun {
            return Ok(None);
        } else {
            let begun = self.begun.as_mut();
            let follows = |batch: &&mut Batch| {
                let expected = Head { part: batch.head.part + 1, ..batch.head };
                head == expected && found.sequence == batch.sequence + u64::from(head.part)
            };
            let batch = begun.filter(follows).ok_or("the part of the batch before it is missing")?;
            batch.head.part = head.part;
            batch.bytes.extend_from_slice(body);
        }
        if head.part + 1 < head.parts { Ok(None) } else { Ok(self.begun.take()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sequence: u64, head: Head) -> StoredMessage {
        StoredMessage { sequence, payload: encode(head, &sequence.to_le_bytes()).into() }
    }

    fn part(part: u32, parts: u32, position: u64) -> Head {
        Head { part, parts, position, frames: 1, ..Head::new(Sort::Frames, PartitionId(0), 1) }
    }

    #[test]
    fn a_batch_that_was_cut_short_is_dropped_and_a_part_without_its_beginning_is_refused() {
        let mut joiner = Joiner::default();
        assert!(joiner.push(&found(0, part(1, 2, 0))).expect("taken").is_none(), "its beginning is forgotten");
        assert!(joiner.push(&found(1, part(0, 2, 0))).expect("taken").is_none());
        assert!(joiner.push(&found(2, Head::new(Sort::Owner, PartitionId(0), 2))).expect("taken").is_none());
        assert!(joiner.push(&found(3, part(0, 2, 0))).expect("taken").is_none());
        let batch = joiner.push(&found(4, part(1, 2, 0))).expect("taken").expect("whole");
        assert_eq!((batch.sequence, batch.bytes.len()), (3, 16));
        assert!(joiner.push(&found(5, part(1, 2, 1))).is_err(), "without its beginning");
        assert!(joiner.push(&found(6, part(0, 3, 1))).expect("taken").is_none());
        assert!(joiner.push(&found(7, part(2, 3, 1))).is_err(), "without the one between");
        assert!(joiner.push(&found(8, part(0, 2, 1))).expect("taken").is_none());
        assert!(joiner.push(&found(10, part(1, 2, 1))).is_err(), "not next to it");
    }

    #[test]
    fn a_log_is_cut_where_a_batch_begins_and_keeps_its_last() {
        let mut held = LogState::default();
        for batch in 0..5 {
            held.begins(batch * 10, 100 + batch);
        }
        held.ends = 50;
        assert_eq!(held.cut(25), Some(102));
        assert_eq!(held.cut(25), Some(102));
        assert_eq!(held.cut(u64::MAX), Some(104));
        assert_eq!(LogState::new(Ownership::default(), 0, 7).cut(7), None);
        for batch in 5..100_000 {
            held.begins(batch * 10, 100 + batch);
        }
        assert!(held.starts.len() <= STARTS_MAX);
    }
}
