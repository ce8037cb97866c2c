//! Inputs of a partition, and its outputs besides frames.

use tokio::sync::oneshot;

use crate::client::{Filter, InstanceView, Summary};
use crate::error::Error;
use crate::event::Event;
use crate::failure::Failure;
use crate::ids::{EntityId, InstanceId, PartitionId};
use crate::message::Message;
use crate::payload::Payload;
use crate::program::ActivityCall;

/// Something that a partition has to deal with.
#[derive(Debug)]
pub enum Input {
    /// Messages of another partition, or of this one, that are durable there; numbered from `first` on.
    Messages {
        /// Who sent them.
        from: PartitionId,
        /// The number of the first.
        first: u64,
        /// Message that was sent.
        messages: Vec<Message>,
    },
    /// A partition has durably taken what this one sent.
    Acknowledged {
        /// The receiver.
        by: PartitionId,
        /// The last number it took.
        up_to: u64,
    },
    /// How far another partition has sent messages to this one. It wants to know which of them have not come.
    Probe {
        /// The sender.
        from: PartitionId,
        /// The number of the last message it has sent.
        up_to: u64,
    },
    /// Messages that this partition has sent have not come.
    Missing {
        /// The receiver.
        by: PartitionId,
        /// The number of the first of them.
        first: u64,
        /// The number behind the last of them.
        before: u64,
    },
    /// An activity has ended.
    TaskDone {
        /// Which.
        task: TaskKey,
        /// How.
        result: Result<Payload, Failure>,
    },
    /// Messages and their acknowledgements may be lost on their way to other processes: receivers are to say which of
    /// those that are not acknowledged they miss.
    Repeat {
        /// This one, at once; `None` means each that has acknowledged nothing since the last time.
        to: Option<PartitionId>,
    },
    /// A client's request.
    Request(Request),
}

/// Which activity of which execution on this partition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TaskKey {
    /// The number of the instance on its partition.
    pub handle: u64,
    /// Its execution.
    pub generation: u64,
    /// The decision.
    pub id: u32,
}

/// Where a response goes. A client that has gone away is no error.
pub type Reply = oneshot::Sender<Result<Response, Error>>;

/// Request of a client, and the place for its response.
#[derive(Debug)]
pub struct Request {
    /// The request.
    pub kind: RequestKind,
    /// Where the response goes.
    pub reply: Reply,
}

/// Request of a client to one partition.
#[derive(Clone, Debug)]
pub enum RequestKind {
    /// Deliver a message; the response is [`Response::Done`].
    Deliver(Message),
    /// Deliver messages, each on its own account; the response is [`Response::Each`].
    DeliverEach(Vec<Message>),
    /// Respond with [`Response::View`] once the instance has ended.
    Wait(InstanceId),
    /// Forget those who wait for this instance and have gone away.
    Forget(InstanceId),
    /// The instance as it is: [`Response::View`].
    Get(InstanceId),
    /// Its history: [`Response::Events`].
    History(InstanceId),
    /// The state of an entity: [`Response::State`].
    State(EntityId),
    /// Instances that pass, from a place on: [`Response::Page`].
    Query {
        /// Which ones.
        filter: Filter,
        /// At most so many.
        limit: usize,
        /// Whether inputs, outputs and statuses are read too.
        values: Values,
        /// Where to begin.
        from: u64,
    },
    /// Figures of those that pass, from a place on: [`Response::Summary`].
    Summary(Filter, u64),
    /// Forget an ended instance and its sub-orchestrations: [`Response::Count`].
    Purge(InstanceId),
    /// Forget ended instances that pass, from a place on: [`Response::Count`].
    PurgeAll(Filter, u64),
}

/// Whether a query reads inputs, outputs and custom statuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// It does.
    With,
    /// It leaves them empty, and is faster.
    Without,
}

/// A partition's response.
#[derive(Debug)]
pub enum Response {
    /// It is done.
    Done,
    /// Each is done or is not.
    Each(Vec<Result<(), Error>>),
    /// An instance, if there is one.
    View(Option<Box<InstanceView>>),
    /// A history, if there is one.
    Events(Option<Vec<Event>>),
    /// The state of an entity, if there is one.
    State(Option<Payload>),
    /// Instances, and where to go on.
    Page(Vec<InstanceView>, Option<u64>),
    /// How many, and where to go on.
    Count(u64, Option<u64>),
    /// Figures, and where to go on.
    Summary(Summary, Option<u64>),
    /// Result of an activity that ran for another node.
    Ran(Payload),
}

/// Something that has to happen outside of the partition. Only effects of durable steps come out, and idempotent
/// activities.
#[derive(Debug)]
pub enum Effect {
    /// Run an activity and give [`Input::TaskDone`] back.
    Run(TaskKey, ActivityCall),
    /// Give messages to a partition as [`Input::Messages`].
    Send {
        /// The receiver.
        to: PartitionId,
        /// The number of the first message.
        first: u64,
        /// Message.
        messages: Vec<Message>,
    },
    /// Give [`Input::Acknowledged`] to a partition.
    Acknowledge {
        /// The sender of the messages taken.
        to: PartitionId,
        /// The last number that was taken.
        up_to: u64,
    },
    /// Give [`Input::Probe`] to a partition, after earlier messages.
    Probe {
        /// The receiver of the messages sent.
        to: PartitionId,
        /// The number of the last message that was sent.
        up_to: u64,
    },
    /// Give [`Input::Missing`] to a partition.
    Missing {
        /// The sender of the missing messages.
        to: PartitionId,
        /// The number of the first message.
        first: u64,
        /// The number behind the last.
        before: u64,
    },
    /// Respond to a client.
    Respond(Reply, Result<Response, Error>),
    /// Keep a part of a snapshot.
    Keep(String, Vec<u8>),
    /// Keep the list of parts, then cut the log before `before` and forget blobs of older snapshots.
    Finish(super::snapshot::FinishedSnapshot),
}
