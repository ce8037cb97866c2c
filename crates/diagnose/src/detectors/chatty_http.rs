//! `chatty-http`: a request that asks another service once for each item of an earlier answer.
//!
//! It is `n-plus-one` over HTTP or remote calls. Calls count together when they go to one endpoint of one host under one
//! parent, each with another id, and one wave of them ends before the next begins: calls that all begin together are a
//! prefetch or a gathering, which waits for the slowest only. That the ids come from an answer is shown by a call before
//! them, with other ids in each request, or by a number that differs from request to request. A number that is always the
//! same without that is a plan of the program, and `serial-fan-out`'s.
//!
//! The same address asked again and again counts too, when the request does nothing else meanwhile: what it was told is
//! thrown away. With pauses between the calls it is polling, which waits for something else and is left alone.
//!
//! Pages read on where the last one stopped and cannot be asked for together; a list of ids in one address is a batch.
//! Both are left alone, and stacked libraries count once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use narrows_model::finding::{Confidence, Figure, Finding, FindingKind};
use narrows_model::trace::{Span, SpanId};
use narrows_model::units;

use crate::Detector;
use crate::calls::{Call, Handled, Times, median_of, went_wrong};
use crate::detectors::serial_fan_out::is_page;
use crate::reading::Reading;
use crate::thresholds::Thresholds;
use crate::words::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};

/// See the module.
#[derive(Debug)]
pub struct ChattyHttp;

/// What pages load beside themselves.
const ASSETS: [&str; 11] = [".js", ".css", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".ico", ".woff", ".woff2", ".webp"];
/// From this share of the operation's traces on, the pattern is how the operation works, not how some calls of it do.
const REGULAR_TRACE_SHARE: f64 = 0.5;
/// Endpoints and parents of one request that are looked at: those with most calls.
const GROUPS_MAX: usize = 64;

impl Detector for ChattyHttp {
    fn kind(&self) -> FindingKind {
        FindingKind::ChattyHttp
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let thresholds = reading.thresholds;
        let asked = asked_of_hosts(reading);
        let mut findings = Vec::new();
        for ((service, operation), all) in reading.operations {
            let mut kinds: BTreeMap<(String, &str), Vec<Sighting<'_>>> = BTreeMap::new();
            for sighting in all.iter().flat_map(|handled| sightings(handled, thresholds)) {
                let key = (host_of(sighting.calls[0].last()), &*sighting.calls[0].kind);
                kinds.entry(key).or_default().push(sighting);
            }
            let cases = kinds.into_iter().map(|((host, _), seen)| {
                let callee_calls = asked.get(&host).copied().unwrap_or(0.0);
                let named = service_of(reading, seen[0].calls[0].last()).unwrap_or(host);
                Case::new(service, operation, (named, callee_calls), seen, all)
            });
            findings.extend(cases.filter(|c| c.is_worth_saying(thresholds)).map(|c| c.finding(self, thresholds)));
        }
        findings
    }
}

/// How often each host is called, over all operations.
fn asked_of_hosts(reading: &Reading<'_>) -> BTreeMap<String, f64> {
    let mut asked: BTreeMap<String, f64> = BTreeMap::new();
    for handled in reading.operations.values().flatten() {
        for call in handled.calls.iter().filter(|call| call.query.is_none()) {
            *asked.entry(host_of(call.last())).or_default() += handled.weight();
        }
    }
    asked
}

/// The service of this run that a call went to.
fn service_of(reading: &Reading<'_>, call: &Span) -> Option<String> {
    reading.trial.reached_at(call.facts.server_port).map(|instance| instance.service.clone())
}

/// Who is called: the address and port, the host of the URL, or the remote service.
fn host_of(span: &Span) -> String {
    let facts = &span.facts;
    let url = facts.url.as_deref().and_then(|url| url.split_once("://"));
    let host = url.map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or(""));
    let named = facts.server_address.as_deref().or(host).or(facts.peer_service.as_deref());
    let named = named.or(facts.rpc_service.as_deref()).unwrap_or("");
    match facts.server_port {
        Some(port) if !named.contains(':') => format!("{named}:{port}"),
        _ => named.to_owned(),
    }
}

