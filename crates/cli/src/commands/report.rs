//! `narrows report RUN`: a run as one self-contained page, beside the run file unless `--html` says where.

use std::path::PathBuf;

use crate::args::RunArgument;
use crate::exit::Exit;
use crate::{Outcome, page, stderr};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    run: RunArgument,
    /// Write the page here; `-` is standard output [default: beside the run file, unless --json is given]
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write JSON here; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Open the page in a browser: $BROWSER, or the desktop's
    #[arg(long)]
    open: bool,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let path = crate::runs_folder::find(arguments.run.run.as_deref())?;
    let file = match (&arguments.html, &arguments.json) {
        (Some(file), _) => Some(file.clone()),
        (None, Some(_)) if !arguments.open => None,
        (None, _) => Some(page::beside(&path)?),
    };
    let outcome = narrows_lab::conclude::outcome(&path)?;
    if let Some(file) = &file {
        page::write(file, &outcome)?;
        if file.as_os_str() != "-" {
            stderr::say(&format!("wrote {} from {}", file.display(), path.display()));
            if arguments.open {
                page::open(file);
            }
        }
    }
    if let Some(file) = &arguments.json {
        super::write_to(file, &format!("{:#}\n", narrows_report::json::outcome(&outcome)))?;
    }
    Ok(Exit::Fine)
}
