//! `narrows demo`: a reference system's experiment that is part of the binary, run and reported like any other.
//!
//! Each reference system has one; `crate::systems` lists them. A demo's objectives are missed by design, so a missed objective is no failure here.

mod all;

use std::path::{Path, PathBuf};

use narrows_lab::experiment::{self, Experiment};
use narrows_lab::run::Begin;
use narrows_model::proof::REPEATS_MAX;
use narrows_model::run::RunState;
use narrows_system::{Demo, Length};

use super::plural;
use crate::exit::{Exit, Failure};
use crate::running::{Form, RunOptions, factor, run_and_tell, unfinished};
use crate::systems::{DEFAULT_DEMO, DEMOS};
use crate::{Outcome, page, runs_folder, stderr};

#[derive(Debug, clap::Args)]
#[command(after_help = "A demo's objectives are missed by design. Exit code 0 means that every test ran, \
                        whether or not it met its objectives; 2 that one could not run.")]
pub(crate) struct Arguments {
    /// The demo; `--list` names them
    #[arg(default_value = DEFAULT_DEMO)]
    name: String,
    /// Run it at its full length instead of the short form
    #[arg(long, conflicts_with = "time_scale")]
    full: bool,
    /// List the demos and how long each takes
    #[arg(long)]
    list: bool,
    /// Run each test this many times, in turn: figures are the medians [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(REPEATS_MAX)))]
    repeat: Option<u32>,
    /// Also write the experiment file as ./NAME.yaml, to change and run again; it must not exist
    #[arg(long)]
    keep: bool,
    /// Open the report when the run is done
    #[arg(long)]
    open: bool,
    /// The run file; the report lies beside it [default: runs/NAME-DATE-TIME.narrows]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Multiply the durations of the load by this factor [default: that of the short form]
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    time_scale: Option<f64>,
    /// Run only this variant; may be given several times
    #[arg(long, value_name = "NAME")]
    variant: Vec<String>,
    /// Print all that the run showed, as `narrows run` does; the page has it either way
    #[arg(long)]
    verbose: bool,
    /// Run every demo, and write what was published and what was measured as one page, in HTML and Markdown, below --out
    /// [default: runs/results-DATE-TIME]
    #[arg(long, conflicts_with_all = ["name", "keep", "open", "time_scale", "variant"])]
    all: bool,
    /// With --all: make the page from these runs instead of running; RUN may be a folder of them
    #[arg(long, value_name = "RUN", num_args = 1.., requires = "all", conflicts_with_all = ["full", "name"])]
    from: Vec<PathBuf>,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    if arguments.list {
        return super::print(&list());
    }
    if arguments.all {
        return all::execute(arguments);
    }
    one(arguments, find(&arguments.name)?, arguments.out.clone()).map(|_| Exit::Fine)
}

/// Runs one demo and returns its run file: `out`, or else one of its name and the time.
fn one(arguments: &Arguments, demo: &Demo, out: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let (experiment, _folder) = read(demo)?;
    let path = out.unwrap_or_else(|| runs_folder::new_path(&experiment.name));
    let page = page::beside(&path)?;
    let length = if arguments.full { &demo.full } else { &demo.short };
    let time_scale = arguments.time_scale.unwrap_or(length.time_scale);
    if arguments.keep {
        keep(demo, &file_of(demo), time_scale)?;
    }
    let variants = chosen(&arguments.variant, demo, length, &experiment);
    announce(demo, &experiment, arguments, &variants);
    let wanted = RunOptions {
        experiment: &experiment,
        variants: &variants,
        repetitions: arguments.repeat.unwrap_or(length.repetitions),
        time_scale,
        path: &path,
        begin: Begin::Fresh,
        agents: None,
    };
    let (ended, outcome) = run_and_tell(&wanted, if arguments.verbose { Form::Text } else { Form::Brief })?;
    if ended.state != RunState::Complete {
        return Err(unfinished(ended, &path, &format!("`narrows diagnose {}` shows it again", path.display())));
    }
    page::write(&page, &outcome)?;
    stderr::say(&format!("\nrun file: {}\nreport:   {}", path.display(), page.display()));
    if arguments.open {
        page::open(&page);
    }
    Ok(path)
}

