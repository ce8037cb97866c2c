//! `narrows init`: a first experiment file with everything explained in it, or one for the system of a Compose file.

use std::path::{Path, PathBuf};

use crate::exit::{Exit, Failure};
use crate::{Outcome, stderr};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The file to write; it must not exist
    #[arg(default_value = "experiment.yaml")]
    file: PathBuf,
    /// Write an experiment that starts the system of this Compose file and sends load to a port that it publishes
    #[arg(long, value_name = "FILE")]
    compose: Option<PathBuf>,
}

/// The largest Compose file, in bytes.
const COMPOSE_BYTES_MAX: u64 = 1 << 20;

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let path = &arguments.file;
    let text = match &arguments.compose {
        Some(compose) => of_compose(compose, path)?,
        None => narrows_lab::experiment::template().to_owned(),
    };
    super::write_new(path, &text, "give another name: `narrows init other.yaml`")?;
    stderr::say(&format!("wrote {0}; next: edit it, `narrows check {0}`, `narrows run {0}`", path.display()));
    Ok(Exit::Fine)
}

fn of_compose(path: &Path, experiment: &Path) -> Result<String, Failure> {
    // An experiment names files from where it lies.
    let beside = path.file_name().filter(|_| path.parent() == experiment.parent()).map(PathBuf::from);
    let name = beside.unwrap_or_else(|| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    let name = name.to_string_lossy();
    let source = narrows_files::read_text(path, COMPOSE_BYTES_MAX)
        .map_err(|error| Failure::new(format!("cannot read the Compose file {name}: {error}")))?;
    let folder = std::path::absolute(path).ok().and_then(|path| Some(path.parent()?.file_name()?.to_owned()));
    let folder = folder.unwrap_or_default();
    narrows_lab::experiment::experiment_of(&source, &name, &folder.to_string_lossy()).map_err(|errors| {
        super::invalid(&name, &errors)
            .hint("`docker compose config` prints a Compose file without anchors, tags and further files")
    })
}
