//! Completion of what only this machine knows: runs and their variants, variants and parameters of an experiment, findings,
//! pages.
//!
//! A shell whose script comes from `narrows completions` starts this program with [`VARIABLE`] set and the words of the
//! command line as arguments, and gets the words that may follow. What cannot be read has no proposals: a shell is no place
//! for errors.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::CommandFactory;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::CompleteEnv;
use narrows_diagnose::pages;
use narrows_lab::experiment::Experiment;
use narrows_telemetry::run_file::Reader;

use crate::commands::docs;
use crate::{args, runs_folder};

/// The variable that a shell sets for that; its value is the shell's name.
pub(crate) const VARIABLE: &str = "NARROWS_COMPLETE";
/// Names proposed at most.
const NAMES_MAX: usize = 1000;

/// Proposes words to the shell that started this program for that, and ends the process. Else it returns at once.
pub(crate) fn propose() {
    CompleteEnv::with_factory(args::Args::command).var(VARIABLE).complete();
}

/// Names in the runs folder, and files.
pub(crate) fn runs() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let names = proposed(runs_folder::names(), &current.to_string_lossy());
        names.into_iter().chain(PathCompleter::any().complete(current)).collect::<Vec<_>>()
    })
}

/// As [`runs`]; once there is a colon, the variants of the run before it.
pub(crate) fn addresses() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let text = current.to_string_lossy();
        match text.rsplit_once(':') {
            Some((run, _)) => proposed(variants_of_run(run).iter().map(|name| format!("{run}:{name}")), &text),
            None => {
                let names = proposed(runs_folder::names(), &text);
                names.into_iter().chain(PathCompleter::any().complete(current)).collect()
            }
        }
    })
}

/// The variants of the experiment file on the command line.
pub(crate) fn variants() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let experiment = experiment_on_command_line();
        let variants = experiment.iter().flat_map(|experiment| &experiment.variants);
        variants.map(|variant| CompletionCandidate::new(&variant.name)).collect()
    })
}

/// `NAME=` of each parameter of the experiment file on the command line.
pub(crate) fn parameters() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let experiment = experiment_on_command_line();
        let names = experiment.iter().flat_map(|experiment| experiment.parameters.keys());
        names.map(|name| CompletionCandidate::new(format!("{name}="))).collect()
    })
}

/// Findings and caveats that have a page.
pub(crate) fn findings() -> ArgValueCandidates {
    ArgValueCandidates::new(|| pages::ids().into_iter().map(CompletionCandidate::new).collect())
}

/// Pages that `narrows docs` prints.
pub(crate) fn topics() -> ArgValueCandidates {
    ArgValueCandidates::new(|| docs::topics().map(CompletionCandidate::new).collect())
}

fn proposed(names: impl IntoIterator<Item = String>, current: &str) -> Vec<CompletionCandidate> {
    let fitting = names.into_iter().filter(|name| name.starts_with(current)).take(NAMES_MAX);
    fitting.map(CompletionCandidate::new).collect()
}

/// The variants of a run file, each once; of the newest without a name.
fn variants_of_run(run: &str) -> Vec<String> {
    let name = (!run.is_empty()).then(|| PathBuf::from(run));
    let Ok(path) = runs_folder::find(name.as_deref()) else { return Vec::new() };
    let mut variants: Vec<String> = Vec::new();
    for trial in Reader::trials_in(&path).unwrap_or_default() {
        if !variants.contains(&trial.variant) {
            variants.push(trial.variant);
        }
    }
    variants
}

/// The experiment whose file is a word of the command line, or the one that commands read without a name.
fn experiment_on_command_line() -> Option<Experiment> {
    let is_experiment = |word: &String| word.ends_with(".yaml") || word.ends_with(".yml");
    let file = std::env::args().skip(1).find(is_experiment).unwrap_or_else(|| "experiment.yaml".to_owned());
    narrows_lab::language().read(file.as_ref()).ok()
}
