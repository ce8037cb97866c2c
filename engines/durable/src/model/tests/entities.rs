//! Entities, from both sides.

use serde::Deserialize;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::failure::FailureKind;
use crate::ids::EntityId;
use crate::message::{Message, MessageKind};
use crate::model::{Ctx, EntityOp, EntityType, ExternalEvent, Orchestration};
use crate::program::{EntityStep, Operation};

#[derive(Default, Serialize, Deserialize)]
struct Account {
    balance: i64,
    deposits: Vec<i64>,
}

const ACCOUNT: EntityType<Account> = EntityType::new("Account");
const DEPOSIT: EntityOp<Account, i64, i64> = EntityOp::new("Deposit");
const BREAK: EntityOp<Account, u8, ()> = EntityOp::new("Break");
const CLOSE: EntityOp<Account, (), ()> = EntityOp::new("Close");
const NOTIFY: EntityOp<Account, bool, ()> = EntityOp::new("Notify");
const BALANCE: EntityOp<Account, (), i64> = EntityOp::new("Balance");
const FLOW: Orchestration<(), i64> = Orchestration::new("Flow");
const PAID: ExternalEvent<i64> = ExternalEvent::new("Paid");

fn bank() -> Registry {
    let mut registry = Registry::new();
    registry
        .entity(ACCOUNT)
        .operation(DEPOSIT, |account, amount, _| {
            account.balance += amount;
            account.deposits.push(amount);
            if account.balance < 0 { Err(Failure::application("overdrawn")) } else { Ok(account.balance) }
        })
        .operation(BREAK, |account, _, context| {
            account.balance = 1_000_000;
            context.signal(&context.id().clone(), CLOSE, &())?;
            panic!("a bug in {}", context.id().key())
        })
        .operation(CLOSE, |_, (), context| {
            context.delete();
            Ok(())
        })
        .operation(NOTIFY, |account, fails, context| {
            context.raise(&instance(), PAID, &account.balance)?;
            context.start_as(FLOW, &InstanceId::new("flow-1").expect("an identifier"), &())?;
            context.signal(&alice(), DEPOSIT, &1)?;
            if fails { Err(Failure::application("told to")) } else { Ok(()) }
        })
        .operation(BALANCE, |account, (), _| Ok(account.balance));
    registry
}

fn alice() -> EntityId {
    ACCOUNT.id("alice").expect("an identifier")
}

fn bob() -> EntityId {
    ACCOUNT.id("bob").expect("an identifier")
}

fn operation(name: &'static str, input: impl Serialize) -> Operation {
    Operation { name: Name::Static(name), input: json(input) }
}

fn operate(state: Option<&Payload>, operations: &[Operation]) -> EntityStep {
    bank().operate(&alice(), state, operations, Time(5))
}

fn account(step: &EntityStep) -> Option<(i64, Vec<i64>)> {
    let account: Account = step.state.as_ref()?.decode().expect("an account");
    Some((account.balance, account.deposits))
}

#[test]
fn a_batch_runs_in_order_on_one_state() {
    let step = operate(None, &[operation("Deposit", 5), operation("Deposit", 7), operation("Balance", ())]);
    assert_eq!(step.results, [Ok(json(5)), Ok(json(12)), Ok(json(12))]);
    assert_eq!(account(&step), Some((12, vec![5, 7])));
    let step = operate(step.state.as_ref(), &[operation("Deposit", 1)]);
    assert_eq!(account(&step), Some((13, vec![5, 7, 1])));
    assert!(step.messages.is_empty());
}

