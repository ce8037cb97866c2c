//! `narrows run FILE`: the experiment from its start to the sentence with its meaning; with `--compare`, to the verdict on
//! two variants.

use std::path::{Path, PathBuf};

use narrows_lab::comparison::{self, ComparisonEnd};
use narrows_lab::experiment::Experiment;
use narrows_lab::kept_predictions;
use narrows_lab::run::{Begin, newest_unfinished};
use narrows_model::comparison::{Kept, Outcome as Concluded};
use narrows_model::prediction::Scored;
use narrows_model::proof::REPEATS_MAX;
use narrows_model::run::RunState;
use narrows_predict::kept_sentence;

use super::compare::VerdictArguments;
use super::serve::PagesBeside;
use crate::agents::AgentsArguments;
use crate::exit::{Exit, Failure};
use crate::live::Live;
use crate::running::{Form, RunOptions, factor, guard_command, run_and_tell, stop_flag, unfinished};
use crate::{Outcome, complete, page, runs_folder, stderr};

/// Pairs of trials of a comparison at most, unless another number is given.
const PAIRS: u32 = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The experiment file
    #[arg(default_value = "experiment.yaml")]
    file: PathBuf,
    /// Run only this variant; may be given several times
    #[arg(long, value_name = "NAME", add = complete::variants())]
    variant: Vec<String>,
    /// Run each variant this many times, in turn; with 2 or more the noise floor is printed. With `--compare`, at most so
    /// many times [default: 1, with `--compare` 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(REPEATS_MAX)))]
    repeat: Option<u32>,
    /// Compare two variants in pairs of trials of random order, until it is clear which is faster
    #[arg(long, value_name = "BEFORE,AFTER", value_parser = pair, conflicts_with = "variant")]
    compare: Option<(String, String)>,
    #[command(flatten)]
    question: VerdictArguments,
    /// Draw the order of a comparison from this number again
    #[arg(long, value_name = "N", requires = "compare")]
    seed: Option<u64>,
    /// Multiply the durations of the load by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    time_scale: f64,
    /// Continue an interrupted run at its first unfinished trial: the newest of this experiment, or the one of `--out`
    #[arg(long, conflicts_with_all = ["variant", "repeat", "compare", "time_scale"])]
    resume: bool,
    /// Give a parameter of the experiment another value, in every variant; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting, add = complete::parameters())]
    set: Vec<(String, String)>,
    /// The run file [default: runs/EXPERIMENT-DATE-TIME.narrows]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the report page at the end [default PAGE: beside the run file]
    #[arg(long, value_name = "PAGE", num_args = 0..=1)]
    html: Option<Option<PathBuf>>,
    /// Write the page and open it in a browser: $BROWSER, or the desktop's
    #[arg(long)]
    open: bool,
    /// Show the run in a browser while it lasts, and until Ctrl-C afterwards; with `--open` the browser is opened
    #[arg(long, conflicts_with = "compare")]
    serve: bool,
    #[command(flatten)]
    agents: AgentsArguments,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let experiment = super::read_experiment_with(&arguments.file, &arguments.set).map_err(|failure| match arguments
        .resume
    {
        true if !arguments.file.exists() => failure.hint(
            "--resume needs the experiment file, because a run file holds no secrets; put the file back where it was",
        ),
        _ => failure,
    })?;
    let begin = if arguments.resume { Begin::Resume } else { Begin::Fresh };
    let path = match (&arguments.out, begin) {
        (Some(path), _) => path.clone(),
        (None, Begin::Fresh) => runs_folder::new_path(&experiment.name),
        (None, Begin::Resume) => newest_unfinished(&runs_folder::folder(), &experiment.name)?,
    };
    let page = page_of(arguments, &path)?;
    if let Some(pair) = &arguments.compare {
        return compare(arguments, &experiment, pair, &path, page.as_deref());
    }
    if arguments.question.is_given() {
        return Err(Failure::new("`--by`, `--margin` and `--fail-if` need `--compare BEFORE,AFTER`"));
    }
    let wanted = RunOptions {
        experiment: &experiment,
        variants: &arguments.variant,
        repetitions: arguments.repeat.unwrap_or(1),
        time_scale: arguments.time_scale,
        path: &path,
        begin,
        agents: arguments.agents.request(&experiment)?,
    };
    let pages = arguments.serve.then(|| PagesBeside::start(&path, arguments.open)).transpose()?;
    let (ended, outcome) = run_and_tell(&wanted, if arguments.json { Form::Json } else { Form::Text })?;
    if !arguments.json {
        print_kept(&outcome)?;
    }
    if let Some(page) = &page {
        write_page(arguments, &path, page, &outcome)?;
    }
    match ended.state {
        RunState::Complete if page.is_none() => super::say_where(&path),
        RunState::Complete => {}
        _ => return Err(unfinished(ended, &path, &format!("{} continues it", resuming(arguments)))),
    }
    if let Some(pages) = pages {
        pages.stay()?;
    }
    Ok(verdict(&outcome))
}

/// Prints what earlier runs of the experiment predicted of a change, beside what this one measured.
fn print_kept(outcome: &Concluded) -> Outcome {
    let sentence = |scored: &Scored| {
        let source = format!("{}:{}", scored.earlier_run.as_ref()?, scored.before);
        let is_same = kept_predictions::is_as_before(scored);
        let sentence = kept_sentence(&scored.prediction, &source, is_same);
        Some(format!("\n{}", narrows_report::text::paragraph(&sentence, super::style())))
    };
    let sentences: String = outcome.scored.iter().filter_map(sentence).collect();
    super::print_painted(&sentences)
}

