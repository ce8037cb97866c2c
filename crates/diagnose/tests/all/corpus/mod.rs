//! The corpus of cases that judges the detectors.
//!
//! Each file of `corpus/` says what a system does, what evidence it leaves, and what a good diagnosis finds in it. The
//! cases are written from how such systems behave, not from how the detectors work. `NARROWS_CASE=name` prints one in
//! full; `NARROWS_FINDINGS=folder` writes the findings of each there as JSON, to compare two versions. Findings, places,
//! costs and their order are kept in `findings.txt`, which `NARROWS_WRITE=1` renews. Format and rules: `docs/reference/corpus.md`.

mod case;
mod evidence;
mod grow;
mod imported;
mod load;
mod score;
mod series;
mod simulated;
mod tree;
mod yaml;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use case::{Case, YesNo};
use narrows_diagnose::detectors::ALL;
use narrows_diagnose::thresholds::Thresholds;
use narrows_diagnose::{caveats, conclude, diagnose};
use narrows_model::evidence::{TrialEvidence, Usage};
use narrows_model::finding::Finding;
use narrows_model::published::Notes;
use narrows_model::run::{Trial, Window};
use narrows_model::series::Point;
use narrows_model::series::names::CPU_CORES;
use narrows_testkit::generated;
use narrows_testkit::outline::findings_in_lines;
use narrows_testkit::trial::run_of_trials;
use score::Verdict;

/// Both precision and recall must reach it.
const GOOD: f64 = 0.95;
/// Cases for each detector.
const CASES_EACH: usize = 6;

#[test]
fn findings_are_those_expected() {
    let cases = cases();
    if let Some(folder) = folder_of_findings() {
        std::fs::create_dir_all(folder).expect("the folder of findings");
    }
    let (mut verdicts, mut faults, mut found) = (Vec::new(), Vec::new(), String::new());
    for case in &cases {
        match verdict_of(case) {
            Ok((verdict, text, findings)) => {
                let _ = write!(found, "{}\n{}", case.case, findings_in_lines(&findings, 1));
                if wanted().is_some() {
                    println!("{text}");
                }
                verdicts.push(verdict);
            }
            Err(why) => faults.push(format!("{}: {why}", case.case)),
        }
    }
    assert!(faults.is_empty(), "cases that contradict themselves:\n{}", faults.join("\n"));
    let score = Score::of(&verdicts);
    println!("{}{score}", table(&verdicts));
    assert!(score.precision() >= GOOD, "precision {:.3}", score.precision());
    assert!(score.recall() >= GOOD, "recall {:.3}", score.recall());
    assert!(score.narrow_places() >= GOOD, "narrow places {:.3}", score.narrow_places());
    if wanted().is_none() {
        generated::check("crates/diagnose/tests/all/corpus/findings.txt", &found);
    }
}

/// The folder to write the findings to.
fn folder_of_findings() -> Option<PathBuf> {
    std::env::var_os("NARROWS_FINDINGS").map(PathBuf::from)
}

#[test]
fn every_detector_has_cases_and_half_of_them_are_traps() {
    if wanted().is_some() {
        return;
    }
    let cases = cases();
    let mut faults = Vec::new();
    for id in ALL.iter().map(|detector| detector.id()) {
        let about: Vec<&Case> =
            cases.iter().filter(|case| case.about.split_whitespace().any(|one| one == id)).collect();
        let traps = about.iter().filter(|case| case.trap == YesNo::Yes).count();
        if about.len() < CASES_EACH || traps * 2 < CASES_EACH {
            faults.push(format!("{id}: {} cases, {traps} of them traps", about.len()));
        }
    }
    assert!(
        faults.is_empty(),
        "expected {CASES_EACH} cases of each detector, half of them traps:\n{}",
        faults.join("\n")
    );
}

/// The verdict on a case, the case in full, and its findings.
fn verdict_of(case: &Case) -> Result<(Verdict, String, Vec<Finding>), String> {
    let trial = evidence::evidence_of(case)?;
    let findings = match &case.first {
        Some(first) => beside(evidence::evidence_of(first)?, trial.clone())?,
        None => diagnose(&trial, &Thresholds::default()),
    };
    let mut text = format!("{}\n{}{}\n", case.case, case.what, case.source);
    for window in &trial.windows {
        let _ = writeln!(text, "{}", window_in_words(&trial, window));
    }
    let caveats = caveats(&trial, &Thresholds::default());
    let _ = writeln!(text, "{findings:#?}\n{caveats:#?}");
    if let Some(folder) = folder_of_findings() {
        let json = serde_json::to_string_pretty(&findings).map_err(|error| error.to_string())?;
        std::fs::write(folder.join(&case.case).with_extension("json"), json).map_err(|e| e.to_string())?;
    }
    Ok((score::judge(case, &findings)?, text, findings))
}

/// Findings of a variant compared with the first of its run.
fn beside(first: TrialEvidence, trial: TrialEvidence) -> Result<Vec<Finding>, String> {
    let first = TrialEvidence { trial: Trial { variant: "first".into(), ..first.trial }, ..first };
    let objectives = vec![Vec::new(), Vec::new()];
    let run = run_of_trials([first, trial]);
    let mut outcome = conclude(run, objectives, Notes::default(), &Thresholds::default());
    outcome.findings.pop().ok_or("no findings".into())
}

