//! Registry of user code by name, and how the engine runs it.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::event::Version;
use crate::failure::{Failure, FailureKind};
use crate::ids::{EntityId, InstanceId, NAME_BYTES_MAX, Name, Time};
use crate::model::activity::ActivityContext;
use crate::model::context::Ctx;
use crate::model::definition::{Activity, EntityType, Orchestration};
use crate::model::entity::{EntityBuilder, EntityCode};
use crate::model::execution::{Code, Execution, Run};
use crate::model::shared::Shared;
use crate::payload::Payload;
use crate::program::{ActivityCall, ActivityFuture, Cursor, EntityStep, Operation, Program};

type Names<T> = HashMap<&'static str, T, BuildHasherDefault<NameHasher>>;
type ActivityCode = Box<dyn Fn(ActivityCall) -> ActivityFuture + Send + Sync>;

/// All code of a program, by name: a [`Program`] for a hub.
///
/// Registering one name (and version) twice, or a name that is empty, longer than 256 bytes or, for an entity, holds
/// `@`, panics: it is a bug of the program that no run may hide.
#[derive(Default)]
pub struct Registry {
    orchestrations: Names<BTreeMap<Version, Arc<dyn Code>>>,
    activities: Names<Runner>,
    entities: Names<EntityCode>,
}

struct Runner {
    code: ActivityCode,
    is_idempotent: bool,
}

impl Registry {
    /// Without any code.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an orchestration that is not versioned.
    ///
    /// # Panics
    /// If there is one of this name already, or the name cannot be one.
    pub fn orchestration<I, O, F, R>(&mut self, definition: Orchestration<I, O>, code: F) -> &mut Self
    where
        I: DeserializeOwned + 'static,
        O: Serialize + 'static,
        F: Fn(Ctx, I) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, Failure>> + 'static,
    {
        self.orchestration_version(definition, 0, code)
    }

    /// Adds one version of an orchestration. New instances get the newest; each keeps the version it started with, so
    /// that old ones end on the code they began on.
    ///
    /// # Panics
    /// If there is this version of this name already, or the name cannot be one.
    pub fn orchestration_version<I, O, F, R>(
        &mut self,
        definition: Orchestration<I, O>,
        version: Version,
        code: F,
    ) -> &mut Self
    where
        I: DeserializeOwned + 'static,
        O: Serialize + 'static,
        F: Fn(Ctx, I) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, Failure>> + 'static,
    {
        let name = checked(definition.name());
        let code = TypedCode { code, types: std::marker::PhantomData::<fn(I) -> O> };
        let before = self.orchestrations.entry(name).or_default().insert(version, Arc::new(code));
        assert!(before.is_none(), "orchestration {name} version {version} is registered twice");
        self
    }

    /// Adds an activity. It starts only once its scheduling is durable, so that a crash leaves no effect of a step
    /// that never was.
    ///
    /// # Panics
    /// If there is one of this name already, or the name cannot be one.
    pub fn activity<I, O, F, R>(&mut self, definition: Activity<I, O>, code: F) -> &mut Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + Send + 'static,
        F: Fn(ActivityContext, I) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, Failure>> + Send + 'static,
    {
        self.add_activity(definition.name(), Runner { code: erased(code), is_idempotent: false })
    }

    /// Adds an activity that may run though a crash then forgets that it was ever called, in exchange for starting at
    /// once: one that only computes or reads.
    ///
    /// # Panics
    /// If there is one of this name already, or the name cannot be one.
    pub fn idempotent_activity<I, O, F, R>(&mut self, definition: Activity<I, O>, code: F) -> &mut Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize + Send + 'static,
        F: Fn(ActivityContext, I) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, Failure>> + Send + 'static,
    {
        self.add_activity(definition.name(), Runner { code: erased(code), is_idempotent: true })
    }

    fn add_activity(&mut self, name: &'static str, runner: Runner) -> &mut Self {
        let before = self.activities.insert(checked(name), runner);
        assert!(before.is_none(), "activity {name} is registered twice");
        self
    }

    /// Adds a sort of entity, whose operations are added to what this gives.
    ///
    /// ```
    /// use narrows_durable::{EntityOp, EntityType, Failure, Registry};
    ///
    /// const COUNTER: EntityType<u64> = EntityType::new("Counter");
    /// const ADD: EntityOp<u64, u64, u64> = EntityOp::new("Add");
    /// const RESET: EntityOp<u64, (), ()> = EntityOp::new("Reset");
    ///
    /// let mut code = Registry::new();
    /// code.entity(COUNTER)
    ///     .operation(ADD, |count, by, _| {
    ///         *count = count.checked_add(by).ok_or_else(|| Failure::application("too much"))?;
    ///         Ok(*count)
    ///     })
    ///     .operation(RESET, |_, (), context| {
    ///         context.delete();
    ///         Ok(())
    ///     });
    /// ```
    ///
    /// # Panics
    /// If there is one of this name already, or the name cannot be one.
    pub fn entity<S>(&mut self, definition: EntityType<S>) -> EntityBuilder<'_, S>
    where
        S: Default + Serialize + DeserializeOwned + 'static,
    {
        let name = checked(definition.name());
        assert!(!name.contains('@'), "an entity's name cannot hold '@': {name}");
        assert!(!self.entities.contains_key(name), "entity {name} is registered twice");
        EntityBuilder::new(name, self.entities.entry(name).or_insert_with(EntityCode::new::<S>))
    }
}

