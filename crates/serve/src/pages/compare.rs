//! Runs beside each other: what each found, and what changed from the first to each other.

use std::path::Path;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use maud::{Markup, html};
use narrows_diagnose::words::InWords;
use narrows_lab::conclude::{self, RunPart, Selection};
use narrows_model::comparison::{Outcome, VariantSummary};
use narrows_model::units;
use narrows_report::text::{self, Color, Style};

use super::apart;
use crate::address::{self, Parameters};
use crate::error::Refusal;
use crate::frame::{Page, with_causes};
use crate::library::{Entry, Library};

/// Runs beside each other at most.
const RUNS_MAX: usize = 6;
/// Width of the text of a difference, in characters.
const TEXT_WIDTH: usize = 110;

pub(super) async fn compare(State(library): State<Arc<Library>>, RawQuery(query): RawQuery) -> Response {
    apart(move || made(&library, &Parameters::parse(query.as_deref()))).await
}

fn made(library: &Library, form: &Parameters) -> Result<Page, Refusal> {
    let mut names = form.all("run").to_vec();
    // The list has the newest first; what was before stands left.
    names.reverse();
    names.dedup();
    if !(2..=RUNS_MAX).contains(&names.len()) {
        return Err(Refusal::Invalid(format!("Choose two to {RUNS_MAX} runs in the list.")));
    }
    let entries = names.iter().map(|name| library.find(name)).collect::<Result<Vec<_>, _>>()?;
    let outcomes = entries.iter().map(|entry| library.outcome(entry)).collect::<Result<Vec<_>, _>>()?;
    let (first, others) = entries.split_first().ok_or_else(|| Refusal::Invalid("Choose runs.".to_owned()))?;
    let differences: Vec<(&Entry, String)> =
        others.iter().map(|other| (other, difference(&first.edition.path, &other.edition.path))).collect();
    let body = html! {
        header.top { h1 { "Runs beside each other" } }
        section { (beside(&entries, &outcomes)) }
        @for (other, text) in &differences {
            section {
                h2 { "From " (first.name) " to " (other.name) }
                pre { (text) }
            }
        }
    };
    Ok(Page { title: "Compare".to_owned(), run: None, body })
}

/// Changes from a run to another, as `narrows diff` says them; or why it cannot.
fn difference(before: &Path, after: &Path) -> String {
    let all = Selection::default();
    let part = |path, label| RunPart { path, selection: &all, label };
    match conclude::diff(part(before, "before"), part(after, "after")) {
        Ok(diff) => text::diff(&diff, Style { width: TEXT_WIDTH, color: Color::Never }),
        Err(error) => with_causes(&error),
    }
}

fn beside(entries: &[Entry], outcomes: &[Arc<Outcome>]) -> Markup {
    let mut variants: Vec<&str> = Vec::new();
    for variant in outcomes.iter().flat_map(|outcome| &outcome.comparison.variants) {
        if !variants.contains(&variant.variant.as_str()) {
            variants.push(&variant.variant);
        }
    }
    html! {
        div.scroll {
            table.wide {
                thead {
                    tr { th { "variant" } @for entry in entries { th { a href=(address::run(&entry.name, "")) { (entry.name) } } } }
                }
                tbody {
                    @for variant in variants {
                        tr {
                            th scope="row" { (variant) }
                            @for outcome in outcomes { td { (cell(outcome, variant)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Figures of a variant, and what limits it.
fn cell(outcome: &Outcome, name: &str) -> Markup {
    let found = outcome.comparison.variants.iter().find(|variant| variant.variant == name);
    let trial = outcome.evidence.trials.iter().position(|trial| trial.trial.variant == name);
    let finding = trial.and_then(|at| outcome.findings.get(at)?.first());
    html! {
        @match found {
            None => "–",
            Some(variant) => {
                (figures(variant))
                @if let Some(finding) = finding { small { (finding.title()) } }
            },
        }
    }
}

fn figures(variant: &VariantSummary) -> String {
    let rate = variant.rate.map_or_else(|| "no rate".to_owned(), units::rate);
    let latency =
        |name: &str, ns: Option<f64>| ns.map(|ns| format!(" · {name} {}", units::duration(ns))).unwrap_or_default();
    format!("{rate}{}{}", latency("mean", variant.mean_ns), latency("p95", variant.p95_ns))
}
