//! Calls of one request that follow one another and may be independent: similar ones, or to fixed addresses.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use narrows_model::finding::evidence::serial_fan_out::Destinations;
use narrows_model::trace::{Span, SpanId, SpanKind, TraceId};

use crate::read::Reading;
use crate::read::calls::{Call, Handled, Times};
use crate::read::paging::is_page;
use crate::read::requests::{is_database, query_text};
use crate::thresholds::Thresholds;

/// Maximum groups of calls (by kind and parent) examined per request, the largest first.
const GROUPS_MAX: usize = 64;

/// One request's calls of one kind, made one after another.
pub(super) struct Sighting<'a> {
    pub(super) handled: &'a Handled<'a>,
    pub(super) kind: String,
    pub(super) calls: Vec<&'a Call<'a>>,
    /// Time of all the calls together, and of the longest, without time shared with the request's other calls,
    /// nanoseconds.
    pub(super) sum_ns: f64,
    pub(super) longest_ns: f64,
    pub(super) destinations: Destinations,
}

impl Sighting<'_> {
    pub(super) fn saving_ns(&self) -> f64 {
        self.sum_ns - self.longest_ns
    }

    pub(super) fn weight(&self) -> f64 {
        self.handled.weight()
    }
}

/// One sighting per kind of call in a request: the one with the largest saving.
pub(super) fn sightings<'a>(
    handled: &'a Handled<'a>,
    chat: &HashSet<SpanId>,
    routes: &Routes<'_>,
    thresholds: &Thresholds,
) -> Vec<Sighting<'a>> {
    if handled.calls.len() < thresholds.serial_fan_out.fan_out_calls {
        return Vec::new();
    }
    let mut siblings: BTreeMap<(String, SpanId), Vec<&Call<'_>>> = BTreeMap::new();
    for call in handled.calls.iter().filter(|call| !chat.contains(&call.attempts[0].span_id)) {
        siblings.entry((kind(call, routes), call.parent)).or_default().push(call);
    }
    let mut groups: Vec<_> =
        siblings.into_iter().filter(|(_, calls)| calls.len() >= thresholds.serial_fan_out.fan_out_calls).collect();
    groups.sort_by_key(|(_, calls)| Reverse(calls.len()));
    groups.truncate(GROUPS_MAX);
    let mut best: BTreeMap<String, Sighting<'_>> = BTreeMap::new();
    for ((kind, _), calls) in groups {
        let Some(found) = of_one_kind(handled, kind.clone(), calls, thresholds) else { continue };
        if best.get(&kind).is_none_or(|known| known.saving_ns() < found.saving_ns()) {
            best.insert(kind, found);
        }
    }
    best.into_values().collect()
}

/// The calls of a request to different addresses that are known before the first of them, one after another. An address
/// that is called again may prepare or check the others, so it does not count.
pub(super) fn of_addresses<'a>(
    handled: &'a Handled<'a>,
    fixed: &HashSet<&str>,
    routes: &Routes<'_>,
    thresholds: &Thresholds,
) -> Option<Sighting<'a>> {
    if fixed.len() < thresholds.serial_fan_out.fan_out_calls {
        return None;
    }
    let mut kinds: HashMap<String, usize> = HashMap::new();
    for call in &handled.calls {
        *kinds.entry(kind(call, routes)).or_default() += 1;
    }
    let is_only = |call: &Call<'_>| kinds.get(&kind(call, routes)) == Some(&1);
    let calls: Vec<&Call<'_>> =
        handled.calls.iter().filter(|call| fixed.contains(&*call.kind) && is_only(call)).collect();
    let is_apart = calls.iter().all(|call| call.parent == calls[0].parent);
    if calls.len() < thresholds.serial_fan_out.fan_out_calls || !is_apart || !is_serial(&calls, thresholds) {
        return None;
    }
    let kind = calls.iter().map(|call| &*call.kind).collect::<Vec<_>>().join("\n");
    Some(sighting(handled, kind, calls, Destinations::Addresses))
}