fn checked(name: &'static str) -> &'static str {
    assert!((1..=NAME_BYTES_MAX).contains(&name.len()), "a name of 1 to {NAME_BYTES_MAX} bytes, found {name:?}");
    name
}

fn erased<I, O, F, R>(code: F) -> ActivityCode
where
    I: DeserializeOwned + Send + 'static,
    O: Serialize + Send + 'static,
    F: Fn(ActivityContext, I) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, Failure>> + Send + 'static,
{
    Box::new(move |call| {
        let input = match call.input.decode() {
            Ok(input) => input,
            Err(failure) => return Box::pin(std::future::ready(Err(failure))),
        };
        let run = code(ActivityContext::new(call), input);
        Box::pin(async move { Payload::encode(&run.await?) })
    })
}

struct TypedCode<F, T> {
    code: F,
    types: std::marker::PhantomData<T>,
}

impl<I, O, F, R> Code for TypedCode<F, fn(I) -> O>
where
    I: DeserializeOwned + 'static,
    O: Serialize + 'static,
    F: Fn(Ctx, I) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, Failure>> + 'static,
{
    fn begin(&self, ctx: Ctx, input: &Payload) -> Result<std::pin::Pin<Box<dyn Run>>, Failure> {
        Ok(Box::pin((self.code)(ctx, input.decode()?)))
    }
}

impl Program for Registry {
    fn newest(&self, orchestration: &str) -> Option<Version> {
        self.orchestrations.get(orchestration)?.keys().next_back().copied()
    }

    fn cursor(&self, instance: &InstanceId, name: &str, version: Version) -> Result<Box<dyn Cursor>, Failure> {
        let Some((&name, versions)) = self.orchestrations.get_key_value(name) else {
            return Err(unregistered("orchestration", name, self.orchestrations.keys()));
        };
        let Some(code) = versions.get(&version) else {
            let there = format!("{:?}", versions.keys().collect::<Vec<_>>());
            let text = format!("orchestration {name} has no version {version}, there are {there}");
            return Err(Failure::new(FailureKind::Unregistered, text));
        };
        let shared = Shared::new(instance.clone(), Name::Static(name), version);
        Ok(Box::new(Execution::new(shared, Arc::clone(code))))
    }

    fn is_idempotent(&self, activity: &str) -> bool {
        self.activities.get(activity).is_some_and(|runner| runner.is_idempotent)
    }

    fn run(&self, call: ActivityCall) -> ActivityFuture {
        match self.activities.get(call.name.as_str()) {
            Some(runner) => (runner.code)(call),
            None => {
                let failure = unregistered("activity", call.name.as_str(), self.activities.keys());
                Box::pin(std::future::ready(Err(failure)))
            }
        }
    }

    fn operate(&self, entity: &EntityId, state: Option<&Payload>, operations: &[Operation], now: Time) -> EntityStep {
        match self.entities.get(entity.name()) {
            Some(code) => code.operate(entity, state, operations, now),
            None => {
                let failure = unregistered("entity", entity.name(), self.entities.keys());
                let results = operations.iter().map(|_| Err(failure.clone())).collect();
                EntityStep { state: state.cloned(), results, messages: Vec::new() }
            }
        }
    }
}

/// Names the code that is missing, and a few that are there.
pub(super) fn unregistered<'a>(what: &str, name: &str, there: impl Iterator<Item = &'a &'static str>) -> Failure {
    const NAMED_MAX: usize = 10;
    let mut names: Vec<&str> = there.copied().collect();
    names.sort_unstable();
    let more = if names.len() > NAMED_MAX { ", …" } else { "" };
    names.truncate(NAMED_MAX);
    let text = format!("there is no {what} {name:?}, there are [{}{more}]", names.join(", "));
    Failure::new(FailureKind::Unregistered, text)
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("orchestrations", &self.orchestrations.keys())
            .field("activities", &self.activities.keys())
            .field("entities", &self.entities.keys())
            .finish()
    }
}

/// 64-bit FNV-1a. The names are the program's own, so collisions cannot be provoked.
pub(super) struct NameHasher(u64);

impl Default for NameHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
