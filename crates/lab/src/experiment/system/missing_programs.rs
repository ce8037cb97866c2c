//! Programs that services start and that are not on this machine.
//!
//! Apart from the other checks, because the result depends on the machine: a file can be right and meant for another. What
//! a setup makes is not there before the run, so paths are not looked up once a setup has been listed.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::service::{CWD, ENV, RUN, SETUP};
use crate::experiment::document::at::At;
use crate::experiment::error::{FileError, Problem, Report};
use crate::experiment::grammar::complete::complete;
use crate::experiment::language::Language;
use crate::experiment::placeholders::names::{SERVICES, SYSTEM, Values};
use crate::experiment::variants::Variant;
use crate::experiment::{Experiment, hidden, paths};

/// The name of this very program, which is always there.
const OWN: &str = "narrows";

impl Experiment {
    /// The programs of `run` and `setup` that this machine does not have, at their places in the file.
    pub fn missing_programs(&self) -> Vec<FileError> {
        let mut report = Report::new(&self.file);
        let of_variant = |variant: &Variant| {
            let mut found = Report::new(&self.file);
            look(At::root(&self.root), self.language, &Values::of(&variant.parameters), &self.dir, &mut found);
            found
        };
        report.absorb(self.variants.iter().map(|variant| (variant.name.as_str(), of_variant(variant))).collect());
        hidden(report.into_errors(), &self.source)
    }
}

/// Where the programs of a service are looked for.
struct Places {
    /// Where paths start from; `None` where it is known only in a trial.
    cwd: Option<PathBuf>,
    path: OsString,
    /// Whether a setup may have made programs.
    is_set_up: bool,
}

fn look(root: At<'_>, language: Language, values: &Values<'_>, dir: &Path, report: &mut Report) {
    let Some(system) = root.named(SYSTEM) else { return };
    let Some(services) = system.named(SERVICES) else { return };
    let mut is_set_up = false;
    for (_, at) in services.entries() {
        let node = complete(at.node, language.service, values);
        let service = at.with(&node);
        let mut places = Places { is_set_up, ..Places::of(service, dir) };
        if let Some(setup) = service.get(&SETUP) {
            for command in setup.items() {
                places.look_for(command, report);
                places.is_set_up = true;
            }
        }
        if let Some(run) = service.get(&RUN) {
            places.look_for(run, report);
        }
        is_set_up = places.is_set_up;
    }
}

impl Places {
    fn of(service: At<'_>, dir: &Path) -> Self {
        let cwd = service.get(&CWD).and_then(|at| at.text()).map(|text| paths::resolve(dir, text));
        let env = service.get(&ENV);
        let own = env.as_ref().and_then(|env| env.named("PATH")).and_then(|at| at.text()).map(OsString::from);
        Self { cwd, path: own.or_else(|| std::env::var_os("PATH")).unwrap_or_default(), is_set_up: false }
    }

    /// Reports the program of a command unless it is there or may come to be.
    fn look_for(&self, command: At<'_>, report: &mut Report) {
        let Some(at) = command.items().next() else { return };
        let Some(program) = at.text().filter(|program| *program != OWN) else { return };
        let problem = if program.contains('/') { self.problem_at(program) } else { self.problem_in_path(program) };
        if let Some(problem) = problem {
            report.add(at.place(), at.path(), problem);
        }
    }

    fn problem_at(&self, program: &str) -> Option<Problem> {
        let file = paths::resolve(self.cwd.as_ref().filter(|_| !self.is_set_up)?, program);
        let problem = Problem::new(format!("expected a program, found none at {}", file.display()));
        (!file.is_file()).then(|| problem.hint("a path is relative to the service's `cwd`"))
    }

    fn problem_in_path(&self, program: &str) -> Option<Problem> {
        let is_program =
            |file: PathBuf| file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
        let is_there = std::env::split_paths(&self.path).any(|folder| is_program(folder.join(program)));
        let problem = Problem::new(format!("program `{program}` is not in PATH"));
        (!is_there).then(|| problem.hint("install it, or write its path with a `/`, such as `./program`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(services: &str, dir: &Path) -> Vec<String> {
        let source = format!(
            "experiment: e\nparameters: {{ program: sh }}\nsystem:\n  services:\n{services}load:\n  target: \
             \"http://127.0.0.1:1\"\n  scenarios: {{ s: {{ model: constant-vus, vus: 1, duration: 1s, request: GET / }} \
             }}\nvariants: [{{ name: a }}, {{ name: b, program: no-such-program }}]\n"
        );
        let experiment = crate::language().parse(&source, "e.yaml", dir).unwrap();
        experiment.missing_programs().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn programs_that_are_not_there_are_reported_at_their_places() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        std::fs::write(dir.join("here"), "").unwrap();
        let found = missing(
            "    one: { run: [no-such-program, -x] }\n    two: { run: [./here] }\n    three: { run: [./gone, -x] }\n    \
             four: { run: [narrows, engine] }\n    five: { run: [\"${program}\"] }\n    six: { run: [sh], env: { PATH: \
             /no/such } }\n",
            dir,
        );
        let gone = dir.join("gone").display().to_string();
        assert_eq!(
            found,
            [
                "e.yaml:5:18: system.services.one.run[0]: program `no-such-program` is not in PATH".to_owned(),
                format!("e.yaml:7:20: system.services.three.run[0]: expected a program, found none at {gone}"),
                "e.yaml:9:19: system.services.five.run[0]: program `no-such-program` is not in PATH (in variant `b`)"
                    .to_owned(),
                "e.yaml:10:18: system.services.six.run[0]: program `sh` is not in PATH".to_owned(),
            ]
        );
    }

    #[test]
    fn what_a_setup_may_make_is_not_missing() {
        let folder = tempfile::tempdir().unwrap();
        let found = missing(
            "    one: { setup: [[./make], [./made]], run: [./made] }\n    two: { run: [./made] }\n    three: { cwd: \
             \"${trial.dir}\", run: [./x] }\n",
            folder.path(),
        );
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("e.yaml:5:21: system.services.one.setup[0][0]: expected a program"), "{found:?}");
    }
}
