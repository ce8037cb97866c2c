//! Runs that can be looked at, and conclusions from the last few that were.
//!
//! A run is named by its file. Names from addresses are looked up among those that are there and never become paths.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use narrows_lab::conclude;
use narrows_model::comparison::{Comparison, Outcome};
use narrows_model::run::{Run, RunState, Trial, Verdict};
use narrows_telemetry::run_file::Reader;
use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, Refusal};
use crate::frame::with_causes;
use crate::live::Live;
use crate::{Source, sql};

/// Ending of run files.
const ENDING: &str = "narrows";
/// Conclusions that are kept.
const OUTCOMES_MAX: usize = 6;
/// Runs that are listed, the newest.
const RUNS_MAX: usize = 2_000;

/// See the module.
#[derive(Debug)]
pub(crate) struct Library {
    source: Source,
    /// The last used at the end.
    outcomes: Mutex<Vec<(Edition, Arc<Outcome>)>>,
    summaries: Mutex<HashMap<PathBuf, (Edition, Arc<Summary>)>>,
    pub(crate) live: Arc<Live>,
}

/// A run file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) edition: Edition,
}

impl Entry {
    /// An error if a part of the run is still in the log beside its file, as after a kill: the file alone would lose it.
    pub(crate) fn require_one_file(&self) -> Result<(), Refusal> {
        let log = self.edition.path.with_extension("narrows-wal");
        match log.exists() {
            false => Ok(()),
            true => Err(Refusal::Invalid(format!(
                "A part of the run is still in {}: wait for its end, or continue it with `narrows run --resume`.",
                log.display()
            ))),
        }
    }
}

/// A file as it was at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edition {
    pub(crate) path: PathBuf,
    pub(crate) changed: SystemTime,
    pub(crate) bytes: u64,
}

/// A run in a list.
#[derive(Debug)]
pub(crate) enum Summary {
    Read(Box<ReadSummary>),
    /// Why it cannot be read.
    Unreadable(String),
}

#[derive(Debug)]
pub(crate) struct ReadSummary {
    pub(crate) run: Run,
    /// The worst of its trials.
    pub(crate) verdict: Verdict,
    /// Meaning of the run; empty until it has ended.
    pub(crate) sentence: String,
    /// Throughput of each variant, requests per second.
    pub(crate) rates: Vec<(String, Option<f64>)>,
    /// The first finding of its last trial that has one.
    pub(crate) finding: String,
}

impl Library {
    pub(crate) fn open(source: Source) -> Result<Self, Error> {
        if let Source::Folder(path) = &source {
            std::fs::read_dir(path).map_err(|source| Error::Folder { path: path.clone(), source })?;
        }
        Ok(Self { source, outcomes: Mutex::default(), summaries: Mutex::default(), live: Arc::default() })
    }

    /// All runs, the newest first.
    pub(crate) fn runs(&self) -> Vec<Entry> {
        let mut found: Vec<Entry> = match &self.source {
            Source::Run(path) => entry(path).into_iter().collect(),
            Source::Folder(folder) => {
                let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
                files
                    .filter(|path| path.extension().is_some_and(|it| it == ENDING))
                    .filter_map(|it| entry(&it))
                    .collect()
            }
        };
        found.sort_by(|a, b| (b.edition.changed, &b.name).cmp(&(a.edition.changed, &a.name)));
        found.truncate(RUNS_MAX);
        found
    }

    /// The run of a name.
    pub(crate) fn find(&self, name: &str) -> Result<Entry, Refusal> {
        let found = self.runs().into_iter().find(|entry| entry.name == name);
        found.ok_or_else(|| Refusal::NotFound(format!("There is no run “{name}”.")))
    }

