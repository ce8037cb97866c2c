//! The objectives of each variant, a mark for each repetition.

use narrows_model::comparison::Kept;

use super::Context;
use crate::section::{Block, Column, Figure, Row, Section, Table};

/// An objective of a variant over its repetitions.
struct Objective {
    variant: String,
    text: String,
    measured: Vec<String>,
    marks: Vec<&'static str>,
}

pub(super) fn section(context: &Context<'_>) -> Section {
    let mut all: Vec<Objective> = Vec::new();
    for (evidence, results) in context.outcome.evidence.trials.iter().zip(&context.outcome.objectives) {
        for result in results {
            let variant = &evidence.trial.variant;
            let at =
                all.iter().position(|one| one.variant == *variant && one.text == result.text).unwrap_or_else(|| {
                    let (variant, text) = (variant.clone(), result.text.clone());
                    all.push(Objective { variant, text, measured: Vec::new(), marks: Vec::new() });
                    all.len() - 1
                });
            all[at].measured.push(result.measured.clone());
            all[at].marks.push(mark(result.kept));
        }
    }
    if all.is_empty() {
        return Section::default();
    }
    let columns = ["variant", "objective", "measured", "kept"].map(Column::left).to_vec();
    let rows = all.iter().map(|one| {
        Row::new([
            Figure::new(&one.variant),
            Figure::code(&one.text),
            Figure::new(one.measured.join(", ")),
            Figure::new(one.marks.join(" ")),
        ])
    });
    Section::new("objectives", "Objectives", vec![Block::Table(Table::new(columns, rows.collect()))])
}

fn mark(kept: Kept) -> &'static str {
    match kept {
        Kept::Yes => "✓",
        Kept::No => "✗",
        Kept::Unknown => "?",
    }
}
