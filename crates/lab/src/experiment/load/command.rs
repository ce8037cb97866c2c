//! A load that another program makes: from the file to what is started.

use std::path::Path;
use std::time::Duration;

use crate::experiment::bound::{BoundCommand, Results};
use crate::experiment::document::at::At;
use crate::experiment::grammar::key::{Key, Value, literal, optional, trial};
use crate::experiment::grammar::kind::{self, Words};
use crate::experiment::grammar::shape::{Field, Scope, Shape};
use crate::experiment::grammar::values::{POSITIVE_DURATION, environment};
use crate::experiment::paths;
use crate::experiment::system::service;

const TEXT: Value<String> = trial(&kind::TEXT);

pub(crate) const COMMAND: Field = optional(
    "command",
    Shape::Arguments(Scope::Trial),
    "A program that makes the load instead, and its arguments, as a list. It does not run in a shell.",
);

pub(crate) const ENV: Field = environment(
    &TEXT.shape(),
    "Environment variables of `command`, beside those that it inherits and those that Narrows sets. Those given here win.",
);

pub(crate) const CWD: Key<String> = Key::optional(
    "cwd",
    TEXT,
    "The folder that `command` is started in, relative to the experiment file's folder, which it is without this.",
);

pub(crate) const RESULTS: Key<Results> = Key::optional(
    "results",
    literal(&Words(&[("k6-summary", Results::K6Summary), ("trace-roots", Results::TraceRoots)])),
    "Where the figures of `command` come from: the summary that k6 exports, or the root spans of the traces that it begins. \
     Without it, `k6-summary` when the program is `k6`, else `trace-roots`.",
);

pub(crate) const LIMIT: Key<Duration> = Key::optional(
    "duration",
    POSITIVE_DURATION,
    "How long `command` may run before it is ended; `--time-scale` does not change it. Without it, there is no limit.",
);

/// Builds the command; `None` after a reported error.
pub(crate) fn build(load: At<'_>, dir: &Path) -> Option<BoundCommand> {
    let cwd = if load.has(&CWD) { paths::resolve(dir, &load.read(&CWD)?) } else { dir.to_owned() };
    let command = service::command(load.get(&COMMAND)?, &cwd)?;
    let usual = if is_k6(&command) { Results::K6Summary } else { Results::TraceRoots };
    let results = load.read(&RESULTS).unwrap_or(usual);
    let env = load.get(&ENV).map(service::env).unwrap_or_default();
    Some(BoundCommand { command, cwd, env, results, limit: load.read(&LIMIT) })
}

fn is_k6(command: &[String]) -> bool {
    command.first().is_some_and(|program| Path::new(program).file_name().is_some_and(|name| name == "k6"))
}
