//! Entities: operations of one of them run as a batch on a state that is read once and written once.
//!
//! An operation that fails or panics leaves no trace. States need not be `Clone`, so a batch first runs without a way
//! back; if an operation fails, all its results are forgotten and it runs again with the state written after each
//! operation. Nothing has left by then.

use std::any::Any;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::{Failure, FailureKind};
use crate::ids::{EntityId, NAME_BYTES_MAX, Time};
use crate::model::definition::EntityOp;
use crate::model::entity_context::EntityContext;
use crate::model::execution::said;
use crate::model::registry::{NameHasher, unregistered};
use crate::payload::Payload;
use crate::program::{EntityStep, Operation};

type State = Box<dyn Any>;
type OperationCode = Box<dyn Fn(&mut dyn Any, &Payload, &mut EntityContext) -> Outcome + Send + Sync>;

/// The code of one sort of entity, without its types.
pub(super) struct EntityCode {
    read: fn(Option<&Payload>) -> Result<State, Failure>,
    write: fn(&dyn Any) -> Result<Payload, Failure>,
    operations: HashMap<&'static str, OperationCode, BuildHasherDefault<NameHasher>>,
}

/// Effect of one operation.
enum Outcome {
    Completed(Payload),
    /// It did not begin: the state is as it was.
    Refused(Failure),
    /// It failed, and may have changed the state.
    Spoiled(Failure),
}

/// Takes the operations of a sort of entity; from [`Registry::entity`](crate::Registry::entity).
pub struct EntityBuilder<'a, S> {
    name: &'static str,
    code: &'a mut EntityCode,
    state: PhantomData<fn() -> S>,
}

impl<'a, S: 'static> EntityBuilder<'a, S> {
    pub(super) fn new(name: &'static str, code: &'a mut EntityCode) -> Self {
        Self { name, code, state: PhantomData }
    }

    /// Adds an operation. If it fails or panics, the state is as before and nothing that it sent is sent. It may run
    /// more than once before its result counts, so it must not reach outside by itself.
    ///
    /// # Panics
    /// If there is one of this name already, or the name cannot be one.
    #[allow(clippy::return_self_not_must_use)]
    pub fn operation<I, O, F>(self, operation: EntityOp<S, I, O>, code: F) -> Self
    where
        I: DeserializeOwned + 'static,
        O: Serialize + 'static,
        F: Fn(&mut S, I, &mut EntityContext) -> Result<O, Failure> + Send + Sync + 'static,
    {
        let (entity, name) = (self.name, operation.name());
        assert!((1..=NAME_BYTES_MAX).contains(&name.len()), "a name of 1 to {NAME_BYTES_MAX} bytes, found {name:?}");
        let erased: OperationCode = Box::new(move |state, input, context| {
            let Some(state) = state.downcast_mut::<S>() else {
                let text = format!("entity {entity}: the state is not of the type registered");
                return Outcome::Refused(Failure::new(FailureKind::Payload, text));
            };
            let input = match input.decode() {
                Ok(input) => input,
                Err(failure) => return Outcome::Refused(failure),
            };
            match code(state, input, context).and_then(|result| Payload::encode(&result)) {
                Ok(result) => Outcome::Completed(result),
                Err(failure) => Outcome::Spoiled(failure),
            }
        });
        let before = self.code.operations.insert(name, erased);
        assert!(before.is_none(), "operation {name} of entity {entity} is registered twice");
        self
    }
}

impl EntityCode {
    pub(super) fn new<S: Default + Serialize + DeserializeOwned + 'static>() -> Self {
        Self { read: read::<S>, write: write::<S>, operations: HashMap::default() }
    }

    pub(super) fn operate(
        &self,
        entity: &EntityId,
        state: Option<&Payload>,
        operations: &[Operation],
        now: Time,
    ) -> EntityStep {
        let mut batch = Batch {
            code: self,
            context: EntityContext::new(entity.clone(), now),
            before: state.cloned(),
            results: Vec::with_capacity(operations.len()),
        };
        match batch.run_freely(operations) {
            Ok(state) => batch.into_step(state),
            Err(Setback) => batch.run_carefully(operations),
        }
    }
}

fn read<S: Default + DeserializeOwned + 'static>(state: Option<&Payload>) -> Result<State, Failure> {
    match state {
        Some(state) => Ok(Box::new(state.decode::<S>()?)),
        None => Ok(Box::new(S::default())),
    }
}

