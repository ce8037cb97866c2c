//! The client of a hub.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

use crate::client::{Filter, InstanceView, Page, Start, Summary};
use crate::error::Error;
use crate::event::Event;
use crate::hub::{PendingResponse, Post};
use crate::ids::{EntityId, InstanceId, NAME_BYTES_MAX, Name, PartitionId, Time};
use crate::message::{Message, MessageKind, Reuse};
use crate::partition::{Reply, RequestKind, Response, Values};
use crate::payload::{PAYLOAD_BYTES_MAX, Payload};

/// Starts that go to a partition as one request.
const STARTS_PER_REQUEST_MAX: usize = 256;
/// Instances that one query may request.
const PAGE_MAX: usize = 10_000;

/// Sends requests to a hub. Cheap to clone; its futures run under any executor. Every response, also to a query that
/// changes nothing, reports only durable state.
#[derive(Clone)]
pub struct Client {
    hub: Arc<Ways>,
}

/// Takes requests to where their partitions are, where that may be another node.
pub(crate) trait Carry: Send + Sync {
    /// Takes a request away, and sees to it that it is responded to, unless the response is no longer wanted.
    fn carry(&self, partition: PartitionId, kind: RequestKind, again: Repetition, reply: Reply);
}

/// Whether a request may be made again that may have been done already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Repetition {
    /// It changes nothing, or nothing more.
    Yes,
    /// It may; it is refused then because the instance exists already, and so was done.
    UntilItExists,
    /// It could be done twice, or be responded to in another way.
    No,
}

struct Ways {
    post: Arc<Post>,
    carrier: Option<Arc<dyn Carry>>,
    permits: Vec<Semaphore>,
    runtime: Handle,
}

impl Client {
    pub(crate) fn new(post: Arc<Post>, carrier: Option<Arc<dyn Carry>>, requests_max: usize, runtime: Handle) -> Self {
        let permits = post.partitions().map(|_| Semaphore::new(requests_max)).collect();
        Self { hub: Arc::new(Ways { post, carrier, permits, runtime }) }
    }

    fn partitions(&self) -> u16 {
        self.hub.post.count()
    }

    async fn request(&self, partition: PartitionId, kind: RequestKind) -> Result<Response, Error> {
        let again = again_of_request(&kind);
        self.request_again(partition, kind, again).await
    }

    async fn request_again(
        &self,
        partition: PartitionId,
        kind: RequestKind,
        again: Repetition,
    ) -> Result<Response, Error> {
        let at = usize::from(partition.0);
        let _permit = self.hub.permits[at].acquire().await.map_err(|_| Error::Closed)?;
        self.put(partition, kind, again)?.await.unwrap_or(Err(Error::Closed))
    }

    fn put(&self, partition: PartitionId, kind: RequestKind, again: Repetition) -> Result<PendingResponse, Error> {
        if let Some(carrier) = &self.hub.carrier {
            let (reply, response) = oneshot::channel();
            carrier.carry(partition, kind, again, reply);
            return Ok(PendingResponse::of(response));
        }
        let inbox = self.hub.post.inbox(partition).ok_or(Error::Closed)?;
        let put = PendingResponse::put(&inbox, kind);
        put.map_err(|why| why.map_or(Error::Closed, |source| Error::Stopped { partition, source }))
    }

    async fn request_of(&self, id: &InstanceId, kind: RequestKind) -> Result<Response, Error> {
        self.request(id.partition(self.partitions()), kind).await
    }

    async fn tell(&self, to: InstanceId, kind: MessageKind) -> Result<(), Error> {
        self.request(to.partition(self.partitions()), RequestKind::Deliver(Message { to, kind })).await.map(|_| ())
    }

    /// Starts an orchestration and says who it is, once that is durable.
    ///
    /// # Errors
    /// [`Error::Exists`] as [`Start::reuse`] says, [`Error::Full`], [`Error::PayloadTooLarge`].
    pub async fn start(&self, start: Start) -> Result<InstanceId, Error> {
        let again = again_of(&start);
        let message = to_message(start)?;
        let id = message.to.clone();
        self.request_again(id.partition(self.partitions()), RequestKind::Deliver(message), again).await?;
        Ok(id)
    }

