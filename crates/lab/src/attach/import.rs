//! A run made of files that other programs wrote, or of what a Prometheus server has.
//!
//! Its windows are the intervals of time in which there were spans. A file of which nothing can be used does not cost
//! the others, but is said; when nothing at all can be used, there is no run.

use std::path::PathBuf;
use std::sync::Arc;

use narrows_model::caveat::TrialCaveat;
use narrows_telemetry::Store;
use narrows_telemetry::exchange;
use narrows_telemetry::exchange::Mapping;
pub use narrows_telemetry::exchange::{ImportCounts, PrometheusQuery};

use crate::Error;
use crate::attach::Observation;
use crate::attach::requests::Requests;
use crate::counting::RecentRequests;

/// Files to import, and options.
#[derive(Debug, Clone)]
pub struct Options {
    /// The files; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// A Prometheus server to ask for metrics.
    pub prometheus: Option<PrometheusQuery>,
    /// A table of metrics beyond the known ones.
    pub mapping: Option<PathBuf>,
    /// A table of callers and callees.
    pub graph: Option<PathBuf>,
    /// The run's name.
    pub name: String,
    /// The run file, to be made.
    pub path: PathBuf,
    /// The service that takes the requests, if it is known.
    pub target: Option<String>,
}

/// Imports, diagnoses and closes the run file. Blocks; not to be called on a runtime's thread.
///
/// # Errors
/// When none of the files holds anything that can be used, or the run file cannot be written.
pub fn import(options: &Options) -> Result<ImportCounts, Error> {
    let mapping = options.mapping.as_deref().map(Mapping::read).transpose()?.unwrap_or_default();
    let mut observation = Observation::begin(&options.path, &options.name, "imported", source(options))?;
    let store: Arc<dyn Store> = Arc::new(observation.file.recorder());
    let requests = Requests::before(Arc::clone(&store), 0, options.target.clone(), RecentRequests::default());
    let mut imported = ImportCounts::default();
    let mut caveats = Vec::new();
    let mut failed: Option<Error> = None;
    for file in &options.files {
        if let Err(error) = exchange::import(file, &mapping, &requests, &mut imported) {
            caveats.push(TrialCaveat::FileUnreadable { error: with_source(&error) });
            failed.get_or_insert(error.into());
        }
    }
    if let Some(query) = &options.prometheus
        && let Err(error) = exchange::import_prometheus(query, &mapping, &requests, &mut imported)
    {
        caveats.push(TrialCaveat::FileUnreadable { error: with_source(&error) });
        failed.get_or_insert(error.into());
    }
    if let (0, Some(error)) = (imported.records(), failed) {
        observation.discard(&options.path);
        return Err(error);
    }
    let (windows, left_out) = requests.intervals().windows();
    if let Some(graph) = &options.graph {
        let time_ns = windows.first().map_or(1, |window| window.start_ns);
        if let Err(error) = exchange::import_graph(graph, time_ns, &*store, &mut imported) {
            observation.discard(&options.path);
            return Err(error.into());
        }
    }
    let counted = requests.counted(&windows);
    caveats.extend(omissions(&imported));
    if left_out > 0 {
        caveats.push(TrialCaveat::IntervalsNotCounted { intervals: left_out });
    }
    caveats.push(TrialCaveat::MachineNotKnown);
    caveats.push(counted.caveat);
    observation.trial.started_ns = windows.first().map(|window| window.start_ns);
    observation.trial.ended_ns = windows.last().map(|window| window.end_ns);
    observation.trial.caveats = caveats;
    observation.complete(&options.path, &windows, counted.seconds)?;
    Ok(imported)
}

fn with_source(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

fn source(options: &Options) -> String {
    let mut lines = vec!["# narrows import".to_owned()];
    lines.extend(options.files.iter().map(|file| format!("# {}", file.display())));
    lines.extend(options.prometheus.iter().map(|query| format!("# {}", query.url)));
    let tables = [("mapping", &options.mapping), ("graph", &options.graph)];
    lines.extend(tables.iter().filter_map(|(what, path)| Some(format!("# {what}: {}", path.as_ref()?.display()))));
    lines.extend(options.target.iter().map(|target| format!("# requests taken by {target}")));
    let lines: Vec<String> = lines.iter().map(|line| line.replace(char::is_control, " ")).collect();
    lines.join("\n") + "\n"
}

/// Sentences on the records that were left out or corrected.
fn omissions(imported: &ImportCounts) -> Vec<TrialCaveat> {
    let ImportCounts { repeated, without_kind, malformed, over_limit, .. } = *imported;
    let first = imported.complaints.first().cloned().unwrap_or_default();
    let malformed = (malformed > 0).then_some(TrialCaveat::RecordsMalformed { records: malformed, first });
    let over_limit = (over_limit > 0).then_some(TrialCaveat::RecordsOverLimit { records: over_limit });
    let repeated = (repeated > 0).then_some(TrialCaveat::SpansRepeated { spans: repeated });
    let without_kind = (without_kind > 0).then_some(TrialCaveat::SpanKindsConcluded { spans: without_kind });
    [malformed, over_limit, repeated, without_kind].into_iter().flatten().collect()
}
