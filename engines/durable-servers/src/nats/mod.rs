//! A store on NATS JetStream: a stream for each partition, which is its log and says who has it.
//!
//! An append is a message that is accepted only as the next one of its stream (`Nats-Expected-Last-Sequence`). Taking
//! a partition adds a message to the same stream, behind which the former owner's next one does not fit: that is the
//! fence. A message that is sent again, since its acknowledgement did not come, is accepted once.
//!
//! An acknowledgement means that the server has written the message, with more than one replica the majority of
//! them, but not that it is on a disk: servers sync every two minutes (`sync_interval`). The end of a server's process
//! loses nothing; the loss of its power may. What must survive that needs `replicas=3` on machines that do not fail
//! together. A log that ends before what was acknowledged is refused by the owner that wrote it, not by a later one.

mod blobs;
mod bus;
mod hub;
mod link;
mod log;
mod options;
mod owner;
mod read;
mod record;
mod repair;
mod shared;
mod subjects;

pub use options::NatsStoreOptions;

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use narrows_durable::store::{
    Batching, FrameBatch, HubShape, Location, SharedStore, Store, StoreError, Visit, check_blob_name,
};
use narrows_durable::{Epoch, PartitionId, Position};

use self::hub::LAYOUT;
use self::link::{Behind, Link, RequestFailure};
use self::log::LogState;
use self::options::Address;
use self::owner::Ownership;
use self::subjects::Subjects;
use crate::blocking::BlockingRuntime;
use crate::calls::{refused, unique_number};

const DROP_TIMEOUT: Duration = Duration::from_secs(1);

/// A hub on NATS JetStream.
#[derive(Clone, Debug)]
pub struct NatsStore {
    inner: Arc<Inner>,
}

/// State that the stores, buses and lines of one connection share.
#[derive(Debug)]
struct Inner {
    blocking: BlockingRuntime,
    link: Link,
    subjects: Subjects,
    server: String,
    session: i64,
    replicas: usize,
    held: Mutex<HashMap<PartitionId, Arc<tokio::sync::Mutex<LogState>>>>,
    /// Who had the partitions when that was last read.
    owners: Mutex<HashMap<PartitionId, Ownership>>,
    is_alive: Mutex<bool>,
}

