//! Metrics beyond the known ones, from a table: `metric,role,service,peer,unit`.
//!
//! A role is what the metric counts: `duration` (a histogram or summary, named without `_sum` and `_count`), `requests`,
//! `errors`, `cpu` or `memory`, and `latency` for the means of a CSV file. `service` and `peer` are labels; both may be
//! empty, as may `unit`, which is `s` or `ms`.

use std::path::Path;

use csv::{ReaderBuilder, StringRecord, Trim};
use narrows_model::series::{SeriesKey, services};

use super::csv::name_as;
use crate::exchange::ImportError;
use crate::normalise::{Part, Role, Source, known};

/// Rows of a mapping.
const ROWS_MAX: usize = 1_000;
/// The role of a mean in a CSV file.
const LATENCY: &str = "latency";

/// Metrics with what they count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mapping {
    rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq)]
struct Row {
    word: &'static str,
    source: Source,
}

impl Mapping {
    /// Reads the table in a file.
    ///
    /// # Errors
    /// When it cannot be read, or a row is not as expected.
    pub fn read(path: &Path) -> Result<Self, ImportError> {
        let mut rows = Vec::new();
        for (line, row) in table(path, &["metric", "role"])? {
            let row = Row::of(&row).map_err(|what| ImportError::Table { path: path.to_owned(), line, what })?;
            rows.push(row);
        }
        Ok(Self { rows })
    }

    /// The mapped metrics, then the known ones that are not mapped.
    pub(super) fn sources(&self) -> Vec<Source> {
        let mapped = self.rows.iter().filter(|row| row.word != LATENCY).map(|row| row.source.clone());
        mapped
            .chain(known().into_iter().filter(|known| !self.rows.iter().any(|row| row.source.name == known.name)))
            .collect()
    }

    /// Whether a metric of this name is mapped.
    pub(super) fn has(&self, name: &str) -> bool {
        self.rows.iter().any(|row| row.source.part(name).is_some())
    }

    /// Names a series of counters by its role, and gives its value in seconds or bytes; `None` if it is not mapped.
    pub(super) fn apply(&self, key: &mut SeriesKey, value: f64) -> Option<f64> {
        let (row, part) = self.rows.iter().find_map(|row| Some((row, row.source.part(&key.name)?)))?;
        row.put_subject(key);
        let is_time = part == Part::Sum || row.word == LATENCY || row.source.role == Role::Cpu;
        match (row.word, row.source.role, part) {
            (LATENCY, ..) => name_as(key, LATENCY),
            (_, Role::Durations, Part::Count) => rename(key, &format!("{}.count", services::DURATION), ""),
            (_, Role::Durations, Part::Sum) => rename(key, &format!("{}.sum", services::DURATION), "s"),
            (_, Role::Requests, _) => rename(key, services::REQUESTS, "{request}"),
            (_, Role::Errors, _) => rename(key, services::ERRORS, "{request}"),
            (_, Role::Cpu, _) => rename(key, "process.cpu.time", "s"),
            (_, Role::Memory, _) => rename(key, "process.memory.usage", "By"),
        }
        Some(if is_time { value * row.source.factor } else { value })
    }

    /// The same of a mean or rate over an interval, as CSV files have them.
    pub(super) fn apply_to_mean(&self, key: &mut SeriesKey, value: f64) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.source.name == key.name)?;
        name_as(key, if row.word == "duration" { LATENCY } else { row.word });
        Some(value * row.source.factor)
    }
}

fn rename(key: &mut SeriesKey, name: &str, unit: &str) {
    (key.name, key.unit) = (name.to_owned(), unit.to_owned());
}

impl Row {
    fn of(row: &[String; 5]) -> Result<Self, String> {
        let [metric, role, service, peer, unit] = row;
        let known = Role::ALL.iter().find(|(word, _)| word == role);
        let (word, role) = match known {
            Some((word, role)) => (*word, *role),
            None if role == LATENCY => (LATENCY, Role::Requests),
            None => {
                let words: Vec<&str> = Role::ALL.iter().map(|(word, _)| *word).collect();
                return Err(format!("`{role}` is no role, expected {} or {LATENCY}", words.join(", ")));
            }
        };
        let factor = match unit.as_str() {
            "" | "s" | "By" => 1.0,
            "ms" => 1e-3,
            other => return Err(format!("`{other}` is no unit, expected s or ms")),
        };
        let labels = |label: &String| if label.is_empty() { Vec::new() } else { vec![label.clone()] };
        let (service, peer) = (labels(service), labels(peer));
        Ok(Self { word, source: Source { name: metric.clone(), role, factor, service, peer, only: None } })
    }

    /// Puts service and callee where a run file has them.
    fn put_subject(&self, key: &mut SeriesKey) {
        let value = |labels: &[String]| labels.iter().find_map(|label| key.labels.get(label)).cloned();
        let peer = value(&self.source.peer);
        let service = value(&self.source.service).or_else(|| crate::normalise::service_of(key));
        key.labels.extend(peer.map(|peer| (services::PEER.to_owned(), peer)));
        if let Some(service) = service {
            key.service = service;
        }
    }
}

/// The rows of a small table with their lines: the columns of a mapping or, by their first letters, those of a graph.
///
/// # Errors
/// When it cannot be read, or a column that is `required` is missing.
pub(super) fn table(path: &Path, required: &[&str]) -> Result<Vec<(u64, [String; 5])>, ImportError> {
    let wrong = |line: u64, what: String| ImportError::Table { path: path.to_owned(), line, what };
    let file = narrows_files::open(path).map_err(|source| ImportError::Read { path: path.to_owned(), source })?;
    let mut table = ReaderBuilder::new().flexible(true).trim(Trim::All).comment(Some(b'#')).from_reader(file);
    let header = table.headers().map_err(|error| wrong(1, error.to_string()))?.clone();
    let at = |name: &str| header.iter().position(|column| column.eq_ignore_ascii_case(name));
    if let Some(missing) = required.iter().find(|name| at(name).is_none()) {
        return Err(wrong(1, format!("there is no column `{missing}`, expected {}", required.join(", "))));
    }
    let names = if required.contains(&"caller") {
        ["caller", "callee", "", "", ""]
    } else {
        ["metric", "role", "service", "peer", "unit"]
    };
    let columns = names.map(at);
    let mut rows = Vec::new();
    for row in table.records().take(ROWS_MAX * 10) {
        let row: StringRecord =
            row.map_err(|error| wrong(error.position().map_or(0, ::csv::Position::line), error.to_string()))?;
        let line = row.position().map_or(0, ::csv::Position::line);
        let cells = columns.map(|at| at.and_then(|at| row.get(at)).unwrap_or_default().to_owned());
        if cells[..2].iter().any(String::is_empty) {
            return Err(wrong(line, format!("`{}` or `{}` is empty", names[0], names[1])));
        }
        rows.push((line, cells));
    }
    Ok(rows)
}
