//! `narrows query RUN SQL` and `narrows query RUN --kql FILE`: run a query on a run file and print its result for
//! people or programs.
//!
//! The result goes to standard output, a table by default wherever that leads, so that a pipe changes nothing. Errors
//! are shown in the query's own text.

mod execute;
mod position;

use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_model::table::Table;
use narrows_report::table;
use narrows_report::text::Style;
use narrows_telemetry::run_file::QueryLimits;

use crate::exit::Failure;
use crate::{Outcome, runs_folder, stderr};

/// The longest `--timeout`.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);
/// The highest `--limit`.
const ROWS_MAX: u64 = 100_000_000;
/// The width of charts when none is known.
const CHART_WIDTH: usize = 100;

#[derive(Debug, clap::Args)]
#[command(after_help = "Tables, columns, the part of KQL that is understood, and examples: docs/reference/query.md")]
pub(crate) struct Arguments {
    /// A run file, or its name in the runs folder [default: the newest]
    #[arg(value_name = "RUN", add = crate::complete::runs())]
    run: Option<PathBuf>,
    /// The query in SQL; `-` reads it from standard input
    #[arg(value_name = "SQL", conflicts_with = "kql")]
    sql: Option<String>,
    /// A file with the query in KQL, the language of Application Insights; `-` is standard input
    #[arg(long, value_name = "FILE")]
    kql: Option<PathBuf>,
    /// Give a `let` of the KQL query another value; may be given several times
    #[arg(long = "let", value_name = "NAME=EXPRESSION", requires = "kql", value_parser = binding)]
    lets: Vec<(String, String)>,
    /// The format of the result
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// List at most this many rows
    #[arg(long, value_name = "ROWS", default_value_t = QueryLimits::default().rows as u64,
          value_parser = clap::value_parser!(u64).range(1..=ROWS_MAX))]
    limit: u64,
    /// Stop the query after this long
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = timeout)]
    timeout: Duration,
}

/// How a result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Aligned text, or the picture that a query's `render` asks for
    Table,
    /// Comma-separated values with a header
    Csv,
    /// An array of objects
    Json,
    /// A table in Markdown
    Markdown,
}

fn binding(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=EXPRESSION")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn timeout(text: &str) -> Result<Duration, String> {
    let parsed = narrows_lab::experiment::parse_duration(text).filter(|time| !time.is_zero() && *time <= TIMEOUT_MAX);
    parsed.ok_or_else(|| "expected a duration up to 24h, such as 500ms, 10s, 5m".to_owned())
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let (run, sql) = run_and_sql(arguments)?;
    let path = runs_folder::find(run)?;
    let limits = QueryLimits {
        rows: usize::try_from(arguments.limit).unwrap_or(usize::MAX),
        time: arguments.timeout,
        ..QueryLimits::default()
    };
    let result = match (&arguments.kql, sql) {
        (Some(file), _) => execute::kql(&path, file, &arguments.lets, &limits)?,
        (None, Some(sql)) => execute::sql(&path, sql, &limits)?,
        (None, None) => return Err(Failure::new("no query given").hint("give one in SQL, or `--kql FILE`")),
    };
    if result.is_cut {
        stderr::say(&cut_note(&result, &limits));
    }
    match arguments.format {
        Format::Table => super::print_painted(&drawn(&result)),
        Format::Csv => super::print(&table::csv(&result)),
        Format::Json => super::print_json(table::json(&result)),
        Format::Markdown => super::print(&table::markdown(&result)),
    }
}

/// RUN may be left out. What has white space in it is then the query: a run's name with a space needs its query beside
/// it.
fn run_and_sql(arguments: &Arguments) -> Result<(Option<&Path>, Option<&str>), Failure> {
    let run = arguments.run.as_deref();
    match (run, arguments.sql.as_deref(), &arguments.kql) {
        (Some(only), None, None) => match only.to_str().filter(|text| text.contains(char::is_whitespace)) {
            Some(sql) => Ok((None, Some(sql))),
            None => Err(Failure::new(format!("no query given for {}", only.display()))
                .hint("`narrows query RUN \"SELECT …\"` asks in SQL, `narrows query RUN --kql FILE` in KQL")),
        },
        (run, sql, _) => Ok((run, sql)),
    }
}

fn cut_note(result: &Table, limits: &QueryLimits) -> String {
    let rows = super::plural(result.rows.len(), "row");
    if result.rows.len() < limits.rows {
        let most = narrows_model::units::bytes(limits.bytes as f64);
        return format!("note: there are more than {rows}, but a result holds at most {most}: select fewer columns");
    }
    format!("note: there are more than {rows}: `--limit` sets how many are shown")
}

/// A chart if the query asks for one, else a table.
fn drawn(result: &Table) -> String {
    let Style { color, .. } = super::style();
    let width = super::stdout_width().or_else(columns_asked);
    let picture = table::chart(result, Style { width: width.unwrap_or(CHART_WIDTH), color });
    picture.unwrap_or_else(|| table::text(result, Style { width: width.unwrap_or(usize::MAX), color }))
}

/// The width that the environment requests.
fn columns_asked() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0)
}
