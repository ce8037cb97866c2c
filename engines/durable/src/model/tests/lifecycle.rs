//! Suspending, continuing as new, ending from outside, and an execution's knowledge of itself.

use super::*;
use crate::model::{Activity, Ctx, ExternalEvent, Orchestration};

const WORK: Activity<u32, u32> = Activity::new("Work");
const STEP: ExternalEvent<u32> = ExternalEvent::new("Step");
const FLOW: Orchestration<u32, u32> = Orchestration::new("Flow");

fn flow<R>(code: impl Fn(Ctx, u32) -> R + Send + Sync + 'static) -> Registry
where
    R: Future<Output = Result<u32, Failure>> + 'static,
{
    let mut registry = Registry::new();
    registry.orchestration(FLOW, code);
    registry
}

fn suspended() -> EventKind {
    EventKind::Suspended { reason: "lunch".to_owned() }
}

fn resumed() -> EventKind {
    EventKind::Resumed { reason: "back".to_owned() }
}

#[test]
fn events_kept_back_are_given_in_order_on_resume() {
    let registry = flow(|ctx, _| async move {
        let one = ctx.call(WORK, &1).await?;
        let two = ctx.event(STEP).await?;
        ctx.call(WORK, &(one * 10 + two)).await?;
        Ok(u32::try_from(ctx.now().0 / SECOND).unwrap_or(0))
    });
    let (mut run, _) = Run::start(&registry, "Flow", 0);
    assert!(run.feed(suspended()).is_empty());
    assert!(run.feed(suspended()).is_empty());
    assert_eq!(run.progress, Progress::Ignored, "it is suspended already");
    assert!(run.complete(0, 4).is_empty());
    assert!(run.complete(7, 4).is_empty());
    assert_eq!(run.progress, Progress::Ignored, "decision 7 is not awaited");
    assert!(run.raise("Step", 2).is_empty());
    run.recover();
    assert_eq!(run.feed(resumed()), [scheduled(1, "Work", 42)]);
    assert!(run.feed(resumed()).is_empty());
    assert_eq!(run.progress, Progress::Ignored, "it is not suspended");
    assert_eq!(run.complete(1, 0), [completed(10)]);
    run.check_replays();
}

#[test]
fn an_execution_may_end_while_it_takes_what_was_kept_back() {
    let registry = flow(|ctx, _| async move {
        let next = ctx.event(STEP).await?;
        ctx.continue_as_new(&next)
    });
    let (mut run, _) = Run::start(&registry, "Flow", 0);
    run.feed(suspended());
    for value in 1..4 {
        run.raise("Step", value);
    }
    let step = |value: u32| (Name::Static("Step"), json(value));
    let expected = EventKind::ContinuedAsNew { input: json(1), unread: vec![step(2), step(3)] };
    assert_eq!(run.feed(resumed()), [expected]);
    run.check_replays();
}

#[test]
fn unread_events_of_all_names_go_over_in_the_order_they_came() {
    let registry = flow(|ctx, input| async move {
        ctx.call(WORK, &input).await?;
        ctx.continue_as_new(&(input + 1))
    });
    let (mut run, _) = Run::start(&registry, "Flow", 6);
    for (name, value) in [("Step", 1), ("Other", 2), ("Step", 3)] {
        run.raise(name, value);
    }
    let unread = [("Step", 1), ("Other", 2), ("Step", 3)].map(|(name, value)| (Name::Static(name), json(value)));
    assert_eq!(run.complete(0, 0), [EventKind::ContinuedAsNew { input: json(7), unread: unread.to_vec() }]);
    run.check_replays();
}

#[test]
fn nothing_reaches_an_execution_that_was_ended() {
    let registry = flow(|ctx, input| async move { ctx.call(WORK, &input).await });
    let (mut run, _) = Run::start(&registry, "Flow", 6);
    let mut history = run.history.clone();
    history.push(Event { time: run.now, kind: EventKind::Terminated { reason: "enough".to_owned() } });
    assert_eq!(replay(&registry, "Flow", &history), Ok(Progress::Ended));
    run.complete(0, 1);
    for kind in [suspended(), resumed(), EventKind::TaskCompleted { id: 0, result: json(1) }] {
        assert!(run.feed(kind).is_empty());
        assert_eq!(run.progress, Progress::Ignored);
    }
}

#[test]
fn an_execution_knows_itself_and_shows_a_status() {
    let registry = flow(|ctx, _| async move {
        assert_eq!((ctx.instance().as_str(), ctx.generation(), ctx.version()), ("orders-7", 0, 0));
        ctx.set_status(&"working")?;
        ctx.call(WORK, &0).await
    });
    let (run, first) = Run::start(&registry, "Flow", 6);
    assert_eq!(first, [EventKind::StatusSet { status: json("working") }, scheduled(0, "Work", 0)]);
    run.check_replays();
}

#[test]
fn random_numbers_and_identifiers_repeat_in_replay_and_nowhere_else() {
    let mut registry = Registry::new();
    const DRAW: Orchestration<(), (Vec<u64>, Vec<String>)> = Orchestration::new("Draw");
    registry.orchestration(DRAW, |ctx, ()| async move {
        Ok(((0..100).map(|_| ctx.random()).collect(), (0..100).map(|_| ctx.uuid()).collect()))
    });
    let (run, first) = Run::start(&registry, "Draw", ());
    run.check_replays();
    let [EventKind::Completed { output }] = &first[..] else { panic!("{first:?}") };
    let (numbers, uuids): (Vec<u64>, Vec<String>) = output.decode().expect("numbers and identifiers");
    let distinct: std::collections::HashSet<_> = numbers.iter().collect();
    assert_eq!(distinct.len(), 100);
    let distinct: std::collections::HashSet<_> = uuids.iter().collect();
    assert_eq!(distinct.len(), 100);
    let high_bits = numbers.iter().filter(|number| **number >= 1 << 63).count();
    assert!((25..=75).contains(&high_bits), "{high_bits} of 100 have the highest bit");
    for uuid in &uuids {
        let parts: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{uuid}");
        assert_eq!(&uuid[14..15], "8", "{uuid}");
        assert!("89ab".contains(&uuid[19..20]), "{uuid}");
    }
    let other = InstanceId::new("orders-8").expect("an identifier");
    let mut cursor = registry.cursor(&other, "Draw", 0).expect("registered");
    let mut decisions = Vec::new();
    cursor.feed(&run.history[0], &mut decisions);
    assert_ne!(decisions, first);
}

#[test]
fn the_code_sees_that_it_is_replaying() {
    thread_local! {
        static SEEN: std::cell::RefCell<Vec<bool>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    let registry = flow(|ctx, input| async move {
        SEEN.with_borrow_mut(|seen| seen.push(ctx.is_replaying()));
        ctx.call(WORK, &input).await?;
        SEEN.with_borrow_mut(|seen| seen.push(ctx.is_replaying()));
        Ok(0)
    });
    let (mut run, _) = Run::start(&registry, "Flow", 6);
    run.recover();
    run.complete(0, 1);
    assert_eq!(SEEN.take(), [false, true, false]);
}

#[test]
fn memory_of_a_cursor_is_counted_and_freed() {
    let registry = flow(|ctx, _| async move {
        ctx.event(STEP).await?;
        let calls = (0..50).map(|number| ctx.call(WORK, &number)).collect();
        ctx.join_all(calls).await;
        ctx.event(STEP).await
    });
    let (mut run, _) = Run::start(&registry, "Flow", 0);
    let small = run.cursor.bytes();
    run.raise("Other", "x".repeat(10_000));
    let with_mail = run.cursor.bytes();
    assert!(with_mail >= small + 10_000, "{small} {with_mail}");
    run.raise("Step", 0);
    let with_calls = run.cursor.bytes();
    assert!(with_calls >= with_mail + 50 * 100, "{with_mail} {with_calls}");
    for id in 0..50 {
        run.complete(id, id);
    }
    assert!(run.cursor.bytes() < with_calls - 50 * 50, "{}", run.cursor.bytes());
}
