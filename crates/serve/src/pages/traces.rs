//! Search for traces: a form, where they lie in time, and a list.

use std::path::Path;

use maud::{Markup, html};
use narrows_model::run::Trial;
use narrows_model::table::{Cell, Table};
use narrows_model::units;
use narrows_telemetry::run_file::Reader;

use crate::address::{self, Parameters};
use crate::charts::{Dot, scatter};
use crate::error::Refusal;
use crate::frame::Page;
use crate::library::{Entry, Library};
use crate::search::{ORDERS, Search};
use crate::sql;

/// Traces of the list.
const ROWS: usize = 100;
/// Dots of the plot, about.
const DOTS: i64 = 2_000;

pub(super) fn page(_: &Library, entry: &Entry, form: &Parameters) -> Result<Page, Refusal> {
    let path = &entry.edition.path;
    let trials = Reader::open(path)?.trials()?;
    let trial = chosen(&trials, form)?;
    let search = Search::read(trial, form)?;
    let order = form.get("order").unwrap_or_default();
    let (_, _, order) = *ORDERS.iter().find(|(name, ..)| *name == order).unwrap_or(&ORDERS[0]);
    let found = search.sql();
    let of_name = "(SELECT trace_hex FROM trace_rows WHERE id = trace) AS trace_id";
    let list = sql::ask(
        path,
        &format!(
            "SELECT {of_name}, start_ns, length_ns, (SELECT text FROM strings WHERE id = h.service), \
             (SELECT text FROM strings WHERE id = h.name), failed, spans \
             FROM ({found}) JOIN span_shape_rows AS h ON h.id = shape ORDER BY {order} LIMIT {ROWS}"
        ),
    )?;
    let counted = sql::ask(path, &format!("SELECT count(*) FROM ({found})"))?;
    let count = sql::integer(counted.rows.first().and_then(|row| row.first())).unwrap_or(0);
    let every = (count / DOTS).max(1);
    let dots = sql::ask(
        path,
        &format!(
            "SELECT {of_name}, start_ns, length_ns, failed FROM ({found}) WHERE trace % {every} = 0 LIMIT {}",
            2 * DOTS
        ),
    )?;
    let link = |id: Option<&Cell>| of_trace(entry, trial, sql::text(id));
    let dots = dots.rows.iter().chain(&list.rows).map(|row| Dot {
        start_ns: sql::integer(row.get(1)).unwrap_or(0),
        length_ns: sql::number(row.get(2)).unwrap_or(0.0),
        has_failed: sql::integer(row.get(if row.len() > 4 { 5 } else { 3 })) == Some(1),
        link: link(row.first()),
    });
    let dots: Vec<Dot> = dots.collect();
    let body = html! {
        header.top { h1 { "Traces" } }
        (fields(path, &trials, trial, form)?)
        p.note role="status" {
            (units::count(count.unsigned_abs())) @if count == 1 { " trace" } @else { " traces" }
            @if every > 1 { "; the plot has one in " (every) " and the listed ones" }
            @if count > ROWS as i64 { "; the list has the first " (ROWS) }
        }
        @if !dots.is_empty() { (scatter(&dots)) }
        (rows(entry, trial, &list))
    };
    Ok(Page { title: format!("Traces of {}", entry.name), run: Some((entry.name.clone(), "/traces")), body })
}

/// The trial that a form names, or the last.
pub(super) fn chosen(trials: &[Trial], form: &Parameters) -> Result<i64, Refusal> {
    let last = trials.last().map(|trial| trial.id);
    let named = form.get("trial").map(|name| {
        let found = trials.iter().find(|trial| trial.label() == name).map(|trial| trial.id);
        found.ok_or_else(|| Refusal::NotFound(format!("The run has no trial “{name}”.")))
    });
    named.transpose()?.or(last).ok_or_else(|| Refusal::NotFound("The run has no trial.".to_owned()))
}

