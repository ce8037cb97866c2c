//! Reads the log of a partition: its batches in order, and the damage between them.
//!
//! Messages before the batch with the first wanted frame are not needed, so gaps and damage there are skipped: a server
//! that ended while it deleted messages one by one may have lost some of them and kept others.

use std::ops::RangeInclusive;

use narrows_durable::store::{StoreError, Visit};
use narrows_durable::{PartitionId, Position};

use super::NatsStore;
use super::link::RequestFailure;
use super::log::{self, Batch, Joiner};
use crate::row;

impl NatsStore {
    /// Numbers of the messages in a partition's stream.
    pub(super) fn messages(&self, partition: PartitionId) -> Result<RangeInclusive<u64>, StoreError> {
        let held = self.holding(partition);
        self.call("read", format!("the log of partition {partition}"), move |link, subjects| async move {
            let known = match held {
                Some(held) => held.lock().await.last,
                None => 0,
            };
            let (first, last) = link.ends(&subjects.log_stream(partition)).await?;
            if last < known {
                return Err(RequestFailure::Lost(format!("it ends at message {last}, and {known} was acknowledged")));
            }
            Ok(first.max(1)..=last)
        })
    }

    /// Passes the batches of a range of messages, and the damage between them, to `each`.
    pub(super) fn batches(
        &self,
        partition: PartitionId,
        messages: RangeInclusive<u64>,
        each: &mut dyn FnMut(Result<Batch, StoreError>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (mut joiner, mut sequence, last) = (Joiner::default(), *messages.start(), *messages.end());
        while sequence <= last {
            let what = format!("the log of partition {partition} at message {sequence}");
            let (page, behind) = self.call("read", what, move |link, subjects| async move {
                log::page(&link, &subjects.log_stream(partition), sequence, last).await
            })?;
            sequence = behind;
            for found in &page {
                let damaged = |why: String| {
                    let place = format!("message {} of partition {partition}", found.sequence);
                    Err(self.damaged(place, why))
                };
                match joiner.push(found) {
                    Ok(None) => {}
                    Ok(Some(batch)) if batch.head.partition == partition => each(Ok(batch))?,
                    Ok(Some(batch)) => each(damaged(format!("it is a batch of partition {}", batch.head.partition)))?,
                    Err(why) => each(damaged(why))?,
                }
            }
        }
        Ok(())
    }

    /// Passes the frames from `wanted` on to `visit`, and returns the end of the log; `None` if it has no batch.
    /// Messages that may be deleted are not read, since there may be many.
    pub(super) fn read_frames(
        &self,
        partition: PartitionId,
        messages: RangeInclusive<u64>,
        wanted: Position,
        visit: &mut Visit<'_>,
    ) -> Result<Option<u64>, StoreError> {
        let held = self.holding(partition);
        let (first, last) = messages.into_inner();
        let what = format!("the log of partition {partition}");
        let begin = self.call("read", what, move |link, subjects| async move {
            log::beginning(&link, &subjects.log_stream(partition), first..=last, wanted.0).await
        })?;
        let mut course = Course::from(wanted);
        self.batches(partition, begin..=last, &mut |found| {
            let batch = match found {
                Ok(batch) => batch,
                Err(damage) => {
                    course.damage(damage);
                    return Ok(());
                }
            };
            let (position, frames) = (batch.head.position, u64::from(batch.head.frames));
            let damaged = |why: String| {
                let last = batch.sequence + u64::from(batch.head.part);
                self.damaged(format!("message {last} of partition {partition}"), why)
            };
            match course.batch(position, frames) {
                Ok(()) => {}
                Err(BatchGap::Damaged(error)) => return Err(error),
                Err(BatchGap::Begins) => {
                    return Err(StoreError::Missing { partition, begins: position, wanted: wanted.0 });
                }
                Err(BatchGap::Expected(next)) => {
                    return Err(damaged(format!("it holds frame {position}, expected {next}")));
                }
            }
            if position + frames > wanted.0 {
                let decoded = row::decode(frames, &batch.bytes).map_err(damaged)?;
                for (position, frame) in (position..).zip(decoded).filter(|(position, _)| *position >= wanted.0) {
                    visit(Position(position), frame)?;
                }
            }
            // A concurrent append has newer information.
            if let Some(Ok(mut held)) = held.as_ref().map(|held| held.try_lock()) {
                held.begins(position, batch.sequence);
            }
            Ok(())
        })?;
        course.end()
    }
}

/// Why a batch cannot follow the previous ones.
#[derive(Debug)]
enum BatchGap {
    /// There is damage between them.
    Damaged(StoreError),
    /// It is the first batch, but wanted frames come before it.
    Begins,
    /// Another frame was expected next.
    Expected(u64),
}

/// Checks that batches are consecutive, from the one with the first wanted frame on.
#[derive(Debug)]
struct Course {
    wanted: u64,
    next: Option<u64>,
    /// The first damage since the last batch.
    damage: Option<StoreError>,
}

impl Course {
    fn from(wanted: Position) -> Self {
        Self { wanted: wanted.0, next: None, damage: None }
    }

