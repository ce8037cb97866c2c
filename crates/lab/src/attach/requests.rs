//! Requests of a load that others send, counted from spans as they arrive, whatever system they come from.
//!
//! A server span that no other span caused is one request, in the second that it began; it counts under its service (as
//! the scenario) and its name (as the request). Spans that continue a trace from elsewhere cannot be told from calls
//! within the system, so they count only for the service that is named as the one taking requests. Where no server span
//! arrived at all, as from tracers that do not say kinds, the roots of traces are the requests.
//!
//! A sampled span stands for as many requests as its weight says. A span that comes twice, from a sender that tried again
//! or in two files, is one request, as it is one span in the run file.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use narrows_model::caveat::{RequestBasis, TrialCaveat};
use narrows_model::load::LoadSecond;
use narrows_model::run::Window;
use narrows_model::series::{LogLine, Point, SeriesKey};
use narrows_model::trace::{Span, SpanKind};
use narrows_telemetry::{Receipt, Store};

use crate::attach::intervals::Intervals;
use crate::counting::{Lane, RecentRequests, hand_on};

const SECOND_NS: i64 = 1_000_000_000;
/// Different requests that are told apart; names beyond them share one.
const REQUESTS_MAX: usize = 100;
const OTHERS: &str = "others";
/// Maximum number of rows over all requests; requests that would need a further one are not counted.
const ROWS_MAX: usize = 200_000;
/// Number of rows from which those older than `RECENT_S` are merged into minutes.
const SECOND_ROWS_MAX: usize = 20_000;
const RECENT_S: i64 = 600;
const MINUTE_S: i64 = 60;

/// Stands before the run file and counts what passes.
pub(super) struct Requests {
    inner: Arc<dyn Store>,
    tally: Mutex<Tally>,
}

/// How spans became requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Basis {
    /// Server spans without a parent.
    Roots,
    /// Server spans of the target with a parent.
    Continued,
    /// Spans of any kind without a parent.
    AnyRoots,
}

#[derive(Debug)]
struct Tally {
    target: Option<String>,
    /// Where seconds begin.
    origin_ns: i64,
    lanes: BTreeMap<(Basis, String, String), Lane>,
    rows: usize,
    /// Start of the first second that is not merged into a minute.
    minutes_to: i64,
    left_out: u64,
    servers: u64,
    known: RecentRequests,
    intervals: Intervals,
    others: Intervals,
}

/// Counts.
#[derive(Debug)]
pub(super) struct RequestCounts {
    /// Rows of the windows' seconds; those without requests too.
    pub(super) seconds: Vec<LoadSecond>,
    /// The spans that they are counted from.
    pub(super) caveat: TrialCaveat,
}

impl Requests {
    /// Passes everything on to `inner`. Seconds begin at `origin_ns`; `target` is the service that receives the
    /// requests, if it was given. Requests in `known` do not count again.
    pub(super) fn before(inner: Arc<dyn Store>, origin_ns: i64, target: Option<String>, known: RecentRequests) -> Self {
        let tally = Tally {
            target,
            origin_ns,
            lanes: BTreeMap::new(),
            rows: 0,
            minutes_to: i64::MIN,
            left_out: 0,
            servers: 0,
            known,
            intervals: Intervals::default(),
            others: Intervals::default(),
        };
        Self { inner, tally: Mutex::new(tally) }
    }

    /// When there were spans, in intervals without a long pause; points and lines count where there is no span.
    pub(super) fn intervals(&self) -> Intervals {
        let tally = self.lock();
        if tally.intervals.is_empty() { tally.others.clone().of_samples() } else { tally.intervals.clone() }
    }

    /// The requests in these windows.
    pub(super) fn counted(&self, windows: &[Window]) -> RequestCounts {
        self.lock().counted(windows)
    }

