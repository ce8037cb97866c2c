//! The charts of a run: a row for each question, a column for each trial shown, all of one row on the same scales.
//!
//! Two trials stand side by side; which two, the reader chooses. Without the script every trial is shown.

use maud::{Markup, html};
use narrows_model::comparison::Outcome;
use narrows_model::evidence::TrialEvidence;
use narrows_model::series::names;

use super::axis::{Axis, Unit};
use super::charts::{Chart, Label, Line, Side, figure};
use super::inside_panels::Scales;
use super::insides::{Insides, Subjects};
use super::palette::Palette;
use super::thin::Xy;
use super::timeline::{self, ServiceLine, Timeline};
use crate::section::{Block, Medium, Phrase, Section};
use crate::sections::Context;

/// Trials drawn at most; later ones are in the run file.
const TRIALS_MAX: usize = 24;
/// Charts of the page at most: with many rows, fewer trials are drawn.
const CHARTS_TOTAL: usize = 140;
/// Points of one line at most.
const POINTS_MAX: usize = 600;
/// Points of one line however many lines there are.
const POINTS_MIN: usize = 40;
/// Points of all lines of the page together with the frames of the charts, about.
const POINTS_TOTAL: usize = 44_000;
/// A chart's frame is as large as this many points.
const FRAME_POINTS: usize = 200;
/// Variants with a chart at the top at most.
const OVERVIEW_MAX: usize = 12;
/// Points of one line of these charts at most.
const OVERVIEW_POINTS_MAX: usize = 90;
/// Room above the highest line, so that it does not lie on the frame.
const HEADROOM: f64 = 1.06;
/// A limit further above its line than this factor is not drawn: it would press the line flat.
const LIMIT_SHOWN_TIMES: f64 = 3.0;

/// Lines of the charts that every trial has: load, arrivals, latency, errors, CPU and memory of up to nine services.
const LINES_OF_A_TRIAL: usize = 19;

/// One trial with its lines.
pub(super) struct Panel {
    pub(super) label: String,
    variant: String,
    timeline: Timeline,
    pub(super) insides: Insides,
}

/// The axes all trials share.
struct Axes {
    time: Axis,
    users: Axis,
    rate: Axis,
    latency: Axis,
    cpu: Axis,
    memory: Axis,
    errors: Axis,
    arrivals: Axis,
}

/// Charts of throughput and users over time, one for each variant, on one scale; without blocks if fewer than two were measured.
pub(crate) fn overview(context: &Context<'_>) -> Section {
    if context.medium == Medium::Terminal {
        return Section::default();
    }
    let firsts = context.outcome.evidence.trials.iter().filter(|trial| trial.trial.repetition <= 1);
    let panel = |trial| Panel::new(trial, &context.palette, Insides::default());
    let panels: Vec<Panel> = firsts.map(panel).filter(Panel::is_measured).take(OVERVIEW_MAX).collect();
    if panels.len() < 2 {
        return Section::default();
    }
    let axes = axes(&panels);
    let columns = if panels.len() == 4 { 2 } else { panels.len().min(3) };
    let drawing = html! {
        div.overview style={ "--columns:" (columns) } {
            @for panel in &panels { (figure(&load_chart(&axes, panel, &panel.variant, OVERVIEW_POINTS_MAX))) }
        }
    };
    Section::new("overview", "", vec![Block::Drawing(drawing)])
}

impl Panel {
    fn new(trial: &TrialEvidence, palette: &Palette, insides: Insides) -> Self {
        let timeline = timeline::gather(trial, palette);
        Self { label: trial.trial.label(), variant: trial.trial.variant.clone(), timeline, insides }
    }

    fn is_measured(&self) -> bool {
        self.timeline.length_s > 0.0
    }
}

