//! From the outcomes of runs to what the page says.

use narrows_model::comparison::Outcome;
use narrows_model::prediction::Scored;
use narrows_model::published::{Beside, BesideCell};
use narrows_model::units;

use super::{Cell, Results, Row, Source, System, agreement};
use crate::bottleneck::bottlenecks;
use crate::figures::{self, instant};
use crate::html::pairs;
use crate::measures;

pub(super) fn results(source: &Source<'_>) -> Results {
    Results {
        command: source.command.to_owned(),
        machine: machine(source.outcomes),
        systems: source.outcomes.iter().map(system).collect(),
    }
}

/// The machines that the runs were made on, each once.
fn machine(outcomes: &[Outcome]) -> String {
    let mut machines: Vec<String> = Vec::new();
    for outcome in outcomes {
        let text = figures::machine(&outcome.evidence.run.environment);
        if !machines.contains(&text) {
            machines.push(text);
        }
    }
    machines.join("; ")
}

fn system(outcome: &Outcome) -> System {
    let run = &outcome.evidence.run;
    let length =
        if run.time_scale == 1.0 { String::new() } else { format!(", load × {} of its length", run.time_scale) };
    let trusted = || outcome.scored.iter().filter(|scored| scored.prediction.is_trusted());
    System {
        name: run.experiment.clone(),
        run: format!("{}{length}", instant(run.started_ns)),
        source: measures::source(outcome).to_owned(),
        team: outcome.notes.published.as_ref().map_or(String::new(), |published| published.found.clone()),
        found: bottlenecks(outcome).into_iter().map(|one| (one.variant.to_owned(), one.what)).collect(),
        variants: outcome.comparison.variants.iter().map(|variant| variant.variant.clone()).collect(),
        bases: measures::bases(&outcome.beside),
        rows: outcome.beside.iter().map(row).collect(),
        predictions: trusted().filter_map(prediction).collect(),
        untrusted: outcome.scored.len() - trusted().count(),
        agreement: agreement::of(&outcome.beside),
    }
}

fn row(row: &Beside) -> Row {
    Row {
        name: measures::name(row),
        cells: row.cells.iter().enumerate().map(|(index, cell)| written(row, index, cell)).collect(),
        remark: row.remark.clone(),
        pairs: pairs::figure(row),
    }
}

fn written(row: &Beside, index: usize, cell: &BesideCell) -> Cell {
    let value = |value: Option<f64>| value.map_or(String::new(), |value| measures::value(row.measure, Some(value)));
    let ratio = |of: fn(&BesideCell) -> Option<f64>| {
        measures::ratio(row, index, of).filter(|_| measures::has_ratio(row.measure)).unwrap_or_default()
    };
    Cell {
        published: value(cell.published),
        published_ratio: ratio(|cell| cell.published),
        measured: value(cell.measured),
        measured_ratio: ratio(|cell| cell.measured),
        fitted: cell.fitted.clone(),
    }
}

fn prediction(scored: &Scored) -> Option<[String; 4]> {
    let prediction = &scored.prediction;
    let measured = &prediction.measured.as_ref()?.figures;
    let name = format!("{} → {}", scored.before, scored.after);
    Some([
        name,
        crate::text::scored_changes(scored),
        format!("{} → {}", units::rate(prediction.after.rate.value), units::rate(measured.rate)),
        format!("{} → {}", units::duration(prediction.after.mean_ns.value), units::duration(measured.mean_ns)),
    ])
}