/// A demo's experiment, and the folder with the files that it names.
pub(super) fn read(demo: &Demo) -> Result<(Experiment, Folder), Failure> {
    let file = file_of(demo);
    let folder = Folder::with(demo)?;
    let read = narrows_lab::language()
        .parse(demo.experiment, &file, folder.path())
        .map_err(|errors| super::invalid(&file, &errors));
    Ok((read?, folder))
}

/// Name of a demo's experiment, in messages and in the run file.
fn file_of(demo: &Demo) -> String {
    format!("{}.yaml", demo.name)
}

pub(super) fn find(name: &str) -> Result<&'static Demo, Failure> {
    let names: Vec<&str> = DEMOS.iter().map(|demo| demo.name).collect();
    DEMOS.iter().copied().find(|demo| demo.name == name).ok_or_else(|| {
        let failure = Failure::new(format!("no demo is named `{name}`; the demos are `{}`", names.join("`, `")));
        match experiment::nearest(name, &names) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint("`narrows demo --list` describes them"),
        }
    })
}

/// The demos as a table.
fn list() -> String {
    let row = |cells: [&str; 4]| format!("{:<20}{:<18}{:<18}{}\n", cells[0], cells[1], cells[2], cells[3]);
    let rows = DEMOS.iter().map(|demo| row([demo.name, demo.short.takes, demo.full.takes, demo.about]));
    std::iter::once(row(["NAME", "SHORT FORM", "WITH --full", "TESTS OF"])).chain(rows).collect()
}

/// Writes the experiment and the files that it names. Where one of them is there already, none is written.
fn keep(demo: &Demo, file: &str, time_scale: f64) -> Result<(), Failure> {
    let again = format!("`narrows run {file} --time-scale {time_scale}`");
    let mut kept: Vec<(&str, &str)> = demo.files.iter().copied().chain([(file, demo.experiment)]).collect();
    kept.sort_by_key(|(name, _)| !Path::new(name).exists());
    for (name, text) in kept {
        super::write_new(
            Path::new(name),
            text,
            &format!("leave out `--keep`, or run the file that is there: {again}"),
        )?;
    }
    stderr::say(&format!("wrote {file}; change it and run it again with {again}"));
    Ok(())
}

/// A folder with the files that an experiment names, for as long as it is needed; `None` for an experiment without.
#[derive(Debug)]
pub(super) struct Folder(Option<PathBuf>);

impl Folder {
    fn with(demo: &Demo) -> Result<Self, Failure> {
        if demo.files.is_empty() {
            return Ok(Self(None));
        }
        let path = std::env::temp_dir().join(format!("narrows-demo-{}-{}", std::process::id(), demo.name));
        let failed = |error| Failure::new(format!("cannot write to {}: {error}", path.display()));
        std::fs::create_dir(&path).map_err(failed)?;
        let folder = Self(Some(path.clone()));
        for (name, text) in demo.files {
            std::fs::write(path.join(name), text).map_err(failed)?;
        }
        Ok(folder)
    }