    fn lock(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tally {
    fn add(&mut self, span: &Span) {
        self.intervals.add(span.start_ns, span.end_ns);
        self.servers += u64::from(span.kind == SpanKind::Server);
        let Some(basis) = self.basis(span) else { return };
        let candidate = self.known.candidate(span);
        if !self.known.is_new(candidate) {
            return;
        }
        let second = span.start_ns.saturating_sub(self.origin_ns).div_euclid(SECOND_NS);
        let row = if second < self.minutes_to { minute_of(second) } else { second };
        let key = self.key(basis, span);
        let lane = self.lanes.entry(key).or_default();
        let is_new = !lane.seconds.contains_key(&row);
        if is_new && self.rows >= ROWS_MAX {
            self.left_out += 1;
            return;
        }
        self.rows += usize::from(is_new);
        lane.add(row, candidate);
        if is_new {
            let lanes = self.lanes.len();
            self.lanes.values_mut().for_each(|lane| lane.fold(lanes));
            self.merge_old_seconds(second);
        }
    }

    /// Merges old seconds into minutes once there are many rows, so that memory stays level for hours. All requests are
    /// merged up to the same second: their rows of one time then have one length.
    fn merge_old_seconds(&mut self, newest: i64) {
        let to = minute_of(newest.saturating_sub(RECENT_S));
        if self.rows <= SECOND_ROWS_MAX || to <= self.minutes_to {
            return;
        }
        self.lanes.values_mut().for_each(|lane| lane.merge_seconds(to, minute_of));
        self.minutes_to = to;
        self.rows = self.lanes.values().map(|lane| lane.seconds.len()).sum();
    }

    fn length_s(&self, row: i64) -> i64 {
        if row < self.minutes_to { MINUTE_S } else { 1 }
    }

    fn basis(&self, span: &Span) -> Option<Basis> {
        let is_target = self.target.as_ref().is_none_or(|target| *target == span.service);
        match (span.kind, span.parent_id) {
            _ if !is_target => None,
            (SpanKind::Server, None) => Some(Basis::Roots),
            (SpanKind::Server, Some(_)) => self.target.is_some().then_some(Basis::Continued),
            (_, None) => Some(Basis::AnyRoots),
            _ => None,
        }
    }

    fn key(&self, basis: Basis, span: &Span) -> (Basis, String, String) {
        let own = (basis, span.service.clone(), span.name.clone());
        match self.lanes.len() < REQUESTS_MAX || self.lanes.contains_key(&own) {
            true => own,
            false => (basis, OTHERS.to_owned(), OTHERS.to_owned()),
        }
    }

    fn counted(&mut self, windows: &[Window]) -> RequestCounts {
        let lanes = std::mem::take(&mut self.lanes);
        let has = |basis| lanes.keys().any(|(of, ..)| *of == basis);
        let basis = match self.servers {
            0 => Basis::AnyRoots,
            _ if has(Basis::Roots) => Basis::Roots,
            _ => Basis::Continued,
        };
        let mut rows = BTreeMap::new();
        for ((_, scenario, request), lane) in lanes.into_iter().filter(|((of, ..), _)| *of == basis) {
            for (second, row) in lane.seconds {
                if let Some((start_ns, length_ns)) = windows.iter().find_map(|window| self.cut(second, window)) {
                    let key = (start_ns, scenario.clone(), request.clone());
                    let (scenario, request) = (scenario.clone(), request.clone());
                    rows.insert(key, LoadSecond { scenario, request, start_ns, length_ns, ..row.into() });
                }
            }
        }
        let requests: u64 = rows.values().map(|row| row.sent).sum();
        self.fill_silence(windows, &mut rows);
        RequestCounts { seconds: rows.into_values().collect(), caveat: self.caveat(basis, requests) }
    }

    /// Start and length of the part of a row's time that lies in a window. The length is 0 in a momentary window: a
    /// rate over the time from its first request to its last would be meaningless.
    fn cut(&self, second: i64, window: &Window) -> Option<(i64, i64)> {
        let second_ns = self.origin_ns.saturating_add(second.saturating_mul(SECOND_NS));
        let start_ns = second_ns.max(window.start_ns);
        let end_ns = second_ns.saturating_add(self.length_s(second) * SECOND_NS).min(window.end_ns);
        (start_ns < end_ns).then(|| (start_ns, if is_moment(window) { 0 } else { end_ns - start_ns }))
    }

    /// A second without a request is a second all the same: rates are over all of them.
    fn fill_silence(&self, windows: &[Window], rows: &mut BTreeMap<(i64, String, String), LoadSecond>) {
        let Some((_, scenario, request)) = rows.keys().next().cloned() else { return };
        let mut room = ROWS_MAX;
        for window in windows.iter().filter(|window| !is_moment(window)) {
            let first = window.start_ns.saturating_sub(self.origin_ns).div_euclid(SECOND_NS);
            let first = if first < self.minutes_to { minute_of(first) } else { first };
            let rows_of_time = std::iter::successors(Some(first), |row| Some(row + self.length_s(*row)));
            for (start_ns, length_ns) in rows_of_time.map_while(|row| self.cut(row, window)) {
                if room == 0 {
                    return;
                }
                let from = (start_ns, String::new(), String::new());
                let is_silent = rows.range(from..).next().is_none_or(|((at, ..), _)| *at != start_ns);
                if is_silent {
                    let (scenario, request) = (scenario.clone(), request.clone());
                    let key = (start_ns, scenario.clone(), request.clone());
                    rows.insert(key, LoadSecond { scenario, request, start_ns, length_ns, ..LoadSecond::default() });
                    room -= 1;
                }
            }
        }
    }

    fn caveat(&self, basis: Basis, requests: u64) -> TrialCaveat {
        let basis = match basis {
            Basis::Roots => RequestBasis::Roots,
            Basis::Continued => RequestBasis::Continued,
            Basis::AnyRoots => RequestBasis::AnyRoots,
        };
        let (service, left_out, has_server_spans) = (self.target.clone(), self.left_out, self.servers > 0);
        TrialCaveat::RequestsOfOthers { requests, service, basis, left_out, has_server_spans }
    }
}

/// The first second of a second's minute.
fn minute_of(second: i64) -> i64 {
    second.div_euclid(MINUTE_S).saturating_mul(MINUTE_S)
}

/// Whether a window is too short for a rate (a moment).
fn is_moment(window: &Window) -> bool {
    window.end_ns.saturating_sub(window.start_ns) < SECOND_NS
}

impl Store for Requests {
    fn spans(&self, spans: Vec<Span>) -> Receipt {
        let mut counted: Vec<Span> = Vec::with_capacity(spans.len());
        counted.extend(spans.iter().map(without_details));
        let (receipt, counts) = hand_on(&*self.inner, spans);
        if counts {
            let mut tally = self.lock();
            counted.iter().for_each(|span| tally.add(span));
        }
        receipt
    }

    fn points(&self, points: Vec<(SeriesKey, Point)>) -> Receipt {
        let mut tally = self.lock();
        points.iter().for_each(|(_, point)| tally.others.add(point.time_ns, point.time_ns));
        drop(tally);
        self.inner.points(points)
    }

    fn logs(&self, lines: Vec<LogLine>) -> Receipt {
        let mut tally = self.lock();
        lines.iter().for_each(|line| tally.others.add(line.time_ns, line.time_ns));
        drop(tally);
        self.inner.logs(lines)
    }
}

/// Part of a span that counting needs.
fn without_details(span: &Span) -> Span {
    let facts = narrows_model::trace::SpanFacts { http_status: span.facts.http_status, ..Default::default() };
    Span {
        trace_id: span.trace_id,
        span_id: span.span_id,
        parent_id: span.parent_id,
        service: span.service.clone(),
        scope: String::new(),
        name: span.name.clone(),
        kind: span.kind,
        start_ns: span.start_ns,
        end_ns: span.end_ns,
        status: span.status,
        status_message: String::new(),
        facts,
        attributes: Default::default(),
        weight: span.weight,
    }
}

#[cfg(test)]
mod tests {
    use narrows_diagnose::words::trial_caveat;
    use narrows_model::run::WindowKind;
    use narrows_telemetry::StoreError;

    use super::*;
    use crate::counting::testing::{Door, server_span};

    fn span(service: &str, kind: SpanKind, parent: Option<u8>, at_s: f64) -> Span {
        Span { kind, ..server_span(service, parent, (at_s * 1e9) as i64) }
    }

    fn window(from_s: i64, to_s: i64) -> Window {
        let (start_ns, end_ns) = (from_s * SECOND_NS, to_s * SECOND_NS);
        Window {
            index: 0,
            kind: WindowKind::Steady,
            label: String::new(),
            start_ns,
            end_ns,
            drained_ns: None,
            vus: 0,
            rate: None,
        }
    }

    fn count(target: Option<&str>, spans: Vec<Span>) -> RequestCounts {
        let requests = Requests::before(Arc::new(Door(true)), 0, target.map(str::to_owned), RecentRequests::default());
        drop(requests.spans(spans));
        requests.counted(&[window(10, 14)])
    }

    fn sums(counted: &RequestCounts) -> Vec<(i64, &str, &str, u64)> {
        counted
            .seconds
            .iter()
            .map(|row| (row.start_ns / SECOND_NS, row.scenario.as_str(), row.request.as_str(), row.sent))
            .collect()
    }

    use SpanKind::{Client, Internal, Server};

    #[test]
    fn roots_of_servers_count_by_service_and_name_in_the_window_and_silence_counts_as_time() {
        let counted = count(
            None,
            vec![
                span("web", Server, None, 10.2),
                span("web", Server, None, 10.9),
                span("api", Server, None, 13.0),
                span("store", Server, Some(9), 10.3),
                span("web", Client, None, 10.3),
                span("web", Server, None, 9.9),
                span("web", Server, None, 14.1),
            ],
        );
        let expected = [
            (10, "web", "GET /web", 2),
            (11, "web", "GET /web", 0),
            (12, "web", "GET /web", 0),
            (13, "api", "GET /api", 1),
        ];
        assert_eq!(sums(&counted), expected);
        assert!(
            trial_caveat(&counted.caveat)
                .contains("its 3 requests are counted from the server spans that no other span caused")
        );
    }

    /// The imported spans: start and length of each row in milliseconds, and its requests.
    fn imported(spans: Vec<Span>) -> Vec<(i64, i64, u64)> {
        let requests = Requests::before(Arc::new(Door(true)), 0, None, RecentRequests::default());
        drop(requests.spans(spans));
        let (windows, _) = requests.intervals().windows();
        let row = |row: &LoadSecond| (row.start_ns / 1_000_000, row.length_ns / 1_000_000, row.sent);
        requests.counted(&windows).seconds.iter().map(row).collect()
    }

    #[test]
    fn seconds_are_cut_where_what_was_imported_begins_and_ends() {
        let web = |at_s: f64| span("web", Server, None, at_s);
        let rows = imported(vec![web(10.6), web(10.7), web(12.9)]);
        assert_eq!(rows, [(10_600, 400, 2), (11_000, 1_000, 0), (12_000, 905, 1)]);
    }

    #[test]
    fn a_moment_has_requests_and_no_time() {
        let web = |at_s: f64| span("web", Server, None, at_s);
        assert_eq!(imported(vec![web(10.6)]), [(10_600, 0, 1)]);
        assert_eq!(imported(vec![web(10.6), web(11.2)]), [(10_600, 0, 1), (11_000, 0, 1)]);
        assert_eq!(imported(vec![web(10.6), web(200.0)]), [(10_600, 0, 1), (200_000, 0, 1)]);
    }

    #[test]
    fn hours_of_many_requests_take_few_rows_and_all_are_counted() {
        const SECONDS: i64 = 8_000;
        let requests = Requests::before(Arc::new(Door(true)), 0, None, RecentRequests::default());
        let named = |n: i64, at_s: i64| Span { name: format!("GET /{n}"), ..span("web", Server, None, at_s as f64) };
        for second in (0..SECONDS).filter(|second| !(3_000..3_200).contains(second)) {
            drop(requests.spans((0..30).map(|n| named(n, second)).collect()));
        }
        let rows_max = 30 * (RECENT_S + MINUTE_S + SECONDS / MINUTE_S);
        assert!(requests.lock().rows as i64 <= rows_max, "{} > {rows_max}", requests.lock().rows);
        drop(requests.spans(vec![named(0, 7)]));
        let rows = requests.counted(&[window(0, SECONDS)]).seconds;
        assert_eq!(rows.iter().map(|row| row.sent).sum::<u64>(), (SECONDS as u64 - 200) * 30 + 1);
        let lengths: BTreeMap<i64, i64> = rows.iter().map(|row| (row.start_ns, row.length_ns)).collect();
        assert_eq!(lengths.values().sum::<i64>(), SECONDS * SECOND_NS);
        assert!(lengths.iter().zip(lengths.keys().skip(1)).all(|((start, length), next)| start + length == *next));
    }

    #[test]
    fn spans_that_continue_a_trace_count_only_for_the_target() {
        let spans = || vec![span("web", Server, Some(7), 10.2), span("store", Server, Some(8), 10.3)];
        let unknown = count(None, spans());
        assert_eq!(sums(&unknown), []);
        assert!(trial_caveat(&unknown.caveat).contains("`--target SERVICE`"), "{:?}", unknown.caveat);
        let named = count(Some("web"), spans());
        assert_eq!(sums(&named)[0], (10, "web", "GET /web", 1));
        assert!(
            trial_caveat(&named.caveat).contains("server spans of web, which continue traces"),
            "{:?}",
            named.caveat
        );
        assert!(trial_caveat(&count(Some("none"), spans()).caveat).contains("Other services sent server spans"));
    }

    #[test]
    fn without_kinds_the_roots_of_traces_are_the_requests() {
        let counted = count(None, vec![span("web", Internal, None, 10.2), span("web", Internal, Some(2), 10.3)]);
        assert_eq!(sums(&counted)[0], (10, "web", "GET /web", 1));
        assert!(trial_caveat(&counted.caveat).contains("roots of traces, since no span says"), "{:?}", counted.caveat);
    }

    #[test]
    fn names_without_end_share_one() {
        let named = |n: usize| Span { name: format!("GET /{n}"), ..span("web", Server, None, 10.2) };
        let counted = count(None, (0..REQUESTS_MAX + 50).map(named).collect());
        assert_eq!(counted.seconds.iter().map(|row| row.sent).sum::<u64>(), REQUESTS_MAX as u64 + 50);
        let others = counted.seconds.iter().find(|row| row.request == OTHERS).unwrap();
        assert_eq!(others.sent, 50);
    }

    #[test]
    fn a_span_that_comes_twice_is_one_request() {
        let one = span("web", Server, None, 10.2);
        let other = Span { start_ns: one.start_ns + 1, ..one.clone() };
        let requests = Requests::before(Arc::new(Door(true)), 0, None, RecentRequests::default());
        drop(requests.spans(vec![one.clone(), other]));
        drop(requests.spans(vec![one]));
        assert_eq!(sums(&requests.counted(&[window(10, 11)])), [(10, "web", "GET /web", 2)]);
    }

    #[test]
    fn the_last_instants_there_are_have_an_end() {
        let late = Span { start_ns: i64::MAX - 100, end_ns: i64::MAX, ..span("web", Server, None, 0.0) };
        let requests = Requests::before(Arc::new(Door(true)), 0, None, RecentRequests::default());
        drop(requests.spans(vec![late]));
        let (windows, _) = requests.intervals().windows();
        assert_eq!(requests.counted(&windows).seconds.iter().map(|row| row.sent).sum::<u64>(), 1);
    }

    #[test]
    fn what_is_turned_away_does_not_count_for_it_comes_again() {
        let requests = Requests::before(Arc::new(Door(false)), 0, None, RecentRequests::default());
        let mut receipt = requests.spans(vec![span("web", Server, None, 10.2)]);
        assert!(matches!(receipt.try_recv(), Ok(Err(StoreError::Busy))));
        assert_eq!(sums(&requests.counted(&[window(10, 14)])), []);
        assert!(requests.intervals().is_empty());
    }
}
