//! The instance whose code a partition ran last, for a report about code that does not return.

use std::sync::{Arc, Mutex, PoisonError};

use crate::ids::InstanceId;

/// The instance whose code ran last, readable from other threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastInstance(Arc<Mutex<Option<InstanceId>>>);

impl LastInstance {
    pub(super) fn enter(&self, id: &InstanceId) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
    }

    pub(crate) fn last(&self) -> Option<InstanceId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
