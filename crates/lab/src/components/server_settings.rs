//! Settings of a server's own configuration file, by name; some are reserved for Narrows.

use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report};
use crate::experiment::grammar::key::{Value, optional, replica};
use crate::experiment::grammar::kind;
use crate::experiment::grammar::shape::{Field, NamedMap, Shape};

const VALUE: Value<String> = replica(&kind::TEXT);

/// `settings`, with what is said about it.
pub(super) const fn settings(doc: &'static str) -> Field {
    let value = const { &VALUE.shape() };
    optional(
        "settings",
        Shape::Named(NamedMap { what: "setting", name: &kind::SETTING, value, least: 0, most: 1000 }),
        doc,
    )
}

/// The settings, in order. Reports those that are not free, and values that are not one line: a line break would begin a
/// setting of its own. `is_free` gets the name in lower case.
pub(super) fn read(
    at: At<'_>,
    key: &Field,
    is_free: fn(&str) -> bool,
    report: &mut Report,
) -> Option<Vec<(String, String)>> {
    let Some(map) = at.get(key) else { return Some(Vec::new()) };
    let mut settings = Vec::new();
    for (name, value) in map.entries() {
        if !is_free(&name.to_ascii_lowercase()) {
            let problem =
                Problem::new(format!("`{name}` is set by Narrows, so that the server is private to the trial"));
            report.add(value.key_place(), map.path(), problem);
        }
        if value.text().is_some_and(|text| text.contains(char::is_control)) {
            let problem = Problem::new("expected one line, found a line break or another control character");
            report.add(value.place(), value.path(), problem);
        }
        settings.push((name.to_owned(), value.text().unwrap_or_default().to_owned()));
    }
    Some(settings)
}