    /// Starts orchestrations; each may succeed or fail on its own account. The results are in the order of `starts`.
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Stopped`] if the hub cannot say what became of them.
    pub async fn start_many(&self, starts: Vec<Start>) -> Result<Vec<Result<InstanceId, Error>>, Error> {
        let mut results: Vec<Result<InstanceId, Error>> = Vec::with_capacity(starts.len());
        let again = if starts.iter().all(|start| again_of(start) != Repetition::No) {
            Repetition::UntilItExists
        } else {
            Repetition::No
        };
        let mut lots: Vec<Vec<(usize, Message)>> = self.hub.post.partitions().map(|_| Vec::new()).collect();
        let mut under_way = Vec::new();
        for (at, start) in starts.into_iter().enumerate() {
            match to_message(start) {
                Ok(message) => {
                    results.push(Ok(message.to.clone()));
                    let partition = message.to.partition(self.partitions());
                    let lot = &mut lots[usize::from(partition.0)];
                    lot.push((at, message));
                    if lot.len() == STARTS_PER_REQUEST_MAX {
                        under_way.push(self.put_lot(partition, std::mem::take(lot), again).await?);
                    }
                }
                Err(error) => results.push(Err(error)),
            }
        }
        for (partition, lot) in (0..).map(PartitionId).zip(lots) {
            under_way.push(self.put_lot(partition, lot, again).await?);
        }
        for (places, response) in under_way {
            let Response::Each(each) = response.await.unwrap_or(Err(Error::Closed))? else { continue };
            for (place, result) in places.into_iter().zip(each) {
                if let Err(error) = result {
                    results[place] = Err(error);
                }
            }
        }
        Ok(results)
    }

    async fn put_lot(
        &self,
        partition: PartitionId,
        lot: Vec<(usize, Message)>,
        again: Repetition,
    ) -> Result<(Vec<usize>, PendingResponse), Error> {
        let (places, messages) = lot.into_iter().unzip();
        Ok((places, self.begin(partition, RequestKind::DeliverEach(messages), again).await?))
    }

    /// Makes a request whose response is awaited later.
    async fn begin(
        &self,
        partition: PartitionId,
        kind: RequestKind,
        again: Repetition,
    ) -> Result<PendingResponse, Error> {
        drop(self.hub.permits[usize::from(partition.0)].acquire().await.map_err(|_| Error::Closed)?);
        self.put(partition, kind, again)
    }

    /// Waits until an orchestration has ended, durably.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::TimedOut`] after `timeout`.
    pub async fn wait(&self, id: &InstanceId, timeout: Duration) -> Result<InstanceView, Error> {
        let partition = id.partition(self.partitions());
        let mut response = self.put(partition, RequestKind::Wait(id.clone()), Repetition::Yes)?;
        let alarm = {
            let _context = self.hub.runtime.enter();
            tokio::time::sleep(timeout)
        };
        tokio::select! {
            biased;
            result = &mut response => view_of(result.unwrap_or(Err(Error::Closed)), id),
            () = alarm => {
                let waited_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
                Err(Error::TimedOut { instance: id.clone(), waited_ms })
            }
        }
    }

    /// An instance as it is; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Stopped`] or [`Error::Store`].
    pub async fn get(&self, id: &InstanceId) -> Result<Option<InstanceView>, Error> {
        match self.request_of(id, RequestKind::Get(id.clone())).await? {
            Response::View(view) => Ok(view.map(|view| *view)),
            _ => Ok(None),
        }
    }

    /// The history of an orchestration's present execution; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Stopped`] or [`Error::Store`].
    pub async fn history(&self, id: &InstanceId) -> Result<Option<Vec<Event>>, Error> {
        match self.request_of(id, RequestKind::History(id.clone())).await? {
            Response::Events(events) => Ok(events),
            _ => Ok(None),
        }
    }

    /// Raises an external event. One for an execution that has ended is accepted and has no effect.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::BadId`] for the name, [`Error::PayloadTooLarge`], [`Error::Full`].
    pub async fn raise(&self, id: &InstanceId, name: &str, data: Payload) -> Result<(), Error> {
        let name = checked_name(name)?;
        self.tell(id.clone(), MessageKind::Raise { name, data: checked(data)? }).await
    }

    /// Signals an entity, which exists from then on: its operation runs once, later.
    ///
    /// # Errors
    /// [`Error::BadId`] for the operation's name, [`Error::PayloadTooLarge`], [`Error::Full`].
    pub async fn signal(&self, entity: &EntityId, operation: &str, input: Payload) -> Result<(), Error> {
        self.operate(entity, operation, input, None).await
    }

    /// Signals an entity: its operation runs once, not before a moment. Acknowledged once the signal is durable.
    ///
    /// # Errors
    /// As [`Client::signal`].
    pub async fn signal_at(&self, entity: &EntityId, operation: &str, input: Payload, at: Time) -> Result<(), Error> {
        self.operate(entity, operation, input, Some(at)).await
    }

    async fn operate(&self, entity: &EntityId, operation: &str, input: Payload, at: Option<Time>) -> Result<(), Error> {
        let operation = checked_name(operation)?;
        let kind = MessageKind::Operate { operation, input: checked(input)?, caller: None, at };
        self.tell(entity.instance().clone(), kind).await
    }

    /// The state of an entity; `None` if it has none.
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Stopped`].
    pub async fn entity_state(&self, entity: &EntityId) -> Result<Option<Payload>, Error> {
        match self.request_of(entity.instance(), RequestKind::State(entity.clone())).await? {
            Response::State(state) => Ok(state),
            _ => Ok(None),
        }
    }

    /// Ends an orchestration and the sub-orchestrations it waits for.
    ///
    /// # Errors
    /// [`Error::NotFound`], or [`Error::Conflict`] if it has ended.
    pub async fn terminate(&self, id: &InstanceId, reason: &str) -> Result<(), Error> {
        self.tell(id.clone(), MessageKind::Terminate { reason: reason.to_owned() }).await
    }

    /// Keeps outside events back from an orchestration.
    ///
    /// # Errors
    /// [`Error::NotFound`], or [`Error::Conflict`] if it does not run.
    pub async fn suspend(&self, id: &InstanceId, reason: &str) -> Result<(), Error> {
        self.tell(id.clone(), MessageKind::Suspend { reason: reason.to_owned() }).await
    }

    /// Gives a suspended orchestration its events again.
    ///
    /// # Errors
    /// [`Error::NotFound`], or [`Error::Conflict`] if it is not suspended.
    pub async fn resume(&self, id: &InstanceId, reason: &str) -> Result<(), Error> {
        self.tell(id.clone(), MessageKind::Resume { reason: reason.to_owned() }).await
    }

    /// Instances that pass, at most `limit` (1 to 10,000) at a time. `next` is that of the page before.
    ///
    /// # Errors
    /// [`Error::BadOption`] for a `limit` or `next` that cannot be one.
    pub async fn query(
        &self,
        filter: Filter,
        limit: usize,
        values: Values,
        next: Option<String>,
    ) -> Result<Page, Error> {
        if limit == 0 || limit > PAGE_MAX {
            let expected = format!("1 to {PAGE_MAX}");
            return Err(Error::BadOption { option: "limit", value: limit.to_string(), expected });
        }
        let (mut partition, mut from) = self.place(next.as_deref())?;
        let mut instances = Vec::new();
        while partition < self.partitions() {
            let kind = RequestKind::Query { filter: filter.clone(), limit: limit - instances.len(), values, from };
            let Response::Page(views, next) = self.request(PartitionId(partition), kind).await? else { break };
            instances.extend(views);
            match next {
                Some(next) => from = next,
                None => (partition, from) = (partition + 1, 0),
            }
            if instances.len() >= limit && partition < self.partitions() {
                return Ok(Page { instances, next: Some(format!("{partition}:{from}")) });
            }
        }
        Ok(Page { instances, next: None })
    }

    fn place(&self, next: Option<&str>) -> Result<(u16, u64), Error> {
        let Some(text) = next else { return Ok((0, 0)) };
        let place =
            text.split_once(':').and_then(|(partition, from)| Some((partition.parse().ok()?, from.parse().ok()?)));
        place.filter(|(partition, _)| *partition < self.partitions()).ok_or_else(|| Error::BadOption {
            option: "next",
            value: text.chars().take(64).collect(),
            expected: "what the page before said".to_owned(),
        })
    }

    /// How many instances pass.
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Stopped`].
    pub async fn count(&self, filter: Filter) -> Result<u64, Error> {
        Ok(self.summary(filter).await?.count)
    }

    /// The instances that pass, in figures.
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Stopped`].
    pub async fn summary(&self, filter: Filter) -> Result<Summary, Error> {
        let mut sum = Summary::default();
        let take = |response| match response {
            Response::Summary(summary, next) => {
                sum = sum.with(summary);
                next
            }
            _ => None,
        };
        self.walk(|from| RequestKind::Summary(filter.clone(), from), take).await?;
        Ok(sum)
    }

    /// Forgets an ended orchestration and its sub-orchestrations, or an idle entity. Says whether there was one.
    ///
    /// # Errors
    /// [`Error::Conflict`] if it has not ended.
    pub async fn purge(&self, id: &InstanceId) -> Result<bool, Error> {
        match self.request_of(id, RequestKind::Purge(id.clone())).await? {
            Response::Count(count, _) => Ok(count > 0),
            _ => Ok(false),
        }
    }

    /// Forgets all ended orchestrations that pass, and says how many.
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Stopped`].
    pub async fn purge_all(&self, filter: Filter) -> Result<u64, Error> {
        let mut sum = 0;
        let take = |response| match response {
            Response::Count(count, next) => {
                sum += count;
                next
            }
            _ => None,
        };
        self.walk(|from| RequestKind::PurgeAll(filter.clone(), from), take).await?;
        Ok(sum)
    }

    /// Makes a request of all partitions at the same time, and goes on with each where `take` says.
    async fn walk(
        &self,
        kind: impl Fn(u64) -> RequestKind,
        mut take: impl FnMut(Response) -> Option<u64>,
    ) -> Result<(), Error> {
        let mut begun = Vec::new();
        for partition in self.hub.post.partitions() {
            let first = kind(0);
            let again = again_of_request(&first);
            begun.push((partition, self.begin(partition, first, again).await?));
        }
        for (partition, response) in begun {
            let mut next = take(response.await.unwrap_or(Err(Error::Closed))?);
            while let Some(from) = next {
                next = take(self.request(partition, kind(from)).await?);
            }
        }
        Ok(())
    }
}

