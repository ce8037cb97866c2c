//! The subcommands, one file each: its arguments and what it does.

pub(crate) mod agent;
pub(crate) mod attach;
pub(crate) mod baseline;
pub(crate) mod capacity;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
#[cfg(feature = "reference-systems")]
pub(crate) mod demo;
pub(crate) mod diagnose;
pub(crate) mod diff;
pub(crate) mod docs;
pub(crate) mod doctor;
#[cfg(feature = "reference-systems")]
pub(crate) mod engine;
pub(crate) mod export;
pub(crate) mod guard;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod kubernetes;
pub(crate) mod load;
pub(crate) mod man;
pub(crate) mod mcp;
#[cfg(feature = "reference-systems")]
pub(crate) mod orchestrations;
pub(crate) mod predict;
pub(crate) mod query;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod sensitivity;
pub(crate) mod serve;
#[cfg(feature = "reference-systems")]
pub(crate) mod system;

use std::io::{IsTerminal, Write};

use narrows_model::printable;
use narrows_report::text::{Color, SEQUENCES, Style};

use crate::exit::{Exit, Failure};
use crate::{Outcome, stderr};

/// Writes a result to standard output, without terminal control characters. A reader that went away is not a failure.
pub(crate) fn print(text: &str) -> Outcome {
    print_as_it_is(&printable::lines(text))
}

/// Writes a result as [`print()`] does, with Narrows' own colours.
pub(crate) fn print_painted(text: &str) -> Outcome {
    print_as_it_is(&printable::painted(text, &SEQUENCES))
}

/// Writes JSON to standard output, with terminal control characters escaped.
pub(crate) fn print_json(json: impl std::fmt::Display) -> Outcome {
    let mut text = format!("{json:#}");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    print_as_it_is(&printable::json(&text))
}

fn print_as_it_is(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(Exit::Fine),
    }
}

/// Writes a file, or standard output for `-`.
pub(crate) fn write_to(path: &std::path::Path, text: &str) -> Outcome {
    if path.as_os_str() == "-" {
        return print(text);
    }
    std::fs::write(path, text).map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    Ok(Exit::Fine)
}

/// Prints the path of a run, and how to get its report.
fn say_where(run: &std::path::Path) {
    let shown = run.display();
    stderr::say(&format!("\nrun file: {shown}\nreport:   narrows report {shown}"));
}

/// Writes a file that must not exist yet; `hint` is what to do when it does.
fn write_new(path: &std::path::Path, text: &str, hint: &str) -> Result<(), Failure> {
    let written = std::fs::File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let failure = Failure::new(format!("cannot write {}: {error}", path.display()));
        if error.kind() == std::io::ErrorKind::AlreadyExists { failure.hint(hint) } else { failure }
    })
}

/// Columns of standard output, if it is a terminal.
fn stdout_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// How text should look on standard output: as wide as the terminal, coloured only on one.
pub(crate) fn style() -> Style {
    const WIDTH_MIN: usize = 80;
    const WIDTH_MAX: usize = 120;
    let is_terminal = std::io::stdout().is_terminal();
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width =
        crate::live::terminal_size().map(|(columns, _)| columns).or(columns).unwrap_or(100).clamp(WIDTH_MIN, WIDTH_MAX);
    let color = if is_terminal && std::env::var_os("NO_COLOR").is_none() { Color::Always } else { Color::Never };
    Style { width, color }
}

/// Reads an experiment file; all its errors become one failure. From then on its secrets are blanked on standard error.
fn read_experiment(path: &std::path::Path) -> Result<narrows_lab::experiment::Experiment, Failure> {
    read_experiment_with(path, &[])
}

/// As [`read_experiment`], with other values for parameters.
fn read_experiment_with(
    path: &std::path::Path,
    values: &[(String, String)],
) -> Result<narrows_lab::experiment::Experiment, Failure> {
    use narrows_lab::experiment::ExperimentError;
    let experiment = narrows_lab::language().read_with(path, values).map_err(|error| match error {
        ExperimentError::Invalid(errors) => invalid(&path.to_string_lossy(), &errors),
        ExperimentError::Io { .. } => Failure::new(error).hint("`narrows init` writes a first experiment file"),
        ExperimentError::UnknownParameter { hint: Some(ref hint), .. } => Failure::new(&error).hint(hint),
        other => Failure::new(other),
    })?;
    stderr::hide(experiment.known_secrets());
    Ok(experiment)
}

/// Prints errors and sums them up in a failure.
fn invalid(file: &str, errors: &[narrows_lab::experiment::FileError]) -> Failure {
    stderr::write(&with_hints(errors));
    Failure::new(format!("{file} has {}", plural(errors.len(), "error")))
}

/// Errors with their hints, a line each.
fn with_hints(errors: &[narrows_lab::experiment::FileError]) -> String {
    let hint = |hint: &Option<String>| hint.as_ref().map_or_else(String::new, |hint| format!("  hint: {hint}\n"));
    errors.iter().map(|error| format!("{error}\n{}", hint(&error.hint))).collect()
}

fn plural(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