impl NatsStore {
    /// Connects. `url` is `nats://user:password@host:port/hub`, the hub is `main` if none is named, further servers
    /// follow the first after commas, with or without `nats://`, and `?replicas=3` goes before `options`. Nothing is
    /// made before [`Store::open_or_create`].
    ///
    /// # Errors
    /// [`StoreError::Io`] if the text is not as above, no server can be reached within 5 s, or it refuses user or
    /// password. Errors and descriptions show no password.
    pub fn open(url: &str, mut options: NatsStoreOptions) -> Result<Self, StoreError> {
        let address = Address::parse(url, &mut options)?;
        let server = address.server();
        let place = || Location::Remote { server: server.clone(), what: "a connection".to_owned() };
        let blocking =
            BlockingRuntime::start("nats-store").map_err(|error| refused("open", place(), error.to_string()))?;
        let (replicas, subjects) = (options.replicas, Subjects::new(&address.hub));
        let link = blocking.run(Link::open(&address, &options)).map_err(|reason| refused("open", place(), reason))?;
        let inner = Inner {
            blocking,
            link,
            subjects,
            server,
            session: unique_number(),
            replicas,
            held: Mutex::default(),
            owners: Mutex::default(),
            is_alive: Mutex::new(false),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    fn place(&self, what: impl Into<String>) -> Location {
        Location::Remote { server: self.inner.server.clone(), what: what.into() }
    }

    fn damaged(&self, what: impl Into<String>, why: impl Into<String>) -> StoreError {
        StoreError::Damaged { place: self.place(what), what: why.into() }
    }

    /// Runs requests, which get the connection and the names of the hub.
    fn call<T, F>(
        &self,
        action: &'static str,
        what: impl Into<String>,
        requests: impl FnOnce(Link, Subjects) -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, RequestFailure>>,
    {
        let inner = &self.inner;
        let result = inner.blocking.run(requests(inner.link.clone(), inner.subjects.clone()));
        result.map_err(|failed| failed.at(action, self.place(what)))
    }

    fn ownership(&self, partition: PartitionId) -> Result<Ownership, StoreError> {
        let what = format!("partition {partition}");
        let read = self.call("read", &what, move |link, subjects| async move {
            match owner::read(&link, &subjects, partition).await {
                Ok(found) => Ok(Ok(found)),
                Err(owner::ReadFailure::Failed(failed)) => Err(failed),
                Err(owner::ReadFailure::Damaged(sequence, why)) => Ok(Err((sequence, why))),
            }
        });
        match read {
            Ok(Ok(found)) => Ok(found),
            Ok(Err((sequence, why))) => Err(self.damaged(format!("{what} at message {sequence}"), why)),
            Err(StoreError::Foreign { place, .. }) => Err(self.unknown(place)),
            Err(error) => Err(error),
        }
    }

    /// Keeps who has a partition, unless something newer is known.
    fn remember(&self, partition: PartitionId, found: Ownership) -> Ownership {
        let mut owners = self.inner.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let known = owners.entry(partition).or_default();
        if found.sequence >= known.sequence {
            *known = found;
        }
        known.clone()
    }

    fn remembered(&self, partition: PartitionId) -> Option<Ownership> {
        self.inner.owners.lock().unwrap_or_else(PoisonError::into_inner).get(&partition).cloned()
    }

    /// Writes that this store has a partition, where `before` still holds, and learns where its log ends.
    fn own(&self, partition: PartitionId, before: Ownership, owner: &str) -> Result<Option<Epoch>, StoreError> {
        let epoch = before.epoch + 1;
        let after = Ownership { epoch, owner: Some(owner.to_owned()), session: self.inner.session, sequence: 0 };
        let taken = self.call("take", format!("partition {partition}"), move |link, subjects| async move {
            match owner::write(&link, &subjects, partition, &after, Behind::LastOfSubject(before.sequence)).await {
                Ok(sequence) => {
                    let own = Ownership { sequence, ..after };
                    let mark = match owner::mark(&link, &subjects, partition, &own).await {
                        // The next owner has come already, and refuses all that this one will write.
                        Err(RequestFailure::Moved) => sequence,
                        mark => mark?,
                    };
                    let ends = log::end(&link, &subjects, partition, mark).await?;
                    Ok(Some(LogState::new(own, mark, ends)))
                }
                Err(RequestFailure::Moved) => Ok(None),
                Err(failed) => Err(failed),
            }
        })?;
        let Some(held) = taken else { return Ok(None) };
        let held = Arc::new(tokio::sync::Mutex::new(held));
        self.inner.held.lock().unwrap_or_else(PoisonError::into_inner).insert(partition, held);
        Ok(Some(Epoch(epoch)))
    }

    /// The known state of a partition, as of the last time this store took it.
    fn holding(&self, partition: PartitionId) -> Option<Arc<tokio::sync::Mutex<LogState>>> {
        self.inner.held.lock().unwrap_or_else(PoisonError::into_inner).get(&partition).cloned()
    }

    /// State of a partition that this store has taken with this epoch.
    fn held(&self, partition: PartitionId, epoch: Epoch) -> Result<Arc<tokio::sync::Mutex<LogState>>, StoreError> {
        if let Some(held) = self.holding(partition)
            && self.inner.blocking.run(held.lock()).own.epoch == epoch.0
        {
            return Ok(held);
        }
        let theirs = self.ownership(partition)?.epoch;
        Err(StoreError::Fenced { partition, ours: epoch.0, theirs })
    }

    /// The error of a write that does not fit the end of the log: fenced if another node owns the partition by now.
    fn overtaken(&self, partition: PartitionId, epoch: Epoch, at: u64) -> StoreError {
        let found = match self.ownership(partition) {
            Ok(found) => found,
            Err(error) => return error,
        };
        if found.epoch != epoch.0 || found.owner.is_none() {
            return StoreError::Fenced { partition, ours: epoch.0, theirs: found.epoch };
        }
        let ends = self.call("read", format!("the log of partition {partition}"), move |link, subjects| async move {
            log::end(&link, &subjects, partition, 0).await
        });
        ends.map_or_else(|error| error, |ends| StoreError::Conflict { partition, ends, at })
    }
}

impl Store for NatsStore {
    fn describe(&self) -> String {
        self.inner.server.clone()
    }

    fn batching(&self) -> Batching {
        Batching::Group
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(self)
    }

    fn open_or_create(&self, wanted: HubShape) -> Result<HubShape, StoreError> {
        self.make_streams(wanted)?;
        let foreign = |what: String| StoreError::Foreign { place: self.place("the shape"), what };
        let shape = self.shape()?.ok_or_else(|| foreign("there is none".to_owned()))?;
        if shape.layout != LAYOUT {
            return Err(foreign(format!("its streams are of layout {}, expected {LAYOUT}", shape.layout)));
        }
        if shape.format != wanted.format {
            return Err(foreign(format!("its format is {}, expected {}", shape.format, wanted.format)));
        }
        self.make_logs(shape.partitions)?;
        self.stay_alive()?;
        Ok(HubShape { partitions: shape.partitions, format: shape.format })
    }

    /// Takes a partition that was given back, that this store holds, or whose owner's store has not said for six
    /// seconds that it is open.
    fn acquire(&self, partition: PartitionId, owner: &str) -> Result<Epoch, StoreError> {
        let found = self.ownership(partition)?;
        let by = found.owner.clone();
        let is_free = by.is_none() || found.session == self.inner.session || !self.is_alive(found.session)?;
        if is_free && let Some(epoch) = self.own(partition, found, owner)? {
            return Ok(epoch);
        }
        let by = by.unwrap_or_else(|| "another process".to_owned());
        Err(StoreError::InUse { place: self.place(format!("partition {partition}")), by })
    }

    fn release(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError> {
        let before = self.ownership(partition)?;
        let fenced = |theirs| StoreError::Fenced { partition, ours: epoch.0, theirs };
        if before.epoch != epoch.0 || before.owner.is_none() {
            return Err(fenced(before.epoch));
        }
        let after = Ownership { owner: None, ..before.clone() };
        let written = self.call("release", format!("partition {partition}"), move |link, subjects| async move {
            match owner::write(&link, &subjects, partition, &after, Behind::LastOfSubject(before.sequence)).await {
                Ok(_) => Ok(true),
                Err(RequestFailure::Moved) => Ok(false),
                Err(failed) => Err(failed),
            }
        })?;
        if !written {
            return Err(fenced(self.ownership(partition)?.epoch));
        }
        self.inner.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&partition);
        Ok(())
    }

    fn append(&self, partition: PartitionId, epoch: Epoch, at: Position, batch: &FrameBatch) -> Result<(), StoreError> {
        let what = || format!("the log of partition {partition} at {}", at.0);
        batch.check(|| self.place(what()))?;
        let held = self.held(partition, epoch)?;
        if batch.is_empty() {
            return Ok(());
        }
        let appended = self.call("append to", what(), move |link, subjects| async move {
            let mut held = held.lock().await;
            if held.is_unsure {
                return Err(RequestFailure::Lost("an append before this one failed".to_owned()));
            }
            if held.ends != at.0 {
                return Ok(false);
            }
            match log::append(&link, &subjects, partition, &mut held, batch).await {
                Ok(()) => Ok(true),
                Err(failed) => {
                    held.is_unsure = failed != RequestFailure::Moved;
                    if failed == RequestFailure::Moved { Ok(false) } else { Err(failed) }
                }
            }
        })?;
        if appended { Ok(()) } else { Err(self.overtaken(partition, epoch, at.0)) }
    }

    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        let messages = self.messages(partition)?;
        let next = self.read_frames(partition, messages, from, visit)?;
        Ok(Position(next.unwrap_or(0)))
    }

    fn truncate(&self, partition: PartitionId, epoch: Epoch, before: Position) -> Result<(), StoreError> {
        let held = self.held(partition, epoch)?;
        let what = format!("the log of partition {partition}");
        let truncated = self.call("truncate", what, move |link, subjects| async move {
            let mut held = held.lock().await;
            match log::truncate(&link, &subjects, partition, &mut held, before.0).await {
                Ok(left) => Ok(Some(left.map(|before| (before, Arc::clone(&held.is_forgetting))))),
                Err(failed) => {
                    held.is_unsure = failed != RequestFailure::Moved;
                    if failed == RequestFailure::Moved { Ok(None) } else { Err(failed) }
                }
            }
        })?;
        let Some(left) = truncated else { return Err(self.overtaken(partition, epoch, before.0)) };
        if let Some((before, is_forgetting)) = left
            && !is_forgetting.swap(true, Ordering::SeqCst)
        {
            let (link, stream) = (self.inner.link.clone(), self.inner.subjects.log_stream(partition));
            self.inner.blocking.spawn(async move {
                // Messages left now are deleted with the next snapshot.
                let _ = link.forget_before(&stream, before).await;
                is_forgetting.store(false, Ordering::SeqCst);
            });
        }
        Ok(())
    }

    fn put_blob(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        check_blob_name(name)?;
        self.call("write", format!("blob {name}"), |link, subjects| async move {
            blobs::put(&link, &subjects, name, bytes).await
        })
    }

    fn get_blob(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        check_blob_name(name)?;
        let got = self.call("read", format!("blob {name}"), |link, subjects| async move {
            match blobs::get(&link, &subjects, name).await {
                Ok(bytes) => Ok(Ok(bytes)),
                Err(blobs::ReadFailure::Failed(failed)) => Err(failed),
                Err(blobs::ReadFailure::Damaged(why)) => Ok(Err(why)),
            }
        })?;
        got.map_err(|why| self.damaged(format!("blob {name}"), why))
    }

    fn delete_blob(&self, name: &str) -> Result<(), StoreError> {
        check_blob_name(name)?;
        self.call("delete", format!("blob {name}"), |link, subjects| async move {
            blobs::delete(&link, &subjects, name).await
        })
    }

    fn list_blobs(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let filter = self.inner.subjects.blobs(prefix);
        let found = self.call("list", "blobs", move |link, subjects| async move {
            link.subjects(&subjects.names_stream(), &filter).await
        })?;
        let names = found.iter().filter_map(|subject| self.inner.subjects.blob_of(subject));
        let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
        names.sort();
        Ok(names)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !*self.is_alive.lock().unwrap_or_else(PoisonError::into_inner) {
            return;
        }
        let (link, subjects, session) = (self.link.clone(), self.subjects.clone(), self.session);
        self.blocking.run(async move {
            let (stream, subject) = (subjects.alive_stream(), subjects.alive(session));
            let forgotten = link.forget(&stream, &subject);
            // Without it, the store counts as alive for some seconds.
            let _ = tokio::time::timeout(DROP_TIMEOUT, forgotten).await;
        });
    }
}
