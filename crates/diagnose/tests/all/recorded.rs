//! Findings in recorded runs of real programs stay the same until somebody means to change them.
//!
//! `corpus/recorded/` and `examples/recorded/` hold their evidence, and beside each file what is concluded from it: the verdict on the limit and
//! the findings of each trial, as data. How to record and renew them: `docs/reference/corpus.md`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use narrows_diagnose::conclude;
use narrows_diagnose::thresholds::Thresholds;
use narrows_model::published::Notes;
use narrows_testkit::generated;
use narrows_testkit::outline::findings_in_lines;
use narrows_testkit::recorded;

/// A recording is part of the repository, so it must be small. The largest has seven tests of eight minutes.
const FILE_BYTES_MAX: u64 = 7_100_000;

/// Where recordings lie: of the demos, and of the examples.
const FOLDERS: [&str; 2] = ["corpus/recorded", "../../examples/recorded"];

#[test]
fn what_recorded_runs_show_is_found_as_before() {
    let mut changed = Vec::new();
    for file in recordings() {
        let found = conclusions(&file);
        let expected = outline_beside(&file);
        let before = std::fs::read_to_string(&expected).unwrap_or_default();
        if !generated::is_current(&expected, &found) {
            changed.push(format!("{}\n--- before\n{before}+++ now\n{found}", file.display()));
        }
    }
    assert!(changed.is_empty(), "{}\n\n{}", generated::RENEW, changed.join("\n"));
}

/// The verdict and the findings of each trial, as data.
fn conclusions(file: &Path) -> String {
    let run = recorded::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let objectives = vec![Vec::new(); run.trials.len()];
    let outcome = conclude(run, objectives, Notes::default(), &Thresholds::default());
    let mut text = String::new();
    for ((trial, findings), limit) in outcome.evidence.trials.iter().zip(&outcome.findings).zip(&outcome.limits) {
        let verdict = serde_json::to_value(&limit.verdict).expect("JSON");
        let _ = writeln!(text, "{}: {}", trial.trial.label(), verdict["kind"].as_str().unwrap_or("?"));
        text.push_str(&findings_in_lines(findings, 1));
    }
    text
}

fn outline_beside(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy().replace(".json.gz", ".txt");
    file.with_file_name(name)
}

fn recordings() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = FOLDERS.iter().flat_map(|folder| recordings_in(folder)).collect();
    files.sort();
    for file in &files {
        let bytes = file.metadata().map_or(0, |file| file.len());
        assert!(bytes <= FILE_BYTES_MAX, "{} has {bytes} bytes, expected {FILE_BYTES_MAX} at most", file.display());
    }
    files
}

fn recordings_in(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let is_recording = |path: &PathBuf| path.to_string_lossy().ends_with(".json.gz");
    let files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_recording).collect();
    assert!(!files.is_empty(), "no recordings in {}", folder.display());
    files
}
