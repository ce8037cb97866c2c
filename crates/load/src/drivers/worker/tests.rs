//! The worker against a transport that does what a script says. No sockets, no server.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use narrows_model::load::{Connections, ErrorKind, Iterations, LoadModel, LoadPlan, LoadSecond, Retry};

use super::user::Activity;
use super::{LoadContext, Worker};
use crate::clock::Clock;
use crate::data::Sources;
use crate::drivers::transport::{Event, Exchanges, Failure, Order, Repeat, Response, Reuse, Transport};
use crate::flows::Flows;
use crate::part::LoadPart;
use crate::random::Random;
use crate::recorder::{Bounds, Cause, Message, Recorder, RowName, ThreadTotals};
use crate::schedule::Schedule;
use crate::testing::plan;

const MS_NS: i64 = 1_000_000;
/// More seconds than any load here lasts.
const SECONDS_MAX: usize = 64;

/// Calls of the transport by the worker, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Send,
    Close,
    Farewell,
}

/// Events after a request that is sent at a moment.
type Play = fn(i64) -> Vec<Event>;

/// A transport for one user, whose n-th request is followed by the n-th entry of its script.
struct ScriptedTransport {
    script: VecDeque<Play>,
    calls: Rc<RefCell<Vec<Call>>>,
    events: VecDeque<(usize, Event)>,
}

impl Transport for ScriptedTransport {
    fn send(&mut self, slot: usize, order: Order, exchanges: &mut impl Exchanges) {
        assert!(exchanges.request(slot).windows(13).any(|part| part == b" / HTTP/1.1\r\n"));
        self.calls.borrow_mut().push(Call::Send);
        let play = self.script.pop_front().expect("a request that the script does not have");
        self.events.extend(play(order.now_ns).into_iter().map(|event| (slot, event)));
    }

    fn close(&mut self, _: usize) {
        self.calls.borrow_mut().push(Call::Close);
    }

    fn has_dialled(&self, _: usize) -> bool {
        self.calls.borrow().contains(&Call::Send)
    }

    fn wait(&mut self, _: i64, _: i64) {
        assert!(self.events.is_empty(), "events were left before a wait: {:?}", self.events);
    }

    fn next(&mut self, _: &mut impl Exchanges) -> Option<(usize, Event)> {
        self.events.pop_front()
    }

    fn farewell(&mut self) {
        self.calls.borrow_mut().push(Call::Farewell);
    }
}

fn sent(now: i64) -> Event {
    Event::Sent { at_ns: now, delay_ns: 0 }
}

fn response(now: i64, reuse: Reuse) -> Event {
    let response = Response { status: 200, reuse, bytes: 100, body_bytes: 10 };
    Event::Response { response, first_byte_ns: now + 30, done_ns: now + 70 }
}

fn failed(kind: ErrorKind) -> Event {
    Event::Failed(Failure::new(kind, Cause::Text("as the script says")))
}

fn kept(now: i64) -> Vec<Event> {
    vec![sent(now), Event::Written { at_ns: now + 10 }, response(now, Reuse::Open)]
}

fn not_kept(now: i64) -> Vec<Event> {
    vec![sent(now), Event::Written { at_ns: now + 10 }, response(now, Reuse::Closed)]
}

fn response_while_sending(now: i64) -> Vec<Event> {
    vec![sent(now), response(now, Reuse::Closed)]
}

fn broken(repeat: Repeat) -> Event {
    Event::Failed(Failure { repeat, ..Failure::new(ErrorKind::Reset, Cause::Text("closed")) })
}

fn broken_as_idle(now: i64) -> Vec<Event> {
    vec![sent(now), Event::Written { at_ns: now + 10 }, broken(Repeat::IfIdempotent)]
}

fn unprocessed(now: i64) -> Vec<Event> {
    vec![sent(now), Event::Written { at_ns: now + 10 }, broken(Repeat::Unprocessed)]
}

fn unsent(_: i64) -> Vec<Event> {
    vec![broken(Repeat::Unsent)]
}

fn reset(now: i64) -> Vec<Event> {
    vec![sent(now), failed(ErrorKind::Reset)]
}

fn refused(_: i64) -> Vec<Event> {
    vec![failed(ErrorKind::Connect)]
}

fn begun_and_no_more(now: i64) -> Vec<Event> {
    vec![sent(now), Event::Written { at_ns: now + 10 }, Event::Received { bytes: 7 }]
}

/// Results of a load: all seconds summed up, the totals, and the calls.
struct LoadResult {
    sum: LoadSecond,
    totals: ThreadTotals,
    calls: Vec<Call>,
}

/// One user with as many iterations.
fn iterations(iterations: u64) -> LoadPlan {
    plan(LoadModel::Iterations { vus: 1, iterations: Iterations::Shared(iterations), max_duration: None })
}

