//! `serial-fan-out`: a request makes several similar calls one after another that could be under way at once.
//!
//! What tells it from a chain in which each call needs the answer of the one before: the calls ask the same of different
//! partitions; or, where destinations are not recorded, their number is the same in nearly all requests. Pages come to
//! one partition again, rows of an earlier answer ask with other values (`n-plus-one` names those), a transaction holds
//! one connection: all three are left alone, as are calls that overlap. What is tried again counts as one call. Calls for
//! the items of an earlier answer of a service are `chatty-http`'s.
//!
//! The saving is what the request would gain if the calls were under way together: their time without the longest of
//! them, as far as no other call of the request is under way in it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use narrows_model::finding::{Confidence, Figure, Finding, FindingKind};
use narrows_model::trace::{Span, SpanId, SpanKind, TraceId};
use narrows_model::units;

use crate::Detector;
use crate::calls::{Call, Handled, Times, median_of};
use crate::detectors::chatty_http::calls_of_chat;
use crate::reading::Reading;
use crate::requests::{is_database, query_text};
use crate::thresholds::Thresholds;
use crate::words::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};

/// See the module.
#[derive(Debug)]
pub struct SerialFanOut;

/// Words in an address that say that it reads on where an earlier call stopped.
const PAGE_WORDS: [&str; 9] =
    ["page=", "/page/", "cursor=", "offset=", "skip=", "after=", "token=", "continuation=", "marker="];

/// Whether an address reads on where an earlier call stopped.
pub(crate) fn is_page(asked: &str) -> bool {
    let lower = asked.to_ascii_lowercase();
    PAGE_WORDS.iter().any(|word| lower.contains(word))
}

/// Kinds and parents of one request that are looked at: those with most calls.
const GROUPS_MAX: usize = 64;

impl Detector for SerialFanOut {
    fn kind(&self) -> FindingKind {
        FindingKind::SerialFanOut
    }

    fn version(&self) -> u32 {
        3
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let thresholds = reading.thresholds;
        let routes = routes(reading);
        let mut findings = Vec::new();
        for ((service, operation), all) in reading.operations {
            let mut kinds: BTreeMap<String, Vec<Sighting<'_>>> = BTreeMap::new();
            let chat = calls_of_chat(all, thresholds);
            for handled in all {
                for sighting in sightings(handled, (&chat, &routes), thresholds) {
                    kinds.entry(sighting.kind.clone()).or_default().push(sighting);
                }
            }
            let cases = kinds.into_values().map(|seen| Case::new(service, operation, seen, all));
            findings.extend(cases.filter(|case| case.is_worth_saying(thresholds)).map(|case| case.finding(self)));
        }
        findings
    }
}

/// The calls of one kind that one request made one after another.
struct Sighting<'a> {
    handled: &'a Handled<'a>,
    kind: String,
    calls: Vec<&'a Call<'a>>,
    /// Time that none of the request's other calls shares, of all of them together and of the longest.
    sum_ns: f64,
    longest_ns: f64,
    /// Whether it is known that each went to another partition.
    is_spread: bool,
}

impl Sighting<'_> {
    fn saving_ns(&self) -> f64 {
        self.sum_ns - self.longest_ns
    }

    fn weight(&self) -> f64 {
        self.handled.weight()
    }
}

/// One sighting for each kind of call in a request, the one that would save most.
fn sightings<'a>(
    handled: &'a Handled<'a>,
    (chat, routes): (&HashSet<SpanId>, &Routes<'_>),
    thresholds: &Thresholds,
) -> Vec<Sighting<'a>> {
    if handled.calls.len() < thresholds.fan_out_calls {
        return Vec::new();
    }
    let mut siblings: BTreeMap<(String, SpanId), Vec<&Call<'_>>> = BTreeMap::new();
    for call in handled.calls.iter().filter(|call| !chat.contains(&call.attempts[0].span_id)) {
        siblings.entry((kind(call, routes), call.parent)).or_default().push(call);
    }
    let mut groups: Vec<_> =
        siblings.into_iter().filter(|(_, calls)| calls.len() >= thresholds.fan_out_calls).collect();
    groups.sort_by_key(|(_, calls)| Reverse(calls.len()));
    groups.truncate(GROUPS_MAX);
    let mut best: BTreeMap<String, Sighting<'_>> = BTreeMap::new();
    for ((kind, _), calls) in groups {
        let Some(found) = sighting(handled, kind.clone(), calls, thresholds) else { continue };
        if best.get(&kind).is_none_or(|known| known.saving_ns() < found.saving_ns()) {
            best.insert(kind, found);
        }
    }
    best.into_values().collect()
}

