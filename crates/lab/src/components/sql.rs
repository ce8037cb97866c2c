//! What `postgres:`, `mariadb:` and `galera:` have in common: a database and files of SQL.

use std::path::{Path, PathBuf};

use crate::experiment::grammar::MANY;
use crate::experiment::kind::Kind;
use crate::experiment::mistake::{Report, Wrong};
use crate::experiment::read;
use crate::experiment::shape::{Scope, Shape};
use crate::experiment::tree::At;

static FILE: Shape = Shape::Scalar(Kind::Text, Scope::Parameters);

/// The name of a database.
pub(super) static DATABASE: Shape = Shape::Scalar(Kind::Name, Scope::Parameters);
/// Files of SQL.
pub(super) static FILES: Shape = Shape::List { item: &FILE, least: 0, most: MANY };

/// Tells files under `sql` that are not there.
pub(super) fn check_files(at: At<'_>, dir: &Path, report: &mut Report) {
    let Some(sql) = at.get("sql") else { return };
    for file in sql.items() {
        if let Some(text) = file.text() {
            check_file(file, &read::path(dir, text), report);
        }
    }
}

fn check_file(at: At<'_>, path: &Path, report: &mut Report) {
    if !path.is_file() {
        let wrong = Wrong::new(format!("expected a file, found none at {}", path.display()));
        report.add(at.place(), at.path(), wrong.hint("it is relative to the experiment file's folder"));
    }
}

/// The absolute paths of the files under `sql`.
pub(super) fn files(at: At<'_>, dir: &Path) -> Option<Vec<PathBuf>> {
    let Some(list) = at.get("sql") else { return Some(Vec::new()) };
    list.items().map(|file| Some(read::path(dir, file.text()?))).collect()
}
