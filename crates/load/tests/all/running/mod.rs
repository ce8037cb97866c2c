//! Plans for tests, and what a run of one came to.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use narrows_load::{Clock, LoadOutcome, run};
use narrows_model::load::{
    Connections, Cookies, ErrorKind, Flow, Iterations, LoadBatch, LoadModel, LoadPlan, LoadSecond, Protocol,
    RequestTemplate, Retry, Sample, Scenario, Segment, Step, Template, ThinkTime,
};

pub(crate) struct LoadRun {
    pub(crate) outcome: LoadOutcome,
    pub(crate) seconds: Vec<LoadSecond>,
    pub(crate) samples: Vec<Sample>,
}

impl LoadRun {
    /// Successes and failures.
    pub(crate) fn ended(&self) -> (u64, u64) {
        (self.outcome.totals.succeeded, self.outcome.totals.errors.total())
    }

    pub(crate) fn causes(&self) -> Vec<(ErrorKind, &str, u64)> {
        self.outcome.causes.iter().map(|cause| (cause.kind, cause.text.as_str(), cause.count)).collect()
    }
}

pub(crate) fn iterations(vus: u32, iterations: u64) -> LoadModel {
    LoadModel::Iterations { vus, iterations: Iterations::Shared(iterations), max_duration: None }
}

/// A template of text with `$N` for the variable of that number and `@N` for that column of the first data source.
pub(crate) fn template(text: &str) -> Template {
    let mut segments = Vec::new();
    for (index, part) in text.split_inclusive(['$', '@']).enumerate() {
        let before = text.split_inclusive(['$', '@']).take(index).last().and_then(|part| part.chars().last());
        let number = part.chars().next().and_then(|digit| digit.to_digit(10)).map(|digit| digit as usize);
        let rest = match (before, number) {
            (Some('$'), Some(number)) => {
                segments.push(Segment::Variable(number));
                &part[1..]
            }
            (Some('@'), Some(column)) => {
                segments.push(Segment::Field { source: 0, column });
                &part[1..]
            }
            _ => part,
        };
        segments.push(Segment::Text(rest.trim_end_matches(['$', '@']).to_owned()));
    }
    Template { segments }
}

/// A step that requests a path, named by it.
pub(crate) fn step(method: &str, path: &str) -> Step {
    let request = RequestTemplate {
        method: method.into(),
        path: template(path),
        headers: Vec::new(),
        body: None,
        host: "test".into(),
    };
    Step { name: path.into(), ..Step::new(request) }
}

/// A plan whose iterations are these steps.
pub(crate) fn plan(address: SocketAddr, model: LoadModel, steps: Vec<Step>) -> LoadPlan {
    let scenario = Scenario {
        name: "a".into(),
        model,
        warmup: Duration::ZERO,
        flows: vec![Flow { name: String::new(), weight: 1.0, steps }],
        cookies: Cookies::Ignored,
        think_time: ThinkTime::default(),
        pace: None,
    };
    LoadPlan {
        targets: vec![address],
        client_addresses: Vec::new(),
        protocol: Protocol::Http1,
        tls: None,
        scenarios: vec![scenario],
        data: Vec::new(),
        tracing: None,
        timeout: Duration::from_secs(20),
        drain: Duration::from_secs(20),
        retry: Retry::Idempotent,
        seed: 1,
        threads: 1,
        connections: Connections::KeepAlive,
    }
}

/// Runs a plan to its end and checks that every request is accounted for.
pub(crate) fn run_whole(plan: &LoadPlan) -> LoadRun {
    let (out, batches) = sync_channel::<LoadBatch>(1);
    let ran = std::thread::scope(|scope| {
        let reader = scope.spawn(move || batches.into_iter().collect::<Vec<_>>());
        let outcome = run(plan, Clock::new(), &AtomicBool::new(false), &out).unwrap();
        drop(out);
        let batches = reader.join().unwrap();
        let seconds = batches.iter().flat_map(|batch| batch.seconds.clone()).collect();
        let samples = batches.into_iter().flat_map(|batch| batch.samples).collect();
        LoadRun { outcome, seconds, samples }
    });
    let sum = |of: fn(&LoadSecond) -> u64| ran.seconds.iter().map(of).sum::<u64>();
    let (succeeded, failed) = ran.ended();
    assert_eq!((sum(|s| s.succeeded), sum(|s| s.errors.total())), (succeeded, failed));
    assert_eq!((sum(|s| s.latency.count()), sum(|s| s.bytes)), (succeeded, ran.outcome.totals.bytes));
    let by_cause: u64 = ran.outcome.causes.iter().map(|cause| cause.count).sum();
    assert_eq!(by_cause, failed - ran.outcome.totals.errors.status);
    ran
}

/// Decision of a test that observes a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onward {
    GoOn,
    Stop,
}

/// Runs a plan while a test looks at its seconds as they come.
pub(crate) fn run_watched(plan: &LoadPlan, mut watch: impl FnMut(&LoadSecond) -> Onward) -> LoadOutcome {
    let stop = AtomicBool::new(false);
    let (out, batches) = sync_channel::<LoadBatch>(1);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            // Whatever happens to the load, the batches end with it.
            let out = out;
            run(plan, Clock::new(), &stop, &out)
        });
        for second in batches.iter().flat_map(|batch| batch.seconds) {
            if watch(&second) == Onward::Stop {
                stop.store(true, Ordering::SeqCst);
            }
        }
        load.join().unwrap().unwrap()
    })
}

/// Lets a target die once it has responded, return once it was found dead, and ends the load once it has responded
/// again. Calls `exist` with whether the target is to be there.
pub(crate) fn die_and_return(plan: &mut LoadPlan, mut exist: impl FnMut(bool)) -> LoadOutcome {
    enum Act {
        Alive,
        Dead,
        Back,
    }
    plan.scenarios[0].model = LoadModel::ConstantVus { vus: 2, duration: Duration::from_secs(600) };
    plan.scenarios[0].think_time = Duration::from_millis(2).into();
    let mut act = Act::Alive;
    let outcome = run_watched(plan, |second| {
        match act {
            Act::Alive if second.succeeded > 0 => {
                exist(false);
                act = Act::Dead;
            }
            Act::Dead if second.errors.connect > 0 => {
                exist(true);
                act = Act::Back;
            }
            Act::Back if second.succeeded > 0 => return Onward::Stop,
            Act::Alive | Act::Dead | Act::Back => {}
        }
        Onward::GoOn
    });
    let errors = outcome.totals.errors;
    assert!(outcome.totals.succeeded > 0 && errors.connect > 0, "{:?}", outcome.causes);
    assert_eq!(errors.total(), errors.connect + errors.reset, "{:?}", outcome.causes);
    assert!(outcome.causes.iter().any(|cause| cause.text.contains("Connection refused")), "{:?}", outcome.causes);
    outcome
}