    fn path(&self) -> &Path {
        self.0.as_deref().unwrap_or(Path::new(""))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // A folder that cannot be removed lies where temporary files are cleared away.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

/// The variants to run: the requested ones, else those of this form of the demo whose programs are there; empty means all.
pub(super) fn chosen(asked: &[String], demo: &Demo, length: &Length, experiment: &Experiment) -> Vec<String> {
    if !asked.is_empty() {
        return asked.to_vec();
    }
    let missing = missing(demo, length);
    let of_form: Vec<&str> = match length.variants {
        [] if missing.is_empty() => Vec::new(),
        [] => experiment.variants.iter().map(|variant| variant.name.as_str()).collect(),
        variants => variants.to_vec(),
    };
    let is_there = |name: &&str| missing.iter().all(|missing| missing.variant != *name);
    of_form.into_iter().filter(is_there).map(str::to_owned).collect()
}

/// A variant that needs a program which is not installed.
struct Missing {
    variant: &'static str,
    /// Command that installs the program.
    install: &'static str,
}

/// The variants of this form of a demo whose programs are not installed.
fn missing(demo: &Demo, length: &Length) -> Vec<Missing> {
    let is_of_form = |variant: &str| length.variants.is_empty() || length.variants.contains(&variant);
    let mut all = Vec::new();
    for &(variant, program) in demo.optional.iter().filter(|(variant, _)| is_of_form(variant)) {
        all.extend(narrows_lab::doctor::missing_program(program).map(|install| Missing { variant, install }));
    }
    all
}

/// Prints which variants are left out because a program is missing, a line for each program.
fn announce_missing(missing: &[Missing]) {
    let mut installs: Vec<&str> = missing.iter().map(|missing| missing.install).collect();
    installs.dedup();
    for install in installs {
        let variants = missing.iter().filter(|missing| missing.install == install).map(|missing| missing.variant);
        let variants = variants.collect::<Vec<_>>().join(", ");
        stderr::say(&format!("left out because a program is missing: {variants}; `{install}` brings it"));
    }
}

/// Prints what will happen.
fn announce(demo: &Demo, experiment: &Experiment, arguments: &Arguments, variants: &[String]) {
    let left_out = experiment.variants.iter().map(|variant| variant.name.as_str());
    let left_out: Vec<&str> =
        left_out.filter(|name| !variants.is_empty() && !variants.iter().any(|chosen| chosen == name)).collect();
    let tests = if variants.is_empty() { experiment.variants.len() } else { variants.len() };
    let is_whole = arguments.variant.is_empty() && arguments.time_scale.is_none() && arguments.repeat.is_none();
    let takes = match (is_whole, arguments.full) {
        (true, true) => format!("{}; ", demo.full.takes),
        (true, false) => format!("{}, or {} with `--full`; ", demo.short.takes, demo.full.takes),
        (false, _) => String::new(),
    };
    stderr::say(&format!("{}: {} of {}", demo.name, plural(tests, "test"), demo.about));
    if arguments.variant.is_empty() {
        let missing = missing(demo, if arguments.full { &demo.full } else { &demo.short });
        let is_long = |name: &&str| missing.iter().all(|missing| missing.variant != *name);
        let long: Vec<&str> = left_out.into_iter().filter(is_long).collect();
        if !long.is_empty() {
            stderr::say(&format!("left out because of its length: {}; `--full` has it", long.join(", ")));
        }
        announce_missing(&missing);
    }
    if let Some(conclusion) = demo.only_full.filter(|_| is_whole && !arguments.full) {
        stderr::say(&format!("too short to show that {conclusion}; `--full` shows it"));
    }
    stderr::say(&format!("{takes}Ctrl-C ends it, and what was measured until then is kept"));
    let needs = demo.needs.map_or("with nothing to install".to_owned(), |needs| format!("and needs {needs}"));
    stderr::say(&format!("all of it runs on this machine, {needs}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_demo_is_an_experiment_of_its_name_without_errors() {
        for demo in DEMOS {
            let (experiment, _folder) = read(demo).unwrap();
            assert_eq!(experiment.name, demo.name);
            let is_known = |name: &&str| experiment.variants.iter().any(|variant| variant.name == **name);
            assert!(demo.short.variants.iter().chain(demo.full.variants).all(is_known));
            let is_shorter = demo.short.time_scale < demo.full.time_scale;
            assert!(is_shorter || (demo.full.variants.is_empty() && !demo.short.variants.is_empty()), "{}", demo.name);
        }
    }

    #[test]
    fn the_default_is_a_demo() {
        use clap::Parser;
        let args = crate::args::Args::parse_from(["narrows", "demo"]);
        let crate::args::Command::Demo(arguments) = args.command else { panic!("{args:?}") };
        assert!(find(&arguments.name).is_ok());
    }
}
