//! One request from end to end: its spans as nested bars on one time axis.
//!
//! Every row opens to its attributes without any script. Siblings that do the same (same service, name and query) are
//! folded into one row with all their bars on it and open to the single ones, so that an N+1 is one look, not five
//! hundred rows.

use std::collections::{BTreeSet, HashMap, HashSet};

use narrows_model::finding::Finding;
use narrows_model::trace::{Span, SpanId, SpanKind, SpanStatus, Trace, hex};
use narrows_model::units;

use super::axis::{Axis, Unit};
use super::escape::{Esc, cut};
use super::palette::Palette;
use super::span_details;
use crate::figures::plural;

/// Rows of one waterfall at most.
pub(super) const ROWS_MAX: usize = 200;
/// This many siblings that do the same become one row.
const FOLD_FROM: usize = 3;
/// Rows inside a folded one at most.
const FOLDED_SHOWN_MAX: usize = 30;
/// Bars on one folded row at most.
const BARS_MAX: usize = 150;
/// Deeper spans are left out and counted: no call chain that a person reads is that deep.
const DEPTH_MAX: usize = 100;
/// Deeper rows are not indented further.
const INDENT_MAX: usize = 14;
/// Characters of a query shown on its row.
const QUERY_CHARS_MAX: usize = 140;

/// A place in the tree of rows.
#[derive(Debug)]
enum Node<'a> {
    One(&'a Span, Vec<Node<'a>>),
    /// Siblings that do the same.
    Folded(Vec<(&'a Span, Vec<Node<'a>>)>),
}

/// The trace to show for a trial: the first finding's exemplar, else the one of about median duration with most spans.
pub(super) fn choose<'a>(traces: &'a [Trace], findings: &[&Finding]) -> Option<&'a Trace> {
    let shown = |id: &str| traces.iter().find(|trace| hex(&trace.id) == id);
    let exemplar = findings.iter().flat_map(|finding| &finding.exemplars).find_map(|e| shown(&e.trace_id));
    exemplar.or_else(|| typical(traces))
}

fn typical(traces: &[Trace]) -> Option<&Trace> {
    let mut by_length: Vec<&Trace> = traces.iter().filter(|trace| !trace.spans.is_empty()).collect();
    by_length.sort_by_key(|trace| trace.root().map_or(0, Span::duration_ns));
    let (from, to) = (by_length.len() * 2 / 5, by_length.len() * 3 / 5);
    by_length.get(from..=to.min(by_length.len().checked_sub(1)?))?.iter().max_by_key(|trace| trace.spans.len()).copied()
}

/// The anchor of a trace in the page.
pub(super) fn anchor(trace_id: &str) -> String {
    format!("trace-{trace_id}")
}

/// One trace as HTML. `rows_max` bounds its rows, `marked` are span ids that show a finding.
pub(super) fn html(trace: &Trace, marked: &BTreeSet<&str>, palette: &Palette, rows_max: usize) -> String {
    let start_ns = trace.spans.iter().map(|span| span.start_ns).min().unwrap_or(0);
    let end_ns = trace.spans.iter().map(|span| span.end_ns).max().unwrap_or(0);
    let length_ns = end_ns.saturating_sub(start_ns).max(1) as f64;
    let axis = Axis::linear(length_ns, Unit::Duration);
    let nodes = tree(trace);
    let omitted = trace.spans.len() - nodes.iter().map(Node::spans).sum::<usize>();
    let mut drawing =
        Drawing { start_ns, length_ns, marked, palette, rows_left: rows_max, omitted, out: String::new() };
    for node in &nodes {
        drawing.node(node, 0);
    }
    let step = axis.ticks.get(1).map_or(100.0, |tick| tick / length_ns * 100.0);
    let ticks: String = axis
        .ticks
        .iter()
        .filter(|tick| **tick <= length_ns * 0.9)
        .map(|tick| format!("<span style=\"left:{:.2}%\">{}</span>", tick / length_ns * 100.0, axis.label(*tick)))
        .collect();
    let rest = match drawing.omitted {
        0 => String::new(),
        n => format!("<p class=\"note\">{} not shown.</p>", plural(n, "more span", "more spans")),
    };
    format!(
        "<div class=\"waterfall\" id=\"{}\" style=\"--step:{step:.3}%\"><div class=\"scale\"><span></span>\
         <span class=\"ticks\">{ticks}</span><span></span></div>{}</div>{rest}\n",
        anchor(&hex(&trace.id)),
        drawing.out
    )
}

