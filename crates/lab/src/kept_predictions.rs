//! Predictions that wait for the change to be made in the code: kept in the run file that they were made from, and put
//! beside what the next runs of the experiment measure.
//!
//! A kept prediction is settled by the first run that measures something else than before; until then each run shows it
//! beside its figures, which are as they were.

use std::path::{Path, PathBuf};

use narrows_model::comparison::Outcome;
use narrows_model::evidence::TrialEvidence;
use narrows_model::prediction::{Change, Measured, Prediction, Scored};
use narrows_model::run::TrialState;
use narrows_predict::score_repeated;
use narrows_telemetry::exchange::is_evidence;
use narrows_telemetry::run_file::{Reader, Recorder, RunFile};
use serde::{Deserialize, Serialize};

use crate::Error;

/// The name under which a run file keeps predictions that were made from it.
const KEPT: &str = "kept_predictions";
/// The name under which a run file keeps those of earlier runs beside what it measured.
const SCORED: &str = "scored_predictions";
/// Predictions that a run file keeps at most, the newest.
const KEPT_MAX: usize = 20;
/// Run files of a folder that are looked into at most, the newest.
const RUNS_MAX: usize = 50;
/// Change of throughput or mean latency, as a share, up to which a run measured the same as before: about the spread between
/// trials of one variant on a quiet machine.
const SAME: f64 = 0.1;

/// A prediction that waits for its change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KeptPrediction {
    /// The variant that it was made from.
    variant: String,
    prediction: Prediction,
}

/// Keeps a prediction in the run file that it was made from, in place of an earlier one of the same change.
///
/// # Errors
/// When the file is one of evidence, or cannot be written to.
pub fn keep(path: &Path, variant: &str, prediction: &Prediction) -> Result<(), Error> {
    if is_evidence(path) {
        return Err(Error::EvidenceKeepsNothing { path: path.to_owned() });
    }
    let mut kept: Vec<KeptPrediction> = conclusion(&Reader::open(path)?, KEPT)?;
    kept.retain(|one| one.variant != variant || one.prediction.change != prediction.change);
    kept.push(KeptPrediction { variant: variant.to_owned(), prediction: prediction.clone() });
    kept.drain(..kept.len().saturating_sub(KEPT_MAX));
    Ok(RunFile::amend(path, KEPT, &serde_json::json!(kept))?)
}

/// Whether a kept prediction was put beside figures that are as they were before: the change seems not to be made.
pub fn is_as_before(scored: &Scored) -> bool {
    scored.prediction.measured.as_ref().is_some_and(|measured| is_same(&scored.prediction, measured))
}

fn is_same(prediction: &Prediction, measured: &Measured) -> bool {
    let is_near = |now: f64, then: f64| (then / now - 1.0).abs() <= SAME;
    is_near(prediction.now.rate, measured.figures.rate) && is_near(prediction.now.mean_ns, measured.figures.mean_ns)
}

/// Kept predictions of earlier runs that a run file has beside its own figures.
pub(crate) fn scored(path: &Path) -> Result<Vec<Scored>, Error> {
    if is_evidence(path) { Ok(Vec::new()) } else { conclusion(&Reader::open(path)?, SCORED) }
}

/// Puts the predictions that earlier runs of the experiment in the same folder keep beside what this one measured, and
/// writes them into its file.
pub(crate) fn write(path: &Path, outcome: &Outcome, recorder: &Recorder) -> Result<(), Error> {
    let scored: Vec<Scored> = waiting(path, &outcome.evidence.run.experiment)
        .into_iter()
        .filter_map(|(run, kept)| scored_by(outcome, &run, kept))
        .collect();
    if scored.is_empty() {
        return Ok(());
    }
    Ok(recorder.put_conclusion(SCORED, &serde_json::json!(scored))?)
}

/// A kept prediction beside what a run measured; `None` if the run has not its variant or its load.
fn scored_by(outcome: &Outcome, run: &str, kept: KeptPrediction) -> Option<Scored> {
    let trials = &outcome.evidence.trials;
    let is_meant =
        |trial: &&TrialEvidence| trial.trial.variant == kept.variant && trial.trial.state == TrialState::Done;
    let after: Vec<&TrialEvidence> = trials.iter().filter(is_meant).collect();
    let mut prediction = kept.prediction;
    score_repeated(&mut prediction, &after).ok()?;
    let (before, after, earlier_run) = (kept.variant.clone(), kept.variant, Some(run.to_owned()));
    Some(Scored { earlier_run, before, after, prediction, share_removed: None, amdahl: None })
}

/// Predictions of other runs of an experiment that no later run has settled, the newest of each change, each with the name
/// of its run. Files that cannot be read keep none.
fn waiting(path: &Path, experiment: &str) -> Vec<(String, KeptPrediction)> {
    let mut settled: Vec<(String, Change)> = Vec::new();
    let mut waiting = Vec::new();
    for run in other_runs(path, experiment) {
        for one in run.kept.into_iter().rev() {
            let key = (one.variant.clone(), one.prediction.change.clone());
            if !settled.contains(&key) {
                settled.push(key);
                waiting.push((run.name.clone(), one));
            }
        }
        let made = run.scored.into_iter().filter(|one| !is_as_before(one));
        settled.extend(made.map(|one| (one.after, one.prediction.change)));
    }
    waiting
}