    /// Conclusions from a run.
    pub(crate) fn outcome(&self, entry: &Entry) -> Result<Arc<Outcome>, Refusal> {
        let mut kept = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(edition, _)| *edition == entry.edition) {
            let found = kept.remove(at);
            kept.push(found);
            return Ok(Arc::clone(&kept[kept.len() - 1].1));
        }
        drop(kept);
        let outcome = Arc::new(conclude::outcome(&entry.edition.path)?);
        let mut kept = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(edition, _)| edition.path != entry.edition.path);
        kept.push((entry.edition.clone(), Arc::clone(&outcome)));
        let surplus = kept.len().saturating_sub(OUTCOMES_MAX);
        kept.drain(..surplus);
        Ok(outcome)
    }

    /// A run in brief.
    pub(crate) fn summary(&self, entry: &Entry) -> Arc<Summary> {
        let path = &entry.edition.path;
        let kept = self.summaries.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        if let Some((_, summary)) = kept.filter(|(edition, _)| *edition == entry.edition) {
            return summary;
        }
        let read = read_summary(path);
        let summary = Arc::new(read.unwrap_or_else(|error| Summary::Unreadable(with_causes(&error))));
        let mut all = self.summaries.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= RUNS_MAX {
            all.clear();
        }
        all.insert(path.clone(), (entry.edition.clone(), Arc::clone(&summary)));
        summary
    }

    /// Gives a run another name.
    pub(crate) fn rename(&self, entry: &Entry, name: &str) -> Result<(), Refusal> {
        let is_plain = |c: char| c.is_alphanumeric() || "-_.#+ ".contains(c);
        if name.is_empty() || name.len() > 200 || name.starts_with('.') || !name.chars().all(is_plain) {
            let expected = "expected letters, digits and `-_.#+`, 200 bytes at most";
            return Err(Refusal::Invalid(format!("“{name}” cannot be a run's name: {expected}")));
        }
        self.free_to_change(entry)?;
        entry.require_one_file()?;
        let to = entry.edition.path.with_file_name(format!("{name}.{ENDING}"));
        // A hard link fails where the name is taken; a rename would replace that run.
        let moved =
            std::fs::hard_link(&entry.edition.path, &to).and_then(|()| std::fs::remove_file(&entry.edition.path));
        moved.map_err(|source| Refusal::Io { what: format!("rename it to {}", to.display()), source })
    }

    /// Deletes a run.
    pub(crate) fn delete(&self, entry: &Entry) -> Result<(), Refusal> {
        self.free_to_change(entry)?;
        let path = &entry.edition.path;
        std::fs::remove_file(path)
            .map_err(|source| Refusal::Io { what: format!("delete {}", path.display()), source })?;
        for beside in ["narrows-wal", "narrows-shm"] {
            let _ = std::fs::remove_file(path.with_extension(beside));
        }
        Ok(())
    }

    /// Ends a run that is under way, as Ctrl-C does.
    pub(crate) fn stop(&self, entry: &Entry) -> Result<(), Refusal> {
        let writer = Reader::open(&entry.edition.path)?.writer()?;
        // A file can name any process: only another one of this program gets the signal.
        let program = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        let is_ours = |pid: &u32| program("self").is_some_and(|own| program(&pid.to_string()) == Some(own));
        let pid = writer.filter(is_ours).and_then(|pid| Pid::from_raw(pid as i32));
        let pid = pid.ok_or_else(|| Refusal::Invalid("The run is not under way here.".to_owned()))?;
        kill_process(pid, Signal::INT)
            .map_err(|error| Refusal::Io { what: "stop the run".to_owned(), source: error.into() })
    }

    /// An error if the run is under way, or the only one that is served.
    fn free_to_change(&self, entry: &Entry) -> Result<(), Refusal> {
        if let Source::Run(_) = self.source {
            return Err(Refusal::Invalid("This server shows one run file, which stays as it is.".to_owned()));
        }
        match Reader::open(&entry.edition.path).and_then(|reader| reader.run()) {
            Ok(run) if run.state == RunState::Running => {
                Err(Refusal::Invalid("The run is under way: stop it first.".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

fn entry(path: &Path) -> Option<Entry> {
    let meta = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let log = path.with_extension("narrows-wal").metadata().ok();
    let changed = |meta: &std::fs::Metadata| meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Some(Entry {
        name: path.file_stem()?.to_str()?.to_owned(),
        edition: Edition {
            path: path.to_owned(),
            changed: log.as_ref().map_or(changed(&meta), |log| changed(log).max(changed(&meta))),
            bytes: meta.len() + log.map_or(0, |log| log.len()),
        },
    })
}

fn read_summary(path: &Path) -> Result<Summary, Refusal> {
    let reader = Reader::open(path)?;
    let (run, trials) = (reader.run()?, reader.trials()?);
    let sentence = reader.conclusion("sentence")?;
    let comparison = reader.conclusion("comparison")?.and_then(|kept| serde_json::from_value::<Comparison>(kept).ok());
    let rates = comparison.unwrap_or_default().variants.into_iter().map(|variant| (variant.variant, variant.rate));
    drop(reader);
    let first = "SELECT title FROM findings WHERE rank = 1 ORDER BY trial DESC LIMIT 1";
    let found = sql::ask(path, first)?;
    Ok(Summary::Read(Box::new(ReadSummary {
        verdict: trials.iter().map(|trial: &Trial| trial.validity.verdict).max().unwrap_or_default(),
        sentence: sentence.and_then(|kept| kept.as_str().map(str::to_owned)).unwrap_or_default(),
        rates: rates.collect(),
        finding: sql::text(found.rows.first().and_then(|row| row.first())).to_owned(),
        run,
    })))
}