fn write<S: Serialize + 'static>(state: &dyn Any) -> Result<Payload, Failure> {
    match state.downcast_ref::<S>() {
        Some(state) => Payload::encode(state),
        None => Err(Failure::new(FailureKind::Payload, "the state is not of the type registered")),
    }
}

/// A batch has to run again, carefully. What is certain already stands in its results.
struct Setback;

struct Batch<'a> {
    code: &'a EntityCode,
    context: EntityContext,
    /// The state before the first operation that has no result yet.
    before: Option<Payload>,
    results: Vec<Result<Payload, Failure>>,
}

impl Batch<'_> {
    fn into_step(self, state: Option<Payload>) -> EntityStep {
        EntityStep { state, results: self.results, messages: self.context.into_messages() }
    }

    /// Runs all on one value of the state. Gives the state afterwards.
    fn run_freely(&mut self, operations: &[Operation]) -> Result<Option<Payload>, Setback> {
        let mut value = self.read().map_err(|_| Setback)?;
        let mut is_there = self.before.is_some();
        for operation in operations {
            match self.run(&mut *value, operation) {
                Outcome::Completed(result) => self.results.push(Ok(result)),
                Outcome::Refused(failure) => {
                    self.results.push(Err(failure));
                    continue;
                }
                Outcome::Spoiled(failure) => {
                    let is_first = self.results.is_empty();
                    self.start_over();
                    if is_first {
                        self.results.push(Err(failure));
                    }
                    return Err(Setback);
                }
            }
            is_there = !self.context.take_deleted();
            if !is_there {
                let Ok(fresh) = guarded(self.context.id(), || (self.code.read)(None)) else {
                    self.start_over();
                    return Err(Setback);
                };
                value = fresh;
            }
        }
        if !is_there {
            return Ok(None);
        }
        guarded(self.context.id(), || (self.code.write)(&*value)).map(Some).map_err(|_| {
            self.start_over();
            Setback
        })
    }

    fn start_over(&mut self) {
        self.results.clear();
        self.context.forget(0);
    }

    /// Runs those without a result, and writes the state after each.
    fn run_carefully(mut self, operations: &[Operation]) -> EntityStep {
        let mut value = None;
        for operation in &operations[self.results.len()..] {
            let sent = self.context.sent();
            let result = self.run_one(&mut value, operation);
            if result.is_err() {
                value = None;
                self.context.forget(sent);
            }
            self.results.push(result);
        }
        let state = self.before.take();
        self.into_step(state)
    }

    fn run_one(&mut self, value: &mut Option<State>, operation: &Operation) -> Result<Payload, Failure> {
        let mut state = match value.take() {
            Some(state) => state,
            None => self.read()?,
        };
        let result = match self.run(&mut *state, operation) {
            Outcome::Completed(result) => result,
            Outcome::Refused(failure) | Outcome::Spoiled(failure) => return Err(failure),
        };
        if self.context.take_deleted() {
            self.before = None;
            return Ok(result);
        }
        self.before = Some(guarded(self.context.id(), || (self.code.write)(&*state))?);
        *value = Some(state);
        Ok(result)
    }

    fn read(&self) -> Result<State, Failure> {
        guarded(self.context.id(), || (self.code.read)(self.before.as_ref()))
    }

    fn run(&mut self, state: &mut dyn Any, operation: &Operation) -> Outcome {
        let name = operation.name.as_str();
        let Some(code) = self.code.operations.get(name) else {
            let what = format!("operation of entity {}", self.context.id().name());
            return Outcome::Refused(unregistered(&what, name, self.code.operations.keys()));
        };
        let context = &mut self.context;
        let ran = catch_unwind(AssertUnwindSafe(|| code(state, &operation.input, context)));
        ran.unwrap_or_else(|panic| {
            let text = format!("operation {name} of {} panicked: {}", self.context.id(), said(&*panic));
            Outcome::Spoiled(Failure::new(FailureKind::Panic, text))
        })
    }
}

/// Reads or writes a state, where user code runs too.
fn guarded<T>(entity: &EntityId, run: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = format!("the state of {entity} cannot be read or written: panicked: {}", said(&*panic));
        Err(Failure::new(FailureKind::Panic, text))
    })
}