/// An earlier run.
struct EarlierRun {
    started_ns: i64,
    name: String,
    kept: Vec<KeptPrediction>,
    scored: Vec<Scored>,
}

/// The other runs of an experiment in a run file's folder, newest first.
fn other_runs(path: &Path, experiment: &str) -> Vec<EarlierRun> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_other = |path: &PathBuf, other: &PathBuf| {
        other.extension().is_some_and(|extension| extension == "narrows") && other.file_name() != path.file_name()
    };
    let own = path.to_owned();
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .filter(|(_, other)| is_other(&own, other))
        .collect();
    files.sort_by(|one, other| other.cmp(one));
    let mut runs: Vec<EarlierRun> =
        files.into_iter().take(RUNS_MAX).filter_map(|(_, path)| earlier_run(&path, experiment).ok()?).collect();
    runs.sort_by_key(|run| std::cmp::Reverse(run.started_ns));
    runs
}

/// Predictions in a run file; `None` if it is of another experiment.
fn earlier_run(path: &Path, experiment: &str) -> Result<Option<EarlierRun>, Error> {
    let reader = Reader::open(path)?;
    let run = reader.run()?;
    if run.experiment != experiment {
        return Ok(None);
    }
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let (kept, scored) = (conclusion(&reader, KEPT)?, conclusion(&reader, SCORED)?);
    Ok(Some(EarlierRun { started_ns: run.started_ns, name, kept, scored }))
}

/// A list that a run file keeps; empty if it has none, or one of another version.
fn conclusion<T: serde::de::DeserializeOwned>(reader: &Reader, key: &str) -> Result<Vec<T>, Error> {
    let kept = reader.conclusion(key)?;
    Ok(kept.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use narrows_model::prediction::{ChangeKind, Estimate, Figures, Forecast};
    use narrows_model::run::{Run, RunState};

    use super::*;

    fn prediction(kind: ChangeKind, measured: Option<f64>) -> Prediction {
        let figures = |rate: f64| Figures { rate, mean_ns: 8e9 / rate, p95_ns: 9e9 / rate };
        let measured = measured.map(|rate| Measured { trial: "a".into(), figures: figures(rate), levels: Vec::new() });
        let estimate = |value: f64| Estimate { value, low: value, high: value };
        Prediction {
            measured,
            ..Prediction::new(
                Change::new(kind, "web"),
                figures(50.0),
                Forecast { rate: estimate(100.0), mean_ns: estimate(80e6), p95_ns: estimate(90e6) },
            )
        }
    }

    /// A finished run that keeps predictions of these changes, and shows those of earlier runs beside these rates.
    fn run(folder: &Path, name: &str, started_ns: i64, kept: &[ChangeKind], scored: &[(ChangeKind, f64)]) {
        let path = folder.join(name).with_extension("narrows");
        let run = Run {
            id: format!("{started_ns:016x}"),
            experiment: "shop".into(),
            narrows_version: String::new(),
            started_ns,
            ended_ns: None,
            state: RunState::Running,
            seed: 1,
            time_scale: 1.0,
            repetitions: 1,
            experiment_source: String::new(),
            environment: crate::environment::fingerprint(),
        };
        let file = RunFile::create(&path, &run).unwrap();
        let scored = scored.iter().map(|(kind, rate)| Scored {
            earlier_run: Some("earlier".into()),
            before: "main".into(),
            after: "main".into(),
            prediction: prediction(*kind, Some(*rate)),
            share_removed: None,
            amdahl: None,
        });
        let scored = serde_json::json!(scored.collect::<Vec<_>>());
        file.recorder().put_conclusion(SCORED, &scored).unwrap();
        file.finish(RunState::Complete).unwrap();
        kept.iter().for_each(|kind| keep(&path, "main", &prediction(*kind, None)).unwrap());
    }

    /// Predictions that wait for a new run: each change and the run that keeps it.
    fn waiting_in(folder: &Path) -> Vec<String> {
        let waiting = waiting(&folder.join("new.narrows"), "shop");
        waiting.iter().map(|(run, one)| format!("{} of {run}", one.prediction.change.kind.name())).collect()
    }

    #[test]
    fn a_prediction_waits_until_a_run_measures_something_else() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        run(folder, "first", 1, &[ChangeKind::SpeedUp, ChangeKind::Cache, ChangeKind::Cache], &[]);
        assert_eq!(waiting_in(folder), ["cache of first", "speed-up of first"]);
        run(folder, "second", 2, &[ChangeKind::Cache], &[(ChangeKind::SpeedUp, 52.0)]);
        assert_eq!(waiting_in(folder), ["cache of second", "speed-up of first"], "52/s are as before");
        run(folder, "third", 3, &[], &[(ChangeKind::SpeedUp, 80.0)]);
        assert_eq!(waiting_in(folder), ["cache of second"]);
        run(folder, "fourth", 4, &[ChangeKind::SpeedUp], &[]);
        assert_eq!(waiting_in(folder), ["speed-up of fourth", "cache of second"], "it was predicted anew");
    }

    #[test]
    fn a_file_of_evidence_keeps_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json.gz");
        std::fs::write(&path, [0x1f, 0x8b]).unwrap();
        let error = keep(&path, "main", &prediction(ChangeKind::Cache, None)).unwrap_err().to_string();
        assert!(error.ends_with("run.json.gz is a file of evidence, which keeps no predictions"), "{error}");
    }
}
