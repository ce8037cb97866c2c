//! `narrows import FILE…`: a run made of traces, metrics and logs that other programs wrote, diagnosed like any other.

use std::path::PathBuf;

use narrows_lab::attach::{ImportOptions, import};
use narrows_model::units;

use crate::{Outcome, runs_folder, stderr};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Jaeger's JSON or OTLP's, also as lines, also gzip; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The service whose server spans are the requests [default: those that no other span caused]
    #[arg(long, value_name = "SERVICE")]
    target: Option<String>,
    /// The run's name
    #[arg(long, value_name = "NAME", default_value = "import", value_parser = super::attach::run_name)]
    name: String,
    /// The run file [default: runs/NAME-DATE-TIME.narrows]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let options = ImportOptions {
        files: arguments.files.clone(),
        name: arguments.name.clone(),
        path: arguments.out.clone().unwrap_or_else(|| runs_folder::new_path(&arguments.name)),
        target: arguments.target.clone(),
    };
    let imported = import(&options)?;
    let count = units::count;
    stderr::say(&format!(
        "imported {} spans, {} metric points, {} log records; {} left out as malformed",
        count(imported.spans),
        count(imported.points),
        count(imported.logs),
        count(imported.malformed),
    ));
    for complaint in &imported.complaints {
        stderr::say(&format!("  caveat: {complaint}"));
    }
    super::attach::conclude(&options.path, arguments.json)
}
