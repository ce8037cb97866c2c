//! Reads the query, has it compiled and run, and shows its errors in its own text.

use std::io::Read;
use std::path::Path;

use narrows_model::table::Table;
use narrows_query::Mistake;
use narrows_telemetry::run_file::{QueryError, QueryLimits, Reader};

use super::position::{Position, pointed};
use crate::exit::Failure;
use crate::stderr;

/// Where tables and columns are described.
const PAGE: &str = "docs/reference/query.md";
/// The name of a query that is no file.
const SQL: &str = "SQL";

/// Runs a query in SQL.
pub(super) fn sql(run: &Path, sql: &str, limits: &QueryLimits) -> Result<Table, Failure> {
    let from_input = if sql == "-" { Some(read(Path::new("-"))?) } else { None };
    let sql = from_input.as_deref().unwrap_or(sql);
    opened(run)?.sql(sql, limits).map_err(|error| failure(error, Some(sql)))
}

/// Runs a query in KQL.
pub(super) fn kql(run: &Path, file: &Path, lets: &[(String, String)], limits: &QueryLimits) -> Result<Table, Failure> {
    let text = read(file)?;
    let compiled = narrows_query::compile(&text, lets).map_err(|mistake| invalid(&mistake, file, &text, lets))?;
    let reader = opened(run)?;
    let result = reader.run_compiled(&compiled.sql, &compiled.columns, compiled.chart, limits);
    result.map_err(|error| failure(error, None))
}

/// Opens a run file, and notes which parts cannot be queried yet.
fn opened(run: &Path) -> Result<Reader, Failure> {
    let reader = Reader::open(run)?;
    let waiting = reader.waiting()?;
    if waiting > 0 {
        stderr::say(&format!(
            "note: {waiting} spans of a trial under way cannot be queried yet: they go into the tables when it ends"
        ));
    }
    Ok(reader)
}

/// A query from a file or from standard input.
fn read(file: &Path) -> Result<String, Failure> {
    const BYTES_MAX: u64 = 1 << 20;
    let name = name_of(file);
    let mut bytes = Vec::new();
    let source: Result<Box<dyn Read>, _> = match file.as_os_str() == "-" {
        true => Ok(Box::new(std::io::stdin().lock())),
        false => narrows_files::open(file).map(|file| Box::new(file) as Box<dyn Read>),
    };
    source.and_then(|source| source.take(BYTES_MAX + 1).read_to_end(&mut bytes)).map_err(|error| {
        let failure = Failure::new(format!("cannot read the query from {name}: {error}"));
        let is_query = file.to_string_lossy().contains(['|', '\n']);
        if is_query {
            failure.hint("`--kql` names a file; `--kql -` reads the query from standard input")
        } else {
            failure
        }
    })?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Failure::new(format!("the query in {name} is longer than 1 MiB")));
    }
    String::from_utf8(bytes).map_err(|_| Failure::new(format!("the query in {name} is not UTF-8 text")))
}

fn name_of(file: &Path) -> String {
    if file.as_os_str() == "-" { "standard input".to_owned() } else { file.display().to_string() }
}

/// A mistake of KQL, in the text that it is in: the query's, or that of a `--let`. A `--let` of no `let` is in neither.
fn invalid(mistake: &Mistake, file: &Path, text: &str, lets: &[(String, String)]) -> Failure {
    let is_of = |name: &str| mistake.message.starts_with(&format!("in the value given for `{name}`: "));
    let (name, text) = match lets.iter().find(|(name, _)| is_of(name)) {
        Some((name, value)) => (format!("--let {name}"), value.as_str()),
        None => (name_of(file), text),
    };
    let place = Position { line: mistake.line, column: mistake.column };
    let is_of_no_let = mistake.message.starts_with("no `let` of this query is called");
    let failure = match is_of_no_let {
        true => Failure::new(format!("--let: {}", mistake.message)),
        false => Failure::new(pointed(&name, text, place, &mistake.message)),
    };
    match &mistake.hint {
        Some(hint) => failure.hint(hint.clone()),
        None => failure,
    }
}

/// `sql` is the query as its author wrote it; `None` if it was compiled.
fn failure(error: QueryError, sql: Option<&str>) -> Failure {
    let hint = hint(&error, sql.is_some());
    let failure = match (error, sql) {
        (QueryError::File(error), _) => return error.into(),
        (QueryError::Sql { message, place: Some((line, column)) }, Some(sql)) => {
            Failure::new(pointed(SQL, sql, Position { line, column }, &message))
        }
        (QueryError::Sql { message, .. }, Some(_)) => Failure::new(format!("{SQL}: {message}")),
        (QueryError::Sql { message, .. }, None) => Failure::new(format!("the query failed: {message}")),
        (error, _) => Failure::new(error),
    };
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn hint(error: &QueryError, is_sql: bool) -> Option<String> {
    match error {
        QueryError::TimedOut { .. } => {
            Some("`--timeout` lets it run longer; a condition on `trial` gives it less to read".to_owned())
        }
        QueryError::Sql { message, .. } if message.starts_with("no such table") => {
            let tables = narrows_query::tables();
            let views = tables.iter().filter(|table| table.view == Some(table.name));
            let names: Vec<&str> = views.map(|table| table.name).collect();
            Some(format!("among others there are {}; see {PAGE}", names.join(", ")))
        }
        QueryError::Sql { message, .. } if is_sql && message.starts_with("no such ") => {
            Some(format!("columns and functions are in {PAGE}"))
        }
        _ => None,
    }
}
