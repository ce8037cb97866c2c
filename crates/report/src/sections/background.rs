//! Everything that is needed to believe the run or to repeat it: parameters, amount of data, machine, the experiment file.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::comparison::Outcome;
use narrows_model::run::Verdict;
use narrows_model::units;

use super::Context;
use crate::figures::{instant, known, plural};
use crate::section::{Block, Column, Figure, Medium, Phrase, Row, Section, Table};

/// The section; without blocks in a terminal.
pub(super) fn section(context: &Context<'_>) -> Section {
    if context.medium == Medium::Terminal {
        return Section::default();
    }
    let outcome = context.outcome;
    let source = Block::Source(outcome.evidence.run.experiment_source.clone());
    let blocks = vec![
        Block::Heading(Phrase::from("Parameters")),
        parameters(outcome),
        Block::Heading(Phrase::from("Measured")),
        Block::Table(measured(outcome)),
        Block::Heading(Phrase::from("Machine and run")),
        Block::Table(machine(outcome)),
        Block::Fold("The experiment file".to_owned(), vec![source]),
    ];
    Section::new("background", "Background", blocks)
}

/// One row for each parameter, one column for each variant; parameters that differ stand out.
fn parameters(outcome: &Outcome) -> Block {
    let mut variants: Vec<(&str, &BTreeMap<String, String>)> = Vec::new();
    for trial in outcome.evidence.trials.iter().map(|evidence| &evidence.trial) {
        if !variants.iter().any(|(name, _)| *name == trial.variant) {
            variants.push((&trial.variant, &trial.parameters));
        }
    }
    let names: BTreeSet<&String> = variants.iter().flat_map(|(_, parameters)| parameters.keys()).collect();
    if names.is_empty() {
        return Block::Note(Phrase::from("none"));
    }
    let row = |name: &String| {
        let values: Vec<&str> =
            variants.iter().map(|(_, parameters)| parameters.get(name).map_or("–", String::as_str)).collect();
        let cells = std::iter::once(Figure::new(name)).chain(values.iter().copied().map(Figure::new));
        Row { stands_out: values.windows(2).any(|pair| pair[0] != pair[1]), ..Row::new(cells) }
    };
    let columns = std::iter::once("parameter").chain(variants.iter().map(|(name, _)| *name)).map(Column::left);
    Block::Table(Table::new(columns.collect(), names.into_iter().map(row).collect()))
}

/// Amount of data behind each trial.
fn measured(outcome: &Outcome) -> Table {
    let rows = outcome.evidence.trials.iter().map(|evidence| {
        let load = evidence.counted_load();
        let verdict = match evidence.trial.validity.verdict {
            Verdict::Valid => "valid",
            Verdict::Doubtful => "doubtful",
            Verdict::Invalid => "invalid",
        };
        Row::new([
            evidence.trial.label(),
            verdict.to_owned(),
            known((load.seconds > 0.0).then_some(load.seconds * 1e9), units::duration),
            units::count(load.succeeded),
            known((load.lateness.count() > 0).then(|| load.lateness.quantile_ns(0.99) as f64), units::duration),
            units::count(evidence.spans_total),
        ])
    });
    let figures = ["counted", "responses", "send lateness p99", "spans"].map(Column::right);
    let columns = [Column::left("trial"), Column::left("generator")].into_iter().chain(figures).collect();
    Table::new(columns, rows.collect())
}

fn machine(outcome: &Outcome) -> Table {
    let run = &outcome.evidence.run;
    let machine = &run.environment;
    let rows = [
        ("processor", format!("{}, {}", machine.cpu_model, plural(machine.cores as usize, "core", "cores"))),
        ("memory", units::bytes(machine.memory_bytes as f64)),
        ("kernel", machine.kernel.clone()),
        ("begun", instant(run.started_ns)),
        ("run", run.id.clone()),
        ("seed", run.seed.to_string()),
        ("time scale", run.time_scale.to_string()),
        ("repetitions", run.repetitions.to_string()),
        ("narrows", run.narrows_version.clone()),
    ];
    let rows = rows.map(|(name, value)| Row::new([name.to_owned(), value]));
    Table::new(vec![Column::left(""), Column::left("")], rows.into())
}

#[cfg(test)]
mod tests {
    use super::super::in_page;
    use super::*;
    use crate::fixture;

    #[test]
    fn only_parameters_that_differ_stand_out() {
        let page = in_page(section, &fixture::outcome());
        assert_eq!(page.matches("class=\"differs\"").count(), 1);
        assert!(page.contains("<tr class=\"differs\"><th scope=\"row\">joined</th><td>false</td><td>true</td></tr>"));
    }
}