/// The endpoints that answered calls, as those who answered call them, by the spans of the calls.
type Routes<'a> = HashMap<(TraceId, SpanId), &'a str>;

fn routes<'a>(reading: &Reading<'a>) -> Routes<'a> {
    let spans = reading.trial.traces.iter().flat_map(|trace| &trace.spans);
    let answers = spans.filter(|span| span.kind == SpanKind::Server);
    let routes = answers.filter_map(|span| Some(((span.trace_id, span.parent_id?), span.facts.http_route.as_deref()?)));
    routes.filter(|(_, route)| is_endpoint(route)).collect()
}

/// Whether a route is that of one endpoint with items that have names: it begins with a fixed part and catches no rest.
fn is_endpoint(route: &str) -> bool {
    let is_item = |part: &str| part.starts_with([':', '{', '<']);
    let parts: Vec<&str> = route.split('/').filter(|part| !part.is_empty()).collect();
    parts.first().is_some_and(|first| !is_item(first))
        && parts.iter().any(|part| is_item(part))
        && !parts.iter().any(|part| part.contains(['*', '(']) || part.starts_with("<path:") || part.ends_with(":path}"))
}

/// What tells calls from others: their own kind, or the endpoint that answered them, where items have names instead of
/// numbers.
fn kind(call: &Call<'_>, routes: &Routes<'_>) -> String {
    let facts = &call.last().facts;
    match routes.get(&(call.last().trace_id, call.last().span_id)).filter(|_| call.query.is_none()) {
        Some(route) => {
            let address = facts.server_address.as_deref().unwrap_or("");
            let port = facts.server_port.map_or_else(String::new, |port| format!(" :{port}"));
            format!("{} {address} {route}{port}", facts.http_method.as_deref().unwrap_or(""))
        }
        None => call.kind.to_string(),
    }
}

fn sighting<'a>(
    handled: &'a Handled<'a>,
    kind: String,
    calls: Vec<&'a Call<'a>>,
    thresholds: &Thresholds,
) -> Option<Sighting<'a>> {
    let partitions: Vec<&str> = calls.iter().filter_map(|call| call.partition()).collect();
    let distinct = partitions.iter().collect::<BTreeSet<_>>().len();
    let servers: Option<BTreeSet<_>> = calls.iter().map(|call| call.server()).collect();
    let is_sharded = calls[0].query.is_some() && servers.is_some_and(|servers| servers.len() == calls.len());
    let is_spread = distinct == calls.len() || is_sharded;
    if distinct < partitions.len() || !is_serial(&calls, thresholds) || !may_be_independent(handled, &calls, is_spread)
    {
        return None;
    }
    let own: HashSet<SpanId> = calls.iter().map(|call| call.attempts[0].span_id).collect();
    let others = handled.calls.iter().filter(|call| !own.contains(&call.attempts[0].span_id));
    let others = Times::of(others.flat_map(|call| &call.attempts).map(|span| (span.start_ns, span.end_ns)));
    let own: Vec<f64> = calls.iter().map(|call| busy(call).without(&others).length_ns()).collect();
    let longest_ns = own.iter().copied().fold(0.0, f64::max);
    Some(Sighting { handled, kind, calls, sum_ns: own.iter().sum(), longest_ns, is_spread })
}

/// The time in a call's attempts. Waits between them are another cause's.
fn busy(call: &Call<'_>) -> Times {
    Times::of(call.attempts.iter().map(|span| (span.start_ns, span.end_ns)))
}

/// Whether hardly any time passes with two of these under way.
fn is_serial(calls: &[&Call<'_>], thresholds: &Thresholds) -> bool {
    let each: f64 = calls.iter().map(|call| call.end_ns().saturating_sub(call.start_ns()) as f64).sum();
    let together = Times::of(calls.iter().map(|call| (call.start_ns(), call.end_ns()))).length_ns();
    each > 0.0 && (each - together) / each <= thresholds.fan_out_overlap_share
}

/// Whether nothing shows that the calls hang together.
fn may_be_independent(handled: &Handled<'_>, calls: &[&Call<'_>], is_spread: bool) -> bool {
    let is_one_question = calls.iter().all(|call| call.asked == calls[0].asked);
    match calls[0].query {
        Some(query) => {
            let is_pure = !query.shape.is_page() && !query.shape.is_write();
            let is_after_another = handled.calls.iter().any(|call| {
                call.query.is_some_and(|other| other.shape.text != query.shape.text)
                    && call.start_ns() < calls[0].start_ns()
            });
            is_pure && is_one_question && (is_spread || !is_after_another) && !is_in_transaction(handled)
        }
        None => {
            let is_known = !calls[0].asked.is_empty();
            let asked: BTreeSet<&str> = calls.iter().map(|call| call.asked.as_str()).collect();
            !is_database(calls[0].last())
                && !calls.iter().any(|call| is_page(&call.asked))
                && (!is_known || asked.len() == calls.len())
        }
    }
}

