//! `narrows init`: a first experiment file with everything explained in it.

use std::path::PathBuf;

use crate::exit::Exit;
use crate::{Outcome, stderr};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The file to write; it must not exist
    #[arg(default_value = "experiment.yaml")]
    file: PathBuf,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let path = &arguments.file;
    super::write_new(path, narrows_lab::experiment::template(), "give another name: `narrows init other.yaml`")?;
    stderr::say(&format!("wrote {0}; next: edit it, `narrows check {0}`, `narrows run {0}`", path.display()));
    Ok(Exit::Fine)
}
