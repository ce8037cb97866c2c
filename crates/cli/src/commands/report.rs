//! `narrows report RUN --html FILE`: one self-contained page.

use std::path::PathBuf;

use crate::args::RunArgument;
use crate::exit::Exit;
use crate::{Outcome, stderr};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    run: RunArgument,
    /// Write the page here; `-` is standard output
    #[arg(long, value_name = "FILE", required_unless_present = "json")]
    html: Option<PathBuf>,
    /// Write JSON here; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let path = crate::runs_folder::find(arguments.run.run.as_deref())?;
    let outcome = narrows_lab::conclude::outcome(&path)?;
    if let Some(file) = &arguments.html {
        super::write_to(file, &narrows_report::html::page(&outcome))?;
        if file.as_os_str() != "-" {
            stderr::say(&format!("wrote {} from {}", file.display(), path.display()));
        }
    }
    if let Some(file) = &arguments.json {
        super::write_to(file, &format!("{:#}\n", narrows_report::json::outcome(&outcome)))?;
    }
    Ok(Exit::Fine)
}
