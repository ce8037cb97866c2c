//! Reports of nodes about themselves, owners of partitions, and messages between nodes.

use std::sync::Arc;
use std::time::Duration;

use narrows_durable::store::{Bus, Line, Owner, Receive, Scan, SharedStore, StoreError, check_node_name};
use narrows_durable::{Epoch, PartitionId, Position};

use super::NatsStore;
use super::bus::NatsLine;
use super::link::{Behind, RequestFailure};
use super::owner::{self, Ownership, ReadFailure};
use super::record::{Head, Sort, decode, encode};
use crate::names::check_said;

/// How long the stream of a partition may take to say who has it.
const OWNER_TIMEOUT: Duration = Duration::from_secs(1);

/// The owner of a partition, as its stream has it.
enum PartitionOwner {
    Found(Ownership),
    Damaged,
    Nothing,
}

impl SharedStore for NatsStore {
    /// The number of a message that is written for this purpose.
    fn number(&self) -> Result<u64, StoreError> {
        self.call("write", "the last number".to_owned(), move |link, subjects| async move {
            link.publish(&subjects.names_stream(), &subjects.number(), bytes::Bytes::new(), Behind::any()).await
        })
    }

    fn say(&self, node: &str, said: &[u8]) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        check_node_name(node)?;
        let what = format!("what node {node} says");
        check_said(said, || self.place(&what))?;
        let (name, payload) = (node.to_owned(), encode(Head::new(Sort::Said, PartitionId(0), 0), said));
        self.call("write", what, move |link, subjects| async move {
            link.publish(&subjects.names_stream(), &subjects.node(&name), payload.into(), Behind::any()).await
        })?;
        self.said()
    }

    fn said(&self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let found = self.call("read", "what nodes say".to_owned(), move |link, subjects| async move {
            let stream = subjects.names_stream();
            let mut found = Vec::new();
            for subject in link.subjects(&stream, &subjects.nodes()).await? {
                // One that was forgotten in the meantime is not there.
                found.extend(link.last(&stream, &subject).await?.map(|found| (subject, found.payload)));
            }
            Ok(found)
        })?;
        let mut all = Vec::new();
        for (subject, payload) in &found {
            let Some(name) = self.inner.subjects.node_of(subject) else { continue };
            let (_, said) = decode(payload).map_err(|why| self.damaged(format!("what node {name} says"), why))?;
            all.push((name, said.to_vec()));
        }
        all.sort();
        Ok(all)
    }

    fn forget(&self, node: &str) -> Result<(), StoreError> {
        check_node_name(node)?;
        let name = node.to_owned();
        self.call("forget", format!("node {node}"), move |link, subjects| async move {
            link.forget(&subjects.names_stream(), &subjects.node(&name)).await
        })
    }

    /// Streams respond each on its own. Of one that does not for a second, while it elects a leader for example, it is
    /// what was read last, so that it does not delay the beats of nodes.
    fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        let place = || self.place("the shape");
        let shape = self.shape()?.ok_or_else(|| RequestFailure::NoStream.at("read", place()))?;
        let partitions = (0..shape.partitions).map(PartitionId);
        let read = self.call("read", "who has the partitions", |link, subjects| async move {
            let each = partitions.map(|partition| {
                let (link, subjects) = (link.clone(), subjects.clone());
                async move {
                    match tokio::time::timeout(OWNER_TIMEOUT, owner::read(&link, &subjects, partition)).await {
                        Ok(Ok(found)) => PartitionOwner::Found(found),
                        Ok(Err(ReadFailure::Damaged(..))) => PartitionOwner::Damaged,
                        Ok(Err(ReadFailure::Failed(_))) | Err(_) => PartitionOwner::Nothing,
                    }
                }
            });
            Ok(futures_util::future::join_all(each).await)
        })?;
        let owner = |(partition, read): (PartitionId, PartitionOwner)| {
            let known = if matches!(read, PartitionOwner::Nothing) { self.remembered(partition) } else { None };
            let found = match (read, known) {
                (PartitionOwner::Found(found), _) => self.remember(partition, found),
                (_, Some(known)) => known,
                // After the full time, and with the error.
                (_, None) => self.ownership(partition)?,
            };
            Ok(Owner { partition, epoch: Epoch(found.epoch), node: found.owner })
        };
        (0..).map(PartitionId).zip(read).map(owner).collect()
    }

    fn take(&self, partition: PartitionId, seen: Epoch, node: &str) -> Result<Epoch, StoreError> {
        check_node_name(node)?;
        let found = self.ownership(partition)?;
        let epoch = found.epoch;
        if epoch == seen.0 {
            // It may have been given back in the meantime, with the same epoch.
            for found in [Some(found), None] {
                let found = found.map_or_else(|| self.ownership(partition), Ok)?;
                if found.epoch != seen.0 {
                    break;
                }
                if let Some(epoch) = self.own(partition, found, node)? {
                    return Ok(epoch);
                }
            }
        }
        let theirs = self.ownership(partition)?.epoch;
        Err(StoreError::Fenced { partition, ours: seen.0, theirs })
    }

    fn scan(&self, partition: PartitionId, found: &mut Scan<'_>) -> Result<Position, StoreError> {
        self.scan_log(partition, found).map(|()| Position(0))
    }

    fn restart(&self, partition: PartitionId, epoch: Epoch, at: Position) -> Result<(), StoreError> {
        self.restart_log(partition, epoch, at)
    }

    fn keep(&self, partitions: &[PartitionId]) -> Result<String, StoreError> {
        self.keep_copies(partitions)
    }

    fn bus(&self) -> Arc<dyn Bus> {
        Arc::new(self.clone())
    }
}

impl Bus for NatsStore {
    fn open(&self, _node: &str, receive: Receive) -> Result<Box<dyn Line>, StoreError> {
        Ok(Box::new(NatsLine::open(Arc::clone(&self.inner), receive)?))
    }
}
