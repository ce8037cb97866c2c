//! The data that `{{name}}` draws from: whole numbers, values in place, rows of a CSV or JSON file.
//!
//! Files are read when an experiment is checked and again when a trial is bound; [`DataFiles`] keeps one from being
//! read for each variant.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use narrows_load::{csv_rows, json_rows};
use narrows_model::load::{DataSource, DataValues, Pick};

use crate::experiment::document::at::At;
use crate::experiment::document::tree::Form;
use crate::experiment::error::{Problem, Report, listed, shortened};
use crate::experiment::grammar::key::{Key, Value, optional, parameter, trial};
use crate::experiment::grammar::kind::{self, Words};
use crate::experiment::grammar::shape::{Field, Map, NamedMap, Rule, Shape};
use crate::experiment::grammar::values::MANY;
use crate::experiment::paths;

const TEXT: Value<String> = trial(&kind::TEXT);

const INTEGERS: Field =
    optional("integers", Shape::Map(Map::new(&[FROM.field, TO.field])), "Whole numbers, each as likely.");

const FROM: Key<i64> = Key::required("from", parameter(&kind::INTEGER), "The smallest.");

const TO: Key<i64> = Key::required("to", parameter(&kind::INTEGER), "The largest.");

const VALUES: Field =
    optional("values", Shape::List { item: &TEXT.shape(), least: 1, most: usize::MAX }, "Values in place.");

const CSV: Key<String> = Key::optional(
    "csv",
    TEXT,
    "A CSV file whose first line names the columns, relative to the experiment file's folder.",
);

const JSON: Key<String> = Key::optional(
    "json",
    TEXT,
    "A JSON file with an array of objects, whose keys are the columns, or of single values, relative to the experiment \
     file's folder.",
);

const PICK: Key<Pick> = Key::beside(
    "pick",
    parameter(&Words(&[("random", Pick::Random), ("sequential", Pick::Sequential), ("once", Pick::Once)])),
    &[VALUES.name(), CSV.name(), JSON.name()],
    "Which of `values` or of the rows of a file comes next: `random`, any; `sequential`, the next in order over all users, \
     and the first again after the last; `once`, the next in order, each once, until the scenarios that draw from it end \
     with the last. Without it, `random`.",
);

/// A data source.
static DATA: Shape = Shape::Map(Map {
    fields: &[INTEGERS, VALUES, CSV.field, JSON.field, PICK.field],
    rules: &[Rule::ExactlyOne(&[INTEGERS.given(), VALUES.given(), CSV.given(), JSON.given()])],
    others: None,
});

pub(crate) const DATA_SOURCES: Field = optional(
    "data",
    Shape::Named(NamedMap { what: "data", name: &kind::NAME, value: &DATA, least: 0, most: MANY }),
    "Values by name that `{{name}}` in requests draws from, one row for each iteration.",
);

/// Data files below a folder that were read, or why they could not be.
#[derive(Debug)]
pub(crate) struct DataFiles<'a> {
    /// The folder that relative paths start from.
    pub(crate) dir: &'a Path,
    read: HashMap<(PathBuf, Format), Result<Rc<Table>, String>>,
}

/// How a data file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Format {
    Csv,
    Json,
}

/// Content of a data file.
#[derive(Debug)]
struct Table {
    /// Empty if there is one unnamed column.
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl<'a> DataFiles<'a> {
    /// No file is read yet.
    pub(crate) fn new(dir: &'a Path) -> Self {
        Self { dir, read: HashMap::new() }
    }

    fn get(&mut self, file: &str, format: Format) -> Result<Rc<Table>, String> {
        let path = paths::resolve(self.dir, file);
        let read = || {
            let table = match format {
                Format::Csv => csv_rows::read(&path).map(|file| Table { columns: file.columns, rows: file.rows }),
                Format::Json => json_rows::read(&path).map(|file| Table { columns: file.columns, rows: file.rows }),
            };
            table.map(Rc::new).map_err(|error| with_causes(&error))
        };
        self.read.entry((path.clone(), format)).or_insert_with(read).clone()
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", with_causes(source)),
        None => error.to_string(),
    }
}

/// The data sources of a load, those that are broken among them.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    sources: Vec<Source>,
    /// Whether the section may be there under a misspelt key.
    is_unknown: bool,
}

#[derive(Debug)]
struct Source {
    name: String,
    values: Option<DataValues>,
    /// For each column, the first value that would break a JSON text from inside.
    unfit_for_json: Vec<Option<String>>,
}

/// A column of a data source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldIndex {
    pub(crate) source: usize,
    pub(crate) column: usize,
}

impl Sources {
    /// Sources of a section that may be there under a misspelt key.
    pub(crate) fn misspelt() -> Self {
        Self { sources: Vec::new(), is_unknown: true }
    }

    /// Builds the sources from `load.data`.
    pub(crate) fn build(data: At<'_>, files: &mut DataFiles<'_>, report: &mut Report) -> Self {
        let sources = data.entries().map(|(name, at)| {
            let values = values(at, files, report);
            let unfit_for_json = values.as_ref().map(unfit_for_json).unwrap_or_default();
            Source { name: name.to_owned(), values, unfit_for_json }
        });
        Self { sources: sources.collect(), is_unknown: !matches!(data.node.form, Form::Map(_)) }
    }