/// The spans as a forest; a span whose parent did not arrive is a root.
fn tree(trace: &Trace) -> Vec<Node<'_>> {
    let known: HashSet<SpanId> = trace.spans.iter().map(|span| span.span_id).collect();
    let mut children: HashMap<Option<SpanId>, Vec<&Span>> = HashMap::new();
    for span in &trace.spans {
        let parent = span.parent_id.filter(|parent| known.contains(parent) && *parent != span.span_id);
        children.entry(parent).or_default().push(span);
    }
    let roots = children.remove(&None).unwrap_or_default();
    fold(roots, &mut children, 0)
}

fn fold<'a>(
    siblings: Vec<&'a Span>,
    children: &mut HashMap<Option<SpanId>, Vec<&'a Span>>,
    depth: usize,
) -> Vec<Node<'a>> {
    let mut groups: Vec<Vec<&'a Span>> = Vec::new();
    let mut group_of: HashMap<_, usize> = HashMap::new();
    for span in siblings {
        let key = (&span.service, &span.name, span.kind, &span.facts.db_query, &span.facts.http_route);
        let index = *group_of.entry(key).or_insert(groups.len());
        match groups.get_mut(index) {
            Some(group) => group.push(span),
            None => groups.push(vec![span]),
        }
    }
    let mut below = |span: &'a Span| {
        let own = if depth < DEPTH_MAX { children.remove(&Some(span.span_id)) } else { None };
        (span, fold(own.unwrap_or_default(), children, depth + 1))
    };
    let mut nodes = Vec::new();
    for group in groups {
        if group.len() >= FOLD_FROM {
            nodes.push(Node::Folded(group.into_iter().map(&mut below).collect()));
        } else {
            nodes.extend(group.into_iter().map(&mut below).map(|(span, below)| Node::One(span, below)));
        }
    }
    nodes.sort_by_key(Node::start_ns);
    nodes
}

impl Node<'_> {
    fn start_ns(&self) -> i64 {
        match self {
            Node::One(span, _) => span.start_ns,
            Node::Folded(spans) => spans.iter().map(|(span, _)| span.start_ns).min().unwrap_or(0),
        }
    }

    fn spans(&self) -> usize {
        match self {
            Node::One(_, below) => 1 + below.iter().map(Node::spans).sum::<usize>(),
            Node::Folded(spans) => {
                spans.iter().map(|(_, below)| 1 + below.iter().map(Node::spans).sum::<usize>()).sum()
            }
        }
    }
}

struct Drawing<'a> {
    start_ns: i64,
    length_ns: f64,
    marked: &'a BTreeSet<&'a str>,
    palette: &'a Palette,
    rows_left: usize,
    omitted: usize,
    out: String,
}