/// All charts; without blocks if nothing was measured.
pub(crate) fn section(context: &Context<'_>) -> Section {
    if context.medium == Medium::Terminal {
        return Section::default();
    }
    let (outcome, palette) = (context.outcome, &context.palette);
    let subjects = Subjects::new(&outcome.evidence);
    let panel = |trial| Panel::new(trial, palette, Insides::new(trial, &subjects));
    let measured: Vec<Panel> = outcome.evidence.trials.iter().map(panel).filter(Panel::is_measured).collect();
    if measured.is_empty() {
        return Section::default();
    }
    let rows = rows(&measured);
    let panels = &measured[..measured.len().min(TRIALS_MAX).min(CHARTS_TOTAL / rows.len())];
    let axes = axes(panels);
    let lines: usize = panels.iter().map(|panel| panel.insides.lines() + LINES_OF_A_TRIAL).sum();
    let points = POINTS_TOTAL.saturating_sub(rows.len() * panels.len() * FRAME_POINTS);
    let points_max = (points / lines).clamp(POINTS_MIN, POINTS_MAX);
    let scales = Scales::new(panels);
    let draw = Draw { axes: &axes, scales: &scales, subjects: &subjects, palette, points_max };
    let pair = default_pair(outcome, panels);
    let mut blocks = vec![Block::Drawing(html! { (chooser(panels, pair)) (draw.all(&rows, panels, pair)) })];
    if measured.len() > panels.len() {
        let more = format!("{} more trials are not drawn.", measured.len() - panels.len());
        blocks.push(Block::Note(Phrase::from(more)));
    }
    Section::new("charts", "Over time", blocks)
}

/// The first trial, and the first one of the last variant.
fn default_pair(outcome: &Outcome, panels: &[Panel]) -> [usize; 2] {
    let last = outcome.comparison.variants.last().map_or("", |variant| variant.variant.as_str());
    let other = panels.iter().position(|panel| panel.label == last).unwrap_or(panels.len() - 1);
    [0, other]
}

/// Two lists to choose the trials from; the name of the trial if there is no choice.
fn chooser(panels: &[Panel], pair: [usize; 2]) -> Markup {
    if panels.len() < 2 {
        return html! { p.note { "Trial " (panels[0].label) } };
    }
    html! {
        div.chooser {
            @for (side, name) in ["left trial", "right trial"].into_iter().enumerate() {
                select aria-label=(name) data-side=(side) {
                    @for (n, panel) in panels.iter().enumerate() {
                        option value=(n) selected[n == pair[side]] { (panel.label) }
                    }
                }
            }
        }
    }
}

pub(super) fn peak<'a>(lines: impl Iterator<Item = &'a [Xy]>) -> f64 {
    lines.flatten().map(|point| point.1).filter(|value| value.is_finite()).fold(0.0, f64::max)
}

fn axes(panels: &[Panel]) -> Axes {
    let timelines = || panels.iter().map(|panel| &panel.timeline);
    let latencies = || timelines().flat_map(|t| t.latency.iter().map(Vec::as_slice));
    let fastest = latencies().flatten().map(|point| point.1).filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
    let with_limits = |lines: fn(&Timeline) -> &Vec<ServiceLine>| {
        let all = || timelines().flat_map(lines);
        let limits = all().filter_map(shown_limit).fold(0.0, f64::max);
        peak(all().map(|line| line.points.as_slice())).max(limits)
    };
    Axes {
        time: Axis::clock(timelines().map(|timeline| timeline.length_s).fold(0.0, f64::max)),
        users: Axis::linear(peak(timelines().map(|t| t.users.as_slice())) * HEADROOM, Unit::Count),
        rate: Axis::linear(peak(timelines().map(|t| t.rate.as_slice())), Unit::Count),
        latency: Axis::for_range(fastest, peak(latencies()), Unit::Duration),
        cpu: Axis::linear(with_limits(|t| &t.cpu) * HEADROOM, Unit::Cores),
        memory: Axis::linear(with_limits(|t| &t.memory) * HEADROOM, Unit::Bytes),
        errors: Axis::linear(peak(timelines().map(|t| t.errors.as_slice())), Unit::Count),
        arrivals: Axis::linear(
            peak(timelines().flat_map(|t| t.arrivals.iter().map(Vec::as_slice))) * HEADROOM,
            Unit::Count,
        ),
    }
}

