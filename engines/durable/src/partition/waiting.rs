//! Activities that wait until others have ended. The first of them are kept whole, of the others only their numbers: their
//! inputs stand in the history too, and are read from there when their turn comes.

use std::collections::{HashMap, VecDeque};

use crate::client::Status;
use crate::codec::Events;
use crate::event::EventKind;
use crate::failure::{Failure, FailureKind};
use crate::ids::Time;
use crate::partition::Partition;
use crate::partition::input::TaskKey;
use crate::partition::table::Instance;
use crate::program::ActivityCall;

/// What the calls that are kept whole take in memory at most, bytes.
const KEPT_BYTES_MAX: usize = 32 << 20;

/// Activities in the order they were scheduled.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    queue: VecDeque<(TaskKey, Option<ActivityCall>)>,
    /// What the calls among them take.
    kept_bytes: usize,
    /// How far into the history of an execution its activities were found. They are looked for in their order, so that no
    /// history is read twice.
    places: HashMap<(u64, u64), usize>,
}

impl Waiting {
    pub(super) fn push(&mut self, key: TaskKey, call: ActivityCall) {
        let bytes = bytes_of(&call);
        let is_kept = self.kept_bytes + bytes <= KEPT_BYTES_MAX;
        self.kept_bytes += if is_kept { bytes } else { 0 };
        self.queue.push_back((key, is_kept.then_some(call)));
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    fn pop(&mut self) -> Option<(TaskKey, Option<ActivityCall>)> {
        let first = self.queue.pop_front();
        match &first {
            Some((_, call)) => self.kept_bytes -= call.as_ref().map_or(0, bytes_of),
            None => self.places.clear(),
        }
        first
    }
}

fn bytes_of(call: &ActivityCall) -> usize {
    size_of::<ActivityCall>() + call.name.as_str().len() + call.instance.as_str().len() + call.input.len()
}

impl Partition {
    /// The next activity that waits and is still wanted.
    pub(super) fn next_waiting(&mut self) -> Option<(TaskKey, ActivityCall)> {
        while let Some((key, kept)) = self.activities_waiting.pop() {
            match self.call_of(key, kept) {
                Some(Ok(call)) => return Some((key, call)),
                Some(Err(failure)) => {
                    self.feed(key.handle, Some(key.generation), EventKind::TaskFailed { id: key.id, failure });
                }
                None => {}
            }
        }
        None
    }

    /// The call of an activity, if its execution is still there.
    fn call_of(&mut self, key: TaskKey, kept: Option<ActivityCall>) -> Option<Result<ActivityCall, Failure>> {
        let TaskKey { handle, generation, id } = key;
        let instance = self.table.get(handle)?;
        let execution = instance.execution().filter(|execution| execution.generation == generation)?;
        if !matches!(execution.status, Status::Running | Status::Suspended) {
            return None;
        }
        if let Some(call) = kept {
            return Some(Ok(call));
        }
        let begin = self.activities_waiting.places.get(&(handle, generation)).copied().unwrap_or(0);
        let begin = if begin < execution.history.len() { begin } else { 0 };
        let found = find(instance, begin, id, &mut self.spiller.step_reader());
        let found =
            if begin > 0 && found.is_none() { find(instance, 0, id, &mut self.spiller.step_reader()) } else { found };
        match found? {
            Ok((call, place)) => {
                self.activities_waiting.places.insert((handle, generation), place);
                Some(Ok(ActivityCall { generation, ..call }))
            }
            Err(what) => Some(Err(Failure::new(FailureKind::Payload, format!("cannot read the history: {what}")))),
        }
    }
}

/// The activity of a decision from a place of the history on, and the place behind it.
fn find(
    instance: &Instance,
    begin: usize,
    wanted: u32,
    reader: &mut dyn crate::codec::Fetch,
) -> Option<Result<(ActivityCall, usize), String>> {
    let history = instance.execution()?.history.get(begin..)?;
    // In the middle of a history the time is not known, and may go back from here.
    let mut events = Events::new(history, Time(u64::MAX / 2), reader);
    while let Some(event) = events.next() {
        match event.map(|event| event.kind) {
            Ok(EventKind::TaskScheduled { id, name, input }) if id == wanted => {
                let call = ActivityCall { name, input, instance: instance.id.clone(), generation: 0, id };
                return Some(Ok((call, begin + events.offset())));
            }
            Ok(_) => {}
            Err(error) => return Some(Err(error.to_string())),
        }
    }
    None
}