    /// The column that `{{name}}` or `{{name.column}}` means; `None` if its source is broken.
    /// `variables` are the other names that could have been meant.
    pub(crate) fn find(
        &self,
        name: &str,
        column: Option<&str>,
        variables: &[&str],
    ) -> Result<Option<FieldIndex>, Problem> {
        let named = |name: &str| self.sources.iter().position(|source| source.name == name);
        let Some(index) = named(name) else {
            // A source whose name has a point in it was reported as such.
            let is_reported = column.is_some_and(|column| named(&format!("{name}.{column}")).is_some());
            return if is_reported || self.is_unknown { Ok(None) } else { Err(self.unknown(name, variables)) };
        };
        let field = |column| Ok(Some(FieldIndex { source: index, column }));
        let columns = match &self.sources[index].values {
            None => return Ok(None),
            Some(DataValues::Rows { columns, .. }) => columns.as_slice(),
            Some(DataValues::Integers { .. }) => &[],
        };
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        match column {
            None if columns.len() < 2 => field(0),
            None => {
                let problem = Problem::new(format!("`{{{{{name}}}}}` has several columns: {}", listed(&names)));
                Err(problem.hint(format!("name one: `{{{{{name}.{}}}}}`", names[0])))
            }
            Some(column) if columns.is_empty() => {
                Err(Problem::new(format!("`{name}` has no columns, so `{name}.{}` does not exist", shortened(column)))
                    .hint(format!("write `{{{{{name}}}}}`")))
            }
            Some(column) => match columns.iter().position(|known| known == column) {
                Some(position) => field(position),
                None => Err(Problem::unknown(&format!("column of `{name}`:"), column, names)),
            },
        }
    }

    /// Whether there is data of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.sources.iter().any(|source| source.name == name)
    }

    fn unknown(&self, name: &str, variables: &[&str]) -> Problem {
        let what = if variables.is_empty() { "data" } else { "data or variable" };
        let known = self.sources.iter().map(|source| source.name.as_str()).chain(variables.iter().copied());
        let mut problem = Problem::unknown(what, name, known);
        if name.is_empty() {
            problem.message = "this `{{…}}` has no name".to_owned();
        }
        if self.sources.is_empty() && variables.is_empty() {
            problem.hint("describe it under `load.data`")
        } else {
            problem
        }
    }

    /// Values are put into a JSON text as they are, so none may hold a quote, a backslash or a control character.
    pub(crate) fn check_for_json(&self, source: usize, column: usize) -> Result<(), Problem> {
        let source = &self.sources[source];
        match source.unfit_for_json.get(column).and_then(Option::as_ref) {
            None => Ok(()),
            Some(value) => {
                let value = shortened(value);
                Err(Problem::new(format!(
                    "the value {value:?} of `{}` would break the JSON it is put into",
                    source.name
                ))
                .hint("values for `json` must not hold quotes, backslashes or control characters"))
            }
        }
    }

    /// The sources for the plan, in the order that [`FieldIndex::source`] counts.
    pub(crate) fn into_plan(self) -> Vec<DataSource> {
        let whole = self.sources.into_iter().filter_map(|source| Some((source.name, source.values?)));
        whole.map(|(name, values)| DataSource { name, values }).collect()
    }
}

fn values(at: At<'_>, files: &mut DataFiles<'_>, report: &mut Report) -> Option<DataValues> {
    if let Some(integers) = at.get(&INTEGERS) {
        let (from, to) = (integers.read(&FROM)?, integers.read(&TO)?);
        if from > to {
            let problem = Problem::new(format!("expected `from` to be `to` or less, found {from} and {to}"));
            report.add(integers.key_place(), integers.path(), problem);
        }
        return Some(DataValues::Integers { from, to });
    }
    let pick = at.read(&PICK).unwrap_or(Pick::Random);
    if let Some(values) = at.get(&VALUES) {
        let rows = values.items().map(|value| Some(vec![value.text()?.to_owned()])).collect::<Option<Vec<_>>>()?;
        return (!rows.is_empty()).then_some(DataValues::Rows { columns: Vec::new(), rows, pick });
    }
    let (file, format) = match (at.get(&CSV), at.get(&JSON)) {
        (Some(csv), _) => (csv, Format::Csv),
        (None, json) => (json?, Format::Json),
    };
    match files.get(file.text()?, format) {
        Ok(table) => Some(DataValues::Rows { columns: table.columns.clone(), rows: table.rows.clone(), pick }),
        Err(message) => {
            report.add(file.place(), file.path(), Problem::new(message));
            None
        }
    }
}

fn unfit_for_json(values: &DataValues) -> Vec<Option<String>> {
    let DataValues::Rows { rows, .. } = values else { return Vec::new() };
    let is_unfit = |cell: &&String| cell.contains(|c: char| c == '"' || c == '\\' || c < ' ');
    let columns = rows.first().map_or(0, Vec::len);
    (0..columns).map(|column| rows.iter().filter_map(|row| row.get(column)).find(is_unfit).cloned()).collect()
}
