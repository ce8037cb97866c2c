//! Histories that the code does not follow.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::failure::FailureKind;
use crate::model::{Activity, Orchestration};

const WORK: Activity<u32, u32> = Activity::new("Work");
const REST: Activity<u32, u32> = Activity::new("Rest");
const FLOW: Orchestration<u32, u32> = Orchestration::new("Flow");

/// Two activities, a timer, an end.
fn registry() -> Registry {
    let mut registry = Registry::new();
    registry.orchestration(FLOW, |ctx, input| async move {
        ctx.call(WORK, &input).await?;
        ctx.timer(Duration::from_secs(5)).await;
        ctx.call(REST, &2).await
    });
    registry
}

fn history() -> Vec<Event> {
    let registry = registry();
    let (mut run, _) = Run::start(&registry, "Flow", 1);
    run.complete(0, 1);
    run.fire(1);
    run.complete(2, 9);
    run.history
}

fn complaint(history: &[Event]) -> String {
    let failure = replay(&registry(), "Flow", history).expect_err("it is not what the code does");
    assert_eq!(failure.kind, FailureKind::Nondeterminism);
    let (text, hint) = failure.message.split_once("; ").expect("a hint");
    assert_eq!(hint, "code that has changed needs a version of its own");
    text.to_owned()
}

#[test]
fn the_place_what_stands_there_and_what_the_code_does_are_named() {
    assert_eq!(replay(&registry(), "Flow", &history()), Ok(Progress::Ended));
    let changed = |place: usize, kind: EventKind| {
        let mut history = history();
        history[place].kind = kind;
        complaint(&history)
    };
    let at = "of the history, counted from 0, is";
    assert_eq!(
        changed(1, scheduled(0, "Rest", 1)),
        format!("event 1 {at} TaskScheduled(0, Rest, 1), but the code decides TaskScheduled(0, Work, 1)")
    );
    assert_eq!(
        changed(1, scheduled(0, "Work", 3)),
        format!("event 1 {at} TaskScheduled(0, Work, 3), but the code decides TaskScheduled(0, Work, 1)")
    );
    assert_eq!(
        changed(3, timer(1, Time(9))),
        format!("event 3 {at} TimerCreated(1, at 9 µs), but the code decides TimerCreated(1, at 8000000 µs)")
    );
    assert_eq!(
        changed(2, EventKind::TimerFired { id: 0 }),
        format!("event 2 {at} TimerFired(0), but the code does not wait for it")
    );
    assert_eq!(
        changed(3, EventKind::TimerFired { id: 1 }),
        format!("event 3 {at} TimerFired(1), but the code decides TimerCreated(1, at 8000000 µs)")
    );
    assert_eq!(
        changed(7, EventKind::Failed { failure: Failure::application("no") }),
        format!("event 7 {at} Failed(no), but the code decides Completed(9)")
    );
    assert_eq!(
        changed(0, EventKind::TimerFired { id: 0 }),
        format!("event 0 {at} TimerFired(0), but the code does not wait for it")
    );
}

#[test]
fn a_history_that_ends_or_goes_on_too_early_is_named() {
    let history = history();
    let at = "of the history, counted from 0, is";
    assert_eq!(
        complaint(&history[..3]),
        format!("event 3 {at} the end of the history, but the code decides TimerCreated(1, at 8000000 µs)")
    );
    let mut longer = history.clone();
    longer.insert(4, longer[3].clone());
    assert_eq!(
        complaint(&longer),
        format!("event 4 {at} TimerCreated(1, at 8000000 µs), but the code decides nothing more")
    );
    let mut longer = history;
    longer.push(longer[2].clone());
    assert_eq!(complaint(&longer), format!("event 8 {at} TaskCompleted(0), but the code does not wait for it"));
}

#[test]
fn an_error_of_the_reader_is_passed_on() {
    let broken = Failure::new(FailureKind::Payload, "cannot read the history");
    let mut cursor = registry().cursor(&instance(), "Flow", 0).expect("registered");
    let mut events = history().into_iter().take(2).map(Ok).chain([Err(broken.clone())]);
    assert_eq!(cursor.replay(&mut events), Err(broken));
}

#[test]
fn the_order_of_keys_is_no_decision() {
    const MAPS: Orchestration<bool, ()> = Orchestration::new("Maps");
    const TAKE: Activity<Vec<(String, u32)>, ()> = Activity::new("Take");
    let mut registry = Registry::new();
    registry.orchestration(MAPS, |ctx, _| async move { ctx.call(TAKE, &Vec::new()).await });
    let (run, _) = Run::start(&registry, "Maps", true);
    let mut history = run.history.clone();
    assert_eq!(replay(&registry, "Maps", &history), Ok(Progress::Waiting));
    let mut set = |input: &str| {
        let input = Payload::from_bytes(input.as_bytes().to_vec());
        history[1].kind = EventKind::TaskScheduled { id: 0, name: Name::Static("Take"), input };
        replay(&registry, "Maps", &history)
    };
    assert_eq!(set("[ ]"), Ok(Progress::Waiting));
    assert!(set("[1]").is_err());
    assert!(set("[").is_err());
    let one: BTreeMap<&str, u32> = [("a", 1), ("b", 2)].into();
    let other = Payload::from_bytes(b"{\"b\":2,\"a\":1}".to_vec());
    assert!(super::super::replay::is_same_json(&json(one), &other));
}
