//! Microsoft's own parser of KQL reads the corpus too: what is accepted here has no error there, gives columns of the same
//! names and types, and what is refused here as wrong is wrong there.
//!
//! Needs Node, npm and its package index; without them, or with `NARROWS_TEST_SKIP_NODE=1`, it says that it was skipped.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use narrows_model::table::ColumnType;
use narrows_query::{compile, tables};
use narrows_testing::{has_program, is_disabled, skip};
use serde_json::Value;

const PACKAGE: &str = "@kusto/language-service-next";
const VERSION: &str = "12.4.1";

/// Mark of a query that KQL has and our part of it does not.
const NOT_OURS: &str = "// not in our part";

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The folder of the parser, installed once for all runs.
fn parser() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kusto");
    let package = folder.join("node_modules").join(PACKAGE);
    let installed = fs::read_to_string(package.join("package.json")).unwrap_or_default();
    if installed.contains(&format!("\"{VERSION}\"")) {
        return package;
    }
    fs::create_dir_all(&folder).unwrap();
    let wanted = format!("{PACKAGE}@{VERSION}");
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]).arg(&folder).arg(wanted);
    let said = npm.output().unwrap();
    let hint = "NARROWS_TEST_SKIP_NODE=1 leaves this test out";
    assert!(said.status.success(), "{}\n{hint}", String::from_utf8_lossy(&said.stderr));
    package
}

fn word(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Bool => "bool",
        ColumnType::Integer => "long",
        ColumnType::Real => "real",
        ColumnType::Text => "string",
        ColumnType::Instant => "datetime",
        ColumnType::Span => "timespan",
        ColumnType::Json | ColumnType::Any => "dynamic",
    }
}

/// The tables as the parser reads them: `name(['column']:type, …)`.
fn schema() -> PathBuf {
    let mut text = String::new();
    for table in tables() {
        let columns: Vec<_> =
            table.columns.iter().map(|column| format!("['{}']:{}", column.name, word(column.kind))).collect();
        text.push_str(&format!("{}({})\n", table.name, columns.join(", ")));
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kusto-tables.txt");
    fs::write(&file, text).unwrap();
    file
}

/// The parser's columns and errors for each query of a folder.
fn asked(folder: &str) -> BTreeMap<String, (Vec<String>, Vec<String>)> {
    let files = fs::read_dir(here("corpus").join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut node = Command::new("node");
    node.arg(here("oracle/check.mjs")).arg(parser()).arg(schema()).args(files);
    let said = node.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let texts = |value: &Value| value.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect();
    let lines = String::from_utf8(said.stdout).unwrap();
    let read = |line: &str| {
        let response: Value = serde_json::from_str(line).unwrap();
        (response["file"].as_str().unwrap().to_owned(), (texts(&response["columns"]), texts(&response["errors"])))
    };
    lines.lines().map(read).collect()
}

#[test]
fn the_parser_of_the_language_agrees() {
    if is_disabled("NARROWS_TEST_SKIP_NODE") || !has_program("node") || !has_program("npm") {
        return skip("Microsoft's parser of KQL needs node and npm, or NARROWS_TEST_SKIP_NODE is set");
    }
    let mut differences = Vec::new();
    for (file, (columns, errors)) in asked("accepted") {
        let compiled = compile(&fs::read_to_string(here("corpus/accepted").join(&file)).unwrap(), &[]).unwrap();
        let ours: Vec<_> = compiled.columns.iter().map(|it| format!("{}:{}", it.name, word(it.kind))).collect();
        let theirs: Vec<_> = columns.iter().map(|it| it.replace(":int", ":long")).collect();
        if !errors.is_empty() {
            differences.push(format!("{file} is wrong: {errors:?}"));
        } else if ours != theirs {
            differences.push(format!("{file}\n   here  {ours:?}\n   there {theirs:?}"));
        }
    }
    for (file, (_, errors)) in asked("refused") {
        let text = fs::read_to_string(here("corpus/refused").join(&file)).unwrap();
        if errors.is_empty() && !text.contains(NOT_OURS) {
            differences.push(format!("{file} is sound"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
