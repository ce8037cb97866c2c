//! A check against a baseline: its sections for text and Markdown, and its figures in words, for annotations too.

use narrows_diagnose::words::comparison_caveat;
use narrows_model::baseline::{FigureCheck, FindingCheck, Grade, Measure, ServiceCheck, VariantCheck};
use narrows_model::caveat::ComparisonCaveat;
use narrows_model::diff::Fate;
use narrows_model::units;

use crate::figures::{plural, range, ratio};
use crate::section::{Block, Column, Figure, Line, Phrase, Row, Section, Table, Tone};

/// Services of a variant that are listed.
const SERVICES_MAX: usize = 5;

/// Figures of a variant, findings that came or went, services by change.
pub(crate) fn variant(variant: &VariantCheck) -> Section {
    let trials = |n: u32| plural(n as usize, "trial", "trials");
    let (before, after) = variant.trials;
    let design = format!(" · {} before, {} now", trials(before), trials(after));
    let mut blocks = vec![Block::Heading(Phrase::default().strong(&variant.variant).plain(design))];
    blocks.extend(figures(&variant.figures));
    let findings: Vec<Line> = variant.findings.iter().map(finding).collect();
    blocks.extend((!findings.is_empty()).then_some(Block::Lines(findings)));
    blocks.extend((!variant.services.is_empty()).then(|| Block::Table(services(&variant.services))));
    Section::untitled(blocks)
}

/// Limits of a comparison.
pub(crate) fn caveats(caveats: &[ComparisonCaveat]) -> Section {
    let line = |one: &ComparisonCaveat| Line::new("caveat", "", comparison_caveat(one)).tone(Tone::Doubtful);
    let lines: Vec<Line> = caveats.iter().map(line).collect();
    Section::untitled(if lines.is_empty() { Vec::new() } else { vec![Block::Lines(lines)] })
}

/// The figures. A run may have many operations, so only those that changed are shown.
fn figures(figures: &[FigureCheck]) -> Vec<Block> {
    let is_shown = |figure: &&FigureCheck| !matches!(figure.measure, Measure::Operation { .. }) || has_moved(figure);
    let row = |figure: &FigureCheck| {
        let change = if figure.measure == Measure::Errors { String::new() } else { ratio(figure.ratio()) };
        let tone = if figure.grade == Grade::Worse { Tone::Bad } else { Tone::Plain };
        Row::new([
            Figure::new(name(figure)),
            Figure::new(value(figure, figure.before)),
            Figure::new(value(figure, figure.after)),
            Figure::new(change),
            Figure::new(interval(figure)),
            Figure::new(grade(figure.grade)).tone(tone),
        ])
    };
    let rows: Vec<Row> = figures.iter().filter(is_shown).map(row).collect();
    let left_out = figures.len() - rows.len();
    let columns = vec![
        Column::left(""),
        Column::right("before"),
        Column::right("now"),
        Column::right("change"),
        Column::left("interval"),
        Column::left(""),
    ];
    let mut blocks = vec![Block::Table(Table::new(columns, rows))];
    if left_out > 0 {
        let note = format!("{} not shown to differ", plural(left_out, "operation", "operations"));
        blocks.push(Block::Note(Phrase::from(note)));
    }
    blocks
}

fn finding(one: &FindingCheck) -> Line {
    let known = &one.finding;
    let text = match (&one.title, &known.operation) {
        (Some(title), _) => title.clone(),
        (None, Some(operation)) => format!("{} {operation}", known.resource),
        (None, None) => known.resource.clone(),
    };
    let (label, tone) = match one.fate {
        Fate::Vanished => ("- vanished ", Tone::Good),
        _ => ("+ appeared ", Tone::Bad),
    };
    Line::new(label, &known.kind, text).tone(tone)
}

fn services(services: &[ServiceCheck]) -> Table {
    let columns =
        vec![Column::left("service"), Column::right("of each request"), Column::right("now"), Column::right("change")];
    let row = |one: &ServiceCheck| {
        let [before, after] = [one.before_ns, one.after_ns].map(units::duration);
        Row::new([one.service.clone(), before, after, change_ns(one.after_ns - one.before_ns)])
    };
    Table::new(columns, services.iter().take(SERVICES_MAX).map(row).collect())
}

/// Its name: `mean latency`, `GET /orders`.
pub(crate) fn name(figure: &FigureCheck) -> String {
    match &figure.measure {
        Measure::Load { quantity } => quantity.words().to_owned(),
        Measure::Errors => "failed requests".to_owned(),
        Measure::Operation { service, operation } => format!("{service} {operation}"),
    }
}

/// One of its values.
fn value(figure: &FigureCheck, value: f64) -> String {
    match &figure.measure {
        Measure::Load { quantity } => quantity.shown(value),
        Measure::Errors => units::percent(value),
        Measure::Operation { .. } => units::duration(value),
    }
}

/// The interval of its change; empty where it has none, and for shares of failed requests, which are counted.
fn interval(figure: &FigureCheck) -> String {
    match (&figure.measure, figure.interval) {
        (Measure::Errors, _) | (_, None) => String::new(),
        (_, Some(interval)) => range(interval.low, interval.high, figure.ratio()),
    }
}

/// In a word.
pub(crate) fn grade(grade: Grade) -> &'static str {
    match grade {
        Grade::Better => "better",
        Grade::Worse => "worse ✗",
        Grade::Same => "same",
        Grade::Unclear => "cannot tell",
    }
}

/// True if it is shown to have changed.
fn has_moved(figure: &FigureCheck) -> bool {
    matches!(figure.grade, Grade::Better | Grade::Worse)
}

/// `mean latency: 12.1 ms → 16.0 ms (+32 %, interval +20 to +45 %)`.
pub(crate) fn line(figure: &FigureCheck) -> String {
    let (before, after) = (value(figure, figure.before), value(figure, figure.after));
    let change = match (&figure.measure, interval(figure)) {
        (Measure::Errors, _) => String::new(),
        (_, interval) if interval.is_empty() => format!(" ({})", ratio(figure.ratio())),
        (_, interval) => format!(" ({}, interval {interval})", ratio(figure.ratio())),
    };
    format!("{}: {before} → {after}{change}", name(figure))
}

/// A difference of times with its sign.
fn change_ns(ns: f64) -> String {
    match ns {
        ns if ns > 0.0 => format!("+{}", units::duration(ns)),
        ns if ns < 0.0 => format!("−{}", units::duration(-ns)),
        _ => "–".to_owned(),
    }
}
