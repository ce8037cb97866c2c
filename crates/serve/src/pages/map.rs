//! Services and the calls between them, under one level of the load.

use maud::{Markup, html};
use narrows_diagnose::words::limit_text;
use narrows_model::comparison::Outcome;
use narrows_model::evidence::TrialEvidence;
use narrows_model::units;
use narrows_report::html as report;

use crate::address::Parameters;
use crate::error::Refusal;
use crate::frame::Page;
use crate::library::{Entry, Library};

pub(super) fn page(library: &Library, entry: &Entry, form: &Parameters) -> Result<Page, Refusal> {
    let outcome = library.outcome(entry)?;
    let trials = &outcome.evidence.trials;
    let named = form.get("trial").and_then(|name| trials.iter().position(|trial| trial.trial.label() == name));
    let trial = named.unwrap_or(trials.len().saturating_sub(1));
    let levels = outcome.limits.get(trial).map_or(&[][..], |limit| &limit.levels);
    let asked = form.get("level").and_then(|level| level.parse().ok());
    let level = asked.unwrap_or(usize::MAX).min(levels.len().saturating_sub(1));
    let body = html! {
        header.top {
            h1 { "Service map" }
            @if let Some((limit, one)) = outcome.limits.get(trial).zip(trials.get(trial)) {
                p.lead.wordy { (one.trial.label()) " is " (limit_text(&limit.verdict)) }
            }
        }
        form.search method="get" {
            label { "variant " select name="trial" { @for (at, one) in trials.iter().enumerate() {
                option value=(one.trial.label()) selected[at == trial] { (one.trial.label()) }
            } } }
            label { "load " select name="level" { @for (at, one) in levels.iter().enumerate() {
                option value=(at) selected[at == level] { (one.label.trim_matches(['“', '”'])) }
            } } }
            button { "Show" }
        }
        @match report::calls(&outcome, trial, level) {
            Some(calls) => (calls),
            None => { p { "Sockets show no calls between services here: none was made, or none could be sampled." } },
        }
        @if let Some(evidence) = trials.get(trial) { (services(&outcome, evidence)) }
    };
    Ok(Page { title: format!("Service map of {}", entry.name), run: Some((entry.name.clone(), "/map")), body })
}

/// Operations of the services over the counted windows of a trial.
fn services(outcome: &Outcome, evidence: &TrialEvidence) -> Markup {
    let variant = outcome.comparison.variants.iter().find(|one| one.variant == evidence.trial.variant);
    let cpu = |service: &str| variant.and_then(|one| one.services.iter().find(|used| used.service == service));
    html! {
        section {
            h2 { "Operations" }
            @if evidence.operations.is_empty() { p { "No span says what services did." } }
            @else {
                div.scroll {
                    table.wide {
                        thead { tr { th { "service" } th { "operation" } th.n { "completed" } th.n { "failed" } th.n { "p95" } th.n { "CPU of the service" } } }
                        tbody {
                            @for one in &evidence.operations {
                                tr {
                                    td { (one.service) }
                                    td { (one.name) }
                                    td.n { (units::count(one.completed.round() as u64)) }
                                    td.n.bad[one.failed > 0.0] { (units::count(one.failed.round() as u64)) }
                                    td.n { (if one.duration.count() > 0 { units::duration(one.duration.quantile_ns(0.95) as f64) } else { "–".to_owned() }) }
                                    td.n { (cpu(&one.service).map_or_else(|| "–".to_owned(), |used| units::cores(used.cpu_mean))) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
