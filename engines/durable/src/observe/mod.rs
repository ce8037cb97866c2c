//! OpenTelemetry spans of user code: a program around a program.
//!
//! The engine knows nothing of it. A share of the executions is traced: one span for an orchestration from its start
//! to its end, one for each run of an activity under it, one for each batch of operations of an entity. Attributes and
//! names are those of the Durable Task libraries (`durabletask.*`). An orchestration that leaves memory ends its span
//! there, and has another from when it comes back; one that is terminated ends its span in the same way.

mod activity;
mod cursor;
mod open_spans;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use opentelemetry::trace::{SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};

use crate::event::Version;
use crate::failure::Failure;
use crate::ids::{EntityId, InstanceId, Time};
use crate::observe::activity::TracedActivity;
use crate::observe::cursor::ObservedCursor;
use crate::observe::open_spans::OpenSpans;
use crate::payload::Payload;
use crate::program::{ActivityCall, ActivityFuture, Cursor, EntityStep, Operation, Program};

pub use open_spans::SPANS_OPEN_MAX;

/// A program whose runs are traced.
///
/// ```
/// use narrows_durable::{TracedProgram, Registry};
///
/// let tracer = opentelemetry::global::tracer("orders");
/// let program = TracedProgram::new(Registry::new(), tracer, 0.01);
/// # let _ = program;
/// ```
pub struct TracedProgram<P, T> {
    program: P,
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    tracer: T,
    sample: Sample,
    open: OpenSpans,
}

impl<P, T> TracedProgram<P, T>
where
    P: Program,
    T: Tracer + Send + Sync + 'static,
    T::Span: Send + Sync + 'static,
{
    /// Traces this share of the instances that have no waiting parent, 0 to 1, chosen by a hash of the identifier, and the
    /// sub-orchestrations and activities of those; of entities, this share of batches. Besides, the tracer's own
    /// sampler has its say.
    #[must_use]
    pub fn new(program: P, tracer: T, share: f64) -> Self {
        Self { program, shared: Arc::new(Shared { tracer, sample: Sample::new(share), open: OpenSpans::default() }) }
    }
}

impl<P, T> Program for TracedProgram<P, T>
where
    P: Program,
    T: Tracer + Send + Sync + 'static,
    T::Span: Send + Sync + 'static,
{
    fn newest(&self, orchestration: &str) -> Option<Version> {
        self.program.newest(orchestration)
    }

    fn cursor(&self, instance: &InstanceId, name: &str, version: Version) -> Result<Box<dyn Cursor>, Failure> {
        let cursor = self.program.cursor(instance, name, version)?;
        if self.shared.sample.is_none() {
            return Ok(cursor);
        }
        Ok(Box::new(ObservedCursor::new(cursor, Arc::clone(&self.shared), instance.clone(), name, version)))
    }

    fn is_idempotent(&self, activity: &str) -> bool {
        self.program.is_idempotent(activity)
    }

    fn run(&self, call: ActivityCall) -> ActivityFuture {
        let Some(parent) = self.shared.open.get(&call.instance) else { return self.program.run(call) };
        let name = call.name.as_str().to_owned();
        let mut attributes = attributes("activity", &name, &call.instance);
        attributes.push(KeyValue::new("durabletask.task.task_id", i64::from(call.id)));
        let span = self.shared.span(format!("activity:{name}"), attributes, None, &parent);
        TracedActivity::start(parent.with_span(span), || self.program.run(call))
    }

    fn operate(&self, entity: &EntityId, state: Option<&Payload>, operations: &[Operation], now: Time) -> EntityStep {
        if !self.shared.sample.takes(entity.instance(), now.0) {
            return self.program.operate(entity, state, operations, now);
        }
        let mut attributes = attributes("entity", entity.name(), entity.instance());
        attributes.push(KeyValue::new("durabletask.entity.operations", operations.len() as i64));
        if let [only] = operations {
            attributes.push(KeyValue::new("durabletask.entity.operation", only.name.as_str().to_owned()));
        }
        let parent = Context::new();
        let span = self.shared.span(format!("entity:{}", entity.name()), attributes, None, &parent);
        let guard = parent.with_span(span).attach();
        let step = self.program.operate(entity, state, operations, now);
        let failure = step.results.iter().find_map(|result| result.as_ref().err());
        opentelemetry::trace::get_active_span(|span| {
            if let Some(failure) = failure {
                span.set_attribute(KeyValue::new("error.type", failure.kind.as_str()));
                span.set_status(Status::error(failure.message.clone()));
            }
            span.end();
        });
        drop(guard);
        step
    }
}

impl<T: Tracer> Shared<T> {
    fn span(
        &self,
        name: String,
        attributes: Vec<KeyValue>,
        start: Option<std::time::SystemTime>,
        parent: &Context,
    ) -> T::Span {
        let mut builder = self.tracer.span_builder(name).with_kind(SpanKind::Internal).with_attributes(attributes);
        builder.start_time = start;
        self.tracer.build_with_context(builder, parent)
    }
}

fn attributes(sort: &'static str, name: &str, instance: &InstanceId) -> Vec<KeyValue> {
    vec![
        KeyValue::new("durabletask.type", sort),
        KeyValue::new("durabletask.task.name", name.to_owned()),
        KeyValue::new("durabletask.task.instance_id", instance.as_str().to_owned()),
    ]
}

fn wall(time: Time) -> std::time::SystemTime {
    std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_micros(time.0)
}

/// Which instances are traced: those whose hash is below a bound.
struct Sample {
    below: u64,
}

impl Sample {
    fn new(share: f64) -> Self {
        // A float goes into an integer at the nearest bound it can hold, and NaN as 0.
        Self { below: (share * u64::MAX as f64) as u64 }
    }

    fn is_none(&self) -> bool {
        self.below == 0
    }

    fn takes(&self, instance: &InstanceId, salt: u64) -> bool {
        if matches!(self.below, 0 | u64::MAX) {
            return self.below != 0;
        }
        // 64-bit FNV-1a, mixed as in SplitMix64.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in instance.as_str().bytes().chain(salt.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^ (hash >> 31) < self.below
    }
}
