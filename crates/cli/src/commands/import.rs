//! `narrows import FILE…`: a run made of traces, metrics and logs that other programs wrote, diagnosed like any other.

use std::path::PathBuf;

use narrows_lab::attach::{ImportCounts, ImportOptions, import};
use narrows_model::units;

use crate::{Outcome, runs_folder, stderr};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// JSON of OTLP, Tempo, Jaeger, Zipkin v2 or Go's stdouttrace, also as lines, also gzip; `-` is standard input
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
    stderr::say(&summary(&imported));
    for complaint in &imported.complaints {
        stderr::say(&format!("  caveat: {complaint}"));
    }
    super::attach::conclude(&options.path, arguments.json)
}

/// Summary of the import: numbers of records kept, left out and repeated.
fn summary(imported: &ImportCounts) -> String {
    let counted = |count: u64, one: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{} {one}{plural}", units::count(count))
    };
    let mut summary = format!(
        "imported {}, {}, {}; {} left out as malformed",
        counted(imported.spans, "span"),
        counted(imported.points, "metric point"),
        counted(imported.logs, "log record"),
        units::count(imported.malformed),
    );
    if imported.over_limit > 0 {
        summary += &format!(", {} beyond the run file's limits", units::count(imported.over_limit));
    }
    if imported.repeated > 0 {
        summary += &format!(
            "; {} came more than once and {} kept once",
            counted(imported.repeated, "span"),
            if imported.repeated == 1 { "is" } else { "are" }
        );
    }
    summary
}
