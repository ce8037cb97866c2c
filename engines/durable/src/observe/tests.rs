//! Spans as an exporter gets them.

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracer, SdkTracerProvider, SpanData};

use super::*;
use crate::event::{Caller, Event, EventKind};
use crate::ids::Name;
use crate::model::{Activity, Ctx, EntityOp, EntityType, Orchestration, Registry};
use crate::program::Progress;

const WORK: Activity<u32, u32> = Activity::new("Work");
const FLOW: Orchestration<u32, u32> = Orchestration::new("Flow");

struct Bench {
    program: TracedProgram<Registry, SdkTracer>,
    provider: SdkTracerProvider,
    exporter: InMemorySpanExporter,
}

fn bench(share: f64) -> Bench {
    let mut registry = Registry::new();
    registry.orchestration(FLOW, |ctx: Ctx, input| async move { ctx.call(WORK, &input).await });
    // Both the registry and the program have a method of this name.
    Registry::activity(&mut registry, WORK, |_, input| async move {
        if input == 0 { Err(Failure::application("nothing to do")) } else { Ok(input) }
    });
    registry.entity(EntityType::<u32>::new("Sum")).operation(EntityOp::<u32, u32, ()>::new("Add"), |sum, by, _| {
        *sum = sum.checked_add(by).ok_or_else(|| Failure::application("too much"))?;
        Ok(())
    });
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    Bench { program: TracedProgram::new(registry, provider.tracer("test"), share), provider, exporter }
}

impl Bench {
    fn spans(&self) -> Vec<SpanData> {
        self.provider.force_flush().expect("flushed");
        self.exporter.get_finished_spans().expect("spans")
    }

    fn cursor(&self, instance: &str) -> Box<dyn Cursor> {
        self.program.cursor(&id(instance), "Flow", 0).expect("registered")
    }
}

fn id(text: &str) -> InstanceId {
    InstanceId::new(text).expect("an identifier")
}

fn started(second: u64, parent: Option<&str>) -> Event {
    let parent = parent.map(|parent| Caller { instance: id(parent), generation: 0, id: 0 });
    let input = Payload::encode(&1).expect("JSON");
    event(second, EventKind::Started { name: Name::Static("Flow"), version: 0, generation: 0, input, parent })
}

fn done(second: u64) -> Event {
    event(second, EventKind::TaskCompleted { id: 0, result: Payload::encode(&1).expect("JSON") })
}

fn event(second: u64, kind: EventKind) -> Event {
    Event { time: Time(second * 1_000_000), kind }
}

fn call(instance: &str, input: u32) -> ActivityCall {
    let input = Payload::encode(&input).expect("JSON");
    ActivityCall { name: Name::Static("Work"), input, instance: id(instance), generation: 0, id: 0 }
}

fn attribute(span: &SpanData, key: &str) -> Option<String> {
    span.attributes.iter().find(|found| found.key.as_str() == key).map(|found| found.value.to_string())
}

#[tokio::test]
async fn an_orchestration_its_activity_and_its_sub_are_one_trace() {
    let bench = bench(1.0);
    let mut decisions = Vec::new();
    let mut parent = bench.cursor("order-1");
    parent.feed(&started(1, None), &mut decisions);
    let mut sub = bench.cursor("order-1:0:0");
    sub.feed(&started(2, Some("order-1")), &mut decisions);
    assert!(bench.program.run(call("order-1", 0)).await.is_err());
    sub.feed(&done(3), &mut decisions);
    parent.feed(&done(4), &mut decisions);
    let spans = bench.spans();
    let names: Vec<_> = spans.iter().map(|span| span.name.as_ref()).collect();
    assert_eq!(names, ["activity:Work", "orchestration:Flow", "orchestration:Flow"]);
    let whole = &spans[2];
    assert_eq!(wall(Time(1_000_000)), whole.start_time);
    assert_eq!(wall(Time(4_000_000)), whole.end_time);
    assert_eq!(attribute(whole, "durabletask.task.status").as_deref(), Some("Completed"));
    assert_eq!(attribute(whole, "durabletask.task.instance_id").as_deref(), Some("order-1"));
    for span in &spans[..2] {
        assert_eq!(span.span_context.trace_id(), whole.span_context.trace_id());
        assert_eq!(span.parent_span_id, whole.span_context.span_id());
    }
    assert_eq!(spans[0].status, Status::error("nothing to do"));
    assert_eq!(attribute(&spans[0], "error.type").as_deref(), Some("application"));
}

#[test]
fn a_cursor_that_leaves_memory_ends_its_span_and_has_another_when_it_is_back() {
    let bench = bench(1.0);
    let mut decisions = Vec::new();
    let mut cursor = bench.cursor("order-1");
    cursor.feed(&started(1, None), &mut decisions);
    drop(cursor);
    assert!(bench.program.shared.open.get(&id("order-1")).is_none());
    let mut cursor = bench.cursor("order-1");
    let history = [started(1, None), event(1, decisions.remove(0))];
    assert_eq!(cursor.replay(&mut history.into_iter().map(Ok)), Ok(Progress::Waiting));
    assert_eq!(bench.spans().len(), 1, "replay makes no span");
    cursor.feed(&done(9), &mut decisions);
    let spans = bench.spans();
    assert_eq!(spans[0].events.events[0].name, "left memory");
    assert_eq!(spans[1].start_time, wall(Time(9_000_000)));
}

#[test]
fn a_share_is_traced_and_subs_follow_their_parents() {
    let bench = bench(0.25);
    let mut decisions = Vec::new();
    for number in 0..400 {
        let (parent, child) = (format!("order-{number}"), format!("order-{number}:0:0"));
        let (mut cursor, mut sub) = (bench.cursor(&parent), bench.cursor(&child));
        cursor.feed(&started(1, None), &mut decisions);
        sub.feed(&started(1, Some(&parent)), &mut decisions);
    }
    let spans = bench.spans();
    let subs = spans
        .iter()
        .filter(|span| attribute(span, "durabletask.task.instance_id").unwrap_or_default().ends_with(":0:0"));
    assert_eq!(subs.count() * 2, spans.len());
    assert!((120..=280).contains(&spans.len()), "{} spans of 800", spans.len());
    assert!(bench.program.shared.open.has_room());
}

#[test]
fn nothing_is_traced_by_a_share_of_none() {
    for share in [0.0, -1.0, f64::NAN] {
        let bench = bench(share);
        let mut cursor = bench.cursor("order-1");
        cursor.feed(&started(1, None), &mut Vec::new());
        drop(cursor);
        let sum = EntityId::new("Sum", "1").expect("an identifier");
        bench.program.operate(&sum, None, &[], Time(1));
        assert!(bench.spans().is_empty(), "{share}");
    }
}

#[test]
fn a_batch_of_operations_is_a_span() {
    let bench = bench(1.0);
    let sum = EntityId::new("Sum", "1").expect("an identifier");
    let add = |by: u32| Operation { name: Name::Static("Add"), input: Payload::encode(&by).expect("JSON") };
    let step = bench.program.operate(&sum, None, &[add(u32::MAX), add(1)], Time(1));
    assert_eq!(step.results.len(), 2);
    let spans = bench.spans();
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0].name, "entity:Sum");
    assert_eq!(attribute(&spans[0], "durabletask.entity.operations").as_deref(), Some("2"));
    assert_eq!(spans[0].status, Status::error("too much"));
}
