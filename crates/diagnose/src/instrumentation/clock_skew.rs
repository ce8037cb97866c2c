//! `clock-skew`: the clocks of two services differ.
//!
//! A call begins before its handling and ends after it. From each pair of a client span and the server span below it
//! follows an interval for the offset of the callee's clock: the server span cannot be earlier than the call, nor
//! later. When zero lies outside of that interval, by more than the slack, in most calls between two services, their
//! clocks differ. The estimate is the median of the intervals' middles, as NTP (RFC 5905) takes the way there and back
//! to be equally long. A server span that outlasts its call goes on after the response and says nothing about clocks.

use std::collections::BTreeMap;

use narrows_model::caveat::{DifferentClocks, Skew, TrialCaveat};
use narrows_model::trace::{Forest, Span, SpanKind, Trace};
use narrows_model::units;

use super::Trap;
use super::scene::{Scene, example, example_text};
use crate::stats::median;
use crate::thresholds::Thresholds;

/// See the module.
pub(super) struct ClockSkew;

/// Bounds of the offset of a callee's clock, from a call: how far that is ahead, nanoseconds.
struct Bounds<'a> {
    least_ns: f64,
    most_ns: f64,
    call: (&'a Trace, &'a Span, &'a Span),
}

impl Bounds<'_> {
    fn middle_ns(&self) -> f64 {
        f64::midpoint(self.least_ns, self.most_ns)
    }

    fn is_impossible(&self, slack_ns: f64) -> bool {
        self.least_ns > slack_ns || self.most_ns < -slack_ns
    }
}

/// The calls of a pair of services whose clocks differ.
struct ClockDifference<'c, 'a> {
    ahead_ns: f64,
    spread_ns: f64,
    odd: usize,
    first: &'c Bounds<'a>,
}

/// The clocks that differ, those furthest apart first.
pub(super) fn skews(scene: &Scene<'_>) -> Vec<Skew> {
    let one = |((caller, callee), calls): ((&str, &str), Vec<Bounds<'_>>)| {
        let ahead_ns = differing(&calls, scene.thresholds)?.ahead_ns;
        Some(Skew { caller: caller.to_owned(), callee: callee.to_owned(), ahead_ns })
    };
    let mut skews: Vec<Skew> = pairs(scene).into_iter().filter_map(one).collect();
    skews.sort_by(|a, b| b.ahead_ns.abs().total_cmp(&a.ahead_ns.abs()));
    skews
}

impl Trap for ClockSkew {
    fn id(&self) -> &'static str {
        "clock-skew"
    }

    fn caveats(&self, scene: &Scene<'_>) -> Vec<TrialCaveat> {
        let pairs = pairs(scene).into_iter();
        pairs.filter_map(|((caller, callee), calls)| describe(caller, callee, &calls, scene)).collect()
    }
}

/// The calls from one service to another, by both.
fn pairs<'a>(scene: &Scene<'a>) -> BTreeMap<(&'a str, &'a str), Vec<Bounds<'a>>> {
    let mut pairs: BTreeMap<(&str, &str), Vec<Bounds<'_>>> = BTreeMap::new();
    for forest in scene.forests {
        for (client, server) in
            (0..forest.spans().len()).filter_map(|server| Some((call_of(forest, server)?, forest.span(server))))
        {
            pairs.entry((&client.service, &server.service)).or_default().push(Bounds {
                least_ns: server.end_ns.saturating_sub(client.end_ns) as f64,
                most_ns: server.start_ns.saturating_sub(client.start_ns) as f64,
                call: (forest.trace(), client, server),
            });
        }
    }
    pairs
}

/// The client span above a server span of another service that it could have waited for.
fn call_of<'a>(forest: &Forest<'a>, at: usize) -> Option<&'a Span> {
    let server = forest.span(at);
    let client = forest.span(forest.parent(at).filter(|_| server.kind == SpanKind::Server)?);
    let is_call = client.kind == SpanKind::Client && client.service != server.service;
    (is_call && server.duration_ns() > 0 && server.duration_ns() <= client.duration_ns()).then_some(client)
}

