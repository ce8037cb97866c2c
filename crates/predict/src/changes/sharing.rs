//! Requests that wait for the calls of another request, as behind a cache that shares one load among all that need it.
//!
//! Their traces show a long wait without a call. They are recognised by that: requests of the operation that make none of
//! the calls and yet spend more time of their own than those that do. Nothing proves what they wait for, so this is a case
//! of its own beside the one in which they gain nothing.

use super::Scene;
use super::fan_out::FanOut;
use crate::retime::{RetimedTrace, SampledTrace, is_entry_of};

/// The least wait, as a share of the time of the calls.
const WAIT_SHARE_MIN: f64 = 0.25;
/// Requests of each kind that have to be seen.
const REQUESTS_MIN: usize = 3;

/// Means over requests of one kind, nanoseconds.
#[derive(Debug, Default)]
struct Means {
    requests: usize,
    weight: f64,
    own_ns: f64,
    calls_ns: f64,
    saved_ns: f64,
}

impl Means {
    fn add(&mut self, weight: f64, own_ns: f64, calls_ns: f64, saved_ns: f64) {
        self.requests += 1;
        self.weight += weight;
        let part = weight / self.weight;
        self.own_ns += (own_ns - self.own_ns) * part;
        self.calls_ns += (calls_ns - self.calls_ns) * part;
        self.saved_ns += (saved_ns - self.saved_ns) * part;
    }
}

/// The requests with the gain of those that wait for the calls of others; `None` if no request seems to. Requests are in
/// the order of the sample's traces.
pub(super) fn with_gain_of_others(
    calls: &FanOut,
    scene: &Scene<'_>,
    retimed: &[RetimedTrace],
) -> Option<Vec<RetimedTrace>> {
    let (mut callers, mut others) = (Means::default(), Means::default());
    let kinds: Vec<Option<bool>> = scene.sample.traces.iter().map(|traced| makes_calls(calls, traced, scene)).collect();
    for ((traced, one), kind) in scene.sample.traces.iter().zip(retimed).zip(&kinds) {
        let Some(makes_calls) = kind else { continue };
        let own_ns = own_ns(calls, traced, scene);
        let calls_ns = calls.groups(traced, scene).iter().map(|group| group.span_ns(&traced.tree)).sum();
        let means = if *makes_calls { &mut callers } else { &mut others };
        means.add(one.weight, own_ns, calls_ns, one.old_ns - one.new_ns);
    }
    let wait_ns = others.own_ns - callers.own_ns;
    let is_seen = callers.requests >= REQUESTS_MIN && others.requests >= REQUESTS_MIN;
    if !is_seen || wait_ns < WAIT_SHARE_MIN * callers.calls_ns {
        return None;
    }
    let saved_ns = wait_ns * (callers.saved_ns / callers.calls_ns).clamp(0.0, 1.0);
    let gained = |(one, kind): (&RetimedTrace, &Option<bool>)| match kind {
        Some(false) => RetimedTrace { new_ns: (one.new_ns - saved_ns).max(0.0), ..*one },
        _ => *one,
    };
    Some(retimed.iter().zip(&kinds).map(gained).collect())
}

/// Whether a request of the operation makes the calls; `None` if the trace has no such request.
fn makes_calls(calls: &FanOut, traced: &SampledTrace<'_>, scene: &Scene<'_>) -> Option<bool> {
    entry(calls, traced).map(|_| !calls.groups(traced, scene).is_empty())
}

/// Time of the request in its own service, outside calls.
fn own_ns(calls: &FanOut, traced: &SampledTrace<'_>, scene: &Scene<'_>) -> f64 {
    let (tree, entry) = (&traced.tree, entry(calls, traced));
    let is_own = |at: &&usize| {
        tree.entry(**at) == entry
            && entry.is_some_and(|entry| scene.sample.names.place(tree, **at) == tree.span(entry).service)
    };
    tree.order.iter().filter(is_own).map(|at| tree.own_ns(*at)).sum()
}

fn entry(calls: &FanOut, traced: &SampledTrace<'_>) -> Option<usize> {
    traced.tree.entries().into_iter().find(|at| is_entry_of(traced.tree.span(*at), &calls.operation))
}