fn shown_limit(line: &ServiceLine) -> Option<f64> {
    let most = peak(std::iter::once(line.points.as_slice()));
    line.limit.filter(|limit| *limit <= most * LIMIT_SHOWN_TIMES)
}

/// Draws one chart of a trial.
type Row = fn(&Draw<'_>, &Panel) -> Markup;

/// The charts of each trial, from top to bottom: those that any trial has something for.
fn rows(panels: &[Panel]) -> Vec<Row> {
    let mut rows: Vec<Row> = vec![|d, p| d.load(p), |d, p| d.latency(p)];
    let any = |has: fn(&Timeline) -> bool| panels.iter().any(|panel| has(&panel.timeline));
    if any(|t| !t.arrivals[0].is_empty()) {
        rows.insert(1, |d, p| d.arrivals(p));
    }
    if any(|t| t.errors.iter().any(|point| point.1 > 0.0)) {
        rows.push(|d, p| d.errors(p));
    }
    let inside = |has: fn(&Insides) -> bool| panels.iter().any(|panel| has(&panel.insides));
    if inside(|i| i.operations.iter().any(|line| !line.is_empty())) {
        rows.push(|d, p| d.operations(p));
    }
    if inside(|i| !i.responses[0].is_empty()) {
        rows.push(|d, p| d.responses(p));
    }
    if inside(|i| !i.throughput.mean.is_empty()) {
        rows.push(|d, p| d.throughput(p));
    }
    if inside(|i| !i.cpu[0].is_empty()) {
        rows.push(|d, p| d.cpu(p));
    }
    if any(|t| !t.cpu.is_empty()) {
        rows.push(|d, p| d.resource(p, "CPU of each service", &p.timeline.cpu, &d.axes.cpu, "cores"));
    }
    if any(|t| !t.memory.is_empty()) {
        rows.push(|d, p| d.resource(p, "Memory", &p.timeline.memory, &d.axes.memory, "memory"));
    }
    rows
}

pub(super) struct Draw<'a> {
    axes: &'a Axes,
    pub(super) scales: &'a Scales,
    pub(super) subjects: &'a Subjects<'a>,
    palette: &'a Palette,
    points_max: usize,
}

impl Draw<'_> {
    fn all(&self, rows: &[Row], panels: &[Panel], pair: [usize; 2]) -> Markup {
        html! {
            div.panels.alone[panels.len() == 1] {
                @for (row, drawn) in rows.iter().enumerate() {
                    @for (n, panel) in panels.iter().enumerate() {
                        @let order = row * 2 + usize::from(n == pair[1] && pair[0] != pair[1]);
                        div.panel data-trial=(n) data-row=(row) style={ "order:" (order) } hidden[!pair.contains(&n)] {
                            (drawn(self, panel))
                        }
                    }
                }
            }
        }
    }

    pub(super) fn chart<'a>(
        &'a self,
        title: &'a str,
        left: &'a Axis,
        left_name: &'a str,
        panel: &'a Panel,
    ) -> Chart<'a> {
        let points_max = self.points_max;
        Chart { title, left, left_name, points_max, ..empty_chart(&self.axes.time, left, panel) }
    }

    fn load(&self, panel: &Panel) -> Markup {
        let title = format!("Users and throughput · {}", panel.label);
        figure(&load_chart(self.axes, panel, &title, self.points_max))
    }

    fn latency(&self, panel: &Panel) -> Markup {
        let title = format!("Latency · {}", panel.label);
        let mut chart = self.chart(&title, &self.axes.latency, "latency", panel);
        let names = [("p50", "p50"), ("p95", "p95"), ("p99", "p99")];
        for ((name, class), points) in names.into_iter().zip(&panel.timeline.latency) {
            chart.lines.push(Line::named(name, class, points));
        }
        figure(&chart)
    }

    fn arrivals(&self, panel: &Panel) -> Markup {
        let title = format!("Offered and achieved · {}", panel.label);
        let mut chart = self.chart(&title, &self.axes.arrivals, "iterations/s", panel);
        let names = [("offered", "users"), ("achieved", "rate")];
        for ((name, class), points) in names.into_iter().zip(&panel.timeline.arrivals) {
            chart.lines.push(Line::named(name, class, points));
        }
        figure(&chart)
    }

    fn errors(&self, panel: &Panel) -> Markup {
        let title = format!("Errors · {}", panel.label);
        let mut chart = self.chart(&title, &self.axes.errors, "errors/s", panel);
        chart.lines.push(Line::named("errors/s", "bad", &panel.timeline.errors));
        figure(&chart)
    }

    fn resource(&self, panel: &Panel, what: &str, lines: &[ServiceLine], axis: &Axis, axis_name: &str) -> Markup {
        let title = format!("{what} · {}", panel.label);
        let mut chart = self.chart(&title, axis, axis_name, panel);
        for line in lines {
            let class = self.palette.class(&line.service);
            let name = if line.service == names::GENERATOR { "generator" } else { &line.service };
            chart.lines.push(Line::named(name, class, &line.points));
            if let Some(limit) = shown_limit(line) {
                let label = axis.label(limit);
                chart.levels.push((limit, class, format!("limit of {name}, {label}")));
            }
        }
        figure(&chart)
    }
}

