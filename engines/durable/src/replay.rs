//! Check of code against histories, to run before changed code is deployed: does it still make the same decisions?
//!
//! An orchestration that is under way when its code changes is replayed on the new code, and parked where that decides
//! otherwise. [`check`] finds out beforehand for one history, [`check_hub`] for all that a store keeps. Neither runs
//! activities or entities, writes anything, or needs the hub to be open.
//!
//! ```
//! use std::sync::Arc;
//!
//! use narrows_durable::store::MemoryStore;
//! use narrows_durable::{Ctx, Failure, Orchestration, Registry, replay};
//!
//! const TOUR: Orchestration<u32, u32> = Orchestration::new("tour");
//!
//! let mut changed = Registry::new();
//! changed.orchestration(TOUR, |_: Ctx, cities| async move { Ok::<_, Failure>(cities) });
//! let checked = replay::check_hub(Arc::new(MemoryStore::new()), Arc::new(changed))?;
//! for mismatch in &checked.mismatches {
//!     eprintln!("{mismatch}");
//! }
//! assert!(checked.mismatches.is_empty());
//! # Ok::<_, narrows_durable::store::StoreError>(())
//! ```

use std::fmt;
use std::sync::Arc;

use crate::client::Status;
use crate::codec::FORMAT;
use crate::event::{Event, EventKind, Version};
use crate::failure::{Failure, FailureKind};
use crate::ids::{InstanceId, Name, PartitionId};
use crate::options::HubOptions;
use crate::partition::Partition;
use crate::program::{Program, Progress};
use crate::store::{HubShape, Store, StoreError};

/// Partings that [`ReplayReport`] holds; beyond it they are only counted.
pub const MISMATCHES_MAX: usize = 1_000;

/// Feeds a history to the code registered for it, without running anything else, and says how the execution stands.
///
/// Of an execution that the engine itself has ended (code that was missing or had changed, a step that was too large)
/// only the earlier part is compared; of one that was terminated before it began, only that there is code for it.
///
/// # Errors
/// A failure of kind `Nondeterminism` that names the first event where code and history part, what stands there and
/// what the code does instead; of kind `Unregistered` if there is no code of this name and version; of kind `Payload`
/// if `history` does not begin with [`EventKind::Started`].
pub fn check(program: &dyn Program, instance: &InstanceId, history: &[Event]) -> Result<Progress, Failure> {
    let Some(EventKind::Started { name, version, .. }) = history.first().map(|event| &event.kind) else {
        let text = format!("the history of {instance} does not begin with Started");
        return Err(Failure::new(FailureKind::Payload, text));
    };
    let fresh = || program.cursor(instance, name.as_str(), *version);
    let mut cursor = fresh()?;
    if let [_, Event { kind: EventKind::Terminated { .. }, .. }] = history {
        return Ok(Progress::Ended);
    }
    let whole = cursor.replay(&mut history.iter().cloned().map(Ok));
    match (whole, before_verdict(history)) {
        (Err(_), Some([])) => Ok(Progress::Ended),
        (Err(_), Some(before)) => fresh()?.replay(&mut before.iter().cloned().map(Ok)).map(|_| Progress::Ended),
        (whole, _) => whole,
    }
}

/// The events before the last step, if the engine itself failed that step.
fn before_verdict(history: &[Event]) -> Option<&[Event]> {
    let EventKind::Failed { failure } = &history.last()?.kind else { return None };
    let is_verdict =
        matches!(failure.kind, FailureKind::Nondeterminism | FailureKind::Unregistered | FailureKind::Limit);
    let step = history.iter().rposition(|event| event.kind.is_outside())?;
    is_verdict.then(|| &history[..step])
}

/// Result of [`check_hub`].
#[derive(Clone, Debug, Default)]
pub struct ReplayReport {
    /// Executions whose history was replayed: the present one of each orchestration.
    pub executions: u64,
    /// Those that part from their history, at most [`MISMATCHES_MAX`] of them.
    pub mismatches: Vec<ReplayMismatch>,
    /// How many part.
    pub mismatch_count: u64,
}

/// An execution whose code does not decide what its history says.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReplayMismatch {
    /// Whose.
    pub instance: InstanceId,
    /// The orchestration's name.
    pub name: Name,
    /// The version it is pinned to.
    pub version: Version,
    /// How it stands. One that has ended is not replayed any more, so that its mismatch does no harm.
    pub status: Status,
    /// The first event where they part, or why it is unknown.
    pub failure: Failure,
}

impl fmt::Display for ReplayMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, name, version, status, failure } = self;
        write!(f, "{instance} ({name}, version {version}, {}): {failure}", status.as_str())
    }
}