fn write_page(arguments: &Arguments, path: &Path, page: &Path, outcome: &Concluded) -> Result<(), Failure> {
    page::write(page, outcome)?;
    stderr::say(&format!("\nrun file: {}\nreport:   {}", path.display(), page.display()));
    if arguments.open {
        page::open(page);
    }
    Ok(())
}

/// Runs a comparison, then prints what it showed: the objectives, and the verdict.
fn compare(
    arguments: &Arguments,
    experiment: &Experiment,
    variants: &(String, String),
    path: &Path,
    page: Option<&Path>,
) -> Outcome {
    let (before, after) = variants;
    let pairs = arguments.repeat.unwrap_or(PAIRS);
    if pairs < 2 {
        return Err(Failure::new("`--compare` needs at least 2 trials of each variant, found `--repeat 1`")
            .hint("with `--repeat 10` it ends as soon as the verdict is clear"));
    }
    let wanted = comparison::ComparisonRequest {
        experiment,
        before: before.clone(),
        after: after.clone(),
        pairs,
        question: arguments.question.question(),
        seed: arguments.seed,
        time_scale: arguments.time_scale,
        path: path.to_owned(),
        guard_command: guard_command()?,
        agents: arguments.agents.request(experiment)?,
    };
    let stop = stop_flag()?;
    let mut live = Live::new();
    let compared = comparison::compare(&wanted, &stop, &mut live);
    live.finish();
    let ComparisonEnd { ended, proof } = compared?;
    if ended.state != RunState::Complete {
        let next = match &ended.error {
            Some(narrows_lab::Error::Compare(_)) => format!("`narrows diagnose {}` shows it", path.display()),
            _ => format!("`narrows compare {0}:{before} {0}:{after}` judges complete pairs", path.display()),
        };
        return Err(unfinished(ended, path, &next));
    }
    let proof = proof.ok_or_else(|| Failure::new("the run has no complete pair of trials"))?;
    let outcome = narrows_lab::conclude::outcome(path)?;
    if !arguments.json {
        let objectives = narrows_report::text::objectives(&outcome, super::style());
        super::print_painted(&format!("\n{objectives}{}", if objectives.is_empty() { "" } else { "\n" }))?;
    }
    super::compare::print(&proof, arguments.json)?;
    match page {
        Some(page) => write_page(arguments, path, page, &outcome)?,
        None => super::say_where(path),
    }
    Ok(match verdict(&outcome) {
        Exit::Fine => arguments.question.exit(proof.verdict),
        missed => missed,
    })
}

/// Where the page is to be written; `None` where none is wanted. Files of other kinds are not overwritten: in
/// `--html experiment.yaml` the file is not meant as the page.
fn page_of(arguments: &Arguments, run: &Path) -> Result<Option<PathBuf>, Failure> {
    match &arguments.html {
        Some(Some(page)) if page.extension().is_some_and(|ending| ending == "html" || ending == "htm") => {
            Ok(Some(page.clone()))
        }
        Some(Some(other)) => {
            Err(Failure::new(format!("expected the name of a page after `--html`, found `{}`", other.display()))
                .hint("a page ends in .html; write the experiment file first, as in `narrows run FILE --html`"))
        }
        Some(None) => page::beside(run).map(Some),
        None if arguments.open && !arguments.serve => page::beside(run).map(Some),
        None => Ok(None),
    }
}

/// Reads `BEFORE,AFTER`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once(',') {
        Some((before, after)) if !before.is_empty() && !after.is_empty() && !after.contains(',') => {
            Ok((before.to_owned(), after.to_owned()))
        }
        _ => Err("expected two variants, such as main,branch".to_owned()),
    }
}

/// Reads `NAME=VALUE`.
pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected a parameter and its value, such as pool=20".to_owned()),
    }
}

/// The command that resumes this run.
fn resuming(arguments: &Arguments) -> String {
    let out = arguments.out.as_ref().map_or_else(String::new, |path| format!(" --out {}", path.display()));
    let set = arguments.set.iter().map(|(name, value)| format!(" --set {}", quoted(&format!("{name}={value}"))));
    format!("`narrows run {} --resume{out}{}`", arguments.file.display(), set.collect::<String>())
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "=._-/:,+%@".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Exit code 1 when an objective was missed in a finished trial.
fn verdict(outcome: &Concluded) -> Exit {
    let is_missed = outcome.objectives.iter().flatten().any(|objective| objective.kept == Kept::No);
    if is_missed { Exit::VerdictFailed } else { Exit::Fine }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_a_name_and_a_value() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(setting("pool=20"), pair("pool", "20"));
        assert_eq!(setting("query=a=b"), pair("query", "a=b"));
        assert_eq!(setting("empty="), pair("empty", ""));
        assert!(setting("pool").is_err() && setting("=20").is_err());
    }

    #[test]
    fn a_comparison_names_two_variants() {
        assert_eq!(pair("main,branch"), Ok(("main".to_owned(), "branch".to_owned())));
        for wrong in ["main", "main,", ",branch", "a,b,c", ""] {
            assert!(pair(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell_where_they_need_it() {
        assert_eq!((quoted("pool=20"), quoted("a=b c")), ("pool=20".to_owned(), "'a=b c'".to_owned()));
        assert_eq!(quoted("a=it's"), "'a=it'\\''s'");
    }
}
