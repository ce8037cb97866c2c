//! The list of runs.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use maud::{Markup, html};
use narrows_model::run::{RunState, Verdict};
use narrows_model::units;

use super::apart;
use crate::address::{self, Parameters};
use crate::charts;
use crate::frame::Page;
use crate::library::{Entry, Library, ReadSummary, Summary};

/// Runs of a page.
const PAGE_RUNS: usize = 50;
/// Characters of a variant's name or a finding that a row shows.
const NAME_CHARS_MAX: usize = 90;

pub(super) async fn list(State(library): State<Arc<Library>>, RawQuery(query): RawQuery) -> Response {
    apart(move || {
        let parameters = Parameters::parse(query.as_deref());
        Ok(Page { title: "Runs".to_owned(), run: None, body: body(&library, &parameters) })
    })
    .await
}

fn body(library: &Library, parameters: &Parameters) -> Markup {
    let words: Vec<String> =
        parameters.get("filter").unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    let all: Vec<(Entry, Arc<Summary>)> =
        library.runs().into_iter().map(|entry| (library.summary(&entry), entry)).map(|(s, e)| (e, s)).collect();
    let shown: Vec<&(Entry, Arc<Summary>)> = all
        .iter()
        .filter(|(entry, summary)| {
            let text = searched(entry, summary).to_lowercase();
            words.iter().all(|word| text.contains(word))
        })
        .collect();
    let from = parameters.get("from").and_then(|from| from.parse().ok()).unwrap_or(0usize);
    html! {
        header.top { h1 { "Runs" } }
        form.search method="get" action="/" role="search" {
            label for="filter" { "Filter" }
            input id="filter" name="filter" type="search" value=(parameters.get("filter").unwrap_or_default())
                placeholder="name, experiment, finding, state …";
            button { "Show" }
            span.note role="status" { (shown.len()) " of " (all.len()) }
        }
        @if shown.is_empty() {
            p { "No run is here. " code { "narrows run experiment.yaml" } " makes one, and " code { "narrows demo" } " needs nothing at all." }
        } @else {
            form method="get" action="/compare" {
                div.scroll {
                    table.runs.wide {
                        thead {
                            tr { th { span.hidden { "Compare" } } th { "run" } th { "verdict" } th { "throughput" } th { "bottleneck" } th { "size" } th { "file" } }
                        }
                        tbody { @for (entry, summary) in shown.iter().skip(from).take(PAGE_RUNS) { (row(entry, summary)) } }
                    }
                }
                p.actions { button { "Compare the chosen runs" } }
            }
            // Forms do not nest: the fields of each row name theirs.
            @for (entry, _) in shown.iter().skip(from).take(PAGE_RUNS) {
                @for action in ["rename", "delete"] {
                    form id=(format!("{action}-{}", entry.name)) method="post" action=(address::run(&entry.name, &format!("/{action}"))) {}
                }
            }
            p.note {
                @if from > 0 { a href=(parameters.with("from", &from.saturating_sub(PAGE_RUNS).to_string()).behind("/")) { "newer" } " " }
                @if from + PAGE_RUNS < shown.len() { a href=(parameters.with("from", &(from + PAGE_RUNS).to_string()).behind("/")) { "older" } }
            }
        }
    }
}

/// Text that the filter looks at.
fn searched(entry: &Entry, summary: &Summary) -> String {
    match summary {
        Summary::Unreadable(why) => format!("{} {why}", entry.name),
        Summary::Read(read) => {
            let variants: Vec<&str> = read.rates.iter().map(|(name, _)| name.as_str()).collect();
            let state = state(read);
            format!("{} {} {state} {} {}", entry.name, read.run.experiment, read.finding, variants.join(" "))
        }
    }
}

fn state(read: &ReadSummary) -> &'static str {
    match (read.run.state, read.verdict) {
        (RunState::Running, _) => "running",
        (RunState::Interrupted, _) => "interrupted",
        (RunState::Failed, _) => "failed",
        (RunState::Complete, Verdict::Valid) => "valid",
        (RunState::Complete, Verdict::Doubtful) => "doubtful",
        (RunState::Complete, Verdict::Invalid) => "invalid",
    }
}

fn row(entry: &Entry, summary: &Summary) -> Markup {
    let short = |text: &str| -> String { text.chars().take(NAME_CHARS_MAX).collect() };
    let choose = format!("Choose {}", entry.name);
    html! {
        tr {
            td { input type="checkbox" name="run" value=(entry.name) aria-label=(choose); }
            th scope="row" {
                a href=(address::run(&entry.name, "")) { (entry.name) }
                @if let Summary::Read(read) = summary { small { (started(read)) } }
            }
            @match summary {
                Summary::Unreadable(why) => { td.bad { "unreadable" } td colspan="2" { (short(why)) } },
                Summary::Read(read) => {
                    @let state = state(read);
                    td class=(tone(state)) { (state) }
                    td { (throughput(read)) }
                    td { (short(if read.finding.is_empty() { &read.sentence } else { &read.finding })) }
                },
            }
            td.n { (units::bytes(entry.edition.bytes as f64)) }
            td { (changes(entry)) }
        }
    }
}

fn tone(state: &str) -> &'static str {
    match state {
        "valid" => "better",
        "failed" | "invalid" => "bad",
        _ => "doubtful",
    }
}

/// When a run began: the browser writes it in its own time.
fn started(read: &ReadSummary) -> Markup {
    html! { time data-ns=(read.run.started_ns) { (read.run.experiment) } }
}

fn throughput(read: &ReadSummary) -> Markup {
    let rates: Vec<Option<f64>> = read.rates.iter().map(|(_, rate)| *rate).collect();
    let last = rates.last().copied().flatten();
    html! { (charts::sparkline(&rates)) " " @if let Some(last) = last { (units::rate(last)) } }
}

fn changes(entry: &Entry) -> Markup {
    let at = |below| address::run(&entry.name, below);
    html! {
        details.menu {
            summary { "…" span.hidden { " " (entry.name) } }
            div {
                p { a href=(at("/download")) { "Download" } }
                p {
                    label { "New name " input name="name" form=(format!("rename-{}", entry.name)) value=(entry.name); }
                    button form=(format!("rename-{}", entry.name)) { "Rename" }
                }
                p {
                    label { "Its name, to delete it " input name="name" form=(format!("delete-{}", entry.name)) autocomplete="off"; }
                    button.danger form=(format!("delete-{}", entry.name)) { "Delete" }
                }
            }
        }
    }
}
