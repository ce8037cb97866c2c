//! Common parts of `postgres:`, `mariadb:` and `galera:`: a database and files of SQL.

use std::path::{Path, PathBuf};

use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report};
use crate::experiment::grammar::key::{Key, Value, optional, parameter};
use crate::experiment::grammar::kind;
use crate::experiment::grammar::shape::{Field, Shape};
use crate::experiment::grammar::values::MANY;
use crate::experiment::paths;

const FILE: Value<String> = parameter(&kind::TEXT);

/// The name of a database.
pub(super) const NAME: Value<String> = parameter(&kind::NAME);

/// `database`, which has another default in each kind of server.
pub(super) const fn database(yaml: &'static str, doc: &'static str) -> Key<String> {
    Key::default("database", NAME, yaml, doc)
}

/// `sql`, as servers that stand alone have it.
pub(super) const SQL: Field = sql(
    "Files of SQL, relative to the experiment file's folder. They are run in the database one after the other, once in a trial, when the server is ready.",
);

/// `sql`, with what is said about it.
pub(super) const fn sql(doc: &'static str) -> Field {
    optional("sql", Shape::List { item: const { &FILE.shape() }, least: 0, most: MANY }, doc)
}

/// Reports files under `sql` that are not there.
pub(super) fn check_files(at: At<'_>, dir: &Path, report: &mut Report) {
    let Some(sql) = at.get(&SQL) else { return };
    for file in sql.items() {
        if let Some(text) = file.text() {
            check_file(file, &paths::resolve(dir, text), report);
        }
    }
}

fn check_file(at: At<'_>, path: &Path, report: &mut Report) {
    if !path.is_file() {
        let problem = Problem::new(format!("expected a file, found none at {}", path.display()));
        report.add(at.place(), at.path(), problem.hint("it is relative to the experiment file's folder"));
    }
}

/// The absolute paths of the files under `sql`.
pub(super) fn files(at: At<'_>, dir: &Path) -> Option<Vec<PathBuf>> {
    let Some(list) = at.get(&SQL) else { return Some(Vec::new()) };
    list.items().map(|file| Some(paths::resolve(dir, file.text()?))).collect()
}
