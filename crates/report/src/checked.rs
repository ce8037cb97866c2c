//! Formats the figures of a check, the same for text, Markdown and annotations.

use narrows_model::baseline::{FigureCheck, Grade, Measure};
use narrows_model::units;

use crate::figures::{range, ratio};

/// Its name: `mean latency`, `GET /orders`.
pub(crate) fn name(figure: &FigureCheck) -> String {
    match &figure.measure {
        Measure::Load { quantity } => quantity.words().to_owned(),
        Measure::Errors => "failed requests".to_owned(),
        Measure::Operation { service, operation } => format!("{service} {operation}"),
    }
}

/// One of its values.
pub(crate) fn value(figure: &FigureCheck, value: f64) -> String {
    match &figure.measure {
        Measure::Load { quantity } => quantity.shown(value),
        Measure::Errors => units::percent(value),
        Measure::Operation { .. } => units::duration(value),
    }
}

/// The interval of its change; empty where it has none, and for shares of failed requests, which are counted.
pub(crate) fn interval(figure: &FigureCheck) -> String {
    match (&figure.measure, figure.interval) {
        (Measure::Errors, _) | (_, None) => String::new(),
        (_, Some(interval)) => range((interval.low, interval.high), figure.ratio()),
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
pub(crate) fn has_moved(figure: &FigureCheck) -> bool {
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
pub(crate) fn change_ns(ns: f64) -> String {
    match ns {
        ns if ns > 0.0 => format!("+{}", units::duration(ns)),
        ns if ns < 0.0 => format!("−{}", units::duration(-ns)),
        _ => "–".to_owned(),
    }
}
