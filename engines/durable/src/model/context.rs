//! The context: everything that an orchestration may do and await.
//!
//! Each method either decides something at once, or gives a future that decides when it is first polled. Nothing here
//! touches the world: the time is that of the last event, random numbers come from the instance's identifier.

use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::event::{EventKind, Version};
use crate::failure::{Failure, FailureKind};
use crate::ids::{EntityId, InstanceId, Name, Time};
use crate::model::awaits::{EntityCall, EventWait, LockRequest, Timer};
use crate::model::call::{Call, SubCall};
use crate::model::chance;
use crate::model::definition::{Activity, EntityOp, ExternalEvent, Orchestration};
use crate::model::shared::Shared;
use crate::payload::Payload;

/// Context of an orchestration's code. Cheap to clone; it stays on its thread.
///
/// The code must decide the same when it is run again on the same events: take the time, identifiers and random
/// numbers from here, leave the outside world to activities, and await only futures from here.
///
/// ```
/// use std::time::Duration;
///
/// use narrows_durable::{Activity, Ctx, Either, ExternalEvent, Failure, Orchestration, Registry, RetryPolicy};
///
/// const CHARGE: Activity<u32, String> = Activity::new("Charge");
/// const REFUND: Activity<String, ()> = Activity::new("Refund");
/// const APPROVED: ExternalEvent<bool> = ExternalEvent::new("Approved");
/// const ORDER: Orchestration<u32, bool> = Orchestration::new("Order");
///
/// async fn order(ctx: Ctx, cents: u32) -> Result<bool, Failure> {
///     let retry = RetryPolicy::new(5, Duration::from_secs(1)).backoff(2.0, Duration::from_secs(60));
///     let receipt = ctx.call(CHARGE, &cents).retry(retry).timeout(Duration::from_secs(600)).await?;
///     let a_day = ctx.timer(Duration::from_secs(86_400));
///     let is_approved = match ctx.select2(ctx.event(APPROVED), a_day).await {
///         Either::Left(approval) => approval?,
///         Either::Right(()) => false,
///     };
///     if !is_approved {
///         ctx.call(REFUND, &receipt).await?;
///     }
///     Ok(is_approved)
/// }
///
/// let mut code = Registry::new();
/// code.orchestration(ORDER, order);
/// ```
#[derive(Clone)]
pub struct Ctx {
    pub(super) shared: Rc<Shared>,
}

impl Ctx {
    pub(super) fn new(shared: &Rc<Shared>) -> Self {
        Self { shared: Rc::clone(shared) }
    }

    /// Runs an activity. It may run more than once if a process ends meanwhile; its result is taken once.
    pub fn call<I: Serialize, O: DeserializeOwned>(&self, activity: Activity<I, O>, input: &I) -> Call<O> {
        Call::new(&self.shared, Name::Static(activity.name()), Payload::encode(input))
    }

    /// Runs another orchestration and waits for it. Its identifier is `<this instance>:<generation>:<decision>`, if
    /// [`SubCall::id`] does not say another.
    pub fn sub<I: Serialize, O: DeserializeOwned>(&self, code: Orchestration<I, O>, input: &I) -> SubCall<O> {
        SubCall::new(&self.shared, Name::Static(code.name()), Payload::encode(input))
    }

    /// Starts another orchestration and leaves it alone. Gives its identifier.
    ///
    /// # Errors
    /// A failure if the input cannot be written, or the identifier made for it is too long.
    pub fn start_detached<I: Serialize, O: DeserializeOwned>(
        &self,
        code: Orchestration<I, O>,
        input: &I,
    ) -> Result<InstanceId, Failure> {
        self.sub(code, input).detach()
    }

    /// Waits this long; it survives restarts. Dropped before it fires, it is cancelled.
    pub fn timer(&self, after: Duration) -> Timer {
        Timer::new(&self.shared, self.now().plus(after))
    }

    /// Waits until this moment.
    pub fn timer_at(&self, at: Time) -> Timer {
        Timer::new(&self.shared, at)
    }

    /// Waits for an event from outside. Events that came before are there at once; each is taken once, those of one
    /// name in the order they came.
    pub fn event<T: DeserializeOwned>(&self, event: ExternalEvent<T>) -> EventWait<T> {
        EventWait::new(&self.shared, Name::Static(event.name()))
    }

    /// Raises an event to another orchestration.
    ///
    /// # Errors
    /// A failure of kind `Payload` if the value cannot be written.
    pub fn raise<T: Serialize>(
        &self,
        instance: &InstanceId,
        event: ExternalEvent<T>,
        value: &T,
    ) -> Result<(), Failure> {
        let (instance, name, data) = (instance.clone(), Name::Static(event.name()), Payload::encode(value)?);
        self.shared.tell(|id| EventKind::EventSent { id, instance, name, data });
        Ok(())
    }

