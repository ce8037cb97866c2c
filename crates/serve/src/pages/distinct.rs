//! Comparison of the slowest twentieth of an operation's requests with those in the middle.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use maud::{Markup, html};
use narrows_model::table::Table;
use narrows_model::units;
use narrows_telemetry::run_file::{QueryLimits, Reader};
use serde_json::{Map, Value};

use super::traces::{chosen, trial_field};
use crate::address::{self, Parameters};
use crate::distinction::{self, FactDifference, Observation, TimeDifference};
use crate::error::Refusal;
use crate::frame::Page;
use crate::library::{Entry, Library};
use crate::search::Search;
use crate::sql;

/// Traces of a group at most.
const GROUP_MAX: i64 = 300;
/// Traces of a group below which nothing is said.
const GROUP_MIN: usize = 20;
/// Characters of an attribute's value; longer ones are texts, of which each has its own.
const VALUE_CHARS_MAX: usize = 200;
/// Bounds of reading the spans of both groups.
const LIMITS: QueryLimits = QueryLimits { rows: 200_000, bytes: 128 << 20, time: Duration::from_secs(10) };

pub(super) fn page(_: &Library, entry: &Entry, form: &Parameters) -> Result<Page, Refusal> {
    let path = &entry.edition.path;
    let trials = Reader::open(path)?.trials()?;
    let trial = chosen(&trials, form)?;
    let operations = operations(path, trial)?;
    let named = form.get("operation").and_then(|name| operations.iter().find(|one| one.label() == name));
    let operation = named.or(operations.first());
    let body = html! {
        header.top { h1 { "Slow against fast" } }
        form.search method="get" {
            (trial_field(&trials, trial))
            label { "operation " select name="operation" { @for one in &operations {
                option value=(one.label()) selected[Some(one) == operation] { (one.label()) }
            } } }
            button { "Compare" }
        }
        @match operation {
            None => { p { "The trial has no traces." } },
            Some(operation) => (compared(entry, trial, operation)?),
        }
    };
    Ok(Page {
        title: format!("Slow against fast in {}", entry.name),
        run: Some((entry.name.clone(), "/distinct")),
        body,
    })
}

#[derive(Debug, PartialEq)]
struct Operation {
    service: String,
    name: String,
}

impl Operation {
    fn label(&self) -> String {
        format!("{}: {}", self.service, self.name)
    }
}

/// Operations that serve others, those with most time first.
fn operations(path: &Path, trial: i64) -> Result<Vec<Operation>, Refusal> {
    let found = sql::ask(
        path,
        &format!(
            "SELECT (SELECT text FROM strings WHERE id = h.service), (SELECT text FROM strings WHERE id = h.name) \
             FROM span_shape_rows AS h JOIN span_rows AS s ON s.shape = h.id WHERE h.trial = {trial} AND h.kind IN (2, 5) \
             GROUP BY 1, 2 ORDER BY sum(s.length_ns) DESC LIMIT 200"
        ),
    )?;
    let operation =
        |row: &Vec<_>| Operation { service: sql::text(row.first()).to_owned(), name: sql::text(row.get(1)).to_owned() };
    Ok(found.rows.iter().map(operation).collect())
}

fn compared(entry: &Entry, trial: i64, operation: &Operation) -> Result<Markup, Refusal> {
    let path = &entry.edition.path;
    let Operation { service, name } = operation;
    let search = Search { trial, service: service.clone(), name: name.clone(), ..Search::default() };
    let found = search.sql();
    let counted = sql::ask(path, &format!("SELECT count(*) FROM ({found})"))?;
    let count = sql::integer(counted.rows.first().and_then(|row| row.first())).unwrap_or(0);
    let group = |size: i64, after: i64, order: &str| {
        format!(
            "SELECT trace, length_ns, start_ns FROM ({found}) ORDER BY length_ns {order} LIMIT {size} OFFSET {after}"
        )
    };
    let slow = sql::ask(path, &group((count / 20).min(GROUP_MAX), 0, "DESC"))?;
    let size = (count / 5).min(GROUP_MAX);
    let usual = sql::ask(path, &group(size, (count - size) / 2, ""))?;
    if slow.rows.len() < GROUP_MIN {
        let least = units::count(20 * GROUP_MIN as u64);
        return Ok(html! {
            p { "There are " (count) " traces with it: too few to distinguish the slowest twentieth from chance. " (least) " are enough." }
        });
    }
    let (seen, seen_usual) = (observations(path, &slow)?, observations(path, &usual)?);
    let facts = distinction::facts(&seen, &seen_usual);
    let times = distinction::times(&seen, &seen_usual);
    let used = used(path, trial, &slow, &usual)?;
    let threshold = |table: &Table| sql::number(table.rows.last().and_then(|row| row.get(1))).unwrap_or(0.0);
    Ok(html! {
        p.lead.wordy {
            (units::count(slow.rows.len() as u64)) " traces of " (units::duration(threshold(&slow))) " and more beside "
            (units::count(usual.rows.len() as u64)) " in the middle, of about " (units::duration(threshold(&usual))) "."
        }
        section {
            h2 { "What their spans say" }
            @if facts.is_empty() { p { "No attribute is clearly more frequent in one of the groups." } }
            @else { (facts_table(entry, trial, &facts)) }
        }
        section {
            h2 { "Where the slow ones take longer" }
            (times_table(&times))
        }
        @if !used.is_empty() {
            section {
                h2 { "CPU meanwhile" }
                (used_table(&used))
            }
        }
    })
}

