//! Activities: those that run are counted, the others wait. The first waiting ones are kept whole, of the rest only their
//! numbers: their inputs are in the history too, and are read from there when their turn comes.

use std::collections::{HashMap, VecDeque};

use crate::codec::Events;
use crate::event::EventKind;
use crate::failure::{Failure, FailureKind};
use crate::ids::Time;
use crate::partition::Partition;
use crate::partition::input::{Effect, TaskKey};
use crate::partition::output::Output;
use crate::partition::spill::Spiller;
use crate::partition::table::{Instance, Table};
use crate::program::ActivityCall;

/// Memory that the calls kept whole take at most, bytes.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// Memory that a map takes for an execution besides its number and place, bytes.
const ENTRY_BYTES: usize = 32;

/// Activities of a partition: how many run, and those that wait.
#[derive(Debug)]
pub(super) struct Activities {
    running: usize,
    running_max: usize,
    waiting: ActivityQueue,
}

impl Activities {
    pub(super) fn new(running_max: usize) -> Self {
        Self { running: 0, running_max, waiting: ActivityQueue::default() }
    }

    /// Runs an activity, or lets it wait if too many run.
    pub(super) fn run(&mut self, key: TaskKey, call: ActivityCall, output: &mut Output) {
        if self.running < self.running_max {
            self.start(key, call, output);
        } else {
            self.waiting.push(key, call);
        }
    }

    /// Runs an activity.
    pub(super) fn start(&mut self, key: TaskKey, call: ActivityCall, output: &mut Output) {
        self.running += 1;
        output.effects.push(Effect::Run(key, call));
    }

