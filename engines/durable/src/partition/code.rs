//! User code as a partition runs it: the program, and orchestrations in the middle of theirs.

use std::sync::Arc;

use crate::codec::Events;
use crate::event::EventKind;
use crate::failure::{Failure, FailureKind};
use crate::ids::Time;
use crate::options::{HubOptions, Mismatch};
use crate::partition::cursors::Cursors;
use crate::partition::deliver::StartRequest;
use crate::partition::last_instance::LastInstance;
use crate::partition::spill::Spiller;
use crate::partition::table::Instance;
use crate::program::Program;

/// The program of a partition and the state of its running code.
pub(super) struct Code {
    pub(super) program: Arc<dyn Program>,
    on_mismatch: Mismatch,
    pub(super) cursors: Cursors,
    pub(super) last_instance: LastInstance,
    /// Buffer for the decisions of a step, kept between steps.
    pub(super) decisions: Vec<EventKind>,
}

impl Code {
    pub(super) fn new(program: Arc<dyn Program>, options: &HubOptions) -> Self {
        Self {
            program,
            on_mismatch: options.on_mismatch,
            cursors: Cursors::new(options.cursor_cache_bytes),
            last_instance: LastInstance::default(),
            decisions: Vec::new(),
        }
    }

    /// Whether a failure to make a cursor parks the orchestration.
    pub(super) fn parks(&self, failure: &Failure) -> bool {
        let is_mismatch = matches!(failure.kind, FailureKind::Unregistered | FailureKind::Nondeterminism);
        is_mismatch && self.on_mismatch == Mismatch::Park
    }

    /// Whether an orchestration with this name would be parked, because the program does not have it.
    pub(super) fn would_park(&self, name: &str) -> bool {
        self.on_mismatch == Mismatch::Park && self.program.newest(name).is_none()
    }

    /// The first event of an execution. Without a version it gets the newest one.
    pub(super) fn started(&self, generation: u64, request: StartRequest) -> EventKind {
        let StartRequest { name, version, input, parent } = request;
        let version = version.or_else(|| self.program.newest(name.as_str())).unwrap_or(0);
        EventKind::Started { name, version, generation, input, parent }
    }

    /// Whether the cursor of an instance is in memory, which is counted.
    pub(super) fn is_ready(&mut self, handle: u64) -> bool {
        let is_ready = self.cursors.get(handle).is_some();
        self.cursors.hits += u64::from(is_ready);
        is_ready
    }

    /// Makes a cursor of an instance for an event: a new one for a beginning, else one that has replayed the history.
    pub(super) fn make_ready(
        &mut self,
        handle: u64,
        instance: &Instance,
        next: &EventKind,
        spiller: &Spiller,
    ) -> Result<(), Failure> {
        let execution = instance.orchestration();
        let mut cursor = self.program.cursor(&instance.id, execution.name.as_str(), execution.version)?;
        if !matches!(next, EventKind::Started { .. }) {
            self.cursors.misses += 1;
            let mut reader = spiller.step_reader();
            let mut events = Events::new(&execution.history, Time(0), &mut reader).map(|event| {
                event.map_err(|error| Failure::new(FailureKind::Payload, format!("cannot read the history: {error}")))
            });
            cursor.replay(&mut events)?;
        }
        self.cursors.put(handle, cursor);
        Ok(())
    }
}
