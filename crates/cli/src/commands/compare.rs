//! `narrows compare RUN:A RUN:B`: whether one variant is faster than another, from trials that were made already.

use narrows_diagnose::proof::{MARGIN, Question};
use narrows_lab::conclude;
use narrows_model::proof::{Proof, Quantity, Ruling};

use crate::exit::Exit;
use crate::run_address::{self, RunAddress};
use crate::{Outcome, complete};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without a run before the colon, as in `narrows compare :main :branch`, the newest run is meant."
)]
pub(crate) struct Arguments {
    /// What to compare with: a run file or its name, and a variant
    #[arg(value_name = "RUN:VARIANT", add = complete::addresses())]
    before: String,
    /// What to compare
    #[arg(value_name = "RUN:VARIANT", add = complete::addresses())]
    after: String,
    #[command(flatten)]
    question: VerdictArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The precision to reach, and the verdicts that fail.
#[derive(Debug, clap::Args)]
pub(crate) struct VerdictArguments {
    /// The figure that decides: rate, mean, p50, p95, p99 or cpu (for each request) [default: mean]
    #[arg(long, value_name = "FIGURE", value_parser = quantity)]
    by: Option<Quantity>,
    /// The smallest difference that matters [default: 5%]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    margin: Option<f64>,
    /// End with exit code 1 on these verdicts: faster, slower, no-difference, cannot-tell
    #[arg(long, value_name = "VERDICT", value_delimiter = ',', value_parser = ruling)]
    fail_if: Vec<Ruling>,
}

impl VerdictArguments {
    /// Whether anything of it was given.
    pub(crate) fn is_given(&self) -> bool {
        self.by.is_some() || self.margin.is_some() || !self.fail_if.is_empty()
    }

    pub(crate) fn question(&self) -> Question {
        Question { by: self.by.unwrap_or(Quantity::Mean), margin: self.margin.unwrap_or(MARGIN) }
    }

    /// Exit code 1 where the verdict is one of those that fail.
    pub(crate) fn exit(&self, verdict: Ruling) -> Exit {
        if self.fail_if.contains(&verdict) { Exit::VerdictFailed } else { Exit::Fine }
    }
}

fn quantity(text: &str) -> Result<Quantity, String> {
    let names: Vec<&str> = Quantity::ALL.iter().map(|quantity| quantity.name()).collect();
    Quantity::named(text).ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

fn ruling(text: &str) -> Result<Ruling, String> {
    let names: Vec<&str> = Ruling::ALL.iter().map(|ruling| ruling.name()).collect();
    let found = Ruling::ALL.into_iter().find(|ruling| ruling.name() == text);
    found.ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

/// Reads a margin.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    match share {
        Ok(share) if (0.001..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a share from 0.1% to 100%, such as 5% or 0.05".to_owned()),
    }
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let before = run_address::find(Some(&arguments.before))?;
    let after = run_address::find(Some(&arguments.after))?;
    // Within one run, the name of the variant is enough.
    let is_one_run = before.path == after.path;
    let label = |address: &RunAddress| match (&address.selection.variant, address.selection.repetition) {
        (Some(variant), None) if is_one_run => variant.clone(),
        _ => address.label.clone(),
    };
    let proof =
        conclude::compare(before.part(&label(&before)), after.part(&label(&after)), arguments.question.question())?;
    print(&proof, arguments.json)?;
    Ok(arguments.question.exit(proof.verdict))
}

/// Prints a comparison.
pub(crate) fn print(proof: &Proof, json: bool) -> Outcome {
    match json {
        true => super::print_json(narrows_report::json::proof(proof)),
        false => super::print_painted(&narrows_report::text::proof(proof, super::style())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_and_refused() {
        assert_eq!((share("5%"), share("0.02")), (Ok(0.05), Ok(0.02)));
        for wrong in ["0", "-5%", "5", "x", "nan", "200%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
        assert_eq!((quantity("p99"), ruling("slower")), (Ok(Quantity::P99), Ok(Ruling::Slower)));
        assert!(quantity("p98").unwrap_err().contains("rate, mean") && ruling("slow").is_err());
    }
}