/// Kinds of the calls that an operation's requests make to addresses in which nothing of an earlier response can be:
/// reads whose address is the same in all of them, but for parts that the request's own address has.
pub(super) fn fixed_addresses<'a>(all: &'a [Handled<'a>]) -> HashSet<&'a str> {
    let mut addresses: HashMap<&str, Option<String>> = HashMap::new();
    for handled in all {
        let given = handled.request.entry.facts.url.as_deref().unwrap_or("");
        for call in handled.calls.iter().filter(|call| call.query.is_none()) {
            let address = is_read(call).then(|| without_parts_of(&call.request, given));
            let known = addresses.entry(&call.kind).or_insert_with(|| address.clone());
            if *known != address {
                *known = None;
            }
        }
    }
    addresses.into_iter().filter(|(_, address)| address.is_some()).map(|(kind, _)| kind).collect()
}

/// Whether a call is a GET of a known address that succeeded and is no page after the first.
fn is_read(call: &Call<'_>) -> bool {
    let is_get = call.last().facts.http_method.as_deref() == Some("GET");
    is_get && call.succeeded() && !call.request.is_empty() && !is_database(call.last()) && !is_page(&call.request)
}

/// An address with `{}` in place of each part that another address has too.
fn without_parts_of(address: &str, given: &str) -> String {
    fn parts(address: &str) -> impl Iterator<Item = &str> {
        address.split(['/', '?', '&', '='])
    }
    let given: HashSet<&str> = parts(given).collect();
    parts(address).map(|part| if given.contains(part) { "{}" } else { part }).collect::<Vec<_>>().join("/")
}

/// Endpoints that handled calls, as their services name them, by the spans of the calls.
pub(super) type Routes<'a> = HashMap<(TraceId, SpanId), &'a str>;

pub(super) fn routes<'a>(reading: &Reading<'a>) -> Routes<'a> {
    let spans = reading.trial.traces.iter().flat_map(|trace| &trace.spans);
    let served = spans.filter(|span| span.kind == SpanKind::Server);
    let routes = served.filter_map(|span| Some(((span.trace_id, span.parent_id?), span.facts.http_route.as_deref()?)));
    routes.filter(|(_, route)| is_endpoint(route)).collect()
}

/// Whether a route is a single endpoint with named items: it begins with a fixed part and has no catch-all.
fn is_endpoint(route: &str) -> bool {
    let is_item = |part: &str| part.starts_with([':', '{', '<']);
    let parts: Vec<&str> = route.split('/').filter(|part| !part.is_empty()).collect();
    parts.first().is_some_and(|first| !is_item(first))
        && parts.iter().any(|part| is_item(part))
        && !parts.iter().any(|part| part.contains(['*', '(']) || part.starts_with("<path:") || part.ends_with(":path}"))
}

/// Key that groups calls: their own kind, or the endpoint that handled them if items have names instead of numbers.
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

fn of_one_kind<'a>(
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
    let destinations = if is_spread { Destinations::Partitions } else { Destinations::Unknown };
    Some(sighting(handled, kind, calls, destinations))
}

fn sighting<'a>(
    handled: &'a Handled<'a>,
    kind: String,
    calls: Vec<&'a Call<'a>>,
    destinations: Destinations,
) -> Sighting<'a> {
    let own: HashSet<SpanId> = calls.iter().map(|call| call.attempts[0].span_id).collect();
    let others = handled.calls.iter().filter(|call| !own.contains(&call.attempts[0].span_id));
    let others = Times::union_of(others.flat_map(|call| &call.attempts).map(|span| handled.request.time_of(span)));
    let own: Vec<f64> = calls.iter().map(|call| busy(handled, call).without(&others).length_ns()).collect();
    let longest_ns = own.iter().copied().fold(0.0, f64::max);
    Sighting { handled, kind, calls, sum_ns: own.iter().sum(), longest_ns, destinations }
}

/// Time in a call's attempts. The waits between them have another cause.
fn busy(handled: &Handled<'_>, call: &Call<'_>) -> Times {
    Times::union_of(call.attempts.iter().map(|span| handled.request.time_of(span)))
}

/// Whether these calls hardly overlap.
fn is_serial(calls: &[&Call<'_>], thresholds: &Thresholds) -> bool {
    let each: f64 = calls.iter().map(|call| call.end_ns().saturating_sub(call.start_ns()) as f64).sum();
    let together = Times::union_of(calls.iter().map(|call| (call.start_ns(), call.end_ns()))).length_ns();
    each > 0.0 && (each - together) / each <= thresholds.serial_fan_out.fan_out_overlap_share
}

/// Whether nothing shows that the calls depend on each other.
fn may_be_independent(handled: &Handled<'_>, calls: &[&Call<'_>], is_spread: bool) -> bool {
    let is_one_question = calls.iter().all(|call| call.request == calls[0].request);
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
            let is_known = !calls[0].request.is_empty();
            let different: BTreeSet<&str> = calls.iter().map(|call| call.request.as_str()).collect();
            !is_database(calls[0].last())
                && !calls.iter().any(|call| is_page(&call.request))
                && (!is_known || different.len() == calls.len())
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