    /// Runs an operation of an entity and waits for its result.
    pub fn entity_call<S, I: Serialize, O: DeserializeOwned>(
        &self,
        entity: &EntityId,
        operation: EntityOp<S, I, O>,
        input: &I,
    ) -> EntityCall<O> {
        EntityCall::new(&self.shared, entity.clone(), Name::Static(operation.name()), Payload::encode(input))
    }

    /// Has an entity run an operation, without waiting.
    ///
    /// # Errors
    /// A failure of kind `Payload` if the input cannot be written.
    pub fn entity_signal<S, I: Serialize, O>(
        &self,
        entity: &EntityId,
        operation: EntityOp<S, I, O>,
        input: &I,
    ) -> Result<(), Failure> {
        self.signal(entity, operation.name(), Payload::encode(input)?, None);
        Ok(())
    }

    /// Has an entity run an operation at a moment to come, without waiting.
    ///
    /// # Errors
    /// A failure of kind `Payload` if the input cannot be written.
    pub fn entity_signal_at<S, I: Serialize, O>(
        &self,
        entity: &EntityId,
        operation: EntityOp<S, I, O>,
        input: &I,
        at: Time,
    ) -> Result<(), Failure> {
        self.signal(entity, operation.name(), Payload::encode(input)?, Some(at));
        Ok(())
    }

    fn signal(&self, entity: &EntityId, operation: &'static str, input: Payload, at: Option<Time>) {
        let (entity, operation) = (entity.clone(), Name::Static(operation));
        self.shared.tell(|id| EventKind::EntitySignalled { id, entity, operation, input, at });
    }

    /// Locks entities, in an order that cannot deadlock with that of others. Until the guard is dropped, only this
    /// orchestration's calls reach them. While a lock is requested or held, there is no second one, and calls go to
    /// locked entities only: what would wait for another's lock could wait for ever.
    ///
    /// ```
    /// # use narrows_durable::{Ctx, EntityId, EntityOp, Failure};
    /// # const ADD: EntityOp<i64, i64, i64> = EntityOp::new("Add");
    /// async fn transfer(ctx: Ctx, (from, to, amount): (EntityId, EntityId, i64)) -> Result<bool, Failure> {
    ///     let _guard = ctx.lock(&[from.clone(), to.clone()]).await?;
    ///     if ctx.entity_call(&from, ADD, &0).await? < amount {
    ///         return Ok(false);
    ///     }
    ///     ctx.entity_call(&from, ADD, &-amount).await?;
    ///     ctx.entity_call(&to, ADD, &amount).await?;
    ///     Ok(true)
    /// }
    /// ```
    pub fn lock(&self, entities: &[EntityId]) -> LockRequest {
        let mut entities = entities.to_vec();
        entities.sort_unstable();
        entities.dedup();
        LockRequest::new(&self.shared, entities)
    }

    /// The time of the last event, which is the same in replay.
    #[must_use]
    pub fn now(&self) -> Time {
        self.shared.state().now
    }

    /// A new identifier in the form of a UUID (version 8 of RFC 9562), which is the same in replay.
    #[must_use]
    pub fn uuid(&self) -> String {
        chance::uuid(&self.shared)
    }

    /// A random number, evenly from all of `u64`, which is the same in replay. Not for secrets.
    #[must_use]
    pub fn random(&self) -> u64 {
        chance::random(&self.shared)
    }

    /// Ends this execution and begins the next with a short history and a new input. Takes effect when the code
    /// returns, so return it at once: `return ctx.continue_as_new(&next)`. Events not taken yet go over.
    ///
    /// # Errors
    /// Always an error, for the code to return; one of kind `Payload` if the input cannot be written.
    pub fn continue_as_new<I: Serialize, O>(&self, input: &I) -> Result<O, Failure> {
        let next = Payload::encode(input)?;
        self.shared.state_mut().next = Some(next);
        Err(Failure::new(FailureKind::Conflict, "the orchestration has continued as new, but its code went on"))
    }

    /// Shows a value to those who query the orchestration's status.
    ///
    /// # Errors
    /// A failure of kind `Payload` if the value cannot be written.
    pub fn set_status<T: Serialize>(&self, status: &T) -> Result<(), Failure> {
        let status = Payload::encode(status)?;
        self.shared.note(EventKind::StatusSet { status });
        Ok(())
    }

    /// Whether the code is only catching up with its history. For logs; never decide by it.
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        self.shared.state().is_replaying
    }

    /// Who this orchestration is.
    #[must_use]
    pub fn instance(&self) -> &InstanceId {
        &self.shared.instance
    }

    /// The version of its code.
    #[must_use]
    pub fn version(&self) -> Version {
        self.shared.version
    }

    /// How often it has begun anew.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.shared.state().generation
    }
}