/// Lends a worker whose user is due to begin.
fn with_worker<R>(
    plan: &LoadPlan,
    script: &[Play],
    act: impl FnOnce(Worker<'_, ScriptedTransport>, &Receiver<Message>, &Rc<RefCell<Vec<Call>>>) -> R,
) -> R {
    let clock = Clock::new();
    let part = LoadPart::whole(1, clock.now_ns());
    let (flows, sources) = (Flows::compile(plan).unwrap(), Sources::new(&plan.data, part));
    let schedules: Vec<Schedule> = plan.scenarios.iter().map(|scenario| Schedule::new(scenario, &part)).collect();
    let (stop, deserted) = (AtomicBool::new(false), AtomicBool::new(false));
    let shared = LoadContext {
        plan,
        clock,
        part,
        begin_ns: part.start_ns,
        sources: &sources,
        flows: &flows,
        schedules: &schedules,
        stop: &stop,
        deserted: &deserted,
    };
    let (out, messages) = sync_channel(SECONDS_MAX);
    let names = vec![RowName { scenario: "a".into(), request: String::new() }];
    let bounds = Bounds { start_ns: part.start_ns, of_windows: &[], first: 0 };
    let recorder = Recorder::new(0, bounds, names, Random::new(1, 1), out, &deserted);
    let calls = Rc::new(RefCell::new(Vec::new()));
    let script = script.iter().copied().collect();
    let transport = ScriptedTransport { script, calls: calls.clone(), events: VecDeque::new() };
    act(Worker::new(&shared, 0, recorder, transport), &messages, &calls)
}

/// Runs a plan with a script, which must be used up.
fn run(plan: &LoadPlan, script: &[Play]) -> LoadResult {
    with_worker(plan, script, |worker, messages, calls| {
        let totals = worker.run().totals;
        let mut sum = LoadSecond::default();
        for message in messages.try_iter() {
            let Message::Second(second) = message else { continue };
            sum.merge(&second.rows[0]);
        }
        let calls = calls.borrow().clone();
        assert_eq!(calls.iter().filter(|call| **call == Call::Send).count(), script.len());
        LoadResult { sum, totals, calls }
    })
}

#[test]
fn a_connection_is_kept_until_the_user_rests() {
    let ran = run(&iterations(3), &[kept, kept, kept]);
    assert_eq!(ran.calls, [Call::Send, Call::Send, Call::Send, Call::Close, Call::Farewell]);
    assert_eq!((ran.sum.sent, ran.sum.succeeded, ran.sum.bytes), (3, 3, 300));
    let phases = ran.totals.phases;
    assert_eq!((phases.write.sum_ns, phases.wait.sum_ns, phases.read.sum_ns), (30, 60, 120));
}

#[test]
fn a_connection_is_closed_after_a_response_that_ends_it_or_where_the_plan_keeps_none() {
    let mut plan = iterations(2);
    let closing = [Call::Send, Call::Close, Call::Send, Call::Close];
    assert_eq!(run(&plan, &[not_kept, not_kept]).calls[..4], closing);
    plan.connections = Connections::PerRequest;
    assert_eq!(run(&plan, &[kept, kept]).calls[..4], closing);
}

#[test]
fn a_request_on_a_kept_connection_that_breaks_is_sent_again_and_counts_once() {
    let ran = run(&iterations(2), &[kept, broken_as_idle, kept]);
    assert_eq!(ran.calls[..4], [Call::Send, Call::Send, Call::Close, Call::Send]);
    assert_eq!((ran.sum.repeated, ran.sum.sent, ran.sum.succeeded), (1, 2, 2));
    assert_eq!((ran.sum.errors.total(), ran.totals.phases.write.count), (0, 2));
}

#[test]
fn a_request_is_not_sent_a_third_time() {
    let ran = run(&iterations(2), &[kept, broken_as_idle, reset]);
    assert_eq!(ran.calls[..5], [Call::Send, Call::Send, Call::Close, Call::Send, Call::Close]);
    assert_eq!((ran.sum.repeated, ran.sum.sent, ran.sum.succeeded), (1, 2, 1));
    assert_eq!((ran.sum.errors.reset, ran.sum.errors.total()), (1, 1));
}

#[test]
fn what_the_server_may_have_processed_is_sent_again_only_if_it_is_idempotent() {
    let cases: [(&str, Retry, Play, u64); 8] = [
        ("GET", Retry::Idempotent, broken_as_idle, 1),
        ("PUT", Retry::Idempotent, broken_as_idle, 1),
        ("POST", Retry::Idempotent, broken_as_idle, 0),
        ("PATCH", Retry::Idempotent, broken_as_idle, 0),
        ("GETS", Retry::Idempotent, broken_as_idle, 0),
        ("GET", Retry::Never, broken_as_idle, 0),
        ("POST", Retry::Idempotent, unprocessed, 1),
        ("POST", Retry::Never, unprocessed, 0),
    ];
    for (method, retry, play, repeated) in cases {
        let mut plan = LoadPlan { retry, ..iterations(2) };
        plan.scenarios[0].flows[0].steps[0].request.method = method.into();
        let script: &[Play] = if repeated == 0 { &[kept, play] } else { &[kept, play, kept] };
        let sum = run(&plan, script).sum;
        let expected = (2, repeated, 1 + repeated, 1 - repeated);
        assert_eq!((sum.sent, sum.repeated, sum.succeeded, sum.errors.reset), expected, "{method} {retry:?}");
    }
}

#[test]
fn a_request_of_which_nothing_was_sent_is_sent_once_whatever_it_is() {
    for retry in [Retry::Idempotent, Retry::Never] {
        let mut plan = LoadPlan { retry, ..iterations(2) };
        plan.scenarios[0].flows[0].steps[0].request.method = "POST".into();
        let sum = run(&plan, &[kept, unsent, kept]).sum;
        assert_eq!((sum.sent, sum.repeated, sum.succeeded, sum.errors.total()), (2, 0, 2, 0));
    }
}

#[test]
fn a_request_that_could_not_be_sent_again_is_not_repeated() {
    let ran = run(&iterations(2), &[kept, broken_as_idle, refused]);
    assert_eq!((ran.sum.sent, ran.sum.repeated, ran.sum.errors.connect), (2, 0, 1));
}

#[test]
fn a_timeout_closes_the_connection_and_counts_the_bytes_that_came() {
    let plan = LoadPlan { timeout: Duration::from_millis(1), ..iterations(2) };
    let ran = run(&plan, &[begun_and_no_more, kept]);
    assert_eq!(ran.calls[..3], [Call::Send, Call::Close, Call::Send]);
    assert_eq!((ran.sum.errors.timeout, ran.sum.errors.total(), ran.sum.succeeded), (1, 1, 1));
    assert_eq!(ran.sum.bytes, 107);
}

#[test]
fn a_request_without_a_response_when_the_drain_ends_has_timed_out() {
    let mut plan = plan(LoadModel::ConstantVus { vus: 1, duration: Duration::from_millis(1) });
    plan.drain = Duration::from_millis(1);
    let ran = run(&plan, &[begun_and_no_more]);
    assert_eq!((ran.sum.sent, ran.sum.errors.timeout, ran.totals.undrained, ran.sum.cut), (1, 1, 1, 0));
    assert_eq!(ran.calls.last(), Some(&Call::Farewell));
}

#[test]
fn a_response_while_the_request_is_being_sent_counts_and_has_no_phases() {
    let ran = run(&iterations(2), &[response_while_sending, kept]);
    assert_eq!(ran.calls[..3], [Call::Send, Call::Close, Call::Send]);
    assert_eq!((ran.sum.succeeded, ran.sum.errors.total()), (2, 0));
    assert_eq!((ran.totals.phases.write.count, ran.totals.phases.read.count), (1, 1));
}

#[test]
fn a_user_whose_connection_is_refused_pauses_for_longer_each_time_until_a_response() {
    with_worker(&iterations(9), &[refused, refused, refused, kept], |mut worker, _, _| {
        worker.tick(worker.shared.start_ns());
        let mut pauses = Vec::new();
        for _ in 0..3 {
            let begun_ns = worker.shared.clock.now_ns();
            worker.fire(worker.timers.next_ns());
            assert_eq!(worker.users[0].activity, Activity::Waiting);
            assert!(worker.timers.next_ns() >= begun_ns + worker.users[0].back_off_ns);
            pauses.push(worker.users[0].back_off_ns);
        }
        assert_eq!(pauses, [10 * MS_NS, 20 * MS_NS, 40 * MS_NS]);
        let (due_ns, slot) = worker.timers.pop(i64::MAX).unwrap();
        worker.progress = super::Progress::Draining { until_ns: i64::MAX };
        worker.begin(slot, due_ns);
        worker.apply_events();
        assert_eq!((worker.users[0].back_off_ns, worker.users[0].activity), (0, Activity::Resting));
    });
}

#[test]
fn a_connection_that_closes_between_requests_is_no_connection_for_the_next_arrival() {
    with_worker(&iterations(1), &[kept], |mut worker, _, _| {
        worker.users[0].is_connected = true;
        worker.transport.events.push_back((0, Event::Closed));
        worker.apply_events();
        assert!(!worker.users[0].is_connected);
    });
}

#[test]
fn lateness_is_what_this_program_adds_before_a_request_is_sent() {
    with_worker(
        &iterations(1),
        &[|now| vec![Event::Sent { at_ns: now + 9, delay_ns: 3 * MS_NS }]],
        |mut worker, messages, _| {
            let intended_ns = worker.shared.clock.now_ns() - 5 * MS_NS;
            worker.begin(0, intended_ns);
            worker.apply_events();
            let user = &worker.users[0];
            let lateness_ns = (user.begun_ns - intended_ns + 3 * MS_NS) as u128;
            assert_eq!(user.sent_ns, user.begun_ns + 9);
            worker.close_second();
            let Ok(Message::Second(second)) = messages.try_recv() else { panic!("a second was closed") };
            let lateness = &second.rows[0].lateness;
            assert_eq!((lateness.count(), lateness.sum_ns()), (1, lateness_ns));
        },
    );
}
