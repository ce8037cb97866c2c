//! `narrows demo --all`: every demo, and what was published and measured as one page.

use std::path::{Path, PathBuf};

use narrows_lab::experiment::RecordedExperiment;
use narrows_model::comparison::Outcome as Concluded;
use narrows_report::results::{Source, html, markdown};

use super::{Arguments, one};
use crate::commands::write_to;
use crate::exit::{Exit, Failure};
use crate::systems::DEMOS;
use crate::{Outcome, runs_folder, stderr};

pub(super) fn execute(arguments: &Arguments) -> Outcome {
    let pages = pages(arguments.out.as_deref());
    if !arguments.from.is_empty() {
        let runs = named(&arguments.from)?;
        let from: Vec<String> = arguments.from.iter().map(|path| path.display().to_string()).collect();
        return write(&runs, &format!("narrows demo --all --from {}", from.join(" ")), &pages);
    }
    let mut runs = Vec::new();
    let mut failed = Vec::new();
    for demo in DEMOS {
        match one(arguments, demo, None) {
            Ok(run) => runs.push(run),
            Err(failure) => {
                failure.print();
                failed.push(demo.name);
            }
        }
    }
    if runs.is_empty() {
        return Err(Failure::new("no demo could run"));
    }
    let command = if arguments.full { "narrows demo --all --full" } else { "narrows demo --all" };
    write(&runs, command, &pages)?;
    if failed.is_empty() {
        return Ok(Exit::Fine);
    }
    Err(Failure::new(format!("could not run {}", failed.join(", ")))
        .hint("`narrows doctor` tells what is missing; the page holds the others"))
}

/// Where the page goes: as HTML and as Markdown.
fn pages(out: Option<&Path>) -> [PathBuf; 2] {
    let out = out.map_or_else(|| runs_folder::new_path("results"), Path::to_owned);
    ["html", "md"].map(|extension| out.with_extension(extension))
}

/// The runs that are named, and those in named folders.
fn named(runs: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in runs {
        if path.is_dir() {
            found.extend(runs_folder::runs_in(path)?);
        } else {
            found.push(runs_folder::find(Some(path))?);
        }
    }
    Ok(found)
}

fn write(runs: &[PathBuf], command: &str, pages: &[PathBuf; 2]) -> Outcome {
    let outcomes = runs.iter().map(|run| concluded(run)).collect::<Result<Vec<_>, _>>()?;
    let source = Source { outcomes: &outcomes, command };
    write_to(&pages[0], &html(&source))?;
    write_to(&pages[1], &markdown(&source))?;
    stderr::say(&format!("\nresults:  {}\n          {}", pages[0].display(), pages[1].display()));
    Ok(Exit::Fine)
}

/// Conclusions of a demo's run, or of one of an experiment beside it, with its present figures.
fn concluded(run: &Path) -> Result<Concluded, Failure> {
    narrows_lab::conclude::outcome_beside(run, |name| match text_of(name) {
        Some(experiment) => Ok(RecordedExperiment::read(experiment).notes),
        None => {
            let names: Vec<&str> = DEMOS.iter().map(|demo| demo.name).collect();
            Err(Failure::new(format!(
                "{} is a run of `{name}`, expected one of the demos `{}`",
                run.display(),
                names.join("`, `")
            )))
        }
    })
}

/// The experiment of this name: a demo's, or one of the files that a demo names.
fn text_of(name: &str) -> Option<&'static str> {
    let is_of_name = |text: &str| text.lines().any(|line| line.strip_prefix("experiment: ") == Some(name));
    let files = DEMOS.iter().flat_map(|demo| demo.files).map(|(_, text)| *text).find(|text| is_of_name(text));
    DEMOS.iter().find(|demo| demo.name == name).map(|demo| demo.experiment).or(files)
}