/// Users and throughput over time.
fn load_chart<'a>(axes: &'a Axes, panel: &'a Panel, title: &'a str, points_max: usize) -> Chart<'a> {
    let mut chart = Chart { title, left_name: "users", points_max, ..empty_chart(&axes.time, &axes.users, panel) };
    chart.right = Some((&axes.rate, "responses/s"));
    let line = |name, class, points, side| Line { name, class, points, side, label: Label::AtEnd };
    chart.lines.push(line("users", "users", &panel.timeline.users, Side::Left));
    chart.lines.push(line("responses/s", "rate", &panel.timeline.rate, Side::Right));
    chart
}

/// A chart without lines over the time of a trial.
fn empty_chart<'a>(x: &'a Axis, left: &'a Axis, panel: &'a Panel) -> Chart<'a> {
    Chart {
        title: "",
        x,
        left,
        left_name: "",
        right: None,
        lines: Vec::new(),
        shaded: &panel.timeline.warmups,
        levels: Vec::new(),
        legend: Vec::new(),
        points_max: POINTS_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charts(outcome: &Outcome) -> String {
        let section = section(&Context::for_page(outcome));
        if section.blocks.is_empty() { String::new() } else { super::super::plain(&section) }
    }
    use crate::fixture;

    #[test]
    fn trials_of_one_row_share_their_scale() {
        let outcome = fixture::outcome();
        let html = charts(&outcome);
        let latencies: Vec<&str> = html.split("data-name=\"p99\"").skip(1).map(|rest| &rest[..80]).collect();
        assert_eq!(latencies.len(), 2);
        assert_eq!(latencies[0], latencies[1]);
        assert_eq!(html.matches("data-name=\"errors/s\"").count(), 2);
    }

    #[test]
    fn an_open_load_has_a_chart_of_what_it_offered() {
        let outcome = fixture::open_outcome();
        let html = charts(&outcome);
        for name in ["offered", "achieved"] {
            assert_eq!(html.matches(&format!("data-name=\"{name}\"")).count(), 2);
        }
        let closed = fixture::outcome();
        assert!(!charts(&closed).contains("Offered and achieved"));
    }

    #[test]
    fn nothing_measured_draws_nothing() {
        let mut outcome = fixture::outcome();
        for trial in &mut outcome.evidence.trials {
            trial.windows.clear();
            trial.seconds.clear();
        }
        assert_eq!(charts(&outcome), "");
    }
}
