//! A cursor whose execution has a span for as long as it is in memory.

use std::sync::Arc;

use opentelemetry::trace::{Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};

use crate::event::{Caller, Event, EventKind, Version};
use crate::failure::Failure;
use crate::ids::{InstanceId, Time};
use crate::observe::{Shared, attributes, wall};
use crate::program::{Cursor, Progress};

pub(super) struct ObservedCursor<T: Tracer>
where
    T::Span: Send + Sync + 'static,
{
    inner: Box<dyn Cursor>,
    shared: Arc<Shared<T>>,
    instance: InstanceId,
    name: String,
    version: Version,
    stage: Stage,
}

enum Stage {
    /// Nothing was fed live yet. Who waits for the execution, if replay has shown it.
    Fresh(Option<Caller>),
    Untraced,
    Traced(Context),
}

impl<T: Tracer> ObservedCursor<T>
where
    T::Span: Send + Sync + 'static,
{
    pub(super) fn new(
        inner: Box<dyn Cursor>,
        shared: Arc<Shared<T>>,
        instance: InstanceId,
        name: &str,
        version: Version,
    ) -> Self {
        Self { inner, shared, instance, name: name.to_owned(), version, stage: Stage::Fresh(None) }
    }

    fn open(&mut self, parent: Option<Caller>, start: Time) {
        self.stage = Stage::Untraced;
        let above = parent.as_ref().and_then(|caller| self.shared.open.get(&caller.instance));
        let is_taken = match parent {
            Some(_) => above.is_some(),
            None => self.shared.sample.takes(&self.instance, 0),
        };
        if !is_taken || !self.shared.open.has_room() {
            return;
        }
        let mut attributes = attributes("orchestration", &self.name, &self.instance);
        attributes.push(KeyValue::new("durabletask.task.version", i64::from(self.version)));
        let above = above.unwrap_or_default();
        let span = self.shared.span(format!("orchestration:{}", self.name), attributes, Some(wall(start)), &above);
        let context = above.with_span(span);
        self.shared.open.put(&self.instance, context.clone());
        self.stage = Stage::Traced(context);
    }

    fn close(&mut self, end: Option<(Time, &EventKind)>) {
        let Stage::Traced(context) = std::mem::replace(&mut self.stage, Stage::Untraced) else { return };
        self.shared.open.remove(&self.instance);
        let span = context.span();
        let Some((time, kind)) = end else {
            span.add_event("left memory", Vec::new());
            span.end();
            return;
        };
        if let EventKind::Failed { failure } = kind {
            span.set_attribute(KeyValue::new("error.type", failure.kind.as_str()));
            span.set_status(Status::error(failure.message.clone()));
        }
        span.set_attribute(KeyValue::new("durabletask.task.status", status(kind)));
        span.end_with_timestamp(wall(time));
    }
}

/// The words of the Durable Task libraries.
fn status(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::Completed { .. } => "Completed",
        EventKind::ContinuedAsNew { .. } => "ContinuedAsNew",
        EventKind::Terminated { .. } => "Terminated",
        _ => "Failed",
    }
}

impl<T: Tracer> Cursor for ObservedCursor<T>
where
    T::Span: Send + Sync + 'static,
{
    fn feed(&mut self, event: &Event, decisions: &mut Vec<EventKind>) -> Progress {
        if let Stage::Fresh(parent) = &mut self.stage {
            let parent = match &event.kind {
                EventKind::Started { parent, .. } => parent.clone(),
                _ => parent.take(),
            };
            self.open(parent, event.time);
        }
        let progress = self.inner.feed(event, decisions);
        if progress == Progress::Ended {
            let end = decisions.last().unwrap_or(&event.kind);
            self.close(Some((event.time, end)));
        }
        progress
    }

    fn replay(&mut self, history: &mut dyn Iterator<Item = Result<Event, Failure>>) -> Result<Progress, Failure> {
        let mut caller = None;
        let mut seen = history.inspect(|event| {
            if let Ok(Event { kind: EventKind::Started { parent, .. }, .. }) = event {
                caller.clone_from(parent);
            }
        });
        let progress = self.inner.replay(&mut seen)?;
        self.stage = if progress == Progress::Ended { Stage::Untraced } else { Stage::Fresh(caller) };
        Ok(progress)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.name.len() + self.inner.bytes()
    }
}

impl<T: Tracer> Drop for ObservedCursor<T>
where
    T::Span: Send + Sync + 'static,
{
    fn drop(&mut self) {
        self.close(None);
    }
}
