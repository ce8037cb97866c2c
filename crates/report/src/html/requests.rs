//! One request of each variant from end to end: the first and the last variant's beside each other on one time scale,
//! then those in between.

use std::collections::BTreeSet;

use narrows_model::comparison::Outcome;
use narrows_model::finding::Finding;
use narrows_model::trace::{Span, hex};
use narrows_model::units;

use super::escape::Esc;
use super::palette::Palette;
use super::peers::{Candidates, Peer, peers};
use super::waterfall;
use crate::figures::plural;
use crate::recurring::{self, VariantFindings};

/// Rows of all waterfalls of the page together.
const WATERFALL_ROWS_TOTAL: usize = 450;
/// Rows of a waterfall however many there are.
const WATERFALL_ROWS_MIN: usize = 18;
/// Variants whose waterfall is drawn.
const WATERFALLS_MAX: usize = 24;

/// One variant's request, chosen to be shown.
pub(super) struct Request<'a> {
    variant: &'a str,
    peer: Peer<'a>,
    findings: Vec<&'a Finding>,
}

/// The requests to show, one of each variant that has any.
pub(super) fn choose(outcome: &Outcome) -> Vec<Request<'_>> {
    let mut variants = recurring::by_variant(outcome);
    variants.truncate(WATERFALLS_MAX);
    let candidates = variants.iter().map(|variant| {
        let traces = variant.trials.iter().flat_map(|index| &outcome.evidence.trials[*index].traces);
        Candidates::new(variant, traces)
    });
    let peers = peers(&candidates.collect::<Vec<_>>());
    variants.iter().zip(peers).filter_map(|(variant, peer)| Some(Request::new(variant, peer?))).collect()
}

/// The ids of the traces that the page shows.
pub(super) fn ids(requests: &[Request<'_>]) -> BTreeSet<String> {
    requests.iter().map(|request| hex(&request.peer.trace.id)).collect()
}

/// The section with all requests; empty when there is none.
pub(super) fn section(requests: &[Request<'_>], palette: &Palette) -> String {
    let Some((first, rest)) = requests.split_first() else { return String::new() };
    let rows_max = (WATERFALL_ROWS_TOTAL / requests.len()).clamp(WATERFALL_ROWS_MIN, waterfall::ROWS_MAX);
    let own = |request: &Request<'_>| waterfall::length_ns(request.peer.trace);
    let draw = |request: &Request<'_>, lead: &str, length_ns: f64| request.html(lead, length_ns, palette, rows_max);
    let body = match rest.split_last() {
        None => draw(first, "", own(first)),
        Some((last, between)) => {
            let longest_ns = own(first).max(own(last));
            let between: String = between.iter().map(|request| draw(request, "", own(request))).collect();
            format!(
                "<p class=\"note\">Before and after stand on one time scale, and each request is \
                 about as slow among its like as the other.</p><div class=\"pair\"><div>{}</div>\
                 <div>{}</div></div>{between}",
                draw(first, "<small>before</small> ", longest_ns),
                draw(last, "<small>after</small> ", longest_ns)
            )
        }
    };
    format!("<section id=\"requests\"><h2>One request, end to end</h2>{body}</section>\n")
}

impl<'a> Request<'a> {
    fn new(variant: &VariantFindings<'a>, peer: Peer<'a>) -> Self {
        let findings = variant.findings.iter().map(|recurring| recurring.finding).collect();
        Self { variant: variant.variant, peer, findings }
    }

    fn html(&self, lead: &str, length_ns: f64, palette: &Palette, rows_max: usize) -> String {
        let exemplars = self.findings.iter().flat_map(|finding| &finding.exemplars);
        let marked: BTreeSet<&str> = exemplars.flat_map(|e| e.span_ids.iter().map(String::as_str)).collect();
        let Peer { trace, percentile, of } = self.peer;
        let root = trace.root();
        format!(
            "<h3>{lead}{}</h3><p class=\"note\">{} · {} · slower than {} of {} · {} · trace <code>{}</code></p>{}",
            Esc(self.variant),
            Esc(root.map_or("", |span| span.name.as_str())),
            units::duration(root.map_or(0.0, |span| Span::duration_ns(span) as f64)),
            units::percent(percentile),
            plural(of, "trace", "traces"),
            plural(trace.spans.len(), "span", "spans"),
            hex(&trace.id),
            waterfall::html(trace, &marked, palette, rows_max, length_ns)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::drones;

    #[test]
    fn before_and_after_share_their_time_scale() {
        let outcome = drones::outcome();
        let requests = choose(&outcome);
        let html = section(&requests, &Palette::new(&outcome.evidence));
        let steps: Vec<&str> = html.split("--step:").skip(1).filter_map(|rest| rest.split('%').next()).collect();
        assert_eq!(steps.len(), 4);
        assert_eq!(steps[0], steps[1]);
        assert_ne!(steps[0], steps[2]);
        let order = ["before</small> baseline", "after</small> partition-key", "<h3>more-throughput", "<h3>parallel"];
        let places: Vec<Option<usize>> = order.iter().map(|text| html.find(text)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    }
}
