//! Context of an activity: its code's knowledge of the call.

use crate::ids::InstanceId;
use crate::program::ActivityCall;

/// Context of an activity's code, beside its input.
#[derive(Clone, Debug)]
pub struct ActivityContext {
    call: ActivityCall,
}

impl ActivityContext {
    pub(super) fn new(call: ActivityCall) -> Self {
        Self { call }
    }

    /// The orchestration that called.
    #[must_use]
    pub fn instance(&self) -> &InstanceId {
        &self.call.instance
    }

    /// The name the activity was called by.
    #[must_use]
    pub fn name(&self) -> &str {
        self.call.name.as_str()
    }

    /// A key that is the same whenever this very call is run again: `<instance>:<generation>:<decision>`. Give it to
    /// services that drop repetitions. A new attempt by a [`RetryPolicy`](crate::RetryPolicy) has its own key.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}:{}:{}", self.call.instance, self.call.generation, self.call.id)
    }
}
