//! Repair of a damaged hub on NATS: reads logs as far as possible, copies them, and restarts them.

use async_nats::jetstream::stream::Config;
use narrows_durable::store::{LogPiece, StoreError};
use narrows_durable::{Epoch, PartitionId, Position};

use super::link::{Behind, Link, RequestFailure};
use super::subjects::Subjects;
use super::{NatsStore, blobs, log};
use crate::row;

/// Maximum number of copies. Another repair is refused until one is removed.
const COPIES_MAX: usize = 8;

impl NatsStore {
    /// Passes everything readable of a log to `found`.
    pub(super) fn scan_log(
        &self,
        partition: PartitionId,
        found: &mut dyn FnMut(LogPiece<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let messages = self.messages(partition)?;
        self.batches(partition, messages, &mut |batch| {
            let batch = match batch {
                Ok(batch) => batch,
                Err(damage) => return found(LogPiece::Damage(damage)),
            };
            match row::decode(u64::from(batch.head.frames), &batch.bytes) {
                Ok(frames) => (batch.head.position..)
                    .zip(frames)
                    .try_for_each(|(position, frame)| found(LogPiece::Frame(Position(position), frame))),
                Err(why) => {
                    let place = format!("message {} of partition {partition}", batch.sequence);
                    found(LogPiece::Damage(self.damaged(place, why)))
                }
            }
        })
    }

    /// Restarts a log. Only the current owner can do this.
    pub(super) fn restart_log(&self, partition: PartitionId, epoch: Epoch, at: Position) -> Result<(), StoreError> {
        let held = self.held(partition, epoch)?;
        self.call("begin", format!("the log of partition {partition} anew"), move |link, subjects| async move {
            log::restart(&link, &subjects, partition, &mut *held.lock().await, at.0).await
        })
    }

    /// Copies logs and snapshots into a separate stream, whose name is returned.
    pub(super) fn keep_copies(&self, partitions: &[PartitionId]) -> Result<String, StoreError> {
        let (partitions, replicas) = (partitions.to_vec(), self.inner.replicas);
        self.call("copy", "the damaged logs", move |link, subjects| async move {
            let number = free_number(&link, &subjects).await?;
            let stream = subjects.copies_stream(number);
            let all = vec![subjects.copies(number, ">")];
            link.make_stream(Config {
                name: stream.clone(),
                subjects: all,
                num_replicas: replicas,
                ..Config::default()
            })
            .await?;
            for partition in partitions {
                let of_log = subjects.log_stream(partition);
                let (first, last) = link.ends(&of_log).await?;
                let mut sequence = first.max(1);
                while sequence <= last {
                    let (page, behind) = log::page(&link, &of_log, sequence, last).await?;
                    for found in page {
                        let subject = subjects.copies(number, &format!("p{partition}.{}", found.sequence));
                        link.publish(&stream, &subject, found.payload, Behind::any()).await?;
                    }
                    sequence = behind;
                }
                for (what, payload) in blobs::raw(&link, &subjects, &format!("p{partition}/snapshot/")).await? {
                    let subject = subjects.copies(number, &what);
                    link.publish(&stream, &subject, payload, Behind::any()).await?;
                }
            }
            Ok(format!("stream {stream}"))
        })
    }
}

async fn free_number(link: &Link, subjects: &Subjects) -> Result<usize, RequestFailure> {
    for number in 1..=COPIES_MAX {
        match link.has_begun(&subjects.copies_stream(number)).await {
            Err(RequestFailure::NoStream) => return Ok(number),
            found => found.map(drop)?,
        }
    }
    let last = subjects.copies_stream(COPIES_MAX);
    Err(RequestFailure::Lost(format!("there are {COPIES_MAX} copies from earlier repairs, up to stream {last}")))
}