impl Drawing<'_> {
    fn node(&mut self, node: &Node<'_>, depth: usize) {
        if self.rows_left == 0 {
            self.omitted += node.spans();
            return;
        }
        self.rows_left -= 1;
        match node {
            Node::One(span, below) => {
                self.row(span, depth);
                below.iter().for_each(|node| self.node(node, depth + 1));
            }
            Node::Folded(spans) => self.folded(spans, depth),
        }
    }

    fn row(&mut self, span: &Span, depth: usize) {
        let bar = self.bar(span);
        let details = span_details::html(span, self.start_ns);
        self.out += &format!(
            "<details class=\"span {}\"><summary>{}<span class=\"when\">{bar}</span><span class=\"long\">{}</span>\
             </summary>{details}</details>",
            self.classes(&[span]),
            what(span, depth, ""),
            units::duration(span.duration_ns() as f64)
        );
    }

    fn folded(&mut self, spans: &[(&Span, Vec<Node<'_>>)], depth: usize) {
        let Some((first, _)) = spans.first() else { return };
        let every = spans.len().div_ceil(BARS_MAX);
        let bars: String = spans.iter().step_by(every).map(|(span, _)| self.bar(span)).collect();
        let total_ns: f64 = spans.iter().map(|(span, _)| span.duration_ns() as f64).sum();
        let all: Vec<&Span> = spans.iter().map(|(span, _)| *span).collect();
        self.out += &format!(
            "<details class=\"span fold {}\"><summary>{}<span class=\"when\">{bars}</span><span class=\"long\" \
             title=\"all together\">Σ {}</span></summary>",
            self.classes(&all),
            what(first, depth, &format!("<em>× {}</em> ", spans.len())),
            units::duration(total_ns)
        );
        let mut hidden = spans.len();
        for (span, below) in spans.iter().take(FOLDED_SHOWN_MAX) {
            if self.rows_left == 0 {
                break;
            }
            self.rows_left -= 1;
            hidden -= 1;
            self.row(span, depth + 1);
            below.iter().for_each(|node| self.node(node, depth + 2));
        }
        if hidden > 0 {
            self.out += &format!("<p class=\"note\">{hidden} more like these</p>");
        }
        self.out += "</details>";
    }

    fn bar(&self, span: &Span) -> String {
        let left = (span.start_ns.saturating_sub(self.start_ns)) as f64 / self.length_ns * 100.0;
        let width = span.duration_ns() as f64 / self.length_ns * 100.0;
        let left = left.clamp(0.0, 100.0);
        format!("<i style=\"left:{left:.2}%;width:{:.2}%\"></i>", width.min(100.0 - left))
    }

    fn classes(&self, spans: &[&Span]) -> String {
        let Some(first) = spans.first() else { return String::new() };
        let mut classes = vec![self.palette.class(&first.service)];
        if first.kind != SpanKind::Server && first.kind != SpanKind::Consumer {
            classes.push("light");
        }
        if spans.iter().any(|span| is_failed(span)) {
            classes.push("failed");
        }
        if spans.iter().any(|span| self.marked.contains(hex(&span.span_id).as_str())) {
            classes.push("marked");
        }
        classes.join(" ")
    }
}

fn is_failed(span: &Span) -> bool {
    span.status == SpanStatus::Error || span.facts.http_status.is_some_and(|status| status >= 500)
}

fn what(span: &Span, depth: usize, lead: &str) -> String {
    let query = span.facts.db_query.as_deref().map_or(String::new(), |query| {
        let line = query.split_whitespace().collect::<Vec<_>>().join(" ");
        format!(" <code>{}</code>", Esc(cut(&line, QUERY_CHARS_MAX)))
    });
    let failed = if is_failed(span) { "<strong>failed</strong> " } else { "" };
    format!(
        "<span class=\"what\" style=\"--depth:{}\">{failed}{lead}<b>{}</b> {}{query}</span>",
        depth.min(INDENT_MAX),
        Esc(&span.service),
        Esc(cut(&span.name, QUERY_CHARS_MAX))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn shape(nodes: &[Node<'_>]) -> String {
        let one = |span: &Span, below: &[Node<'_>]| match shape(below) {
            inner if inner.is_empty() => span.name.clone(),
            inner => format!("{}({inner})", span.name),
        };
        let parts: Vec<String> = nodes
            .iter()
            .map(|node| match node {
                Node::One(span, below) => one(span, below),
                Node::Folded(spans) => format!("{}×{}", spans.len(), one(spans[0].0, &spans[0].1)),
            })
            .collect();
        parts.join(" ")
    }

    #[test]
    fn siblings_that_do_the_same_are_one_row() {
        let cases = [
            (25, "GET /orders(GET(GET /orders(SELECT shop.orders 24×SELECT shop.customers render)))"),
            (3, "GET /orders(GET(GET /orders(SELECT shop.orders SELECT shop.customers SELECT shop.customers render)))"),
            (1, "GET /orders(GET(GET /orders(SELECT shop.orders render)))"),
        ];
        for (queries, expected) in cases {
            assert_eq!(shape(&tree(&fixture::n_plus_one_trace(queries))), expected);
        }
    }

    #[test]
    fn rows_are_bounded_and_the_rest_is_counted() {
        let trace = fixture::n_plus_one_trace(3);
        let palette = Palette::of(&fixture::outcome().evidence);
        let page = html(&trace, &BTreeSet::new(), &palette, 4);
        assert_eq!(page.matches("<details").count(), 4);
        assert!(page.contains("3 more spans not shown"), "{page}");
    }

    #[test]
    fn five_hundred_queries_fit_one_folded_row() {
        let trace = fixture::n_plus_one_trace(250);
        let palette = Palette::of(&fixture::outcome().evidence);
        let page = html(&trace, &BTreeSet::new(), &palette, ROWS_MAX);
        assert!(page.contains("<em>× 249</em>") && page.contains("219 more like these"));
        assert!(page.matches("<details").count() < 40);
    }

    #[test]
    fn spans_that_name_each_other_as_parent_do_not_hang() {
        let mut trace = fixture::n_plus_one_trace(1);
        let (first, second) = (trace.spans[1].span_id, trace.spans[2].span_id);
        trace.spans[1].parent_id = Some(second);
        trace.spans[2].parent_id = Some(first);
        trace.spans[0].parent_id = Some(trace.spans[0].span_id);
        assert_eq!(shape(&tree(&trace)), "GET /orders");
        let palette = Palette::of(&fixture::outcome().evidence);
        assert!(html(&trace, &BTreeSet::new(), &palette, ROWS_MAX).contains("4 more spans not shown"));
    }

    #[test]
    fn without_an_exemplar_the_typical_trace_is_shown() {
        let outcome = fixture::outcome();
        let traces = &outcome.evidence.trials[0].traces;
        assert_eq!(choose(traces, &[]).map(|trace| trace.id), Some(traces[1].id));
        let finding = &outcome.findings[0][0];
        assert_eq!(choose(traces, &[finding]).map(|trace| trace.id), Some(traces[0].id));
        assert_eq!(choose(&[], &[finding]), None);
    }
}