fn differing<'c, 'a>(calls: &'c [Bounds<'a>], thresholds: &Thresholds) -> Option<ClockDifference<'c, 'a>> {
    let mut odd = calls.iter().filter(|call| call.is_impossible(thresholds.skew_slack_ns));
    let first = odd.next()?;
    let odd = 1 + odd.count();
    let ahead_ns = median(calls.iter().map(Bounds::middle_ns).collect())?;
    let spread_ns = median(calls.iter().map(|call| (call.middle_ns() - ahead_ns).abs()).collect())?;
    let is_regular =
        calls.len() >= thresholds.skew_calls && odd as f64 >= thresholds.skew_call_share * calls.len() as f64;
    let is_it = is_regular && ahead_ns.abs() > thresholds.skew_slack_ns;
    is_it.then_some(ClockDifference { ahead_ns, spread_ns, odd, first })
}

fn describe(caller: &str, callee: &str, calls: &[Bounds<'_>], scene: &Scene<'_>) -> Option<TrialCaveat> {
    let ClockDifference { ahead_ns, spread_ns, odd, first } = differing(calls, scene.thresholds)?;
    let (trace, client, server) = first.call;
    Some(TrialCaveat::DifferentClocks(DifferentClocks {
        caller: caller.to_owned(),
        callee: callee.to_owned(),
        ahead_ns,
        spread_ns,
        calls: calls.len(),
        impossible: odd,
        example: example(trace, &[client, server]),
    }))
}

/// Text of the caveat.
pub(crate) fn text(clocks: &DifferentClocks) -> String {
    let DifferentClocks { caller, callee, ahead_ns, spread_ns, calls, impossible, example } = clocks;
    format!(
        "The clock of {callee} is about {} {} that of {caller} (± {} over {} calls): in {} of {} calls {callee}'s \
         span lies outside the call that it handles. The lengths of spans are right, but waits between the two \
         services and the order of their spans are wrong. Keep the clocks together (chrony, one time source for all \
         machines and containers), or compare only spans of one service. {}",
        units::duration(ahead_ns.abs()),
        if *ahead_ns < 0.0 { "behind" } else { "ahead of" },
        units::duration(*spread_ns),
        units::count(*calls as u64),
        units::count(*impossible as u64),
        units::count(*calls as u64),
        example_text(example)
    )
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{client, server};

    use super::super::scene::tests::{assert_one, caveats, traces};
    use super::*;

    /// A call from 1 ms to 11 ms, handled from `start_ms` on.
    fn handled(start_ms: f64, length_ms: f64) -> Vec<Trace> {
        let stock = server("stock", "GET /stock").at(start_ms, length_ms);
        traces(&server("shop", "GET /").at(0.0, 20.0).child(client("GET").at(1.0, 10.0).child(stock)))
    }

    #[test]
    fn a_callee_that_responds_before_it_is_called_is_behind() {
        let said = caveats(&ClockSkew, handled(-10.0, 8.0));
        assert_one(&said, &["clock of stock is about 12.0 ms behind that of shop", "in 30 of 30 calls", "± 0 ns"]);
    }

    #[test]
    fn a_callee_that_ends_after_its_call_is_ahead() {
        assert_one(&caveats(&ClockSkew, handled(31.0, 8.0)), &["about 29.0 ms ahead of that of shop"]);
    }

    #[test]
    fn what_fits_into_its_call_or_nearly_so_is_in_order() {
        for (start_ms, length_ms) in [(1.5, 8.0), (1.0, 10.0), (0.5, 9.0), (2.5, 9.0)] {
            assert_eq!(caveats(&ClockSkew, handled(start_ms, length_ms)), [""; 0], "{start_ms} {length_ms}");
        }
    }

    #[test]
    fn what_goes_on_after_its_response_says_nothing_about_clocks() {
        assert_eq!(caveats(&ClockSkew, handled(2.0, 400.0)), [""; 0]);
    }

    #[test]
    fn a_few_odd_calls_are_no_skew() {
        let mut calls = handled(2.0, 8.0);
        for trace in calls.iter_mut().take(10) {
            trace.spans[2].start_ns += 50_000_000;
            trace.spans[2].end_ns += 50_000_000;
        }
        assert_eq!(caveats(&ClockSkew, calls), [""; 0]);
        assert_eq!(caveats(&ClockSkew, handled(-10.0, 8.0).split_off(25)), [""; 0], "five calls");
    }

    #[test]
    fn each_pair_of_services_is_reported_for_itself() {
        let of = |service: &str, ms: f64| client("GET").at(1.0, 10.0).child(server(service, "GET /x").at(ms, 5.0));
        let root = server("shop", "GET /").at(0.0, 20.0).child(of("stock", -20.0)).child(of("price", 3.0));
        assert_one(&caveats(&ClockSkew, traces(&root)), &["clock of stock"]);
    }
}
