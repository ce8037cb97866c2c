//! Plans for tests, and what a run of one came to.

#![allow(dead_code, reason = "each test binary uses its share")]

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use narrows_load::{Clock, LoadOutcome, run};
use narrows_model::load::{
    Connections, Cookies, ErrorKind, Flow, LoadBatch, LoadModel, LoadPlan, LoadSecond, Protocol, RequestTemplate,
    Sample, Scenario, Segment, Step, Template,
};

pub(crate) struct Ran {
    pub(crate) outcome: LoadOutcome,
    pub(crate) seconds: Vec<LoadSecond>,
    pub(crate) samples: Vec<Sample>,
}

impl Ran {
    /// Successes and failures.
    pub(crate) fn ended(&self) -> (u64, u64) {
        (self.outcome.totals.succeeded, self.outcome.totals.errors.total())
    }

    pub(crate) fn causes(&self) -> Vec<(ErrorKind, &str, u64)> {
        self.outcome.causes.iter().map(|cause| (cause.kind, cause.text.as_str(), cause.count)).collect()
    }
}

pub(crate) fn iterations(vus: u32, iterations: u64) -> LoadModel {
    LoadModel::SharedIterations { vus, iterations, max_duration: None }
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

/// A step that asks for a path, named by it.
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
        think_time: Duration::ZERO,
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
        seed: 1,
        threads: 1,
        connections: Connections::KeepAlive,
    }
}

/// Runs a plan to its end and checks that every request is accounted for.
pub(crate) fn run_whole(plan: &LoadPlan) -> Ran {
    let (out, batches) = sync_channel::<LoadBatch>(1);
    let ran = std::thread::scope(|scope| {
        let reader = scope.spawn(move || batches.into_iter().collect::<Vec<_>>());
        let outcome = run(plan, Clock::new(), &AtomicBool::new(false), &out).unwrap();
        drop(out);
        let batches = reader.join().unwrap();
        let seconds = batches.iter().flat_map(|batch| batch.seconds.clone()).collect();
        let samples = batches.into_iter().flat_map(|batch| batch.samples).collect();
        Ran { outcome, seconds, samples }
    });
    let sum = |of: fn(&LoadSecond) -> u64| ran.seconds.iter().map(of).sum::<u64>();
    let (succeeded, failed) = ran.ended();
    assert_eq!((sum(|s| s.succeeded), sum(|s| s.errors.total())), (succeeded, failed));
    assert_eq!((sum(|s| s.latency.count()), sum(|s| s.bytes)), (succeeded, ran.outcome.totals.bytes));
    let by_cause: u64 = ran.outcome.causes.iter().map(|cause| cause.count).sum();
    assert_eq!(by_cause, failed - ran.outcome.totals.errors.status);
    ran
}
