//! Two systems of twelve services, each of which may have a fault: what their traces look like.

use narrows_model::evidence::RunEvidence;
use narrows_model::trace::Trace;
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::random::Random;
use narrows_testkit::spans::{SpanBuilder, client, server};
use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

/// Fault of a service.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Each request takes so many milliseconds more.
    Delay(f64),
    /// Its own time is that many times as long, for a neighbour burns its CPU.
    Burn(f64),
    /// One request in three waits for the rest of a period of 100 ms.
    Quota,
    /// One request in five fails at once.
    Exceptions,
    /// As every other service, it fails one request in two hundred.
    Sporadic,
    /// It returns without calling others.
    EarlyReturn,
    /// It makes each of its calls four times.
    RepeatedCalls,
}

/// Twelve services: who calls whom, and whether a service makes its calls at the same time.
pub(crate) struct System {
    /// By service, in the order of [`NAMES`].
    pub(crate) calls: [&'static [usize]; 12],
    is_parallel: [bool; 12],
}

/// The services of both.
pub(crate) const NAMES: [&str; 12] = [
    "frontend",
    "cart",
    "catalogue",
    "checkout",
    "payment",
    "shipping",
    "currency",
    "email",
    "search",
    "stock",
    "accounts",
    "quotes",
];

/// A tree, each service with its calls one after another.
pub(crate) const SHOP: System = System {
    calls: [&[1, 2, 3], &[9], &[8, 9], &[4, 5, 6, 7], &[10], &[11], &[], &[], &[9], &[], &[], &[6]],
    is_parallel: [false; 12],
};

/// A gateway that asks six at the same time, over two more levels.
pub(crate) const TRAVEL: System = System {
    calls: [&[1, 2, 3, 4, 5, 6], &[7], &[7, 8], &[9], &[10], &[], &[11], &[], &[11], &[], &[], &[]],
    is_parallel: [true, false, true, false, false, false, false, false, false, false, false, false],
};

/// One request of a system, one service of which has a fault.
struct Request<'s> {
    system: &'s System,
    faulty: usize,
    fault: Fault,
    random: Random,
}

impl Request<'_> {
    /// The handling of a request by a service from an instant on, how long it takes, and whether it fails.
    fn handled(&mut self, service: usize, start_ms: f64) -> (SpanBuilder, f64, bool) {
        let fault = if service == self.faulty { self.fault } else { Fault::None };
        let mut own_ms = self.random.around(2.0 + service as f64 / 3.0, 0.2) + self.random.exponential(0.7);
        match fault {
            Fault::Delay(more_ms) => own_ms += more_ms,
            Fault::Burn(times) => own_ms *= times,
            Fault::Quota if self.random.unit() < 0.33 => own_ms += self.random.between(10.0, 90.0),
            _ => {}
        }
        let mut has_failed = match fault {
            Fault::Exceptions => self.random.unit() < 0.2,
            _ if self.fault == Fault::Sporadic => self.random.unit() < 0.005,
            _ => false,
        };
        let (mut now_ms, mut end_ms, mut children) = (start_ms + own_ms / 2.0, start_ms + own_ms / 2.0, Vec::new());
        let times = if fault == Fault::RepeatedCalls { 4 } else { 1 };
        let callees = self.system.calls[service].iter().flat_map(|callee| std::iter::repeat_n(*callee, times));
        for callee in callees.filter(|_| !has_failed_or_returned(has_failed, fault)).collect::<Vec<_>>() {
            let way_ms = self.random.between(0.1, 0.3);
            let (below, length_ms, failed) = self.handled(callee, now_ms + way_ms);
            let call = client("GET").service(NAMES[service]).at(now_ms, length_ms + 2.0 * way_ms).child(below);
            children.push(if failed { call.failed() } else { call });
            end_ms = end_ms.max(now_ms + length_ms + 2.0 * way_ms);
            if !self.system.is_parallel[service] {
                now_ms = end_ms;
            }
            if failed {
                has_failed = true;
                break;
            }
        }
        let length_ms = end_ms + own_ms / 2.0 - start_ms;
        let span = server(NAMES[service], &format!("GET /{}", NAMES[service])).at(start_ms, length_ms);
        let span = span.children(children);
        (if has_failed { span.failed() } else { span }, length_ms, has_failed)
    }
}

fn has_failed_or_returned(has_failed: bool, fault: Fault) -> bool {
    has_failed || fault == Fault::EarlyReturn
}

/// Eighty requests of a system.
pub(crate) fn side(system: &System, faulty: usize, fault: Fault, seed: u64) -> RunEvidence {
    let mut request = Request { system, faulty, fault, random: Random::new(seed) };
    let traces: Vec<Trace> = (0..80)
        .map(|number| request.handled(0, 0.0).0.trace_from(number, TRIAL_START_NS + i64::from(number) * 50_000_000))
        .collect();
    let trial = TrialBuilder::new("a").steady(10, Load { vus: 4, rate: 20.0, latency_ms: 60.0 }).traces(traces);
    run_of_trials([trial.build()])
}