    fn damage(&mut self, damage: StoreError) {
        self.damage.get_or_insert(damage);
    }

    /// Adds a batch of frames from `position` on.
    fn batch(&mut self, position: u64, frames: u64) -> Result<(), BatchGap> {
        let is_first_needed = position <= self.wanted && self.next.is_none_or(|next| next <= self.wanted);
        if is_first_needed {
            self.damage = None;
        } else if let Some(damage) = self.damage.take() {
            return Err(BatchGap::Damaged(damage));
        } else if self.next != Some(position) {
            return Err(self.next.map_or(BatchGap::Begins, BatchGap::Expected));
        }
        self.next = Some(position + frames);
        Ok(())
    }

    /// The end of the log.
    fn end(self) -> Result<Option<u64>, StoreError> {
        self.damage.map_or(Ok(self.next), Err)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads batches of these lengths; each may be damaged or missing.
    fn read(batches: &[(u64, Kept)], wanted: u64) -> Result<Vec<u64>, BatchGap> {
        let (mut course, mut read, mut position) = (Course::from(Position(wanted)), Vec::new(), 0);
        for (frames, kept) in batches {
            match kept {
                Kept::Whole => {
                    course.batch(position, *frames)?;
                    read.extend((position..position + frames).filter(|position| *position >= wanted));
                }
                Kept::Damaged => course.damage(StoreError::ReadOnly {
                    place: narrows_durable::store::Location::Log { partition: PartitionId(0) },
                }),
                Kept::Missing => {}
            }
            position += frames;
        }
        course.end().map_err(BatchGap::Damaged)?;
        Ok(read)
    }

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Kept {
        Whole,
        Damaged,
        Missing,
    }

    proptest! {
        #[test]
        fn a_log_is_read_whatever_is_lost_below_the_wanted_frames_and_refused_if_one_of_those_is(
            lengths in proptest::collection::vec(1_u64..5, 1..20),
            lost in proptest::collection::vec(prop_oneof![Just(Kept::Whole), Just(Kept::Damaged), Just(Kept::Missing)], 20),
            at in any::<prop::sample::Index>(),
        ) {
            let ends: u64 = lengths.iter().sum();
            let wanted = at.index(usize::try_from(ends).unwrap_or(0)) as u64;
            let batches: Vec<(u64, Kept)> = lengths.iter().copied().zip(lost).collect();
            let mut position = 0;
            let mut is_needed = Vec::new();
            for (frames, kept) in &batches {
                position += frames;
                is_needed.push((position > wanted, *kept));
            }
            let is_last_lost = |found: &[(bool, Kept)]| found.last().is_some_and(|(_, kept)| *kept == Kept::Missing);
            // A missing end of the log is detected elsewhere.
            while is_last_lost(&is_needed) {
                is_needed.pop();
            }
            let reached = lengths[..is_needed.len()].iter().sum::<u64>();
            let is_whole = is_needed.iter().all(|(is_needed, kept)| !is_needed || *kept == Kept::Whole);
            match read(&batches, wanted) {
                Ok(read) => {
                    prop_assert!(is_whole || reached <= wanted, "frames are missing: {:?}", batches);
                    prop_assert_eq!(read, (wanted..reached).collect::<Vec<_>>());
                }
                Err(missing) => prop_assert!(!is_whole || reached <= wanted, "{:?}: {:?}", missing, batches),
            }
        }
    }
}