/// The calls of one endpoint that one request made, one after another.
struct Sighting<'a> {
    handled: &'a Handled<'a>,
    /// One for each id, in order of start.
    calls: Vec<&'a Call<'a>>,
    /// Time of the request that is theirs and no other call's, that between them included, nanoseconds.
    cost_ns: f64,
    /// Time in the calls themselves, nanoseconds.
    busy_ns: f64,
    /// Whether another call of the request ended before the first of them.
    is_after_another: bool,
    items: Items,
}

/// What the calls ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Items {
    /// Each for another item.
    Different,
    /// All for the same.
    Same,
    /// It is not recorded.
    Unknown,
}

impl Sighting<'_> {
    fn weight(&self) -> f64 {
        self.handled.weight()
    }
}

/// The first spans of those calls of an operation that ask for the items of an earlier answer, for all that is known.
pub(crate) fn calls_of_chat(all: &[Handled<'_>], thresholds: &Thresholds) -> HashSet<SpanId> {
    let mut kinds: BTreeMap<(String, &str), Vec<Sighting<'_>>> = BTreeMap::new();
    for sighting in all.iter().flat_map(|handled| sightings(handled, thresholds)) {
        let key = (host_of(sighting.calls[0].last()), &*sighting.calls[0].kind);
        kinds.entry(key).or_default().push(sighting);
    }
    let chats = kinds.into_values().filter(|seen| {
        let is_known = seen.iter().all(|sighting| sighting.items == Items::Different);
        is_known && asks_for_others(seen) && seen.iter().all(|sighting| sighting.is_after_another)
    });
    let calls = chats.flatten().flat_map(|sighting| sighting.calls);
    calls.map(|call| call.attempts[0].span_id).collect()
}

/// Whether one request asks for other items than another: a plan of the program would ask for the same each time.
fn asks_for_others(seen: &[Sighting<'_>]) -> bool {
    let asked = |sighting: &Sighting<'_>| sighting.calls.iter().map(|call| call.asked.clone()).collect::<BTreeSet<_>>();
    seen.first().is_some_and(|first| {
        let first = asked(first);
        seen.iter().any(|sighting| asked(sighting) != first)
    })
}

/// One sighting for each endpoint, the one that takes most time.
fn sightings<'a>(handled: &'a Handled<'a>, thresholds: &Thresholds) -> Vec<Sighting<'a>> {
    let mut siblings: BTreeMap<(&str, String, SpanId), Vec<&Call<'_>>> = BTreeMap::new();
    for call in handled.calls.iter().filter(|call| call.query.is_none() && may_be_item(call)) {
        siblings.entry((&call.kind, host_of(call.last()), call.parent)).or_default().push(call);
    }
    let mut groups: Vec<_> = siblings.into_iter().filter(|(_, calls)| calls.len() >= thresholds.chatty_calls).collect();
    groups.sort_by_key(|(_, calls)| Reverse(calls.len()));
    groups.truncate(GROUPS_MAX);
    let mut best: BTreeMap<(&str, String), Sighting<'_>> = BTreeMap::new();
    for ((kind, host, _), calls) in groups {
        let Some(found) = sighting(handled, calls, thresholds) else { continue };
        if best.get(&(kind, host.clone())).is_none_or(|known| known.cost_ns < found.cost_ns) {
            best.insert((kind, host), found);
        }
    }
    best.into_values().collect()
}

fn sighting<'a>(handled: &'a Handled<'a>, all: Vec<&'a Call<'a>>, thresholds: &Thresholds) -> Option<Sighting<'a>> {
    let items = items_of(&all)?;
    let mut asked: HashSet<&str> = HashSet::new();
    let calls: Vec<&Call<'_>> =
        all.into_iter().filter(|call| items != Items::Different || asked.insert(&call.asked)).collect();
    if calls.len() < thresholds.chatty_calls {
        return None;
    }
    let (start_ns, end_ns) = (calls[0].start_ns(), calls.iter().map(|call| call.end_ns()).max()?);
    let has_waves = calls.iter().any(|call| call.start_ns() >= calls[0].end_ns());
    if !has_waves {
        return None;
    }
    let own: HashSet<SpanId> = calls.iter().map(|call| call.attempts[0].span_id).collect();
    let others = || handled.calls.iter().filter(|call| !own.contains(&call.attempts[0].span_id));
    let times = |call: &Call<'_>| (call.start_ns(), call.end_ns());
    let theirs = Times::of([(start_ns, end_ns)]).without(&Times::of(others().map(times)));
    let is_source = |other: &Call<'_>| other.kind != calls[0].kind && other.end_ns() <= start_ns;
    let is_after_another = others().any(is_source);
    let busy_ns = Times::of(calls.iter().map(|call| times(call))).length_ns();
    Some(Sighting { handled, cost_ns: theirs.length_ns(), busy_ns, is_after_another, items, calls })
}

/// What these calls ask for; none when they wait for something else to happen.
fn items_of(calls: &[&Call<'_>]) -> Option<Items> {
    if calls.iter().any(|call| call.asked.is_empty()) {
        return Some(Items::Unknown);
    }
    if calls.iter().any(|call| call.asked != calls[0].asked) {
        return Some(Items::Different);
    }
    let times = Times::of(calls.iter().map(|call| (call.start_ns(), call.end_ns())));
    let whole_ns = calls.iter().map(|call| call.end_ns()).max()?.saturating_sub(calls[0].start_ns()) as f64;
    let is_read = |span: &Span| {
        let facts = &span.facts;
        let is_get = facts.http_method.as_deref().is_none_or(|method| method == "GET");
        is_get && !went_wrong(span) && facts.http_status.is_none_or(|status| status == 200 || status == 304)
    };
    let pauses_ns = whole_ns - times.length_ns();
    (pauses_ns < times.length_ns() && calls.iter().all(|call| is_read(call.last()))).then_some(Items::Same)
}

/// Whether a call can be one for a single item: no page, no batch, no asset, no message, and it says where it goes.
fn may_be_item(call: &Call<'_>) -> bool {
    let facts = &call.last().facts;
    let is_remote = facts.http_method.is_some() || facts.url.is_some() || facts.rpc_method.is_some();
    let path = call.asked.split(['?', '#']).next().unwrap_or("").to_ascii_lowercase();
    let is_asset = ASSETS.iter().any(|ending| path.ends_with(ending));
    is_remote && !is_asset && !is_page(&call.asked) && !is_batch(call)
}

/// Whether one address asks for several items, or a call says that it does.
fn is_batch(call: &Call<'_>) -> bool {
    let lower = call.asked.to_ascii_lowercase();
    let (path, parameters) = lower.split_once('?').unwrap_or((&lower, ""));
    let is_list = |value: &str| value.contains(',') || value.contains("%2c");
    let has_list = parameters.split('&').filter_map(|pair| pair.split_once('=')).any(|(_, value)| is_list(value));
    let last = path.rsplit('/').next().unwrap_or("");
    let is_named_so = |word: &str| word.contains("batch") || word.contains("bulk") || word == "graphql";
    let method = call.last().facts.rpc_method.as_deref().unwrap_or("").to_ascii_lowercase();
    has_list
        || is_list(last)
        || is_named_so(last)
        || is_named_so(&method)
        || call.last().facts.batch_size.is_some_and(|size| size > 1)
}

/// One endpoint in one operation, over all traces.
struct Case<'a> {
    service: &'a str,
    operation: &'a str,
    host: String,
    /// The dearest first.
    seen: Vec<Sighting<'a>>,
    trace_share: f64,
    callee_share: f64,
    latency_ns: f64,
}

impl<'a> Case<'a> {
    fn new(
        service: &'a str,
        operation: &'a str,
        (host, callee_calls): (String, f64),
        mut seen: Vec<Sighting<'a>>,
        all: &[Handled<'_>],
    ) -> Self {
        seen.sort_by(|a, b| b.cost_ns.total_cmp(&a.cost_ns));
        let whole: f64 = all.iter().map(Handled::weight).sum();
        let trace_share = seen.iter().map(Sighting::weight).sum::<f64>() / whole.max(f64::MIN_POSITIVE);
        let calls: f64 = seen.iter().map(|sighting| sighting.weight() * sighting.calls.len() as f64).sum();
        let callee_share = if callee_calls > 0.0 { (calls / callee_calls).min(1.0) } else { 0.0 };
        let latency_ns = median_of(all, |handled| (handled.latency_ns(), handled.weight()));
        Self { service, operation, host, seen, trace_share, callee_share, latency_ns }
    }

    fn median(&self, value: impl Fn(&Sighting<'a>) -> f64) -> f64 {
        median_of(&self.seen, |sighting| (value(sighting), sighting.weight()))
    }

    fn counts(&self) -> (usize, usize, usize) {
        let counts = || self.seen.iter().map(|sighting| sighting.calls.len());
        (counts().min().unwrap_or(0), self.median(|s| s.calls.len() as f64) as usize, counts().max().unwrap_or(0))
    }

    fn grows(&self) -> bool {
        let (min, _, max) = self.counts();
        max > min
    }

    fn is_after_another(&self) -> bool {
        let after: f64 = self.seen.iter().filter(|s| s.is_after_another).map(Sighting::weight).sum();
        2.0 * after > self.seen.iter().map(Sighting::weight).sum::<f64>()
    }

    /// What all sightings have in common.
    fn items(&self) -> Items {
        let all = |items: Items| self.seen.iter().all(|sighting| sighting.items == items);
        match (all(Items::Same), all(Items::Different)) {
            (true, _) => Items::Same,
            (_, true) => Items::Different,
            _ => Items::Unknown,
        }
    }

    fn is_recorded(&self) -> bool {
        self.items() != Items::Unknown
    }

    fn cost_share(&self) -> f64 {
        self.median(|sighting| (sighting.cost_ns / sighting.handled.latency_ns()).min(1.0))
    }

    fn is_worth_saying(&self, thresholds: &Thresholds) -> bool {
        let is_common =
            self.seen.len() >= thresholds.chatty_traces && self.trace_share >= thresholds.chatty_trace_share;
        let is_from_answer = match self.items() {
            Items::Same => true,
            Items::Different => self.grows() || self.is_after_another() && asks_for_others(&self.seen),
            Items::Unknown => self.grows(),
        };
        let is_dear = self.median(|sighting| sighting.busy_ns) >= thresholds.chatty_time_ns
            || self.median(|s| s.busy_ns / s.handled.latency_ns()) >= thresholds.chatty_latency_share
            || self.callee_share >= thresholds.chatty_callee_share;
        is_common && is_from_answer && is_dear
    }

    fn finding(&self, detector: &ChattyHttp, thresholds: &Thresholds) -> Finding {
        let (min, p50, max) = self.counts();
        let operation = self.operation;
        Finding {
            title: match self.items() {
                Items::Same => {
                    format!("{operation} calls {} {p50} times for the same thing in each request", self.callee())
                }
                _ => format!("{operation} calls {} once for each item: {p50} calls in each request", self.callee()),
            },
            resource: self.service.into(),
            operation: Some(operation.into()),
            cost_share: self.cost_share(),
            cost_of: format!("of the latency of {operation}"),
            confidence: self.confidence(thresholds),
            reasons: self.reasons(),
            numbers: vec![
                Figure::new("calls in each request, median", p50 as f64, ""),
                Figure::new("calls in each request, smallest", min as f64, ""),
                Figure::new("calls in each request, largest", max as f64, ""),
                Figure::new("time of these calls, median", self.median(|sighting| sighting.busy_ns), "ns"),
                Figure::new(
                    "time of these calls and of the gaps between them, median",
                    self.median(|s| s.cost_ns),
                    "ns",
                ),
                Figure::new("latency of the operation, median", self.latency_ns, "ns"),
                Figure::new("traces of the operation that show it", self.trace_share * 100.0, "%"),
                Figure::new("share of all calls to it", self.callee_share * 100.0, "%"),
            ],
            evidence_text: Some(self.evidence_text()),
            exemplars: self
                .seen
                .iter()
                .take(EXEMPLARS_MAX)
                .map(|s| exemplar(s.handled.request.trace, s.calls.iter().map(|call| call.last())))
                .collect(),
            ruled_out: self.ruled_out(),
            falsified_by: format!(
                "The items are requested together and {operation} is as slow as before, or its traces still contain \
                 about {p50} of these calls."
            ),
            advice: self.advice(),
            caveats: self.caveats(),
            ..detector.finding()
        }
    }

    /// High when it is how the operation works, each call is known to ask for another item, and their number follows
    /// what came before.
    fn confidence(&self, thresholds: &Thresholds) -> Confidence {
        let is_dear = self.cost_share() >= thresholds.chatty_latency_share;
        match (self.trace_share >= REGULAR_TRACE_SHARE, self.is_recorded(), self.grows() || is_dear) {
            (true, true, true) => Confidence::High,
            (false, false, _) => Confidence::Low,
            _ => Confidence::Medium,
        }
    }

    fn callee(&self) -> &str {
        if self.host.is_empty() { "another service" } else { &self.host }
    }

    fn reasons(&self) -> Vec<String> {
        let (min, p50, max) = self.counts();
        let mut reasons = vec![format!(
            "{} of the traces of {} show it ({} traces): {p50} calls of one endpoint under one parent{}.",
            units::percent(self.trace_share),
            self.operation,
            self.seen.len(),
            match self.items() {
                Items::Different => ", each with another id",
                Items::Same => ", all with one address",
                Items::Unknown => "",
            }
        )];
        if self.grows() {
            reasons.push(format!(
                "Their number differs from request to request, from {min} to {max}, as it does when it depends on the \
                 items of an earlier response."
            ));
        }
        if self.is_after_another() && self.items() != Items::Same {
            reasons.push(
                "Another call of the request ends before the first of them and may have returned the ids.".into(),
            );
        }
        reasons.push(format!(
            "With the gaps between them they take {} of a request, and they are {} of all calls to {} in these traces.",
            units::duration(self.median(|sighting| sighting.cost_ns)),
            units::percent(self.callee_share),
            self.callee()
        ));
        reasons
    }

    fn evidence_text(&self) -> String {
        let call = self.seen[0].calls[0];
        let mut text = clipped(&call.kind, TEXT_CHARS_MAX);
        if !call.asked.is_empty() {
            text += &format!("\n\nsuch as: {}", clipped(&call.asked, TEXT_CHARS_MAX));
        }
        text
    }

    fn ruled_out(&self) -> Vec<String> {
        let mut ruled_out = vec![
            "Attempts after a failure: they count as one call. Stacked libraries: a call that two of them report \
             counts once."
                .to_owned(),
            "A fan-out to several hosts: all calls go to one host.".into(),
            "A prefetch: some of the calls begin after the first has ended.".into(),
        ];
        let told = match self.items() {
            Items::Different => {
                Some("Pages, polling and batches: no address continues another, is repeated, or lists several ids.")
            }
            Items::Same => Some("Polling: the calls follow one another without pauses, and each succeeds."),
            Items::Unknown => None,
        };
        ruled_out.extend(told.map(str::to_owned));
        ruled_out
    }

    fn advice(&self) -> String {
        if self.items() == Items::Same {
            return format!(
                "In the code behind {} of {}, call {} once and keep the response for the rest of the request, or for \
                 as long as a stale one is acceptable.",
                self.operation,
                self.service,
                self.callee()
            );
        }
        format!(
            "In the code behind {} of {}, call {} once for all items: an endpoint that takes a list of ids, or one \
             that returns them with the list they come from (expand, include, a dataloader). If it has no such \
             endpoint, make several calls in parallel, with a limit; that saves the waiting, but not the calls.",
            self.operation,
            self.service,
            self.callee()
        )
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats =
            vec!["The call that replaces these takes time too, so not all of the cost can be saved.".into()];
        if !self.is_recorded() {
            caveats.push(
                "The traces do not record what each call requests, so it is not shown that the calls differ or are not \
                 pages."
                    .into(),
            );
        }
        let distinct: BTreeSet<usize> = self.seen.iter().map(|sighting| sighting.calls.len()).collect();
        if distinct.len() == 1 {
            caveats.push("Their number is the same in all traces: the reason may be the data of the load.".into());
        }
        caveats
    }
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{Beat, SpanBuilder, client, internal, query, run_of, server};
    use narrows_testkit::trial::TrialBuilder;

    use super::*;

    const BEAT: Beat = Beat { first_ms: 10.0, step_ms: 6.0, length_ms: 5.0 };

    fn part(i: usize) -> SpanBuilder {
        client("GET").url(&format!("http://stock:8080/parts/{}", 100 + i))
    }

    fn request(children: Vec<SpanBuilder>) -> SpanBuilder {
        let list = client("GET").url("http://stock:8080/orders").at(1.0, 8.0);
        bare([vec![list], children].concat())
    }

    fn bare(children: Vec<SpanBuilder>) -> SpanBuilder {
        server("shop", "GET /orders").at(0.0, 150.0).children(children)
    }

    fn detect(roots: impl IntoIterator<Item = SpanBuilder>) -> Vec<Finding> {
        let traces = roots.into_iter().zip(0..).map(|(root, number)| {
            let mut trace = root.trace(number);
            for url in trace.spans.iter_mut().filter_map(|span| span.facts.url.as_mut()) {
                // Other parts in each request.
                *url = url.replace("/parts/1", &format!("/parts/{number}1"));
            }
            trace
        });
        crate::detect(&ChattyHttp, &TrialBuilder::new("a").traces(traces).build(), &Thresholds::default())
    }

    fn detect_in_each(children: Vec<SpanBuilder>) -> Vec<Finding> {
        detect((0..10).map(|_| request(children.clone())))
    }

    #[test]
    fn one_call_for_each_item_is_named() {
        let findings = detect_in_each(run_of(10, BEAT, part));
        let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
        assert_eq!(finding.title, "GET /orders calls stock:8080 once for each item: 10 calls in each request");
        assert_eq!((finding.resource.as_str(), finding.operation.as_deref()), ("shop", Some("GET /orders")));
        assert!((finding.cost_share - 59.0 / 150.0).abs() < 1e-9, "{}", finding.cost_share);
        assert_eq!((finding.confidence, finding.exemplars.len()), (Confidence::High, 3));
        assert!(finding.evidence_text.as_deref().unwrap().ends_with("such as: http://stock:8080/parts/0100"));
        assert_eq!(finding.numbers[0].value, 10.0);
    }

    #[test]
    fn growth_with_the_answer_is_said_even_without_a_call_before() {
        let findings = detect((0..10).map(|n| bare(run_of(5 + n, BEAT, part))));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].reasons[1].contains("from 5 to 14"), "{:?}", findings[0].reasons);
    }

    #[test]
    fn it_fires_through_what_stands_between() {
        let wrapped = run_of(8, BEAT, |i| internal("StockClient.find").child(part(i).at(10.0 + 6.0 * i as f64, 5.0)));
        let doubled = run_of(8, BEAT, |i| {
            part(i).scope("requests").child(part(i).scope("urllib3").at(10.5 + 6.0 * i as f64, 4.0))
        });
        let mut queried = run_of(8, BEAT, part);
        queried.push(query("SELECT a FROM t").at(12.0, 1.0));
        let mut again = run_of(8, BEAT, part);
        again.push(part(7).at(52.0 + 1.0, 1.0));
        again[7] = part(7).at(52.0, 0.5).failed();
        for (name, children, count) in [
            ("wrappers", wrapped, 8.0),
            ("a second library", doubled, 8.0),
            ("queries", queried, 8.0),
            ("a retry", again, 8.0),
            ("partly at once", run_of(8, Beat { step_ms: 3.0, ..BEAT }, part), 8.0),
            ("the least number", run_of(5, BEAT, part), 5.0),
        ] {
            let findings = detect_in_each(children);
            assert_eq!(findings.len(), 1, "with {name}: {findings:#?}");
            assert_eq!(findings[0].numbers[0].value, count, "with {name}");
        }
    }

    #[test]
    fn remote_methods_count_when_their_number_grows() {
        let get = |_| client("shop.v1.Stock/Get").remote("shop.v1.Stock", "Get");
        let findings = detect((0..10).map(|n| request(run_of(5 + n, BEAT, get))));
        assert_eq!((findings.len(), findings[0].confidence), (1, Confidence::Medium));
        assert_eq!(detect((0..10).map(|_| request(run_of(9, BEAT, get)))), [], "always as many, of what is not known");
        let batch = |_| client("shop.v1.Stock/BatchGet").remote("shop.v1.Stock", "BatchGet");
        assert_eq!(detect((0..10).map(|n| request(run_of(5 + n, BEAT, batch)))), []);
    }

    #[test]
    fn the_same_asked_again_and_again_is_named() {
        let findings =
            detect((0..10).map(|_| bare(run_of(9, BEAT, |_| client("GET").url("http://settings/tenant/7")))));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].title, "GET /orders calls settings 9 times for the same thing in each request");
        assert!(findings[0].advice.ends_with("for as long as a stale one is acceptable."));
    }

    #[test]
    fn other_patterns_are_left_alone() {
        let url = |text: &'static str| move |i: usize| client("GET").url(&text.replace("{}", &(10 + i).to_string()));
        let together = Beat { step_ms: 0.2, length_ms: 40.0, ..BEAT };
        let different = ["users", "prices", "mails", "carts", "ads", "news", "logs"];
        let cases = [
            ("four calls", run_of(4, BEAT, part)),
            ("pages", run_of(9, BEAT, url("http://stock/parts?page={}"))),
            ("a cursor", run_of(9, BEAT, url("http://stock/parts?cursor=a{}"))),
            ("pages in the path", run_of(9, BEAT, url("http://stock/parts/page/{}"))),
            ("polling", run_of(9, Beat { step_ms: 12.0, ..BEAT }, |_| client("GET").url("http://stock/jobs/7"))),
            ("jobs that are not done", {
                let job = |_| client("GET").url("http://stock/jobs/7").facts(|facts| facts.http_status = Some(202));
                run_of(9, BEAT, job)
            }),
            ("tries", run_of(9, BEAT, |i| if i < 8 { part(0).failed() } else { part(0) })),
            ("several hosts", run_of(9, BEAT, url("http://stock-{}/parts/7"))),
            ("batches", run_of(9, BEAT, url("http://stock/parts?ids={},7,8"))),
            ("a batch endpoint", run_of(9, BEAT, url("http://stock/v{}/batch"))),
            ("assets", run_of(9, BEAT, url("http://cdn/img/{}.png"))),
            ("a prefetch", run_of(9, together, part)),
            ("different endpoints", run_of(7, BEAT, |i| client("GET").url(&format!("http://stock/{}", different[i])))),
            ("four of two libraries", ["a", "b"].map(|scope| run_of(4, BEAT, |i| part(i).scope(scope))).concat()),
        ];
        for (name, children) in cases {
            assert_eq!(detect_in_each(children), [], "with {name}");
        }
    }

    #[test]
    fn a_fixed_plan_is_another_cause() {
        assert_eq!(detect((0..10).map(|_| bare(run_of(9, BEAT, part)))), [], "nothing before");
        let region = |i: usize| client("GET").url(&format!("http://stock:8080/regions/{i}"));
        assert_eq!(detect_in_each(run_of(9, BEAT, region)), [], "the same in each request");
    }

    #[test]
    fn few_traces_or_little_time_are_not_enough() {
        let mixed = |bad: usize, all: usize| {
            detect((0..all).map(|n| request(if n < bad { run_of(9, BEAT, part) } else { vec![part(0).at(20.0, 1.0)] })))
        };
        for (bad, all, fires) in [(2, 2, false), (3, 3, true), (3, 20, false)] {
            assert_eq!(mixed(bad, all).len(), usize::from(fires), "{bad} of {all}");
        }
        let tiny = Beat { step_ms: 0.2, length_ms: 0.1, ..BEAT };
        let mut cheap = run_of(5, tiny, part);
        cheap.extend(run_of(9, Beat { first_ms: 20.0, ..BEAT }, |i| {
            client("POST").url(&format!("http://stock:8080/m/{}x", ["a", "b", "c", "d", "e", "f", "g", "h", "i"][i]))
        }));
        assert_eq!(detect_in_each(cheap), []);
    }
}
