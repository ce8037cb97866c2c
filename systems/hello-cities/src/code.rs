//! Code of the workloads: orchestrations, activities and entities.
//!
//! Activities compute next to nothing, so that the cost of a step is measured.

use std::str::FromStr;
use std::time::Duration;

use narrows_durable::{
    Activity, ActivityContext, Ctx, EntityId, EntityOp, EntityType, ExternalEvent, Failure, InstanceId, Orchestration,
    Registry,
};
use serde::{Deserialize, Serialize};

use crate::Error;

pub(crate) const HELLO_CITIES: Orchestration<(), Vec<String>> = Orchestration::new("HelloCities5");
pub(crate) const FAN_OUT_FAN_IN: Orchestration<u64, u64> = Orchestration::new("FanOutFanIn");
pub(crate) const SUB_ORCHESTRATIONS: Orchestration<u64, u64> = Orchestration::new("SubOrchestrations");
pub(crate) const ENTITY_CALLS: Orchestration<CallPlan, ()> = Orchestration::new("EntityCalls");
pub(crate) const PERIODIC: Orchestration<u64, ()> = Orchestration::new("Periodic");
pub(crate) const WAITING: Orchestration<(), ()> = Orchestration::new("Waiting");
pub(crate) const GO: ExternalEvent<()> = ExternalEvent::new("Go");
pub(crate) const LAUNCHER: EntityType<u64> = EntityType::new("Launcher");
pub(crate) const LAUNCH: EntityOp<u64, (u64, u64, u64), ()> = EntityOp::new("Launch");
pub(crate) const COUNTER: EntityType<u64> = EntityType::new("Counter");
pub(crate) const ADD: EntityOp<u64, u64, ()> = EntityOp::new("Add");

const HELLO: Activity<String, String> = Activity::new("Hello");
const SUB_ORCHESTRATION: Orchestration<u64, u64> = Orchestration::new("SubOrchestration");
const DOUBLE: Activity<u64, u64> = Activity::new("Double");
const CITIES: [&str; 5] = ["Tokyo", "Seattle", "London", "Amsterdam", "Seoul"];
/// From one timer of [`PERIODIC`] to the next.
const PERIOD: Duration = Duration::from_millis(100);

/// Calls of one orchestration of [`ENTITY_CALLS`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CallPlan {
    /// The run that it belongs to.
    pub(crate) run: u64,
    /// The number of the entity, as in [`counter`].
    pub(crate) entity: u64,
    /// How many operations are called.
    pub(crate) calls: u64,
}

/// When an activity may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Activities {
    /// Once its scheduling is durable.
    #[default]
    Ordinary,
    /// At once: they are marked idempotent.
    Idempotent,
}

impl FromStr for Activities {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "ordinary" => Ok(Self::Ordinary),
            "idempotent" => Ok(Self::Idempotent),
            _ => Err(Error::Setting { name: "activities", value: text.to_owned(), expected: "ordinary or idempotent" }),
        }
    }
}

/// All of it.
pub(crate) fn registry(activities: Activities) -> Registry {
    let hello = |_: ActivityContext, city: String| async move { Ok::<_, Failure>(format!("Hello {city}!")) };
    let double = |_: ActivityContext, number: u64| async move { Ok::<_, Failure>(2 * number) };
    let mut code = Registry::new();
    match activities {
        Activities::Ordinary => code.activity(HELLO, hello).activity(DOUBLE, double),
        Activities::Idempotent => code.idempotent_activity(HELLO, hello).idempotent_activity(DOUBLE, double),
    };
    code.orchestration(HELLO_CITIES, hello_cities);
    code.orchestration(FAN_OUT_FAN_IN, fan_out_fan_in);
    code.orchestration(SUB_ORCHESTRATIONS, sub_orchestrations);
    code.orchestration(SUB_ORCHESTRATION, |_: Ctx, number: u64| async move { Ok::<_, Failure>(2 * number) });
    code.orchestration(ENTITY_CALLS, entity_calls);
    code.orchestration(PERIODIC, periodic);
    code.orchestration(WAITING, |ctx: Ctx, (): ()| async move { ctx.event(GO).await });
    code.entity(LAUNCHER).operation(LAUNCH, |launched, (run, first, count): (u64, u64, u64), ctx| {
        for number in first..first + count {
            ctx.start_as(HELLO_CITIES, &instance(run, number)?, &())?;
        }
        *launched += count;
        Ok(())
    });
    code.entity(COUNTER).operation(ADD, |sum, number: u64, _| {
        *sum += number;
        Ok(())
    });
    code
}

/// Prefix of the identifiers of a run's instances.
pub(crate) fn prefix(run: u64) -> String {
    format!("{run}-")
}

/// An orchestration of a run.
pub(crate) fn instance(run: u64, number: u64) -> Result<InstanceId, Failure> {
    InstanceId::new(format!("{run}-{number}")).map_err(|error| Failure::application(error.to_string()))
}

/// A counter of a run.
pub(crate) fn counter(run: u64, number: u64) -> Result<EntityId, Failure> {
    COUNTER.id(format!("{run}-{number}")).map_err(|error| Failure::application(error.to_string()))
}

async fn hello_cities(ctx: Ctx, (): ()) -> Result<Vec<String>, Failure> {
    let mut said = Vec::with_capacity(CITIES.len());
    for city in CITIES {
        said.push(ctx.call(HELLO, &city.to_owned()).await?);
    }
    Ok(said)
}

async fn fan_out_fan_in(ctx: Ctx, activities: u64) -> Result<u64, Failure> {
    let calls = (0..activities).map(|number| ctx.call(DOUBLE, &number)).collect();
    let mut sum = 0;
    for doubled in ctx.join_all(calls).await {
        sum += doubled?;
    }
    Ok(sum)
}

async fn sub_orchestrations(ctx: Ctx, calls: u64) -> Result<u64, Failure> {
    let mut sum = 0;
    for number in 0..calls {
        sum += ctx.sub(SUB_ORCHESTRATION, &number).await?;
    }
    Ok(sum)
}

async fn entity_calls(ctx: Ctx, plan: CallPlan) -> Result<(), Failure> {
    let entity = counter(plan.run, plan.entity)?;
    for _ in 0..plan.calls {
        ctx.entity_call(&entity, ADD, &1).await?;
    }
    Ok(())
}

async fn periodic(ctx: Ctx, timers: u64) -> Result<(), Failure> {
    ctx.timer(PERIOD).await;
    if timers > 1 { ctx.continue_as_new(&(timers - 1)) } else { Ok(()) }
}
