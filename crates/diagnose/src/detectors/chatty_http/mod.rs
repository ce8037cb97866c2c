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
            caveats: self.caveats().into_iter().map(Into::into).collect(),
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
mod tests;
