//! `narrows sensitivity`: an experiment once more for each parameter that a figure was fitted with, a little lower and a little
//! higher, and what becomes of its figures and conclusions.
//!
//! Parameters that no figure was fitted with have reasons of their own and are scaled only when they are named. Every run
//! has all variants: the ratios are to the first one, and a parameter that is fitted for one variant acts in all of them.
//! The unchanged experiment runs first, in the middle and last: differences between these runs are noise.
//!
//! Lost conclusions are a result and no failure. Every run has a separate file, so that the command can be
//! given again after an interruption and makes only what is missing.

mod plan;
mod record;
mod steps;
mod subject;

use std::path::{Path, PathBuf};

use narrows_model::proof::REPEATS_MAX;
use narrows_model::sensitivity::Sensitivity;
use narrows_report::sensitivity::{markdown, text};

use crate::exit::{Exit, Failure};
use crate::running::{factor, stop_flag};
use crate::{Outcome, runs_folder, stderr};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code 0 means that every run is complete, whether or not conclusions are lost; 2 that one could \
                        not run. The same command with the same --out makes only the runs that are missing."
)]
pub(crate) struct Arguments {
    /// The name of a demo, or an experiment file
    #[arg(value_name = "EXPERIMENT", default_value = "experiment.yaml")]
    experiments: Vec<String>,
    /// Also scale this parameter, which no figure was fitted with; may be given several times
    #[arg(long, value_name = "[EXPERIMENT.]NAME")]
    parameter: Vec<String>,
    /// How much lower and higher than its value a parameter is
    #[arg(long, value_name = "SHARE", default_value = "20%", value_parser = super::compare::share)]
    by: f64,
    /// Run demos at their full length instead of the short form
    #[arg(long, conflicts_with = "time_scale")]
    full: bool,
    /// Multiply the durations of the load by this factor [default: that of a demo's short form, 1 for a file]
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    time_scale: Option<f64>,
    /// Run each test of a run this many times, in turn: figures are the medians [default: as often as a demo's short form, once
    /// for a file]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(REPEATS_MAX)))]
    repeat: Option<u32>,
    /// The folder for the run files, the page sensitivity.md and the record sensitivity.json
    /// [default: runs/sensitivity-DATE-TIME]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Make the table from these records instead of running; with --out, also the page and one record
    #[arg(long, value_name = "RECORD", num_args = 1.., conflicts_with_all = ["experiments", "parameter", "by", "full", "time_scale", "repeat"])]
    from: Vec<PathBuf>,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    if !arguments.from.is_empty() {
        return again(arguments);
    }
    let plans = plan::plans(arguments)?;
    let out = folder(arguments);
    let steps = steps::steps(&plans, &out);
    let stop = stop_flag()?;
    let ran = steps::run(&steps, &stop)?;
    let sensitivity = record::gather(&plans, &out, arguments.by)?;
    show(&sensitivity, &command(arguments), Some(&out))?;
    if ran.is_interrupted {
        return Err(Failure::new(format!("interrupted; {} keeps what was measured", out.display())).hint(format!(
            "`{} --out {}` goes on",
            command(arguments),
            out.display()
        )));
    }
    if ran.failed.is_empty() {
        return Ok(Exit::Fine);
    }
    Err(Failure::new(format!("could not run {}", ran.failed.join(", "))).hint(format!(
        "`{} --out {}` tries these again",
        command(arguments),
        out.display()
    )))
}

/// The table once more from records.
fn again(arguments: &Arguments) -> Outcome {
    let sensitivity = record::read_all(&arguments.from)?;
    let from: Vec<String> = arguments.from.iter().map(|path| path.display().to_string()).collect();
    show(&sensitivity, &format!("narrows sensitivity --from {}", from.join(" ")), arguments.out.as_deref())
}

/// Prints the table, and writes page and record to a folder.
fn show(sensitivity: &Sensitivity, command: &str, out: Option<&Path>) -> Outcome {
    super::print_painted(&format!("\n{}", text(sensitivity, super::style())))?;
    let Some(out) = out else { return Ok(Exit::Fine) };
    let [page, record] = ["md", "json"].map(|extension| out.join("sensitivity").with_extension(extension));
    std::fs::create_dir_all(out)
        .map_err(|error| Failure::new(format!("cannot create the folder {}: {error}", out.display())))?;
    super::write_to(&page, &markdown(sensitivity, command))?;
    record::write(&record, sensitivity)?;
    stderr::say(&format!("\npage:     {}\nrecord:   {}", page.display(), record.display()));
    Ok(Exit::Fine)
}

fn folder(arguments: &Arguments) -> PathBuf {
    arguments.out.clone().unwrap_or_else(|| runs_folder::new_path("sensitivity").with_extension(""))
}

/// The command that makes the same runs, without its folder.
fn command(arguments: &Arguments) -> String {
    let mut words = vec!["narrows sensitivity".to_owned()];
    words.extend(arguments.experiments.iter().cloned());
    words.extend(arguments.parameter.iter().map(|name| format!("--parameter {name}")));
    if arguments.by != DEFAULT_CHANGE {
        words.push(format!("--by {}", arguments.by));
    }
    if arguments.full {
        words.push("--full".to_owned());
    }
    words.extend(arguments.time_scale.map(|factor| format!("--time-scale {factor}")));
    words.extend(arguments.repeat.map(|repetitions| format!("--repeat {repetitions}")));
    words.join(" ")
}

/// The default of `--by`.
const DEFAULT_CHANGE: f64 = 0.2;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn parsed(words: &[&str]) -> Arguments {
        let args = crate::args::Args::parse_from([&["narrows", "sensitivity"], words].concat());
        let crate::args::Command::Sensitivity(arguments) = args.command else { panic!("{args:?}") };
        arguments
    }

    #[test]
    fn the_command_of_a_page_is_the_one_that_was_given() {
        for words in [
            &["drone-delivery", "micron"][..],
            &["shop.yaml", "--parameter", "pool", "--parameter", "shop.rate", "--by", "0.1", "--time-scale", "0.5"],
            &["micron", "--full", "--repeat", "3"],
        ] {
            assert_eq!(command(&parsed(words)), format!("narrows sensitivity {}", words.join(" ")));
        }
        assert_eq!(command(&parsed(&[])), "narrows sensitivity experiment.yaml");
        assert_eq!(parsed(&[]).by, DEFAULT_CHANGE);
    }
}
