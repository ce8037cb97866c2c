//! Health of a partition: it works, has stopped, or is held up by user code.

use std::time::Duration;

use crate::hub::inbox::Inbox;
use crate::hub::meter::Meter;
use crate::ids::InstanceId;
use crate::store::StoreError;

/// How long user code may hold its partition up before that is reported.
pub(crate) const HELD_UP: Duration = Duration::from_secs(5);

/// How a partition does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Health {
    /// It works.
    Running,
    /// It is at the same turn for more than five seconds: code of an orchestration or entity does not return.
    HeldUp {
        /// Whose code.
        by: Option<InstanceId>,
        /// For how long.
        since: Duration,
    },
    /// It has stopped, and does nothing any more until the hub is opened again.
    Stopped(StoreError),
    /// Another node of the hub has it, or takes it; `None` while it is free.
    Elsewhere(Option<String>),
}

/// `held_up` is how long a turn may take.
pub(crate) fn of(inbox: &Inbox, meter: &Meter, held_up: Duration) -> Health {
    if let Some(error) = inbox.failure() {
        return Health::Stopped(error);
    }
    match meter.turn_since() {
        Some(since) if since >= held_up => Health::HeldUp { by: meter.at_work(), since },
        _ => Health::Running,
    }
}
