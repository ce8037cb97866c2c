//! One trace, or two beside each other, with what else is known of that moment.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use maud::{Markup, html};
use narrows_model::table::Table;
use narrows_model::trace::{Span, Trace, hex};
use narrows_model::units;
use narrows_report::{html as report, table};
use narrows_telemetry::run_file::Reader;

use super::apart;
use super::traces::of_trace;
use crate::address::Parameters;
use crate::error::Refusal;
use crate::frame::Page;
use crate::library::{Entry, Library};
use crate::sql::{self, literal};

/// How long before and after a request other measurements are shown.
const AROUND_NS: i64 = 1_000_000_000;

pub(super) async fn page(
    State(library): State<Arc<Library>>,
    Path((run, trial, id)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    apart(move || {
        let entry = library.find(&run)?;
        made(&entry, trial_of(&entry, &trial, &id)?, &id, &Parameters::parse(query.as_deref()))
    })
    .await
}

/// The trial that an address names, or the one that has the trace where it names `any`.
fn trial_of(entry: &Entry, trial: &str, id: &str) -> Result<i64, Refusal> {
    if let Ok(trial) = trial.parse() {
        return Ok(trial);
    }
    let query = format!("SELECT trial FROM trace_rows WHERE trace_hex = {}", literal(&id.trim().to_ascii_lowercase()));
    let found = sql::ask(&entry.edition.path, &query)?;
    let trial = sql::integer(found.rows.first().and_then(|row| row.first()));
    trial.ok_or_else(|| Refusal::NotFound(format!("The run keeps no trace {id}.")))
}

fn made(entry: &Entry, trial: i64, id: &str, form: &Parameters) -> Result<Page, Refusal> {
    let reader = Reader::open(&entry.edition.path)?;
    let read = |id: &str| -> Result<Trace, Refusal> {
        let found = reader.trace(trial, &id.trim().to_ascii_lowercase())?;
        found.ok_or_else(|| Refusal::NotFound(format!("The run keeps no trace {id} in this trial.")))
    };
    let trace = read(id)?;
    let other = form.get("with").map(read).transpose()?;
    drop(reader);
    let shown = shown_by(entry, trial, &trace)?;
    let marked: BTreeSet<&str> = shown.iter().flat_map(|(_, spans)| spans).map(String::as_str).collect();
    let body = html! {
        header.top {
            h1 { "Trace " code { (hex(&trace.id)) } }
            p.lead { (sentence(&trace)) }
            @for (title, _) in &shown { p.note { "It shows: " (title) } }
        }
        section {
            @match &other {
                None => (report::trace(&trace, &marked)),
                Some(other) => {
                    p.note { "Beside trace " a href=(of_trace(entry, trial, &hex(&other.id))) { code { (hex(&other.id)) } } ": " (sentence(other)) }
                    (report::two_traces(&trace, other))
                },
            }
            form.search method="get" {
                label { "Beside another trace " input name="with" placeholder="id" value=(form.get("with").unwrap_or_default()); }
                button { "Compare" }
            }
        }
        (moment(entry, trial, &trace)?)
    };
    Ok(Page { title: format!("Trace {id}"), run: Some((entry.name.clone(), "/traces")), body })
}

fn sentence(trace: &Trace) -> String {
    let root = trace.root();
    let services: BTreeSet<&str> = trace.spans.iter().map(|span| span.service.as_str()).collect();
    let failed = trace.spans.iter().filter(|span| span.has_failed()).count();
    let failed = if failed > 0 { format!(", {failed} of them failed") } else { String::new() };
    format!(
        "{}: {} in {} spans of {}{failed}",
        root.map_or("", |span| span.name.as_str()),
        units::duration(root.map_or(0.0, |span| Span::duration_ns(span) as f64)),
        trace.spans.len(),
        match services.len() {
            1 => "one service".to_owned(),
            count => format!("{count} services"),
        },
    )
}

/// Findings that the trace shows, each with ids of spans.
fn shown_by(entry: &Entry, trial: i64, trace: &Trace) -> Result<Vec<(String, Vec<String>)>, Refusal> {
    let found = sql::ask(
        &entry.edition.path,
        &format!(
            "SELECT f.title, json_extract(e.value, '$.span_ids') FROM findings AS f, json_each(f.body, '$.exemplars') AS e \
             WHERE f.trial = {trial} AND json_extract(e.value, '$.trace_id') = {}",
            literal(&hex(&trace.id))
        ),
    )?;
    let ids = |text: &str| serde_json::from_str(text).unwrap_or_default();
    Ok(found.rows.iter().map(|row| (sql::text(row.first()).to_owned(), ids(sql::text(row.get(1))))).collect())
}

/// Logs, CPU and waits at that moment.
fn moment(entry: &Entry, trial: i64, trace: &Trace) -> Result<Markup, Refusal> {
    let path = &entry.edition.path;
    let (start_ns, end_ns) = trace.root().map_or((0, 0), |span| (span.start_ns, span.end_ns));
    let (from_ns, to_ns) = (start_ns.saturating_sub(AROUND_NS), end_ns.saturating_add(AROUND_NS));
    let within = format!("trial = {trial} AND time_ns BETWEEN {from_ns} AND {to_ns}");
    let logs = sql::ask(
        path,
        &format!(
            "SELECT (time_ns - {start_ns}) / 1e6 AS \"ms after its start\", service, severity, text FROM logs \
             WHERE trial = {trial} AND trace_id = {} ORDER BY time_ns LIMIT 200",
            literal(&hex(&trace.id))
        ),
    )?;
    let cpu = sql::ask(
        path,
        &format!(
            "SELECT CASE service WHEN '' THEN 'the machine, share' ELSE service END AS service, replica, \
             round(avg(value), 3) AS \"cores, mean\", round(max(value), 3) AS \"cores, most\" FROM metrics \
             WHERE name IN ('process.cpu.cores', 'host.cpu.utilization') AND {within} GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 40"
        ),
    )?;
    let waits = sql::ask(
        path,
        &format!(
            "SELECT service AS caller, json_extract(labels, '$.\"network.peer\"') AS callee, \
             round(avg(value), 2) AS \"requests outstanding, mean\" FROM metrics \
             WHERE name = 'process.network.request.outstanding' AND {within} GROUP BY 1, 2 HAVING avg(value) > 0.005 \
             ORDER BY 3 DESC LIMIT 40"
        ),
    )?;
    let shown = |title: &str, found: &Table| {
        html! { @if !found.rows.is_empty() { h3 { (title) } (table::html(found, &|_, _| None)) } }
    };
    Ok(html! {
        section {
            h2 { "At that moment" }
            p.note { "From a second before it to a second after it." }
            (shown("Logs of the trace", &logs))
            (shown("CPU", &cpu))
            (shown("Requests that sockets show", &waits))
        }
    })
}
