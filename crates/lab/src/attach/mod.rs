//! Runs of systems that Narrows did not start: attached to while they run, or told of by files.
//!
//! Such a run has one trial and no experiment. Nobody here sends its load, so requests are counted from spans
//! (`requests.rs`); nobody here starts its services, so what is not known about them is said and not guessed. Everything
//! else is as after `narrows run`: the same file, the same diagnosis.

mod collect;
mod import;
mod intervals;
mod processes;
mod requests;

use std::path::Path;

use narrows_model::load::{LoadBatch, LoadSecond};
use narrows_model::run::{Run, RunState, Trial, TrialState, Validity, Window};
use narrows_telemetry::run_file::RunFile;

use crate::{Error, conclude, environment};

pub(crate) use collect::missing_pages;
pub use collect::{ArrivalCounts, Event, Options, attach};
pub use import::{ImportCounts, Options as ImportOptions, PrometheusQuery, import};

/// The only trial's number.
const TRIAL: i64 = 1;
/// Rows of load that are written at once.
const ROWS_AT_ONCE: usize = 10_000;

/// A run of one trial that is under way.
struct Observation {
    file: RunFile,
    trial: Trial,
}

impl Observation {
    /// Makes the run file. `source` stands where other runs have their experiment.
    fn begin(path: &Path, name: &str, variant: &str, source: String) -> Result<Self, Error> {
        if let Some(folder) = path.parent() {
            let failed = |source| Error::File { what: "create", path: folder.to_owned(), source };
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let now_ns = environment::now_ns();
        let run = Run {
            id: format!("{:016x}", environment::random_u64()),
            experiment: name.to_owned(),
            narrows_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_ns: now_ns,
            ended_ns: None,
            state: RunState::Running,
            seed: 0,
            time_scale: 1.0,
            repetitions: 1,
            experiment_source: crate::experiment::redacted(&source),
            environment: environment::fingerprint(),
        };
        let trial = Trial {
            id: TRIAL,
            variant: variant.to_owned(),
            repetition: 1,
            state: TrialState::Running,
            started_ns: Some(now_ns),
            ended_ns: None,
            parameters: Default::default(),
            validity: Validity::default(),
            error: None,
            caveats: Vec::new(),
            load_program: None,
        };
        let file = RunFile::create(path, &run)?;
        let observation = Self { file, trial };
        observation.file.recorder().put_trial(&observation.trial)?;
        observation.file.recorder().set_trial(Some(TRIAL));
        Ok(observation)
    }

    /// Ends a run that could not begin: its file holds nothing and goes.
    fn discard(self, path: &Path) {
        drop(self.file);
        // It was made a moment ago by this process; who cannot remove it has an empty run.
        let _ = std::fs::remove_file(path);
    }

    /// Writes what was learnt, concludes and closes the file.
    fn complete(mut self, path: &Path, windows: &[Window], seconds: Vec<LoadSecond>) -> Result<(), Error> {
        let recorder = self.file.recorder();
        recorder.set_trial(None);
        self.trial.state = TrialState::Done;
        let result = (|| {
            conclude::put_trial(&recorder, &self.trial)?;
            recorder.put_windows(TRIAL, windows)?;
            for rows in seconds.chunks(ROWS_AT_ONCE) {
                recorder.put_load(TRIAL, LoadBatch { seconds: rows.to_vec(), samples: Vec::new() })?;
            }
            conclude::write(path, &recorder)
        })();
        self.file.finish(if result.is_ok() { RunState::Complete } else { RunState::Failed })?;
        result
    }
}