/// Checks the present execution of every orchestration that a store keeps, ended ones too. The hub must not be open; it
/// stays as it is. A store without a hub gets one without instances.
///
/// # Errors
/// Whatever the store says when it is read.
pub fn check_hub(store: Arc<dyn Store>, program: Arc<dyn Program>) -> Result<ReplayReport, StoreError> {
    let options = HubOptions::default();
    let shape = store.open_or_create(HubShape { partitions: options.partitions, format: FORMAT })?;
    let mut checked = ReplayReport::default();
    for id in (0..shape.partitions).map(PartitionId) {
        let mut partition = Partition::new(id, shape.partitions, Arc::clone(&program), Arc::clone(&store), &options);
        partition.recover(&*store)?;
        partition.histories(&mut |view, history| {
            checked.executions += 1;
            let verdict = history.and_then(|events| check(&*program, &view.id, &events));
            let Err(failure) = verdict else { return };
            checked.mismatch_count += 1;
            if checked.mismatches.len() < MISMATCHES_MAX {
                let (instance, name, version, status) = (view.id, view.name, view.version, view.status);
                checked.mismatches.push(ReplayMismatch { instance, name, version, status, failure });
            }
        });
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Time;
    use crate::model::{Activity, Ctx, Orchestration, Registry};
    use crate::payload::Payload;

    const HELLO: Activity<u32, u32> = Activity::new("Hello");
    const TOUR: Orchestration<u32, u32> = Orchestration::new("Tour");

    /// Calls the activity with each of the numbers, one after another.
    fn tour(numbers: &'static [u32]) -> Registry {
        let mut code = Registry::new();
        code.orchestration(TOUR, move |ctx: Ctx, _: u32| async move {
            let mut sum = 0;
            for number in numbers {
                sum += ctx.call(HELLO, number).await?;
            }
            Ok::<_, Failure>(sum)
        });
        code
    }

    fn json(value: u32) -> Payload {
        Payload::encode(&value).expect("JSON")
    }

    fn history(kinds: Vec<EventKind>) -> Vec<Event> {
        let started =
            EventKind::Started { name: Name::Static("Tour"), version: 0, generation: 0, input: json(0), parent: None };
        std::iter::once(started).chain(kinds).map(|kind| Event { time: Time(1), kind }).collect()
    }

    /// Two calls, the second of which is open.
    fn two_calls() -> Vec<EventKind> {
        let scheduled = |id, input| EventKind::TaskScheduled { id, name: Name::Static("Hello"), input: json(input) };
        vec![scheduled(0, 1), EventKind::TaskCompleted { id: 0, result: json(1) }, scheduled(1, 2)]
    }

    fn failed(kind: FailureKind) -> EventKind {
        EventKind::Failed { failure: Failure::new(kind, "so it was") }
    }

    fn checked(code: &Registry, kinds: Vec<EventKind>) -> Result<Progress, Failure> {
        check(code, &InstanceId::new("tour-1").expect("an identifier"), &history(kinds))
    }

    #[test]
    fn the_first_event_where_changed_code_parts_from_its_history_is_named() {
        assert_eq!(checked(&tour(&[1, 2]), two_calls()), Ok(Progress::Waiting));
        assert_eq!(checked(&tour(&[1, 2, 3]), two_calls()), Ok(Progress::Waiting));
        let failure = checked(&tour(&[1, 3]), two_calls()).expect_err("the second call is another");
        assert_eq!(failure.kind, FailureKind::Nondeterminism);
        assert!(failure.message.starts_with("event 3 of the history, counted from 0, is TaskScheduled(1, Hello, 2)"));
        let failure = checked(&Registry::new(), two_calls()).expect_err("there is no code");
        assert_eq!(failure.kind, FailureKind::Unregistered);
        let failure = check(&tour(&[]), &InstanceId::new("x").expect("an identifier"), &[]).expect_err("no history");
        assert!(failure.message.contains("does not begin with Started"), "{failure}");
    }

    #[test]
    fn executions_ended_by_the_engine_are_compared_up_to_their_end() {
        let ended_by = |kind| {
            let mut kinds = two_calls();
            kinds.extend([EventKind::TaskCompleted { id: 1, result: json(2) }, failed(kind)]);
            kinds
        };
        assert_eq!(checked(&tour(&[1, 2]), ended_by(FailureKind::Nondeterminism)), Ok(Progress::Ended));
        assert!(checked(&tour(&[1, 3]), ended_by(FailureKind::Nondeterminism)).is_err());
        assert!(checked(&tour(&[1, 2]), ended_by(FailureKind::Application)).is_err());
        assert_eq!(checked(&tour(&[1]), vec![failed(FailureKind::Unregistered)]), Ok(Progress::Ended));
        let terminated = EventKind::Terminated { reason: "before it began".to_owned() };
        assert_eq!(checked(&tour(&[1]), vec![terminated]), Ok(Progress::Ended));
    }

    #[test]
    fn a_whole_hub_is_checked_and_stays_as_it_was() {
        let store: Arc<dyn Store> = Arc::new(crate::store::MemoryStore::new());
        let options = HubOptions { partitions: 2, ..HubOptions::default() };
        let hub = crate::hub::Hub::open(Arc::clone(&store), tour(&[1]), options).expect("a hub");
        let client = hub.client();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            for number in 0..6 {
                let id = format!("tour-{number}");
                client.start(TOUR.start(&0).expect("JSON").id(id).expect("an identifier")).await.expect("started");
            }
        });
        hub.halt();
        for _ in 0..2 {
            let same = check_hub(Arc::clone(&store), Arc::new(tour(&[1]))).expect("read");
            assert_eq!((same.executions, same.mismatch_count), (6, 0), "{:?}", same.mismatches);
            let changed = check_hub(Arc::clone(&store), Arc::new(tour(&[7]))).expect("read");
            assert_eq!((changed.executions, changed.mismatch_count, changed.mismatches.len()), (6, 6, 6));
        }
        let text = check_hub(store, Arc::new(tour(&[7]))).expect("read").mismatches[0].to_string();
        assert!(text.contains("(Tour, version 0, ") && text.contains("event 1 of the history"), "{text}");
    }
}
