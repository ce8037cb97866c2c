//! `narrows check FILE`: every error at once; in a file without errors, programs that this machine does not have.

use std::path::PathBuf;

use narrows_lab::experiment::{ExperimentError, FileError};

use super::{plural, with_hints};
use crate::Outcome;
use crate::exit::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The experiment file
    #[arg(default_value = "experiment.yaml")]
    file: PathBuf,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let file = arguments.file.display().to_string();
    match narrows_lab::language().read(&arguments.file) {
        Ok(experiment) => match experiment.missing_programs().as_slice() {
            [] => super::print(&format!(
                "{file}: no errors; experiment `{}`, {}, {}\n",
                experiment.name,
                plural(experiment.services.len(), "service"),
                plural(experiment.variants.len(), "variant"),
            )),
            missing => failed(&file, missing),
        },
        Err(ExperimentError::Invalid(errors)) => failed(&file, &errors),
        Err(error) => Err(Failure::new(error).hint("`narrows init` writes a first experiment file")),
    }
}

fn failed(file: &str, errors: &[FileError]) -> Outcome {
    super::print(&format!("{}{file}: {}\n", with_hints(errors), plural(errors.len(), "error")))?;
    Ok(Exit::VerdictFailed)
}
