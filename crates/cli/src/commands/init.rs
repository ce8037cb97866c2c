//! `narrows init`: a first experiment file with everything explained in it.

use std::io::Write;
use std::path::PathBuf;

use crate::exit::{Exit, Failure};
use crate::{Outcome, stderr};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The file to write; it must not exist
    #[arg(default_value = "experiment.yaml")]
    file: PathBuf,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let path = &arguments.file;
    let cannot = |error: std::io::Error| {
        let failure = Failure::new(format!("cannot write {}: {error}", path.display()));
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            failure.hint("give another name: `narrows init other.yaml`")
        } else {
            failure
        }
    };
    let mut file = std::fs::File::create_new(path).map_err(cannot)?;
    file.write_all(narrows_lab::experiment::template().as_bytes()).map_err(cannot)?;
    stderr::say(&format!("wrote {0}; next: edit it, `narrows check {0}`, `narrows run {0}`", path.display()));
    Ok(Exit::Fine)
}