/// The address of a trace's page.
pub(super) fn of_trace(entry: &Entry, trial: i64, id: &str) -> String {
    address::run(&entry.name, &format!("/traces/{trial}/{}", address::segment(id)))
}

/// The list that a trial is chosen from.
pub(super) fn trial_field(trials: &[Trial], trial: i64) -> Markup {
    html! {
        label { "variant "
            select name="trial" { @for one in trials {
                option value=(one.label()) selected[one.id == trial] { (one.label()) }
            } }
        }
    }
}

fn fields(path: &Path, trials: &[Trial], trial: i64, form: &Parameters) -> Result<Markup, Refusal> {
    let column = |query: String| -> Result<Vec<String>, Refusal> {
        Ok(sql::ask(path, &query)?.rows.iter().map(|row| sql::text(row.first()).to_owned()).collect())
    };
    let services =
        column(format!("SELECT DISTINCT service FROM span_counts WHERE trial = {trial} ORDER BY 1 LIMIT 500"))?;
    let service = form.get("service").map(sql::literal);
    let of_service = service.map_or_else(String::new, |service| format!("AND service = {service}"));
    let names = column(format!(
        "SELECT DISTINCT name FROM span_counts WHERE trial = {trial} {of_service} ORDER BY 1 LIMIT 500"
    ))?;
    let detectors = column(format!("SELECT DISTINCT detector FROM findings WHERE trial = {trial} ORDER BY 1"))?;
    let value = |name: &str| form.get(name).unwrap_or_default().to_owned();
    let choice = |name: &str, all: &[String]| {
        html! {
            select name=(name) {
                option value="" { "any" }
                @for one in all { option value=(one) selected[form.get(name) == Some(one)] { (one) } }
            }
        }
    };
    Ok(html! {
        form.search method="get" role="search" {
            (trial_field(trials, trial))
            label { "service " (choice("service", &services)) }
            label { "span " input name="name" list="names" value=(value("name")) autocomplete="off"; }
            datalist id="names" { @for name in &names { option value=(name) {} } }
            label { "at least " input.short name="least" inputmode="decimal" value=(value("least")); " ms" }
            label { "below " input.short name="most" inputmode="decimal" value=(value("most")); " ms" }
            label { "attribute " input name="attribute" placeholder="name=value" value=(value("attribute")); }
            label { "finding " (choice("finding", &detectors)) }
            label { input type="checkbox" name="status" value="failed" checked[form.get("status") == Some("failed")]; " failed" }
            label { "order " select name="order" { @for (name, shown, _) in ORDERS {
                option value=(name) selected[form.get("order") == Some(name)] { (shown) }
            } } }
            // The window that is drawn in the plot; the script fills it in.
            input type="hidden" name="from" value=(value("from"));
            input type="hidden" name="to" value=(value("to"));
            button { "Search" }
            @if form.get("from").is_some() || form.get("to").is_some() {
                a href=(form.with("from", "").with("to", "").behind("?")) { "all times" }
            }
        }
    })
}

fn rows(entry: &Entry, trial: i64, list: &Table) -> Markup {
    html! {
        @if list.rows.is_empty() {
            p { "No trace is kept that fits." }
        } @else {
            div.scroll {
                table.wide {
                    thead { tr { th { "trace" } th { "service" } th { "span" } th.n { "length" } th.n { "spans" } th { "" } } }
                    tbody {
                        @for row in &list.rows {
                            @let id = sql::text(row.first());
                            tr {
                                td { a href=(of_trace(entry, trial, id)) { code { (id.chars().take(16).collect::<String>()) } } }
                                td { (sql::text(row.get(3))) }
                                td { (sql::text(row.get(4))) }
                                td.n { (units::duration(sql::number(row.get(2)).unwrap_or(0.0))) }
                                td.n { (sql::integer(row.get(6)).unwrap_or(0)) }
                                td { @if sql::integer(row.get(5)) == Some(1) { span.bad { "failed" } } }
                            }
                        }
                    }
                }
            }
        }
    }
}
