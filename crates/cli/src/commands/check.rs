//! `narrows check FILE`: every error at once.

use std::path::PathBuf;

use narrows_lab::experiment::ExperimentError;

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
    let file = arguments.file.display();
    match narrows_lab::experiment::read(&arguments.file) {
        Ok(experiment) => super::print(&format!(
            "{file}: no errors; experiment `{}`, {}, {}\n",
            experiment.name,
            plural(experiment.services.len(), "service"),
            plural(experiment.variants.len(), "variant"),
        )),
        Err(ExperimentError::Invalid(errors)) => {
            super::print(&format!("{}{file}: {}\n", with_hints(&errors), plural(errors.len(), "error")))?;
            Ok(Exit::VerdictFailed)
        }
        Err(error) => Err(Failure::new(error).hint("`narrows init` writes a first experiment file")),
    }
}
