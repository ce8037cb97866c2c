//! Parts of a report's page, for pages that others make.

use std::collections::BTreeSet;

use maud::{Markup, html};
use narrows_diagnose::critical_path::critical_path;
use narrows_model::comparison::Outcome;
use narrows_model::table::Table;
use narrows_model::trace::Trace;
use narrows_model::units;

use super::axis::{Axis, Unit};
use super::charts::{self, Chart, Line};
use super::waterfall::{self, PathIntervals, Scale};
use super::{Palette, blocks, cut, header};
use crate::sections::{self, Context};
use crate::table::{self, TimeLine};

/// Style sheet of the parts.
pub const STYLE: &str = include_str!("style.css");
/// Script of the parts, which are whole without it.
pub const SCRIPT: &str = include_str!("script.js");

/// Points of a line at most.
const POINTS_MAX: usize = 400;
/// Rows of the table of a critical path.
const PATH_ROWS_MAX: usize = 12;
/// Characters of a span's name there.
const NAME_CHARS_MAX: usize = 120;

/// The report of a run, from its title to its last section.
pub fn report(outcome: &Outcome) -> Markup {
    let sections = sections::all(&Context::for_page(outcome));
    html! {
        (header(&sections::head(outcome)))
        @for section in &sections { (blocks::section(section)) }
    }
}

/// Calls between the services of a trial under one level of its load, as sockets show them; `None` where no service calls
/// another. Trial and level are places in the outcome.
pub fn calls(outcome: &Outcome, trial: usize, level: usize) -> Option<Markup> {
    sections::calls_under(outcome, trial, level).map(|section| blocks::section(&section))
}

/// The lines over time that a query requests; `None` if it requests none.
pub fn chart_over_time(table: &Table) -> Option<Markup> {
    let lines = table::over_time(table)?;
    let points = || lines.iter().flat_map(|line| &line.points);
    let seconds = points().map(|(at, _)| *at).fold(1.0, f64::max);
    let most = points().map(|(_, value)| *value).fold(0.0, f64::max);
    let unit = if lines.iter().all(|line| line.is_duration) { Unit::Duration } else { Unit::Number };
    let classes = (0..lines.len()).map(|at| format!("c{}", at % 8)).collect::<Vec<_>>();
    let of = |(line, class): (&'_ TimeLine, &'_ String)| (class.clone(), line.name.clone());
    let legend: Vec<(String, String)> = lines.iter().zip(&classes).map(of).collect();
    let drawn = lines.iter().zip(&classes).map(|(line, class)| Line::named(&line.name, class, &line.points));
    Some(charts::figure(&Chart {
        title: "Over time",
        x: &Axis::clock(seconds),
        left: &Axis::linear(most, unit),
        left_name: "",
        right: None,
        lines: drawn.collect(),
        shaded: &[],
        levels: Vec::new(),
        legend: legend.iter().map(|(class, name)| (class.as_str(), name.clone())).collect(),
        points_max: POINTS_MAX,
    }))
}

/// A request from end to end with its critical path. Spans with a marked id, in hexadecimal, stand out.
pub fn trace(trace: &Trace, marked: &BTreeSet<&str>) -> Markup {
    let palette = Palette::of_traces(&[trace]);
    drawn(trace, marked, &palette, waterfall::length_ns(trace), waterfall::ROWS_MAX * 2)
}

/// Two requests on one time scale.
pub fn two_traces(first: &Trace, second: &Trace) -> Markup {
    let palette = Palette::of_traces(&[first, second]);
    let length_ns = waterfall::length_ns(first).max(waterfall::length_ns(second));
    let one = |trace| drawn(trace, &BTreeSet::new(), &palette, length_ns, waterfall::ROWS_MAX);
    html! { div.pair { div { (one(first)) } div { (one(second)) } } }
}

fn drawn(trace: &Trace, marked: &BTreeSet<&str>, palette: &Palette, length_ns: f64, rows_max: usize) -> Markup {
    let path = path_of(trace);
    let scale = Scale { length_ns, palette, rows_max, path: &path };
    html! {
        (waterfall::html(trace, marked, &scale))
        (times(trace, &path))
    }
}

fn path_of(trace: &Trace) -> PathIntervals {
    let mut intervals = PathIntervals::default();
    for section in critical_path(trace, None).unwrap_or_default().sections {
        if let Some(span) = trace.spans.get(section.span) {
            intervals.entry((span.span_id, span.start_ns)).or_default().push((section.start_ns, section.end_ns));
        }
    }
    intervals
}

/// Time of the critical path by service and name of span.
fn times(trace: &Trace, path: &PathIntervals) -> Markup {
    let mut times: Vec<(&str, &str, i64)> = Vec::new();
    for span in &trace.spans {
        let intervals = path.get(&(span.span_id, span.start_ns)).into_iter().flatten();
        let spent_ns: i64 = intervals.map(|(from_ns, to_ns)| to_ns - from_ns).sum();
        match times.iter_mut().find(|(service, name, _)| (*service, *name) == (&span.service, &span.name)) {
            Some((.., sum_ns)) => *sum_ns += spent_ns,
            None => times.push((&span.service, &span.name, spent_ns)),
        }
    }
    let all_ns: i64 = times.iter().map(|(.., spent_ns)| spent_ns).sum();
    times.retain(|(.., spent_ns)| *spent_ns > 0);
    times.sort_by_key(|(.., spent_ns)| std::cmp::Reverse(*spent_ns));
    html! {
        @if all_ns > 0 {
            h3 { "On the critical path" }
            div.scroll {
                table {
                    thead { tr { th { "service" } th { "span" } th.n { "time" } th.n { "share" } } }
                    tbody {
                        @for (service, name, spent_ns) in times.iter().take(PATH_ROWS_MAX) {
                            tr {
                                td { (cut(service, NAME_CHARS_MAX)) }
                                td { (cut(name, NAME_CHARS_MAX)) }
                                td.n { (units::duration(*spent_ns as f64)) }
                                td.n { (units::percent(*spent_ns as f64 / all_ns as f64)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
