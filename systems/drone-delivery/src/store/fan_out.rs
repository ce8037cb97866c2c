//! A query over several ranges: so many at a time, drained in their order.
//!
//! Each range has a task that requests its pages. Tasks begin in the order of the ranges, so the range that is being
//! drained has always begun, and it never waits for room: pages of the ranges after it wait for their turn with at
//! most so many documents, and their tasks request nothing more meanwhile. Dropping [`Pages`] ends all tasks.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use super::StoreError;
use super::operation::Operation;
use super::wire::{Target, Wire};

/// Pages of one range in one query.
const PAGES_MAX: u32 = 10_000;
/// Pages of one range that wait to be drained.
const WAITING_PAGES_MAX: usize = 8;

/// The pages of a query in the order of its ranges.
pub(super) struct Pages<D> {
    ranges: std::vec::IntoIter<mpsc::Receiver<Message<D>>>,
    drained: Option<mpsc::Receiver<Message<D>>>,
    turn: watch::Sender<usize>,
    /// Ends the tasks when it is dropped.
    _tasks: JoinSet<()>,
}

/// Message of a range's task. A channel that ends without [`Message::End`] was cut off.
enum Message<D> {
    /// Documents, with the room they take while they wait.
    Documents(Vec<D>, Option<OwnedSemaphorePermit>),
    End,
    Failed(StoreError),
}

/// Begins to query `targets`, at most `slots` at a time; ranges before their turn hold at most `prefetch_max`
/// documents.
pub(super) fn start<D: DeserializeOwned + Send + 'static>(
    wire: &Arc<Wire>,
    operation: &Arc<Operation>,
    targets: Vec<Target>,
    slots: usize,
    prefetch_max: usize,
) -> Pages<D> {
    let (turn, its_turn) = watch::channel(0);
    let room = Arc::new(Semaphore::new(prefetch_max));
    let mut receivers = Vec::with_capacity(targets.len());
    let mut askers = Vec::with_capacity(targets.len());
    for (number, target) in targets.into_iter().enumerate() {
        let (pages, receiver) = mpsc::channel(WAITING_PAGES_MAX);
        receivers.push(receiver);
        askers.push(Asker {
            number,
            target,
            wire: Arc::clone(wire),
            operation: Arc::clone(operation),
            pages,
            turn: its_turn.clone(),
            room: Arc::clone(&room),
            room_max: prefetch_max,
        });
    }
    let mut tasks = JoinSet::new();
    tasks.spawn(begin_in_order(askers, slots));
    Pages { ranges: receivers.into_iter(), drained: None, turn, _tasks: tasks }
}

/// Begins the next task whenever there is a slot; ends when all have ended.
async fn begin_in_order<D: DeserializeOwned + Send + 'static>(askers: Vec<Asker<D>>, slots: usize) {
    let mut tasks = JoinSet::new();
    for asker in askers {
        if tasks.len() == slots {
            tasks.join_next().await;
        }
        tasks.spawn(asker.run());
    }
    while tasks.join_next().await.is_some() {}
}

impl<D> Pages<D> {
    /// The documents of the next page; none after the last.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<D>>, StoreError> {
        loop {
            let range = match &mut self.drained {
                Some(range) => range,
                None => match self.ranges.next() {
                    Some(range) => self.drained.insert(range),
                    None => return Ok(None),
                },
            };
            match range.recv().await {
                Some(Message::Documents(documents, _room)) => return Ok(Some(documents)),
                Some(Message::End) => {
                    self.drained = None;
                    self.turn.send_modify(|number| *number += 1);
                }
                Some(Message::Failed(error)) => return Err(error),
                None => return Err(StoreError::Interrupted),
            }
        }
    }
}

/// Requests the pages of one range.
struct Asker<D> {
    number: usize,
    target: Target,
    wire: Arc<Wire>,
    operation: Arc<Operation>,
    pages: mpsc::Sender<Message<D>>,
    turn: watch::Receiver<usize>,
    room: Arc<Semaphore>,
    room_max: usize,
}

impl<D: DeserializeOwned + Send + 'static> Asker<D> {
    async fn run(mut self) {
        let last = match self.fetch().await {
            Ok(()) => Message::End,
            Err(error) => Message::Failed(error),
        };
        // The other side is gone when the query was given up.
        let _ = self.pages.send(last).await;
    }

    async fn fetch(&mut self) -> Result<(), StoreError> {
        let mut continuation = None;
        for _ in 0..PAGES_MAX {
            let page = self.wire.page(&self.operation, &self.target, continuation.as_ref()).await?;
            if !page.documents.is_empty() {
                let room = self.room_for(page.documents.len()).await;
                let message = Message::Documents(page.documents, room);
                self.pages.send(message).await.map_err(|_| StoreError::Interrupted)?;
            }
            continuation = page.continuation;
            if continuation.is_none() {
                return Ok(());
            }
        }
        Err(StoreError::TooManyPages)
    }

    /// Room for `documents`; none is needed by the range whose turn it is. A page larger than all room takes all.
    async fn room_for(&mut self, documents: usize) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(documents.min(self.room_max)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room);
        tokio::select! {
            biased;
            _ = self.turn.wait_for(|turn| *turn == self.number) => None,
            room = room.acquire_many_owned(permits) => room.ok(),
        }
    }
}
