//! `impossible-durations`: spans that end before they begin, never end, or take no time at all.
//!
//! A single span of negative length is worth reporting: its clock was set back or its end was never recorded, and it
//! counts as zero everywhere. So is a call that goes on for an hour after the request that made it: nothing waits so long,
//! and only its time within the request counts. Spans of length zero are reported when there are many of them among calls and requests,
//! which nothing does in no time; that is mostly a clock that ticks in whole milliseconds, and then everything below
//! one is unknown.

use std::collections::BTreeMap;

use narrows_model::caveat::{EndlessCalls, NegativeDurations, TrialCaveat, ZeroDurations};
use narrows_model::trace::{Span, SpanKind, Trace};
use narrows_model::units;

use super::Trap;
use super::scene::{Scene, example, example_text, library, name_of};

const MILLISECOND_NS: i64 = 1_000_000;
/// How long after its request a call that was not waited for may end, nanoseconds.
const HOUR_NS: i64 = 3_600_000_000_000;

/// See the module.
pub(super) struct ImpossibleDurations;

impl Trap for ImpossibleDurations {
    fn id(&self) -> &'static str {
        "impossible-durations"
    }

    fn caveats(&self, scene: &Scene<'_>) -> Vec<TrialCaveat> {
        let mut services: BTreeMap<&str, Lengths<'_>> = BTreeMap::new();
        for (trace, span) in scene.spans() {
            services.entry(&span.service).or_default().add(trace, span);
        }
        let caveats = services.into_iter().flat_map(|(service, lengths)| {
            let negative = lengths.backwards.map(|example| lengths.describe_backwards(service, example));
            let is_many = lengths.zero >= scene.thresholds.zero_spans
                && lengths.zero as f64 >= scene.thresholds.zero_span_share * lengths.calls as f64;
            let zero = lengths.standing.filter(|_| is_many).map(|example| lengths.describe_zero(service, example));
            negative.into_iter().chain(zero)
        });
        caveats.chain(endless(scene)).collect()
    }
}

/// Calls that go on long after the request that made them, a caveat for each service.
fn endless(scene: &Scene<'_>) -> Vec<TrialCaveat> {
    let mut services: BTreeMap<&str, (usize, Vec<Example<'_>>)> = BTreeMap::new();
    for request in scene.requests {
        let calls = || request.queries.iter().map(|query| query.span).chain(request.other_calls.iter().copied());
        let is_endless = |call: &&Span| call.end_ns > request.entry.end_ns.saturating_add(HOUR_NS);
        let (all, found) = services.entry(&request.entry.service).or_default();
        *all += calls().count();
        found.extend(calls().filter(is_endless).map(|call| (request.trace, call)));
    }
    let described = services.into_iter().filter_map(|(service, (all, found))| {
        let (trace, span) = found.iter().copied().max_by_key(|(_, span)| span.duration_ns())?;
        Some(TrialCaveat::EndlessCalls(EndlessCalls {
            service: service.to_owned(),
            endless: found.len(),
            calls: all,
            longest_ns: span.duration_ns() as f64,
            scope: span.scope.clone(),
            span: name_of(span),
            example: example(trace, &[span]),
        }))
    });
    described.collect()
}

/// Text of the caveat on calls that go on long after their request.
pub(crate) fn endless_text(calls: &EndlessCalls) -> String {
    format!(
        "{} of {} calls of {} go on for more than an hour after the request that made them, the longest for {}. Only their \
         time up to the end of their request counts. Either a clock was set, or the end of the span was lost: look at how \
         {} ends the span {:?}. {}",
        units::count(calls.endless as u64),
        units::count(calls.calls as u64),
        calls.service,
        units::duration(calls.longest_ns),
        library(&calls.scope),
        calls.span,
        example_text(&calls.example)
    )
}

type Example<'a> = (&'a Trace, &'a Span);

/// The lengths of one service's spans.
#[derive(Default)]
struct Lengths<'a> {
    spans: usize,
    negative: usize,
    never_ended: usize,
    backwards: Option<Example<'a>>,
    /// Spans that are calls or requests.
    calls: usize,
    zero: usize,
    standing: Option<Example<'a>>,
    /// Times that are no whole millisecond.
    fine: usize,
}

impl<'a> Lengths<'a> {
    fn add(&mut self, trace: &'a Trace, span: &'a Span) {
        self.spans += 1;
        self.fine += usize::from(span.start_ns % MILLISECOND_NS != 0 || span.end_ns % MILLISECOND_NS != 0);
        if span.end_ns < span.start_ns {
            self.negative += 1;
            self.never_ended += usize::from(span.end_ns <= 0);
            self.backwards.get_or_insert((trace, span));
        }
        if span.kind != SpanKind::Internal {
            self.calls += 1;
            if span.end_ns == span.start_ns {
                self.zero += 1;
                self.standing.get_or_insert((trace, span));
            }
        }
    }

