//! One request of each variant from end to end: the first and the last variant's beside each other on one time scale,
//! then those in between.

use std::collections::BTreeSet;

use narrows_model::comparison::Outcome;
use narrows_model::finding::Finding;
use narrows_model::trace::{Span, Trace, hex};
use narrows_model::units;

use super::escape::Esc;
use super::palette::Palette;
use super::waterfall;
use crate::figures::plural;
use crate::recurring;

/// Rows of all waterfalls of the page together.
const WATERFALL_ROWS_TOTAL: usize = 450;
/// Rows of a waterfall however many there are.
const WATERFALL_ROWS_MIN: usize = 18;
/// Variants whose waterfall is drawn.
const WATERFALLS_MAX: usize = 24;

/// One variant's request, chosen to be shown.
pub(super) struct Request<'a> {
    variant: &'a str,
    trace: &'a Trace,
    findings: Vec<&'a Finding>,
}

/// The requests to show, one of each variant that has any.
pub(super) fn choose(outcome: &Outcome) -> Vec<Request<'_>> {
    let mut requests = Vec::new();
    for variant in recurring::by_variant(outcome).into_iter().take(WATERFALLS_MAX) {
        let findings: Vec<&Finding> = variant.findings.iter().map(|recurring| recurring.finding).collect();
        let traces = variant.trials.iter().map(|index| &outcome.evidence.trials[*index].traces);
        let exemplar = traces.clone().find_map(|traces| {
            let chosen = waterfall::choose(traces, &findings)?;
            let id = hex(&chosen.id);
            findings.iter().flat_map(|f| &f.exemplars).any(|e| e.trace_id == id).then_some(chosen)
        });
        let chosen = exemplar.or_else(|| traces.clone().find_map(|traces| waterfall::choose(traces, &[])));
        requests.extend(chosen.map(|trace| Request { variant: variant.variant, trace, findings }));
    }
    requests
}

/// The ids of the traces that the page shows.
pub(super) fn ids(requests: &[Request<'_>]) -> BTreeSet<String> {
    requests.iter().map(|request| hex(&request.trace.id)).collect()
}

/// The section with all requests; empty when there is none.
pub(super) fn section(requests: &[Request<'_>], palette: &Palette) -> String {
    let Some((first, rest)) = requests.split_first() else { return String::new() };
    let rows_max = (WATERFALL_ROWS_TOTAL / requests.len()).clamp(WATERFALL_ROWS_MIN, waterfall::ROWS_MAX);
    let own = |request: &Request<'_>| waterfall::length_ns(request.trace);
    let draw = |request: &Request<'_>, lead: &str, length_ns: f64| request.html(lead, length_ns, palette, rows_max);
    let body = match rest.split_last() {
        None => draw(first, "", own(first)),
        Some((last, between)) => {
            let longest_ns = own(first).max(own(last));
            let between: String = between.iter().map(|request| draw(request, "", own(request))).collect();
            format!(
                "<p class=\"note\">Before and after stand on one time scale.</p><div class=\"pair\"><div>{}</div>\
                 <div>{}</div></div>{between}",
                draw(first, "<small>before</small> ", longest_ns),
                draw(last, "<small>after</small> ", longest_ns)
            )
        }
    };
    format!("<section id=\"requests\"><h2>One request, end to end</h2>{body}</section>\n")
}

impl Request<'_> {
    fn html(&self, lead: &str, length_ns: f64, palette: &Palette, rows_max: usize) -> String {
        let exemplars = self.findings.iter().flat_map(|finding| &finding.exemplars);
        let marked: BTreeSet<&str> = exemplars.flat_map(|e| e.span_ids.iter().map(String::as_str)).collect();
        let root = self.trace.root();
        format!(
            "<h3>{lead}{}</h3><p class=\"note\">{} · {} · {} · trace <code>{}</code></p>{}",
            Esc(self.variant),
            Esc(root.map_or("", |span| span.name.as_str())),
            units::duration(root.map_or(0.0, |span| Span::duration_ns(span) as f64)),
            plural(self.trace.spans.len(), "span", "spans"),
            hex(&self.trace.id),
            waterfall::html(self.trace, &marked, palette, rows_max, length_ns)
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
