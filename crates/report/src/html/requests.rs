//! One request of each variant from end to end: the first and the last variant's beside each other on one time scale,
//! then those in between.

use std::collections::BTreeSet;

use maud::{Markup, html};
use narrows_model::comparison::Outcome;
use narrows_model::finding::Finding;
use narrows_model::trace::{Span, hex};
use narrows_model::units;

use super::peers::{Candidates, Peer, peers};
use super::waterfall::{self, PathIntervals, Scale};
use crate::figures::plural;
use crate::recurring::{self, VariantFindings};
use crate::section::{Block, Section};
use crate::sections::Context;

/// Rows of all waterfalls of the page together.
const WATERFALL_ROWS_TOTAL: usize = 450;
/// Rows of a waterfall however many there are.
const WATERFALL_ROWS_MIN: usize = 18;
/// Variants whose waterfall is drawn.
const WATERFALLS_MAX: usize = 24;

/// One variant's request, chosen to be shown.
pub(crate) struct Request<'a> {
    variant: &'a str,
    peer: Peer<'a>,
    findings: Vec<&'a Finding>,
}

/// The requests to show, one of each variant that has any.
pub(crate) fn choose(outcome: &Outcome) -> Vec<Request<'_>> {
    let mut variants = recurring::by_variant(outcome);
    variants.truncate(WATERFALLS_MAX);
    let candidates = variants.iter().map(|variant| {
        let traces = variant.trials.iter().flat_map(|index| &outcome.evidence.trials[*index].traces);
        Candidates::new(variant, traces)
    });
    let peers = peers(&candidates.collect::<Vec<_>>());
    variants.iter().zip(peers).filter_map(|(variant, peer)| Some(Request::new(variant, peer?))).collect()
}

/// The section with all requests; without blocks if there is none.
pub(crate) fn section(context: &Context<'_>) -> Section {
    let Some((first, rest)) = context.requests.split_first() else { return Section::default() };
    let rows_max = (WATERFALL_ROWS_TOTAL / context.requests.len()).clamp(WATERFALL_ROWS_MIN, waterfall::ROWS_MAX);
    let no_path = PathIntervals::default();
    let own = |request: &Request<'_>| waterfall::length_ns(request.peer.trace);
    let draw = |request: &Request<'_>, lead: &str, length_ns: f64| {
        request.html(lead, &Scale { length_ns, palette: &context.palette, rows_max, path: &no_path })
    };
    let drawing = match rest.split_last() {
        None => draw(first, "", own(first)),
        Some((last, between)) => {
            let longest_ns = own(first).max(own(last));
            html! {
                p.note {
                    "Before and after stand on one time scale, and each request is about as slow among its like as the other."
                }
                div.pair {
                    div { (draw(first, "before", longest_ns)) }
                    div { (draw(last, "after", longest_ns)) }
                }
                @for request in between { (draw(request, "", own(request))) }
            }
        }
    };
    Section::new("requests", "One request, end to end", vec![Block::Drawing(drawing)])
}

impl<'a> Request<'a> {
    fn new(variant: &VariantFindings<'a>, peer: Peer<'a>) -> Self {
        let findings = variant.findings.iter().map(|recurring| recurring.finding).collect();
        Self { variant: variant.variant, peer, findings }
    }

    pub(crate) fn trace_id(&self) -> String {
        hex(&self.peer.trace.id)
    }

    fn html(&self, lead: &str, scale: &Scale<'_>) -> Markup {
        let exemplars = self.findings.iter().flat_map(|finding| &finding.exemplars);
        let marked: BTreeSet<&str> = exemplars.flat_map(|e| e.span_ids.iter().map(String::as_str)).collect();
        let Peer { trace, percentile, of } = self.peer;
        let root = trace.root();
        let facts = [
            root.map_or(String::new(), |span| span.name.clone()),
            units::duration(root.map_or(0.0, |span| Span::duration_ns(span) as f64)),
            format!("slower than {} of {}", units::percent(percentile), plural(of, "trace", "traces")),
            plural(trace.spans.len(), "span", "spans"),
        ];
        html! {
            h3 { @if !lead.is_empty() { small { (lead) } " " } (self.variant) }
            p.note { (facts.join(" · ")) " · trace " code { (self.trace_id()) } }
            (waterfall::html(trace, &marked, scale))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::drones;

    #[test]
    fn before_and_after_share_their_time_scale() {
        let outcome = drones::outcome();
        let html = super::super::plain(&section(&Context::for_page(&outcome)));
        let steps: Vec<&str> = html.split("--step:").skip(1).filter_map(|rest| rest.split('%').next()).collect();
        assert_eq!(steps.len(), 4);
        assert_eq!(steps[0], steps[1]);
        assert_ne!(steps[0], steps[2]);
        let order = ["before</small> baseline", "after</small> partition-key", "<h3>more-throughput", "<h3>parallel"];
        let places: Vec<Option<usize>> = order.iter().map(|text| html.find(text)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    }
}
