//! A load that another program makes: from the file to what is started.

use std::path::Path;

use super::bound::{BoundCommand, Results};
use super::load::{COMMAND, CWD, ENV, LIMIT, RESULTS};
use super::tree::At;
use super::{read, service};

/// Builds the command. None if an error was reported.
pub(super) fn build(load: At<'_>, dir: &Path) -> Option<BoundCommand> {
    let cwd = if load.has(&CWD) { read::path(dir, &load.read(&CWD)?) } else { dir.to_owned() };
    let command = service::command(load.get(&COMMAND)?, &cwd)?;
    let usual = if is_k6(&command) { Results::K6Summary } else { Results::TraceRoots };
    let results = load.read(&RESULTS).unwrap_or(usual);
    let env = load.get(&ENV).map(service::env).unwrap_or_default();
    Some(BoundCommand { command, cwd, env, results, limit: load.read(&LIMIT) })
}

fn is_k6(command: &[String]) -> bool {
    command.first().is_some_and(|program| Path::new(program).file_name().is_some_and(|name| name == "k6"))
}
