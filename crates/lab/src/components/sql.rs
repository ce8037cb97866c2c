//! What `postgres:`, `mariadb:` and `galera:` have in common: files of SQL, and settings that Narrows keeps to itself.

use std::path::{Path, PathBuf};

use crate::experiment::grammar::MANY;
use crate::experiment::kind::Kind;
use crate::experiment::mistake::{Report, Wrong};
use crate::experiment::read;
use crate::experiment::shape::{Named, Scope, Shape};
use crate::experiment::tree::At;

static FILE: Shape = Shape::Scalar(Kind::Text, Scope::Parameters);
static SETTING: Shape = Shape::Scalar(Kind::Text, Scope::Replica);

/// The name of a database.
pub(super) static DATABASE: Shape = Shape::Scalar(Kind::Name, Scope::Parameters);
/// Files of SQL.
pub(super) static FILES: Shape = Shape::List { item: &FILE, least: 0, most: MANY };
/// Settings by name.
pub(super) static SETTINGS: Shape =
    Shape::Named(Named { what: "setting", name: Kind::Setting, value: &SETTING, least: 0, most: 1000 });

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

/// The settings, in order; those that are not free are told. `is_free` is asked with the name in lower case.
pub(super) fn settings(at: At<'_>, is_free: fn(&str) -> bool, report: &mut Report) -> Option<Vec<(String, String)>> {
    let Some(map) = at.get("settings") else { return Some(Vec::new()) };
    let mut settings = Vec::new();
    for (name, value) in map.entries() {
        if !is_free(&name.to_ascii_lowercase()) {
            let wrong = Wrong::new(format!("`{name}` is set by Narrows, so that the server is private to the trial"));
            report.add(value.key_place(), map.path(), wrong);
        }
        settings.push((name.to_owned(), value.text().unwrap_or_default().to_owned()));
    }
    Some(settings)
}
