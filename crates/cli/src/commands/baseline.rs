//! `narrows baseline save|check`: the figures of a run in a file of the user's repository, and later runs beside it.

use std::io::Read;
use std::path::{Path, PathBuf};

use narrows_diagnose::baseline::{Accepted, check};
use narrows_lab::conclude;
use narrows_model::baseline::{Baseline, FORMAT};
use narrows_report::ci;

use super::compare::share;
use crate::exit::{Exit, Failure};
use crate::{Outcome, complete, run_address, stderr};

/// Bytes of a baseline at most; one of a hundred variants has a megabyte.
const BYTES_MAX: u64 = 16 << 20;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Write the figures of a run to a small JSON file, to keep in a repository
    Save(Save),
    /// Compare a run with the file: exit code 1 when it is worse beyond noise
    Check(Check),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Save {
    /// A run file or its name in the runs folder, perhaps with `:VARIANT` [default: the newest]
    #[arg(value_name = "RUN[:VARIANT]", add = complete::addresses())]
    run: Option<String>,
    /// Where to write it; a baseline that is there is replaced
    #[arg(long, value_name = "FILE", default_value = "narrows-baseline.json")]
    out: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// A run file or its name in the runs folder, perhaps with `:VARIANT` [default: the newest]
    #[arg(value_name = "RUN[:VARIANT]", add = complete::addresses())]
    run: Option<String>,
    /// The baseline
    #[arg(long, value_name = "FILE", default_value = "narrows-baseline.json")]
    baseline: PathBuf,
    /// The smallest change that fails [default: 5%]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    margin: Option<f64>,
    /// Compare although the experiment is another, or has changed
    #[arg(long)]
    accept_experiment: bool,
    /// Compare although the machine is another
    #[arg(long)]
    accept_machine: bool,
    /// Write the result as JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the result as Markdown, `-` for standard output
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print annotations for GitHub Actions after the result
    #[arg(long, conflicts_with = "json")]
    github: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(command: &Command) -> Outcome {
    match command {
        Command::Save(arguments) => save(arguments),
        Command::Check(arguments) => compare(arguments),
    }
}

fn save(arguments: &Save) -> Outcome {
    let address = run_address::find(arguments.run.as_deref())?;
    let summary = conclude::baseline(&address.path, &address.selection)?;
    let out = &arguments.out;
    if out.exists() {
        // Another file was named by mistake.
        read(out).map_err(|failure| failure.hint("it is not overwritten; choose another `--out`"))?;
    }
    let text = serde_json::to_string_pretty(&summary.baseline)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", out.display())))?;
    super::write_to(out, &format!("{text}\n"))?;
    stderr::say(&format!("baseline of {}: {}", address.label, out.display()));
    Ok(Exit::Fine)
}

fn compare(arguments: &Check) -> Outcome {
    let baseline = read(&arguments.baseline)?;
    let address = run_address::find(arguments.run.as_deref())?;
    let now = conclude::baseline(&address.path, &address.selection)?;
    let margin = arguments.margin.unwrap_or(narrows_diagnose::proof::MARGIN);
    let accepted = Accepted { experiment: arguments.accept_experiment, machine: arguments.accept_machine };
    let checked = check(&baseline, &now, (&address.label, margin), accepted).map_err(|refusal| {
        let failure = Failure::new(format!("cannot check {}: {refusal}", address.label));
        match refusal.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    if let Some(path) = &arguments.junit {
        super::write_to(path, &ci::junit(&checked))?;
    }
    if let Some(path) = &arguments.markdown {
        super::write_to(path, &ci::markdown(&checked))?;
    }
    match arguments.json {
        true => super::print_json(narrows_report::json::check(&checked))?,
        false => super::print_painted(&narrows_report::text::check(&checked, super::style()))?,
    };
    if arguments.github {
        super::print(&ci::github(&checked))?;
    }
    Ok(if checked.is_worse() { Exit::VerdictFailed } else { Exit::Fine })
}

/// Reads a baseline.
fn read(path: &Path) -> Result<Baseline, Failure> {
    let shown = path.display();
    let mut text = String::new();
    let opened = narrows_files::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_string(&mut text));
    opened.map_err(|error| {
        let failure = Failure::new(format!("cannot read the baseline {shown}: {error}"));
        match error.kind() {
            std::io::ErrorKind::NotFound => failure.hint("`narrows baseline save` writes one"),
            _ => failure,
        }
    })?;
    if text.len() as u64 > BYTES_MAX {
        return Err(Failure::new(format!("{shown} is larger than a baseline of {BYTES_MAX} bytes at most")));
    }
    parse(&text).map_err(|why| {
        Failure::new(format!("{shown} is no baseline: {why}")).hint("`narrows baseline save` writes one")
    })
}

fn parse(text: &str) -> Result<Baseline, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match value.get("format").and_then(serde_json::Value::as_str) {
        Some(FORMAT) => {}
        Some(other) => return Err(format!("its format is `{other}`, expected `{FORMAT}`")),
        None => return Err(format!("it has no format, expected `{FORMAT}`")),
    }
    // From the text again, so that an error has its line.
    let baseline: Baseline = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match wrong_value(&baseline) {
        Some(wrong) => Err(wrong),
        None => Ok(baseline),
    }
}

/// A value that no run has.
fn wrong_value(baseline: &Baseline) -> Option<String> {
    if baseline.variants.is_empty() {
        return Some("it has no variant".to_owned());
    }
    let is_wrong = |value: f64, spread: Option<f64>| {
        !(value.is_finite() && value > 0.0) || spread.is_some_and(|spread| !(spread.is_finite() && spread >= 0.0))
    };
    baseline.variants.iter().find_map(|variant| {
        let name = &variant.variant;
        if variant.trials == 0 || variant.failed > variant.requests {
            return Some(format!("variant `{name}` has no trial, or more failed requests than requests"));
        }
        let figure = variant.figures.iter().find(|figure| is_wrong(figure.value, figure.spread));
        let operation = variant.operations.iter().find(|one| is_wrong(one.mean_ns, one.spread) || one.trials == 0);
        let part = variant.critical_path.iter().find(|part| !(part.mean_ns.is_finite() && part.mean_ns >= 0.0));
        let wrong = figure
            .map(|figure| figure.quantity.name())
            .or(operation.map(|one| one.operation.as_str()))
            .or(part.map(|part| part.service.as_str()))?;
        Some(format!("`{wrong}` of variant `{name}` is not a number above 0"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASELINE: &str = r#"{ "format": "narrows-baseline/1", "experiment": "a", "experiment_digest": "0",
        "machine": { "cpu_model": "x", "cores": 2, "memory_gib": 8 }, "variants": [{ "variant": "v", "trials": 2,
        "figures": [{ "quantity": "mean", "value": 5.0, "spread": 0.1 }], "requests": 9, "failed": 0, "operations": [],
        "findings": [], "critical_path": [] }] }"#;

    #[test]
    fn damaged_baselines_are_refused_with_the_reason() {
        assert!(parse(BASELINE).is_ok());
        for (old, new, why) in [
            ("narrows-baseline/1", "narrows-baseline/2", "its format is `narrows-baseline/2`, expected"),
            ("\"format\"", "\"fmt\"", "it has no format"),
            ("5.0", "-5.0", "`mean` of variant `v` is not a number above 0"),
            ("0.1", "-0.1", "`mean` of variant `v` is not a number above 0"),
            ("\"mean\"", "\"means\"", "unknown variant `means`"),
            ("\"trials\": 2", "\"trials\": 0", "variant `v` has no trial"),
            ("\"failed\": 0", "\"failed\": 10", "more failed requests than requests"),
            ("\"requests\"", "\"request\"", "unknown field `request`"),
            ("} ] }", "", "EOF while parsing"),
        ] {
            let damaged = match old {
                "} ] }" => BASELINE[..BASELINE.len() - 9].to_owned(),
                _ => BASELINE.replacen(old, new, 1),
            };
            let said = parse(&damaged).unwrap_err();
            assert!(said.contains(why), "{new}: {said}");
        }
        assert!(
            parse(
                r#"{ "format": "narrows-baseline/1", "experiment": "a", "experiment_digest": "0", "machine":
            { "cpu_model": "x", "cores": 2, "memory_gib": 8 }, "variants": [] }"#
            )
            .unwrap_err()
            .contains("no variant")
        );
    }
}
