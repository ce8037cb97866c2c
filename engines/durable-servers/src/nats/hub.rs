//! A hub on the servers: its streams, its shape, and which stores of it are open.

use std::sync::PoisonError;
use std::time::Duration;

use async_nats::jetstream::stream::Config;
use narrows_durable::PartitionId;
use narrows_durable::store::{HubShape, Location, StoreError};
use serde::{Deserialize, Serialize};

use super::NatsStore;
use super::link::{Behind, Link, RequestFailure};
use super::owner::{self, Ownership};
use super::subjects::Subjects;
use crate::calls::refused;

/// How long a store that has ended counts as alive, and how often a live one says that it is.
const ALIVE_FOR: Duration = Duration::from_secs(6);
const ALIVE_EVERY: Duration = Duration::from_secs(2);
/// The version of streams and messages.
pub(super) const LAYOUT: u16 = 2;

/// The shape of the hub, as stored.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Shape {
    pub(super) layout: u16,
    pub(super) partitions: u16,
    pub(super) format: u16,
}

impl NatsStore {
    /// There is a hub, but no stream of such a partition; or there is no hub.
    pub(super) fn unknown(&self, place: Location) -> StoreError {
        match self.shape() {
            Ok(Some(_)) => refused("find", place, "the hub has no partition of this number".to_owned()),
            Ok(None) => RequestFailure::NoStream.at("find", place),
            Err(error) => error,
        }
    }

    pub(super) fn shape(&self) -> Result<Option<Shape>, StoreError> {
        let found = self.call("read", "the shape", |link, subjects| async move {
            link.last(&subjects.names_stream(), &subjects.shape()).await
        })?;
        let Some(found) = found else { return Ok(None) };
        let shape = serde_json::from_slice(&found.payload);
        shape.map(Some).map_err(|error| self.damaged("the shape", error.to_string()))
    }

    /// Whether a store of this session is open.
    pub(super) fn is_alive(&self, session: i64) -> Result<bool, StoreError> {
        let found = self.call("read", "the open stores", move |link, subjects| async move {
            link.last(&subjects.alive_stream(), &subjects.alive(session)).await
        })?;
        Ok(found.is_some())
    }

    /// Says from now on that this store is open.
    pub(super) fn stay_alive(&self) -> Result<(), StoreError> {
        let mut is_alive = self.inner.is_alive.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_alive {
            return Ok(());
        }
        let session = self.inner.session;
        let once = move |link: Link, subjects: Subjects| async move {
            let (stream, subject) = (subjects.alive_stream(), subjects.alive(session));
            link.publish(&stream, &subject, bytes::Bytes::new(), Behind::any()).await.map(drop)
        };
        self.call("write", "the open stores", once)?;
        let (link, subjects) = (self.inner.link.clone(), self.inner.subjects.clone());
        self.inner.blocking.spawn(async move {
            loop {
                tokio::time::sleep(ALIVE_EVERY).await;
                // A server that cannot be reached hears of it later.
                let _ = once(link.clone(), subjects.clone()).await;
            }
        });
        *is_alive = true;
        Ok(())
    }

    pub(super) fn make_streams(&self, wanted: HubShape) -> Result<(), StoreError> {
        let replicas = self.inner.replicas;
        let config = move |name: String, subjects: Vec<String>| Config {
            name,
            subjects,
            num_replicas: replicas,
            ..Config::default()
        };
        self.call("create", "the streams", move |link, subjects| async move {
            let last_only = |name, subject| Config { max_messages_per_subject: 1, ..config(name, vec![subject]) };
            link.make_stream(last_only(subjects.names_stream(), subjects.all_names())).await?;
            link.make_stream(last_only(subjects.parts_stream(), subjects.all_parts())).await?;
            let alive = last_only(subjects.alive_stream(), subjects.all_alive());
            link.make_stream(Config { max_age: ALIVE_FOR, ..alive }).await?;
            let shape = Shape { layout: LAYOUT, partitions: wanted.partitions, format: wanted.format };
            let shape = serde_json::to_vec(&shape).map_err(|error| RequestFailure::Lost(error.to_string()))?;
            let names = subjects.names_stream();
            if link.last(&names, &subjects.shape()).await?.is_some() {
                return Ok(());
            }
            unless_there(link.publish(&names, &subjects.shape(), shape.into(), Behind::LastOfSubject(0)).await)
        })
    }

    pub(super) fn make_logs(&self, partitions: u16) -> Result<(), StoreError> {
        let replicas = self.inner.replicas;
        self.call("create", "the logs", move |link, subjects| async move {
            for partition in (0..partitions).map(PartitionId) {
                let config = Config {
                    name: subjects.log_stream(partition),
                    subjects: ["log", "own"].map(|last| subjects.of_partition(partition, last)).to_vec(),
                    num_replicas: replicas,
                    ..Config::default()
                };
                link.make_stream(config).await?;
                let (stream, subject) = (subjects.log_stream(partition), subjects.of_partition(partition, "own"));
                if link.last(&stream, &subject).await?.is_none() {
                    let nobody = Ownership::default();
                    let behind = Behind::LastOfSubject(0);
                    unless_there(owner::write(&link, &subjects, partition, &nobody, behind).await)?;
                }
            }
            Ok(())
        })
    }
}

/// Of those who create something at the same time, the first one does.
fn unless_there(written: Result<u64, RequestFailure>) -> Result<(), RequestFailure> {
    match written {
        Ok(_) | Err(RequestFailure::Moved) => Ok(()),
        Err(failed) => Err(failed),
    }
}
