//! A load that another program makes: from the file to what is started.

use std::path::Path;

use super::bound::{BoundCommand, Results};
use super::tree::At;
use super::{read, service};

/// Builds the command. None if an error was reported.
pub(super) fn build(load: At<'_>, dir: &Path) -> Option<BoundCommand> {
    let cwd = match load.get("cwd") {
        Some(at) => read::path(dir, at.text()?),
        None => dir.to_owned(),
    };
    let command = service::command(load.get("command")?, &cwd)?;
    let results = match load.get("results").and_then(|at| at.text()) {
        Some("k6-summary") => Results::K6Summary,
        Some(_) => Results::TraceRoots,
        None if is_k6(&command) => Results::K6Summary,
        None => Results::TraceRoots,
    };
    Some(BoundCommand { command, cwd, env: service::env(load), results, limit: read::duration(load, "duration") })
}

fn is_k6(command: &[String]) -> bool {
    command.first().is_some_and(|program| Path::new(program).file_name().is_some_and(|name| name == "k6"))
}