/// Whether the request's service began a transaction in this trace.
fn is_in_transaction(handled: &Handled<'_>) -> bool {
    const WORDS: [&str; 4] = ["BEGIN", "START TRANSACTION", "SAVEPOINT", "COMMIT"];
    let entry = handled.request.entry;
    let is_one = |span: &Span| {
        let text = query_text(span).map(|text| text.trim_start().to_ascii_uppercase());
        span.service == entry.service && text.is_some_and(|text| WORDS.iter().any(|word| text.starts_with(word)))
    };
    let spans = &handled.request.trace.spans;
    let from = spans.partition_point(|span| span.start_ns < entry.start_ns);
    spans[from..].iter().take_while(|span| span.start_ns <= entry.end_ns).any(is_one)
}

/// One kind of call in one operation, over all traces.
struct Case<'a> {
    service: &'a str,
    operation: &'a str,
    /// Dearest first.
    seen: Vec<Sighting<'a>>,
    trace_share: f64,
    latency_ns: f64,
}

impl<'a> Case<'a> {
    fn new(service: &'a str, operation: &'a str, mut seen: Vec<Sighting<'a>>, all: &[Handled<'_>]) -> Self {
        seen.sort_by(|a, b| b.saving_ns().total_cmp(&a.saving_ns()));
        let whole: f64 = all.iter().map(Handled::weight).sum();
        let trace_share = seen.iter().map(Sighting::weight).sum::<f64>() / whole;
        let latency_ns = median_of(all, |handled| (handled.latency_ns(), handled.weight()));
        Self { service, operation, seen, trace_share, latency_ns }
    }

    fn median(&self, value: impl Fn(&Sighting<'a>) -> f64) -> f64 {
        median_of(&self.seen, |sighting| (value(sighting), sighting.weight()))
    }

    fn count(&self) -> usize {
        self.median(|sighting| sighting.calls.len() as f64) as usize
    }

    fn saving_ns(&self) -> f64 {
        self.median(Sighting::saving_ns)
    }

    fn saving_share(&self) -> f64 {
        (self.saving_ns() / self.latency_ns.max(1.0)).min(1.0)
    }

    /// Share of the requests that make exactly as many calls as most do.
    fn same_count_share(&self) -> f64 {
        let count = self.count();
        let same = self.seen.iter().filter(|sighting| sighting.calls.len() == count);
        same.map(Sighting::weight).sum::<f64>() / self.seen.iter().map(Sighting::weight).sum::<f64>()
    }

    /// Whether in nearly all requests each call is known to go to another partition.
    fn is_spread(&self, thresholds: &Thresholds) -> bool {
        let spread: f64 = self.seen.iter().filter(|sighting| sighting.is_spread).map(Sighting::weight).sum();
        spread >= thresholds.same_count_share * self.seen.iter().map(Sighting::weight).sum::<f64>()
    }

    fn is_worth_saying(&self, thresholds: &Thresholds) -> bool {
        let is_regular =
            self.seen.len() >= thresholds.regular_traces && self.trace_share >= thresholds.regular_trace_share;
        let is_planned = self.is_spread(thresholds) || self.same_count_share() >= thresholds.same_count_share;
        let is_dear =
            self.saving_ns() >= thresholds.fan_out_saving_ns && self.saving_share() >= thresholds.fan_out_saving_share;
        is_regular && is_planned && is_dear
    }

    fn finding(&self, detector: &SerialFanOut) -> Finding {
        let (count, operation) = (self.count(), self.operation);
        let is_spread = self.is_spread(&Thresholds::default());
        let what = match (self.example().query.is_some(), is_spread) {
            (true, true) => format!("queries {count} partitions one after another"),
            (true, false) => format!("makes {count} similar queries one after another"),
            (false, _) => format!("makes {count} similar calls one after another"),
        };
        Finding {
            title: format!("{operation} {what}"),
            resource: self.service.into(),
            operation: Some(operation.into()),
            cost_share: self.saving_share(),
            cost_of: format!("of the latency of {operation}"),
            confidence: if is_spread { Confidence::High } else { Confidence::Medium },
            reasons: self.reasons(is_spread),
            numbers: self.numbers(),
            evidence_text: Some(self.evidence_text()),
            exemplars: self.seen.iter().take(EXEMPLARS_MAX).map(shown).collect(),
            ruled_out: self.ruled_out(is_spread),
            falsified_by: format!(
                "The calls are made in parallel and {operation} is as slow as before, or a call turns out to need the \
                 response to the one before it."
            ),
            advice: self.advice(is_spread),
            caveats: vec![
                "Parallel calls put the same load on their destination in less time: check its limits first.".into(),
                "They rarely all take their longest time together, and each may take longer than alone: expect \
                 somewhat less than the whole saving."
                    .into(),
            ],
            ..detector.finding()
        }
    }

    fn example(&self) -> &'a Call<'a> {
        self.seen[0].calls[0]
    }

    fn reasons(&self, is_spread: bool) -> Vec<String> {
        let mut reasons = vec![format!(
            "{} of the traces of {} show it ({} traces): {} similar calls under one parent, no two of them at the same \
             time.",
            units::percent(self.trace_share),
            self.operation,
            self.seen.len(),
            self.count()
        )];
        reasons.push(format!(
            "Together they take {}, the longest of them {}: in parallel they would save {}.",
            units::duration(self.median(|sighting| sighting.sum_ns)),
            units::duration(self.median(|sighting| sighting.longest_ns)),
            units::duration(self.saving_ns())
        ));
        if is_spread {
            reasons.push("Each sends the same request to a different partition.".into());
        }
        let same = self.same_count_share();
        if same >= Thresholds::default().same_count_share {
            reasons.push(format!(
                "Their number is the same in {} of these traces, as it is when it depends on the program and not on a \
                 response.",
                units::percent(same)
            ));
        }
        reasons
    }

    fn numbers(&self) -> Vec<Figure> {
        vec![
            Figure::new("sequential calls, median", self.count() as f64, ""),
            Figure::new("time of these calls, median", self.median(|sighting| sighting.sum_ns), "ns"),
            Figure::new("time of the longest call, median", self.median(|sighting| sighting.longest_ns), "ns"),
            Figure::new("time saved in parallel, median", self.saving_ns(), "ns"),
            Figure::new("latency of the operation, median", self.latency_ns, "ns"),
            Figure::new("traces of the operation that show it", self.trace_share * 100.0, "%"),
        ]
    }

    fn evidence_text(&self) -> String {
        let text = self.example().query.map_or(self.seen[0].kind.as_str(), |query| query.text);
        clipped(text, TEXT_CHARS_MAX)
    }

    fn ruled_out(&self, is_spread: bool) -> Vec<String> {
        let mut ruled_out = vec![
            "Attempts after a rejection or an error: they count as one call, and the waits between them are not \
             counted."
                .to_owned(),
        ];
        if self.example().query.is_some() {
            ruled_out.push("Rows of an earlier result (n-plus-one): the calls send the same values.".into());
            ruled_out.push("A transaction: these traces contain none.".into());
        }
        ruled_out.push(if is_spread {
            "Pages: no partition is queried twice.".into()
        } else {
            "Pages: neither the statement nor the address continues from an earlier response.".into()
        });
        ruled_out
    }

    fn advice(&self, is_spread: bool) -> String {
        let place = format!("In the code behind {} of {}", self.operation, self.service);
        if is_spread {
            return format!(
                "{place}, let the client library query the partitions in parallel: a higher degree of parallelism \
                 (maxDegreeOfParallelism, MaxConcurrency), -1 where that means “as many as useful”. Better still, name the \
                 partition that has the rows in the query."
            );
        }
        format!(
            "{place}, start the calls together and wait for all of them: Promise.all, asyncio.gather, Task.WhenAll, \
             CompletableFuture.allOf, errgroup; with a limit on parallel calls where there can be many."
        )
    }
}

fn shown(sighting: &Sighting<'_>) -> narrows_model::finding::Exemplar {
    exemplar(sighting.handled.request.trace, sighting.calls.iter().map(|call| call.last()))
}

#[cfg(test)]
mod tests;