    fn describe_backwards(&self, service: &str, (trace, span): Example<'_>) -> TrialCaveat {
        TrialCaveat::NegativeDurations(NegativeDurations {
            service: service.to_owned(),
            negative: self.negative,
            never_ended: self.never_ended,
            spans: self.spans,
            scope: span.scope.clone(),
            span: name_of(span),
            example: example(trace, &[span]),
        })
    }

    fn describe_zero(&self, service: &str, (trace, span): Example<'_>) -> TrialCaveat {
        TrialCaveat::ZeroDurations(ZeroDurations {
            service: service.to_owned(),
            zero: self.zero,
            calls: self.calls,
            is_clock_coarse: self.fine == 0,
            example: example(trace, &[span]),
        })
    }
}

/// Text of the caveat on spans that end before they begin.
pub(crate) fn negative_text(found: &NegativeDurations) -> String {
    let never_ended = match found.never_ended {
        0 => String::new(),
        some => format!(" {} of them have no end at all.", units::count(some as u64)),
    };
    format!(
        "{} of {} spans of {} end before they begin and count as taking no time.{never_ended} Either the clock was set back \
         while they ran (use chrony, which slews it), or the program sets their end itself: look at how {} ends the span \
         {:?}. {}",
        units::count(found.negative as u64),
        units::count(found.spans as u64),
        found.service,
        library(&found.scope),
        found.span,
        example_text(&found.example)
    )
}

/// Text of the caveat on calls that take no time.
pub(crate) fn zero_text(found: &ZeroDurations) -> String {
    let why = if found.is_clock_coarse {
        "All of its times are whole milliseconds, so its clock is too coarse to measure shorter calls. Use a \
         tracing library that reads a clock of higher resolution."
    } else {
        "No call takes no time: their start and end are written at one moment, after the call. Start the span \
         before the work and end it after."
    };
    format!(
        "{} of {} calls and requests of {} take no time at all. {why} Their time shows as work of the span above them. {}",
        units::count(found.zero as u64),
        units::count(found.calls as u64),
        found.service,
        example_text(&found.example)
    )
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{SpanBuilder, client, internal, query, server};

    use super::super::scene::tests::{assert_one, caveats, traces};
    use super::*;

    fn caveats_of(child: SpanBuilder) -> Vec<String> {
        caveats(&ImpossibleDurations, traces(&server("shop", "GET /").at(0.0, 20.3).child(child)))
    }

    #[test]
    fn a_single_span_that_runs_backwards_is_reported() {
        let mut all = traces(&server("shop", "GET /").at(0.0, 20.0).child(client("GET").at(5.0, 2.0)));
        all[7].spans[1].end_ns = all[7].spans[1].start_ns - 1;
        assert_one(
            &caveats(&ImpossibleDurations, all.clone()),
            &["1 of 60 spans of shop end before they begin", "\"GET\""],
        );
        all[8].spans[1].end_ns = 0;
        assert_one(&caveats(&ImpossibleDurations, all), &["2 of 60 spans", "1 of them have no end at all"]);
    }

    #[test]
    fn a_call_that_goes_on_long_after_its_request_is_reported() {
        let mut all = traces(&server("shop", "GET /").at(0.0, 20.0).child(client("GET").at(5.0, 2.0)));
        all[7].spans[1].end_ns += 1_000 * HOUR_NS;
        assert_one(
            &caveats(&ImpossibleDurations, all),
            &[
                "1 of 30 calls of shop go on for more than an hour after the request",
                "\"GET\"",
                "up to the end of their",
            ],
        );
        let later = client("GET").at(5.0, 60_000.0);
        let background = traces(&server("shop", "GET /").at(0.0, 20.0).child(later));
        assert_eq!(caveats(&ImpossibleDurations, background), [""; 0], "work that goes on after the response");
    }

    #[test]
    fn many_calls_without_length_are_reported_with_the_likely_reason() {
        assert_one(
            &caveats_of(query("SELECT 1").at(5.0, 0.0)),
            &["30 of 60 calls and requests of shop", "at one moment"],
        );
        let coarse = traces(&server("shop", "GET /").at(0.0, 20.0).child(query("SELECT 1").at(5.0, 0.0)));
        assert_one(&caveats(&ImpossibleDurations, coarse), &["whole milliseconds"]);
    }

    #[test]
    fn marks_within_a_program_and_a_few_quick_calls_are_in_order() {
        assert_eq!(caveats_of(internal("http send").at(5.0, 0.0)), [""; 0]);
        assert_eq!(caveats_of(query("SELECT 1").at(5.0, 0.000_001)), [""; 0]);
        let mut few = traces(&server("shop", "GET /").at(0.0, 20.0).child(client("GET").at(5.0, 2.0)));
        few[0].spans[1].end_ns = few[0].spans[1].start_ns;
        assert_eq!(caveats(&ImpossibleDurations, few), [""; 0]);
    }
}
