//! Questions in SQL and KQL, with their results.

use std::collections::BTreeSet;

use axum::response::{IntoResponse, Response};
use maud::{Markup, PreEscaped, html};
use narrows_model::table::{Cell, Table};
use narrows_report::text::{Color, Style};
use narrows_report::{html as report, table};
use narrows_telemetry::run_file::Reader;

use crate::address::{self, Parameters};
use crate::error::Refusal;
use crate::frame::{Page, with_type};
use crate::library::{Entry, Library};
use crate::sql::LIMITS;

/// Examples, each with its language.
const EXAMPLES: [(&str, &str, &str); 5] = [
    (
        "Slowest requests",
        "kql",
        "requests\n| top 20 by duration desc\n| project timestamp, name, duration, resultCode, operation_Id",
    ),
    (
        "Latency of each operation",
        "kql",
        "requests\n| summarize count(), percentiles(duration, 50, 95, 99) by cloud_RoleName, name",
    ),
    (
        "Throughput over time",
        "kql",
        "requests\n| summarize requests = count() by bin(timestamp, 1s)\n| render timechart",
    ),
    (
        "CPU of each service",
        "sql",
        "SELECT trial, service, round(avg(value), 2) AS cores\nFROM metrics\nWHERE name = 'process.cpu.cores'\nGROUP BY 1, 2\nORDER BY 1, 3 DESC",
    ),
    (
        "Queries that are repeated most",
        "sql",
        "SELECT trace_id, db_query, count(*) AS times\nFROM spans\nWHERE db_query IS NOT NULL\nGROUP BY 1, 2\nORDER BY 3 DESC\nLIMIT 50",
    ),
];
/// Width of a chart, in characters.
const CHART_WIDTH: usize = 120;

pub(super) fn page(_: &Library, entry: &Entry, form: &Parameters) -> Result<Response, Refusal> {
    let question = form.get("q").unwrap_or_default();
    let language = if form.get("in") == Some("kql") { "kql" } else { "sql" };
    let result = (!question.trim().is_empty()).then(|| ask(entry, question, language));
    if let (Some("csv"), Some(Ok(found))) = (form.get("as"), &result) {
        return Ok(with_type("text/csv; charset=utf-8", table::csv(found)));
    }
    let body = html! {
        header.top { h1 { "Ask" } }
        form.ask method="get" {
            div.languages {
                label { input type="radio" name="in" value="sql" checked[language == "sql"]; " SQL" }
                label { input type="radio" name="in" value="kql" checked[language == "kql"]; " KQL" }
            }
            label.hidden for="question" { "Question" }
            textarea id="question" name="q" rows="7" spellcheck="false" autocomplete="off" data-words=(words()) { (question) }
            ul.completions id="completions" hidden role="listbox" {}
            p { button { "Ask" } span.note { " Ctrl-Enter. It only reads, for 10 s and 10,000 rows at most." } }
        }
        @match &result {
            None => (examples(entry)),
            Some(Err(refusal)) => { p.bad role="alert" { (refusal) } },
            Some(Ok(found)) => (result_of(entry, form, found)),
        }
        (tables())
    };
    let page = Page { title: format!("Ask {}", entry.name), run: Some((entry.name.clone(), "/ask")), body };
    Ok(page.into_response())
}

fn ask(entry: &Entry, question: &str, language: &str) -> Result<Table, Refusal> {
    let reader = Reader::open(&entry.edition.path)?;
    if language == "sql" {
        return Ok(reader.sql(question, &LIMITS)?);
    }
    let compiled = narrows_query::compile(question, &[]).map_err(|mistake| Refusal::Invalid(mistake.to_string()))?;
    Ok(reader.run_compiled(&compiled.sql, &compiled.columns, compiled.chart, &LIMITS)?)
}

fn result_of(entry: &Entry, form: &Parameters, found: &Table) -> Markup {
    let here = address::run(&entry.name, "/ask");
    let drawn = report::chart_over_time(found);
    let text = || table::chart(found, Style { width: CHART_WIDTH, color: Color::Never });
    let chart = drawn.or_else(|| text().map(|text| html! { pre.chart-text { (text) } }));
    let link = |column: &str, cell: &Cell| {
        let id = match cell {
            Cell::Text(id) if id.len() == 32 && matches!(column, "trace_id" | "operation_Id") => id,
            _ => return None,
        };
        Some(address::run(&entry.name, &format!("/traces/any/{}", address::segment(id))))
    };
    html! {
        section {
            p.note role="status" {
                (found.rows.len()) @if found.rows.len() == 1 { " row" } @else { " rows" }
                @if found.is_cut { ", and more that are not shown" }
                " · " a href=(form.with("as", "csv").behind(&here)) download="result.csv" { "CSV" }
                " · " a href=(form.behind(&here)) { "link to this question" }
            }
            @if let Some(chart) = chart { (chart) }
            (table::html(found, &link))
        }
    }
}

fn examples(entry: &Entry) -> Markup {
    let here = address::run(&entry.name, "/ask");
    html! {
        section {
            h2 { "Examples" }
            ul {
                @for (name, language, question) in EXAMPLES {
                    li { a href=(Parameters::default().with("in", language).with("q", question).behind(&here)) { (name) } " " small { (language.to_uppercase()) } }
                }
            }
        }
    }
}

/// Names for completion: those of tables, then those of columns.
fn words() -> String {
    let tables = narrows_query::tables();
    let mut words: Vec<&str> = tables.iter().map(|table| table.name).collect();
    let columns: BTreeSet<&str> =
        tables.iter().flat_map(|table| &table.columns).map(|column| column.name.as_str()).collect();
    words.extend(columns.into_iter().filter(|name| tables.iter().all(|table| table.name != *name)));
    words.join(" ")
}

fn tables() -> Markup {
    html! {
        section {
            h2 { "Tables" }
            @for table in narrows_query::tables().into_iter().filter(|table| table.view.is_some()) {
                details {
                    summary { code { (table.name) } }
                    p { @for column in &table.columns { code { (column.name) } (PreEscaped(" ")) } }
                }
            }
        }
    }
}