/// A request that changes nothing may be made again.
fn again_of_request(kind: &RequestKind) -> Repetition {
    match kind {
        RequestKind::Wait(_)
        | RequestKind::Forget(_)
        | RequestKind::Get(_)
        | RequestKind::History(_)
        | RequestKind::State(_)
        | RequestKind::Query { .. }
        | RequestKind::Summary(..) => Repetition::Yes,
        RequestKind::Deliver(_) | RequestKind::DeliverEach(_) | RequestKind::Purge(_) | RequestKind::PurgeAll(..) => {
            Repetition::No
        }
    }
}

/// A start under an identifier that is drawn for it alone may be made again: if it was done, the identifier is taken.
fn again_of(start: &Start) -> Repetition {
    match (start.reuse, &start.id) {
        (Reuse::Ignore, _) => Repetition::Yes,
        (_, None) => Repetition::UntilItExists,
        _ => Repetition::No,
    }
}

fn view_of(response: Result<Response, Error>, id: &InstanceId) -> Result<InstanceView, Error> {
    match response? {
        Response::View(Some(view)) => Ok(*view),
        _ => Err(Error::NotFound(id.clone())),
    }
}

fn to_message(start: Start) -> Result<Message, Error> {
    let Start { name, version, input, id, at, reuse } = start;
    let name = if name.as_str().is_empty() || name.as_str().len() > NAME_BYTES_MAX {
        checked_name(name.as_str())?
    } else {
        name
    };
    // Nobody else has an identifier that is drawn here; should it be taken, the start was done.
    let reuse = if id.is_none() && reuse != Reuse::Ignore { Reuse::Never } else { reuse };
    let to = id.map_or_else(random_id, Ok)?;
    let input = checked(input)?;
    Ok(Message { to, kind: MessageKind::Start { name, version, input, parent: None, at, reuse } })
}

fn checked_name(name: &str) -> Result<Name, Error> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(Error::bad_id(name, "a name of 1 to 256 bytes"));
    }
    Ok(Name::from(name))
}

fn checked(payload: Payload) -> Result<Payload, Error> {
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Err(Error::PayloadTooLarge { bytes: payload.len() as u64, limit: PAYLOAD_BYTES_MAX as u64 });
    }
    Ok(payload)
}

/// 128 random bits: the standard library's hash keys come from the operating system and differ each time.
fn random_id() -> Result<InstanceId, Error> {
    use std::hash::{BuildHasher, RandomState};
    static STARTED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let count = STARTED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let half = || RandomState::new().hash_one((count, crate::hub::now().0));
    InstanceId::new(format!("{:016x}{:016x}", half(), half()))
}
