//! The calls of one request that go to one endpoint, one after another or few at a time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use narrows_model::finding::evidence::chatty_http::Items;
use narrows_model::trace::{Span, SpanId};

use super::pace::{Pace, pace_of};
use crate::read::calls::{Call, Handled, Times, went_wrong};
use crate::read::paging::is_page;
use crate::read::repetition::SHORT_GAP_NS;
use crate::thresholds::Thresholds;

/// File suffixes of page assets.
const ASSETS: [&str; 11] = [".js", ".css", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".ico", ".woff", ".woff2", ".webp"];
/// Maximum groups of calls (by endpoint and parent) examined per request, the largest first.
const GROUPS_MAX: usize = 64;

/// One request's calls to one endpoint, not all at once.
pub(super) struct Sighting<'a> {
    pub(super) handled: &'a Handled<'a>,
    /// One call per id, in order of start.
    pub(super) calls: Vec<&'a Call<'a>>,
    /// Request time from the start of the first call to the end of the last, without time in other calls and longer work
    /// of the program between calls, nanoseconds.
    pub(super) cost_ns: f64,
    /// Time with at least one of the calls under way, nanoseconds.
    pub(super) busy_ns: f64,
    /// Whether a call to another endpoint ended before the first of these began.
    pub(super) is_after_another: bool,
    pub(super) items: Items,
    pub(super) pace: Pace,
}

impl Sighting<'_> {
    pub(super) fn weight(&self) -> f64 {
        self.handled.weight()
    }
}

/// Host of a call: its address and port, the URL's host, or the remote service.
pub(super) fn host_of(span: &Span) -> String {
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

/// One sighting per endpoint, the costliest.
pub(super) fn sightings<'a>(handled: &'a Handled<'a>, thresholds: &Thresholds) -> Vec<Sighting<'a>> {
    let mut siblings: BTreeMap<(&str, String, SpanId), Vec<&Call<'_>>> = BTreeMap::new();
    for call in handled.calls.iter().filter(|call| call.query.is_none() && may_be_item(call)) {
        siblings.entry((&call.kind, host_of(call.last()), call.parent)).or_default().push(call);
    }
    let mut groups: Vec<_> =
        siblings.into_iter().filter(|(_, calls)| calls.len() >= thresholds.chatty_http.chatty_calls).collect();
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
    let mut seen: HashSet<&str> = HashSet::new();
    let calls: Vec<&Call<'_>> =
        all.into_iter().filter(|call| items != Items::Different || seen.insert(&call.request)).collect();
    if calls.len() < thresholds.chatty_http.chatty_calls {
        return None;
    }
    let pace = pace_of(handled.request.trace, &calls)?;
    let until_ns = handled.request.entry.end_ns;
    let times = |call: &Call<'_>| (call.start_ns(), call.end_ns().min(until_ns));
    let (start_ns, end_ns) = (calls[0].start_ns(), calls.iter().map(|call| times(call).1).max()?);
    let ids: HashSet<SpanId> = calls.iter().map(|call| call.attempts[0].span_id).collect();
    let others = || handled.calls.iter().filter(|call| !ids.contains(&call.attempts[0].span_id));
    let whole = Times::union_of([(start_ns, end_ns)]).without(&Times::union_of(others().map(times)));
    let own = Times::union_of(calls.iter().map(|call| times(call)));
    let waits = Times::union_of(handled.request.housekeeping.iter().map(|span| handled.request.time_of(span)));
    let busy_ns = own.length_ns();
    let call_ns = calls.iter().map(|call| call.end_ns().saturating_sub(call.start_ns()) as f64).sum::<f64>();
    let gap_ns_max = (call_ns / calls.len() as f64).max(SHORT_GAP_NS as f64);
    let theirs = whole.without(&whole.without(&own).without(&waits).longer_than(gap_ns_max));
    let is_source = |other: &Call<'_>| other.kind != calls[0].kind && other.end_ns() <= start_ns;
    let is_after_another = others().any(is_source);
    Some(Sighting { handled, cost_ns: theirs.length_ns(), busy_ns, is_after_another, items, pace, calls })
}

/// Items that the calls request: the same one, different ones, or unknown ones. `None` if they poll one address, or if
/// a call to the same address is not a successful read.
fn items_of(calls: &[&Call<'_>]) -> Option<Items> {
    if calls.iter().any(|call| call.request.is_empty()) {
        return Some(Items::Unknown);
    }
    if calls.iter().any(|call| call.request != calls[0].request) {
        return Some(Items::Different);
    }
    let times = Times::union_of(calls.iter().map(|call| (call.start_ns(), call.end_ns())));
    let whole_ns = calls.iter().map(|call| call.end_ns()).max()?.saturating_sub(calls[0].start_ns()) as f64;
    let is_read = |span: &Span| {
        let facts = &span.facts;
        let is_get = facts.http_method.as_deref().is_none_or(|method| method == "GET");
        is_get && !went_wrong(span) && facts.http_status.is_none_or(|status| status == 200 || status == 304)
    };
    let pauses_ns = whole_ns - times.length_ns();
    (pauses_ns < times.length_ns() && calls.iter().all(|call| is_read(call.last()))).then_some(Items::Same)
}

/// Whether a remote call may fetch a single item: not a page, a batch or an asset.
fn may_be_item(call: &Call<'_>) -> bool {
    let facts = &call.last().facts;
    let is_remote = facts.http_method.is_some() || facts.url.is_some() || facts.rpc_method.is_some();
    let path = call.request.split(['?', '#']).next().unwrap_or("").to_ascii_lowercase();
    let is_asset = ASSETS.iter().any(|ending| path.ends_with(ending));
    is_remote && !is_asset && !is_page(&call.request) && !is_batch(call)
}

/// Whether an address requests several items, or the call is a batch by its name or size.
fn is_batch(call: &Call<'_>) -> bool {
    let lower = call.request.to_ascii_lowercase();
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