    /// Counts an activity that has ended.
    pub(super) fn ended(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// Number of activities that run or wait.
    pub(super) fn open(&self) -> usize {
        self.running + self.waiting.len()
    }

    /// About how many bytes waiting activities take in memory.
    pub(super) fn bytes(&self) -> u64 {
        self.waiting.bytes()
    }

    /// The call of an activity, read from the history from an offset on; `None` if its execution does not run any more.
    fn read(
        &mut self,
        key: TaskKey,
        offset: usize,
        table: &Table,
        spiller: &Spiller,
    ) -> Option<Result<ActivityCall, Failure>> {
        let instance = table.waiting_for(key)?;
        let found = find(instance, offset, key.id, &mut spiller.step_reader());
        // Idempotent activities are scheduled ahead of others that stand before them.
        let is_before = offset > 0 && found.is_none();
        let found = if is_before { find(instance, 0, key.id, &mut spiller.step_reader()) } else { found };
        match found? {
            Ok((call, offset)) => {
                self.waiting.found_at(key, offset);
                Some(Ok(ActivityCall { generation: key.generation, ..call }))
            }
            Err(what) => Some(Err(Failure::new(FailureKind::Payload, format!("cannot read the history: {what}")))),
        }
    }
}

/// Activities in the order they were scheduled.
#[derive(Debug, Default)]
pub(super) struct ActivityQueue {
    /// The first, whole.
    kept: VecDeque<(TaskKey, ActivityCall)>,
    /// Memory that they take.
    kept_bytes: usize,
    /// Those behind them.
    keys: VecDeque<TaskKey>,
    /// The executions that the keys are of.
    places: HashMap<(u64, u64), Place>,
}

/// The activities of one execution that are not kept whole.
#[derive(Debug, Default)]
struct Place {
    waiting: usize,
    /// How far into the history they were found. They are looked for in their order, so that no history is read twice.
    offset: usize,
}

impl ActivityQueue {
    pub(super) fn push(&mut self, key: TaskKey, call: ActivityCall) {
        let bytes = bytes_of(&call);
        if self.keys.is_empty() && self.kept_bytes + bytes <= KEPT_BYTES_MAX {
            self.kept_bytes += bytes;
            self.kept.push_back((key, call));
        } else {
            self.keys.push_back(key);
            self.places.entry((key.handle, key.generation)).or_default().waiting += 1;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len() + self.keys.len()
    }

    /// About how many bytes all take in memory.
    pub(super) fn bytes(&self) -> u64 {
        let keys = self.keys.len() * size_of::<TaskKey>();
        let places = self.places.len() * (ENTRY_BYTES + size_of::<((u64, u64), Place)>());
        (self.kept_bytes + keys + places) as u64
    }

    fn pop_kept(&mut self) -> Option<(TaskKey, ActivityCall)> {
        let (key, call) = self.kept.pop_front()?;
        self.kept_bytes -= bytes_of(&call);
        Some((key, call))
    }

    /// The next that is not kept whole, and where in its history to begin to look for it.
    fn pop_key(&mut self) -> Option<(TaskKey, usize)> {
        let key = self.keys.pop_front()?;
        let of = (key.handle, key.generation);
        let place = self.places.get_mut(&of).expect("the execution of each key has a place");
        let offset = place.offset;
        place.waiting -= 1;
        if place.waiting == 0 {
            self.places.remove(&of);
        }
        Some((key, offset))
    }

    fn found_at(&mut self, key: TaskKey, offset: usize) {
        // The last of an execution leaves no place behind.
        if let Some(place) = self.places.get_mut(&(key.handle, key.generation)) {
            place.offset = offset;
        }
    }
}

fn bytes_of(call: &ActivityCall) -> usize {
    let strings = call.name.as_str().len() + call.instance.as_str().len();
    size_of::<(TaskKey, ActivityCall)>() + strings + call.input.len()
}

impl Partition {
    /// The next activity that waits and is still wanted.
    pub(super) fn next_activity(&mut self) -> Option<(TaskKey, ActivityCall)> {
        while let Some((key, call)) = self.activities.waiting.pop_kept() {
            if self.table.waiting_for(key).is_some() {
                return Some((key, call));
            }
        }
        while let Some((key, offset)) = self.activities.waiting.pop_key() {
            match self.activities.read(key, offset, &self.table, &self.log.spiller) {
                Some(Ok(call)) => return Some((key, call)),
                Some(Err(failure)) => {
                    self.feed(key.handle, Some(key.generation), EventKind::TaskFailed { id: key.id, failure });
                }
                None => {}
            }
        }
        None
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::testing::{id, number};
    use crate::payload::Payload;

    fn key(id: u32) -> TaskKey {
        TaskKey { handle: 1, generation: 0, id }
    }

    #[test]
    fn calls_beyond_the_bound_are_kept_as_numbers() {
        const CALLS: u32 = 2_000;
        let input = Payload::encode(&"x".repeat(50_000)).expect("a text");
        let mut waiting = ActivityQueue::default();
        for at in 0..CALLS {
            let (instance, input) = (id("fan"), input.clone());
            waiting.push(key(at), ActivityCall { name: "Hello".into(), input, instance, generation: 0, id: at });
        }
        let most = KEPT_BYTES_MAX + 32 * CALLS as usize;
        assert!(waiting.bytes() <= most as u64, "{} of {most}", waiting.bytes());

        let kept = std::iter::from_fn(|| waiting.pop_kept()).map(|(key, _)| key.id).collect::<Vec<_>>();
        assert_eq!(kept, (0..kept.len() as u32).collect::<Vec<_>>());
        // One more waits for its turn behind those that are numbers.
        let small =
            ActivityCall { name: "Hello".into(), input: number(1), instance: id("fan"), generation: 0, id: CALLS };
        waiting.push(key(CALLS), small);
        let mut found = 0;
        let keys = std::iter::from_fn(|| {
            let (key, offset) = waiting.pop_key()?;
            assert_eq!(offset, found);
            found += 10;
            waiting.found_at(key, found);
            Some(key.id)
        });
        assert_eq!(keys.collect::<Vec<_>>(), (kept.len() as u32..=CALLS).collect::<Vec<_>>());
        assert_eq!((waiting.len(), waiting.bytes()), (0, 0));
    }
}