fn window_in_words(trial: &TrialEvidence, window: &Window) -> String {
    let load = trial.window_load(window);
    let (rate, latency, errors) = (load.rate(), load.latency().mean_ns / 1e6, load.errors.total());
    let mut text = format!("{}: {rate:.1} a second, {latency:.2} ms, {errors} errors", window.label);
    for series in trial.series.iter().filter(|series| series.key.name == CPU_CORES) {
        let is_here = |point: &&Point| (window.start_ns..window.end_ns).contains(&point.time_ns);
        let cores = Usage::from_values(series.points.iter().filter(is_here).map(|point| point.value).collect());
        let (service, replica) = (&series.key.service, series.key.replica);
        let instance = trial.services.iter().find(|one| one.service == *service);
        let cap = instance.and_then(|one| one.cpu_limit_cores).unwrap_or(f64::from(trial.cores));
        let _ = write!(text, "\n    {service}:{replica} uses {:.2} cores of {cap}", cores.mean);
    }
    text
}

/// The name of the only case to look at.
fn wanted() -> Option<String> {
    std::env::var("NARROWS_CASE").ok().filter(|name| !name.is_empty())
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    let mut faults = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if wanted().is_some_and(|wanted| wanted != name) {
            continue;
        }
        let source = std::fs::read_to_string(&file).unwrap_or_default();
        match Case::parse(&source) {
            Ok(case) if case.case == name => cases.push(case),
            Ok(case) => faults.push(format!("{name}.yaml: its case is `{}`", case.case)),
            Err(why) => faults.push(format!("{name}.yaml: {why}")),
        }
    }
    assert!(faults.is_empty(), "cases that cannot be read:\n{}", faults.join("\n"));
    assert!(!cases.is_empty(), "no cases in {}", folder.display());
    cases
}

fn table(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    for verdict in verdicts {
        let mark = if verdict.is_right() { "ok   " } else { "WRONG" };
        let trap = if verdict.is_trap { " (trap)" } else { "" };
        let list = |items: &[String]| if items.is_empty() { "none".to_owned() } else { items.join("; ") };
        let _ = writeln!(text, "{mark} {}{trap}\n        expected {}", verdict.case, list(&verdict.expected));
        let _ = writeln!(text, "        found    {}", list(&verdict.found));
        for (word, ids) in [("missed", &verdict.misses), ("false", &verdict.false_alarms)] {
            if !ids.is_empty() {
                let _ = writeln!(text, "        {word:8} {}", ids.join(", "));
            }
        }
        if verdict.is_narrow_place_right == Some(false) {
            let _ = writeln!(text, "        another narrow place than expected");
        }
    }
    text
}

/// Hits, misses and false alarms by detector.
#[derive(Default)]
struct Score {
    by_detector: BTreeMap<String, [usize; 3]>,
    cases: usize,
    right: usize,
    traps: usize,
    places: [usize; 2],
}

impl Score {
    fn of(verdicts: &[Verdict]) -> Score {
        let mut score = Score { cases: verdicts.len(), ..Score::default() };
        for verdict in verdicts {
            score.right += usize::from(verdict.is_right());
            score.traps += usize::from(verdict.is_trap);
            if let Some(is_right) = verdict.is_narrow_place_right {
                score.places[usize::from(is_right)] += 1;
            }
            for (column, ids) in [&verdict.hits, &verdict.misses, &verdict.false_alarms].into_iter().enumerate() {
                for id in ids {
                    score.by_detector.entry(id.clone()).or_default()[column] += 1;
                }
            }
        }
        score
    }

    fn sum(&self, column: usize) -> usize {
        self.by_detector.values().map(|counts| counts[column]).sum()
    }

    fn precision(&self) -> f64 {
        share(self.sum(0), self.sum(2))
    }

    fn recall(&self) -> f64 {
        share(self.sum(0), self.sum(1))
    }

    fn narrow_places(&self) -> f64 {
        share(self.places[1], self.places[0])
    }
}

/// Good ones among all; 1 when there are none.
fn share(good: usize, bad: usize) -> f64 {
    if good + bad == 0 { 1.0 } else { good as f64 / (good + bad) as f64 }
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "\n{:24}{:>6}{:>8}{:>7}{:>11}{:>8}", "detector", "hits", "misses", "false", "precision", "recall")?;
        for (id, [hits, misses, wrong]) in &self.by_detector {
            let (precision, recall) = (share(*hits, *wrong), share(*hits, *misses));
            writeln!(f, "{id:24}{hits:>6}{misses:>8}{wrong:>7}{precision:>11.2}{recall:>8.2}")?;
        }
        let [wrong, right] = self.places;
        writeln!(
            f,
            "\n{} cases ({} traps), {} right; narrow place right in {right} of {}",
            self.cases,
            self.traps,
            self.right,
            right + wrong
        )?;
        writeln!(f, "precision {:.3}, recall {:.3}", self.precision(), self.recall())
    }
}