/// Observations of some traces: what their spans say and take.
fn observations(path: &Path, group: &Table) -> Result<Vec<Observation>, Refusal> {
    let ids: Vec<String> =
        group.rows.iter().filter_map(|row| sql::integer(row.first())).map(|id| id.to_string()).collect();
    let query = format!(
        "SELECT s.trace, (SELECT text FROM strings WHERE id = h.service), (SELECT text FROM strings WHERE id = h.name), \
         s.length_ns, printf((SELECT text FROM strings WHERE id = h.attributes), s.a1, s.a2, s.a3, s.a4, s.a5, s.a6, s.a7, \
         s.a8, s.a9) FROM span_rows AS s JOIN span_shape_rows AS h ON h.id = s.shape WHERE s.trace IN ({})",
        ids.join(", ")
    );
    let spans = Reader::open(path)?.sql(&query, &LIMITS)?;
    let mut all: BTreeMap<i64, Observation> = BTreeMap::new();
    for row in &spans.rows {
        let seen = all.entry(sql::integer(row.first()).unwrap_or(0)).or_default();
        let (service, name) = (sql::text(row.get(1)).to_owned(), sql::text(row.get(2)).to_owned());
        let attributes: Map<String, Value> = serde_json::from_str(sql::text(row.get(4))).unwrap_or_default();
        for (key, value) in attributes {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if value.chars().count() <= VALUE_CHARS_MAX {
                seen.facts.insert((service.clone(), key, value));
            }
        }
        seen.facts.insert((service.clone(), "span".to_owned(), name.clone()));
        *seen.times.entry((service, name)).or_default() += sql::number(row.get(3)).unwrap_or(0.0).max(0.0);
    }
    Ok(all.into_values().collect())
}

/// CPU of a service, in cores, while the slow and the usual traces were under way.
type Used = (String, f64, f64);

fn used(path: &Path, trial: i64, slow: &Table, usual: &Table) -> Result<Vec<Used>, Refusal> {
    let mean = |group: &Table| -> Result<BTreeMap<String, f64>, Refusal> {
        let seconds: Vec<String> = group
            .rows
            .iter()
            .filter_map(|row| sql::integer(row.get(2)))
            .map(|start_ns| format!("({})", start_ns / 1_000_000_000))
            .collect();
        let query = format!(
            "WITH seen (second) AS (VALUES {}), used AS (SELECT service, time_ns / 1000000000 AS second, sum(value) AS cores \
             FROM metrics WHERE trial = {trial} AND name = 'process.cpu.cores' GROUP BY 1, 2) \
             SELECT used.service, avg(used.cores) FROM seen JOIN used ON used.second = seen.second + 1 GROUP BY 1",
            seconds.join(", ")
        );
        let found = sql::ask(path, &query)?;
        Ok(found
            .rows
            .iter()
            .map(|row| (sql::text(row.first()).to_owned(), sql::number(row.get(1)).unwrap_or(0.0)))
            .collect())
    };
    let (slow, usual) = (mean(slow)?, mean(usual)?);
    let mut all: Vec<Used> =
        slow.into_iter().filter_map(|(service, cores)| Some((service.clone(), cores, *usual.get(&service)?))).collect();
    all.sort_by(|a, b| (b.1 - b.2).abs().total_cmp(&(a.1 - a.2).abs()));
    Ok(all)
}

fn facts_table(entry: &Entry, trial: i64, facts: &[FactDifference]) -> Markup {
    let found = |fact: &FactDifference| {
        let form = Parameters::default().with("trial", &trial.to_string()).with("service", &fact.service);
        let form = match fact.name.as_str() {
            "span" => form.with("name", &fact.value),
            name => form.with("attribute", &format!("{name}={}", fact.value)),
        };
        form.with("trial", "").behind(&address::run(&entry.name, "/traces"))
    };
    html! {
        div.scroll {
            table.wide {
                thead { tr { th { "service" } th { "attribute" } th { "value" } th.n { "slow" } th.n { "usual" } } }
                tbody {
                    @for fact in facts {
                        tr {
                            td { (fact.service) }
                            td { (fact.name) }
                            td { a href=(found(fact)) { (fact.value) } }
                            (share(fact.shares.0))
                            (share(fact.shares.1))
                        }
                    }
                }
            }
        }
    }
}

fn share(share: f64) -> Markup {
    html! { td.n { (units::percent(share)) span.bar { i style=(format!("width:{:.0}%", share * 100.0)) {} } } }
}

fn times_table(times: &[TimeDifference]) -> Markup {
    html! {
        div.scroll {
            table.wide {
                thead { tr { th { "service" } th { "span" } th.n { "slow" } th.n { "usual" } th.n { "more" } } }
                tbody {
                    @for one in times {
                        tr {
                            td { (one.service) }
                            td { (one.name) }
                            td.n { (units::duration(one.means_ns.0)) }
                            td.n { (units::duration(one.means_ns.1)) }
                            td.n { (units::duration(one.means_ns.0 - one.means_ns.1)) }
                        }
                    }
                }
            }
        }
        p.note { "Mean time of a trace in such spans, with what they wait for." }
    }
}

fn used_table(used: &[Used]) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr { th { "service" } th.n { "slow" } th.n { "usual" } } }
                tbody {
                    @for (service, slow, usual) in used {
                        tr { td { (service) } td.n { (units::cores(*slow)) } td.n { (units::cores(*usual)) } }
                    }
                }
            }
        }
        p.note { "In the seconds in which they began." }
    }
}