#[test]
fn an_operation_that_fails_or_panics_leaves_no_trace() {
    let orders = [
        vec![operation("Deposit", 5), operation("Deposit", -9), operation("Break", 0), operation("Deposit", 2)],
        vec![operation("Deposit", -9), operation("Deposit", 5), operation("Break", 0), operation("Deposit", 2)],
        vec![operation("Break", 0), operation("Deposit", 5), operation("Deposit", 2), operation("Deposit", -9)],
    ];
    for operations in orders {
        let step = operate(None, &operations);
        assert_eq!(account(&step), Some((7, vec![5, 2])));
        assert!(step.messages.is_empty(), "{:?}", step.messages);
        let failures: Vec<_> = step.results.iter().filter_map(|result| result.as_ref().err()).collect();
        assert_eq!(failures.len(), 2);
        for failure in failures {
            match failure.kind {
                FailureKind::Application => assert_eq!(failure.message, "overdrawn"),
                FailureKind::Panic => {
                    assert_eq!(failure.message, "operation Break of @Account@alice panicked: a bug in alice");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn an_entity_that_only_failed_is_not_made() {
    for failing in [operation("Deposit", -1), operation("Dposit", 1), operation("Deposit", "one")] {
        let step = operate(None, &[failing.clone(), failing]);
        assert_eq!(step.state, None);
        assert_eq!(step.results.len(), 2);
        assert!(step.results.iter().all(Result::is_err));
    }
}

#[test]
fn unknown_code_is_named() {
    let step = operate(None, &[operation("Dposit", 1), operation("Deposit", 1)]);
    assert_eq!(step.results[1], Ok(json(1)));
    let failure = step.results[0].as_ref().expect_err("unknown");
    assert_eq!(
        failure.to_string(),
        "unregistered: there is no operation of entity Account \"Dposit\", there are [Balance, Break, Close, Deposit, Notify]"
    );
    let shop = EntityId::new("Shop", "1").expect("an identifier");
    let kept = json(8);
    let step = bank().operate(&shop, Some(&kept), &[operation("Deposit", 1)], Time(5));
    assert_eq!(step.state, Some(kept));
    assert_eq!(step.results[0].as_ref().map_err(|failure| failure.kind), Err(FailureKind::Unregistered));
}

#[test]
fn a_deleted_entity_is_gone_and_begins_anew() {
    let full = operate(None, &[operation("Deposit", 5)]).state;
    assert_eq!(operate(full.as_ref(), &[operation("Close", ())]).state, None);
    let step = operate(full.as_ref(), &[operation("Close", ()), operation("Deposit", 2)]);
    assert_eq!(account(&step), Some((2, vec![2])));
    let step = operate(full.as_ref(), &[operation("Deposit", 1), operation("Close", ()), operation("Deposit", -2)]);
    assert_eq!(step.state, None);
}

#[test]
fn a_state_that_cannot_be_read_stays() {
    let odd = json("not an account");
    let step = operate(Some(&odd), &[operation("Deposit", 5), operation("Close", ())]);
    assert_eq!(step.state, Some(odd));
    assert!(
        step.results.iter().all(|result| result.as_ref().is_err_and(|failure| failure.kind == FailureKind::Payload))
    );
}

#[test]
fn messages_of_operations_leave_only_if_they_succeed() {
    let step = operate(None, &[operation("Notify", true), operation("Deposit", 3), operation("Notify", false)]);
    let [raise, start, signal] = &step.messages[..] else { panic!("{:?}", step.messages) };
    let paid = MessageKind::Raise { name: Name::Static("Paid"), data: json(3) };
    assert_eq!(raise, &Message { to: instance(), kind: paid });
    assert!(matches!(&start.kind, MessageKind::Start { name, parent: None, .. } if name.as_str() == "Flow"));
    assert_eq!(start.to.as_str(), "flow-1");
    assert_eq!(signal.to, *alice().instance());
}

#[test]
fn without_a_failure_each_operation_runs_once() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    const COUNT: EntityOp<u32, u32, u32> = EntityOp::new("Count");
    let mut registry = Registry::new();
    registry.entity(EntityType::new("Counter")).operation(COUNT, |count: &mut u32, by, _| {
        RUNS.fetch_add(1, Ordering::Relaxed);
        *count += by;
        if by == 0 { Err(Failure::application("by nothing")) } else { Ok(*count) }
    });
    let counter = EntityId::new("Counter", "1").expect("an identifier");
    let mut operations = vec![operation("Count", 1); 50];
    registry.operate(&counter, None, &operations, Time(5));
    assert_eq!(RUNS.load(Ordering::Relaxed), 50);
    operations.truncate(1);
    operations[0] = operation("Count", 0);
    registry.operate(&counter, None, &operations, Time(5));
    assert_eq!(RUNS.load(Ordering::Relaxed), 51, "one that fails alone runs once too");
}

fn flow<R>(code: impl Fn(Ctx, ()) -> R + Send + Sync + 'static) -> Registry
where
    R: Future<Output = Result<i64, Failure>> + 'static,
{
    let mut registry = Registry::new();
    registry.orchestration(FLOW, code);
    registry
}

fn called(id: u32, entity: EntityId, amount: i64) -> EventKind {
    EventKind::EntityCalled { id, entity, operation: Name::Static("Deposit"), input: json(amount) }
}

#[test]
fn an_orchestration_calls_and_signals() {
    let registry = flow(|ctx, ()| async move {
        ctx.entity_signal(&bob(), DEPOSIT, &1)?;
        ctx.entity_signal_at(&bob(), DEPOSIT, &2, Time(77))?;
        ctx.entity_call(&alice(), DEPOSIT, &3).await
    });
    let signal = |id, amount: i64, at| {
        let operation = Name::Static("Deposit");
        EventKind::EntitySignalled { id, entity: bob(), operation, input: json(amount), at }
    };
    let (mut run, first) = Run::start(&registry, "Flow", ());
    assert_eq!(first, [signal(0, 1, None), signal(1, 2, Some(Time(77))), called(2, alice(), 3)]);
    assert_eq!(run.feed(EventKind::OperationCompleted { id: 2, result: json(30) }), [completed(30)]);
    run.check_replays();
    let (mut run, _) = Run::start(&registry, "Flow", ());
    let failure = Failure::application("overdrawn");
    let decisions = run.feed(EventKind::OperationFailed { id: 2, failure: failure.clone() });
    assert_eq!(failure_of(&decisions), &failure);
    run.check_replays();
}

#[test]
fn a_lock_is_asked_for_in_order_and_freed_by_its_guard() {
    let registry = flow(|ctx, ()| async move {
        {
            let _guard = ctx.lock(&[bob(), alice(), bob()]).await?;
            ctx.entity_call(&alice(), DEPOSIT, &-3).await?;
        }
        ctx.entity_call(&alice(), DEPOSIT, &4).await
    });
    let (mut run, first) = Run::start(&registry, "Flow", ());
    assert_eq!(first, [EventKind::LockRequested { id: 0, entities: vec![alice(), bob()] }]);
    assert_eq!(run.feed(EventKind::LockGranted { id: 0 }), [called(1, alice(), -3)]);
    run.recover();
    let after = run.feed(EventKind::OperationCompleted { id: 1, result: json(0) });
    assert_eq!(after, [EventKind::LockReleased { id: 0, entities: vec![alice(), bob()] }, called(2, alice(), 4)]);
    run.check_replays();
}

#[test]
fn waits_that_could_deadlock_under_a_lock_are_refused() {
    let registry = flow(|ctx, ()| async move {
        assert_eq!(ctx.lock(&[]).await.err().map(|failure| failure.kind), Some(FailureKind::Conflict));
        let _guard = ctx.lock(&[alice()]).await?;
        assert_eq!(ctx.lock(&[bob()]).await.err().map(|failure| failure.kind), Some(FailureKind::Conflict));
        let outside = ctx.entity_call(&bob(), DEPOSIT, &1).await;
        assert_eq!(outside.map_err(|failure| failure.kind), Err(FailureKind::Conflict));
        Ok(1)
    });
    let (mut run, _) = Run::start(&registry, "Flow", ());
    let last = run.feed(EventKind::LockGranted { id: 0 });
    assert_eq!(last, [EventKind::LockReleased { id: 0, entities: vec![alice()] }, completed(1)]);
    run.check_replays();
}

#[test]
fn a_lock_that_is_given_up_before_it_is_granted_is_released() {
    let registry = flow(|ctx, ()| async move {
        ctx.select2(ctx.lock(&[alice()]), ctx.timer(std::time::Duration::from_secs(1))).await;
        let _guard = ctx.lock(&[bob()]).await?;
        Ok(1)
    });
    let (mut run, _) = Run::start(&registry, "Flow", ());
    let released = EventKind::LockReleased { id: 0, entities: vec![alice()] };
    assert_eq!(run.fire(1), [released, EventKind::LockRequested { id: 2, entities: vec![bob()] }]);
    assert!(run.feed(EventKind::LockGranted { id: 0 }).is_empty());
    assert_eq!(run.progress, Progress::Ignored);
    run.check_replays();
}
