//! Spans of orchestrations that are under way, so that activities and sub-orchestrations find their parents.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use opentelemetry::Context;

use crate::ids::InstanceId;

/// The most orchestrations that have a span open at once; more are not traced.
pub const SPANS_OPEN_MAX: usize = 65_536;

#[derive(Default)]
pub(super) struct OpenSpans {
    contexts: RwLock<HashMap<InstanceId, Context>>,
}

impl OpenSpans {
    pub(super) fn get(&self, instance: &InstanceId) -> Option<Context> {
        self.contexts.read().unwrap_or_else(PoisonError::into_inner).get(instance).cloned()
    }

    pub(super) fn has_room(&self) -> bool {
        self.contexts.read().unwrap_or_else(PoisonError::into_inner).len() < SPANS_OPEN_MAX
    }

    pub(super) fn put(&self, instance: &InstanceId, context: Context) {
        self.contexts.write().unwrap_or_else(PoisonError::into_inner).insert(instance.clone(), context);
    }

    pub(super) fn remove(&self, instance: &InstanceId) {
        self.contexts.write().unwrap_or_else(PoisonError::into_inner).remove(instance);
    }
}
