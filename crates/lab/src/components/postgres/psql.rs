//! SQL by `psql`, which the server's package brings: its files may hold whatever people's files hold, `\copy` and `\i`
//! included. Relative paths in them start from the experiment file's folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Error;
use crate::components::Place;
use crate::components::postgres::OWNER;
use crate::components::process::Spec;
use crate::components::workshop::{CommandFailure, Workshop};
use crate::programs::FoundProgram;

/// How long a file may take.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A way to one server.
#[derive(Debug)]
pub(super) struct Psql<'a> {
    place: &'a Place<'a>,
    program: PathBuf,
}

impl<'a> Psql<'a> {
    /// To the server of this place.
    pub(super) fn new(place: &'a Place<'a>, found: &FoundProgram) -> Self {
        Self { place, program: found.tool("psql") }
    }

    /// Runs one command in a database.
    pub(super) fn command(&self, workshop: &mut Workshop<'_>, database: &str, command: &str) -> Result<(), Error> {
        let botched = |botched: CommandFailure| {
            self.place.failed(format!("`{command}` failed: psql {}", botched.how(TIMEOUT)), botched.last_lines)
        };
        workshop.run(&self.spec(database, "-c", command), TIMEOUT)?.map_err(botched)
    }

    /// Runs a file in a database. The first error ends it and is reported with file and line.
    pub(super) fn file(&self, workshop: &mut Workshop<'_>, database: &str, file: &Path) -> Result<(), Error> {
        let path = file.to_string_lossy();
        let botched = |botched: CommandFailure| match first_error(&botched.last_lines) {
            Some((error, rest)) => self.place.failed(error, rest),
            None => self.place.failed(format!("{path} failed: psql {}", botched.how(TIMEOUT)), botched.last_lines),
        };
        workshop.run(&self.spec(database, "-f", &path), TIMEOUT)?.map_err(botched)
    }

    fn spec(&self, database: &str, how: &str, what: &str) -> Spec {
        let service = self.place.service;
        let url = format!("postgresql://{OWNER}@127.0.0.1:{}/{database}?sslmode=disable", service.port);
        let program = self.program.to_string_lossy();
        let words = [&*program, "-X", "-q", "-w", "-v", "ON_ERROR_STOP=1", "-d", &url, how, what];
        Spec {
            service: service.name.clone(),
            replica: service.replica,
            command: words.map(str::to_owned).to_vec(),
            cwd: service.cwd.clone(),
            env: Vec::new(),
            account: None,
            wanted_line: None,
        }
    }
}

/// The error that ended a file, as `FILE:LINE: ERROR: …`, and what psql says about it in the lines after. The line is
/// the one that its statement ends in.
fn first_error(lines: &[String]) -> Option<(String, Vec<String>)> {
    let is_error = |line: &String| {
        line.starts_with("psql:")
            && (line.contains(": ERROR:") || line.contains(": FATAL:") || line.contains(": error:"))
    };
    let at = lines.iter().position(is_error)?;
    let error = lines[at].trim_start_matches("psql:").replace("ERROR:  ", "ERROR: ").replace("FATAL:  ", "FATAL: ");
    Some((error, lines[at + 1..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_found_among_what_was_printed() {
        let lines = [
            "psql:/a/b.sql:1: NOTICE:  table \"t\" does not exist, skipping",
            "psql:/a/b.sql:3: ERROR:  column \"c\" does not exist",
            "LINE 2:   c",
            "          ^",
        ]
        .map(str::to_owned);
        let (error, rest) = first_error(&lines).unwrap();
        assert_eq!(error, "/a/b.sql:3: ERROR: column \"c\" does not exist");
        assert_eq!(rest, lines[2..]);
        assert_eq!(first_error(&lines[..1]), None);
        let missing = ["psql: error: /a/b.sql: No such file or directory".to_owned()];
        assert_eq!(first_error(&missing).unwrap().0, " error: /a/b.sql: No such file or directory");
    }
}
