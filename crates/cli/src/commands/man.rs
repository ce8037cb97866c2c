//! `narrows man`: the man pages, made from the same definitions as the help.

use std::path::PathBuf;

use clap::CommandFactory;

use crate::Outcome;
use crate::exit::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Write narrows.1 and a page for each subcommand into this folder instead of printing the first
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let command = crate::args::Args::command();
    match &arguments.out {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command)
                .render(&mut page)
                .map_err(|error| Failure::new(format!("cannot make the man page: {error}")))?;
            super::print(&String::from_utf8_lossy(&page))
        }
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .and_then(|()| clap_mangen::generate_to(command, folder))
                .map_err(|error| Failure::new(format!("cannot write man pages to {}: {error}", folder.display())))?;
            Ok(Exit::Fine)
        }
    }
}
