//! Runs for assistants: the Model Context Protocol over standard input and output.
//!
//! Every tool only reads, and its text is bounded. It is made by the same renderers as reports and queries, and of run files, in
//! which secrets are redacted.

use std::sync::Arc;

use narrows_diagnose::pages;
use narrows_diagnose::words::InWords;
use narrows_lab::conclude::{self, RunPart, Selection};
use narrows_model::printable;
use narrows_model::run::{RunState, Trial};
use narrows_report::table;
use narrows_report::text::{self, Color, Style};
use narrows_telemetry::run_file::Reader;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, Implementation, ServerCapabilities, ServerConfig};
use rmcp::{ErrorData, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Source;
use crate::error::{Error, Refusal};
use crate::frame::with_causes;
use crate::library::{Entry, Library, Summary};
use crate::search::Search;
use crate::sql::{self, LIMITS};

/// Characters of a response at most.
const TEXT_CHARS_MAX: usize = 40_000;
/// Runs, traces and rows of a response at most.
const ITEMS_MAX: usize = 100;
const STYLE: Style = Style { width: 110, color: Color::Never };

/// Serves until standard input ends.
///
/// # Errors
/// When the folder cannot be read, or the other side does not speak the protocol.
pub fn serve(source: Source) -> Result<(), Error> {
    let library = Arc::new(Library::open(source)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Threads)?;
    let ended = runtime.block_on(async {
        let server = Tools { library }.serve(rmcp::transport::stdio()).await.map_err(|error| error.to_string())?;
        server.waiting().await.map(drop).map_err(|error| error.to_string())
    });
    // A reader of standard input cannot be interrupted.
    runtime.shutdown_background();
    ended.map_err(Error::Protocol)
}

#[derive(Clone)]
struct Tools {
    library: Arc<Library>,
}

#[derive(Deserialize, JsonSchema)]
struct Filter {
    /// Words that the run's name, experiment or first finding contains; all runs without them
    #[serde(default)]
    filter: String,
}

#[derive(Deserialize, JsonSchema)]
struct OneRun {
    /// A run's name, as list_runs gives it
    run: String,
}

#[derive(Deserialize, JsonSchema)]
struct RunOfVariant {
    /// A run's name, as list_runs gives it
    run: String,
    /// One of its variants; all of them without it
    #[serde(default)]
    variant: String,
}

#[derive(Deserialize, JsonSchema)]
struct TwoRuns {
    /// The run before the change
    before: String,
    /// The run after it
    after: String,
}

#[derive(Deserialize, JsonSchema)]
struct Question {
    /// A run's name, as list_runs gives it
    run: String,
    /// The question. Views: spans, requests, dependencies, exceptions, metrics, logs, samples, load_seconds, findings, trials
    question: String,
    /// Its language, `sql` (SQLite's) or `kql`
    #[serde(default)]
    language: String,
}

#[derive(Deserialize, JsonSchema)]
struct TraceSearch {
    /// A run's name, as list_runs gives it
    run: String,
    /// Only traces that show a finding of this kind, such as `n-plus-one`
    #[serde(default)]
    finding: String,
    /// Only traces with a span of this service
    #[serde(default)]
    service: String,
    /// Only traces with a span of this length or more, in milliseconds
    #[serde(default)]
    least_ms: Option<f64>,
    /// Only traces with a span that failed
    #[serde(default)]
    failed: bool,
}

#[derive(Deserialize, JsonSchema)]
struct OneTrace {
    /// A run's name, as list_runs gives it
    run: String,
    /// The trial, as find_traces gives it
    trial: i64,
    /// The trace's id
    trace_id: String,
}

#[derive(Deserialize, JsonSchema)]
struct Topic {
    /// The kind of finding, such as `n-plus-one` or `cpu-saturation`
    kind: String,
}

#[tool_router]
impl Tools {
    #[tool(description = "List runs, the newest first: experiment, state, verdict, what was found first")]
    async fn list_runs(&self, Parameters(Filter { filter }): Parameters<Filter>) -> Result<CallToolResult, ErrorData> {
        self.apart(move |library| {
            let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
            let listed = library.runs().into_iter().map(|entry| in_list(library, &entry));
            let fitting = listed.filter(|run| {
                let text = run.to_string().to_lowercase();
                words.iter().all(|word| text.contains(word))
            });
            Ok(json!(fitting.take(ITEMS_MAX).collect::<Vec<_>>()).to_string())
        })
        .await
    }

    #[tool(description = "The verdict on a run: figures of each variant, objectives, what limits it, what was found")]
    async fn verdict(&self, Parameters(OneRun { run }): Parameters<OneRun>) -> Result<CallToolResult, ErrorData> {
        self.apart(move |library| Ok(text::outcome(&*library.outcome(&library.find(&run)?)?, STYLE))).await
    }

    #[tool(
        description = "Findings of a run with their evidence: cost, confidence, reasons, figures, what was ruled out, advice, and ids of traces that show them"
    )]
    async fn findings(
        &self,
        Parameters(RunOfVariant { run, variant }): Parameters<RunOfVariant>,
    ) -> Result<CallToolResult, ErrorData> {
        self.apart(move |library| {
            let outcome = library.outcome(&library.find(&run)?)?;
            let trials = outcome.evidence.trials.iter().zip(&outcome.findings);
            let meant = trials.filter(|(trial, _)| variant.is_empty() || trial.trial.variant == variant);
            let found = meant.flat_map(|(trial, findings)| {
                findings.iter().map(|finding| {
                    json!({
                        "trial": trial.trial.id, "variant": trial.trial.label(), "kind": finding.kind(), "title": finding.title(),
                        "cost_share": finding.cost_share, "cost_of": finding.cost_of(), "confidence": finding.confidence,
                        "reasons": finding.reasons(), "figures": finding.numbers(), "evidence": finding.evidence_text(),
                        "ruled_out": finding.ruled_out(), "wrong_if": finding.falsified_by(), "advice": finding.advice(),
                        "traces": finding.exemplars.iter().map(|one| &one.trace_id).collect::<Vec<_>>(),
                    })
                })
            });
            Ok(json!(found.collect::<Vec<_>>()).to_string())
        })
        .await
    }

    #[tool(description = "What changed from one run to another: requests, services, operations, calls, findings")]
    async fn compare(
        &self,
        Parameters(TwoRuns { before, after }): Parameters<TwoRuns>,
    ) -> Result<CallToolResult, ErrorData> {
        self.apart(move |library| {
            let (first, second) = (library.find(&before)?, library.find(&after)?);
            let all = Selection::default();
            let part = |entry: &'_ Entry| entry.edition.path.clone();
            let (first_path, second_path) = (part(&first), part(&second));
            let diff = conclude::diff(
                RunPart { path: &first_path, selection: &all, label: &first.name },
                RunPart { path: &second_path, selection: &all, label: &second.name },
            )?;
            Ok(text::diff(&diff, STYLE))
        })
        .await
    }

    #[tool(description = "Ask a run in SQL or KQL; it only reads. The result is CSV with 100 rows at most")]
    async fn query(
        &self,
        Parameters(Question { run, question, language }): Parameters<Question>,
    ) -> Result<CallToolResult, ErrorData> {
        self.apart(move |library| {
            let entry = library.find(&run)?;
            let reader = Reader::open(&entry.edition.path)?;
            let limits = narrows_telemetry::run_file::QueryLimits { rows: ITEMS_MAX, ..LIMITS };
            let found = if language == "kql" {
                let compiled = narrows_query::compile(&question, &[]);
                let compiled = compiled.map_err(|mistake| Refusal::Invalid(mistake.to_string()))?;
                reader.run_compiled(&compiled.sql, &compiled.columns, compiled.chart, &limits)?
            } else {
                reader.sql(&question, &limits)?
            };
            let cut = if found.is_cut { "(there are more rows)\n" } else { "" };
            Ok(format!("{}{cut}", table::csv(&found)))
        })
        .await
    }

    #[tool(description = "Find traces of a run by finding, service, length or failure, the slowest first")]
    async fn find_traces(&self, Parameters(search): Parameters<TraceSearch>) -> Result<CallToolResult, ErrorData> {
        self.apart(move |library| {
            let entry = library.find(&search.run)?;
            let trials = Reader::open(&entry.edition.path)?.trials()?;
            let mut all = Vec::new();
            for trial in trials.iter().rev() {
                all.extend(traces(&entry, trial, &search)?);
            }
            all.truncate(ITEMS_MAX);
            Ok(json!(all).to_string())
        })
        .await
    }

    #[tool(
        description = "The spans of one trace, in order of time, each with its parent, service, name, start and length in milliseconds, and attributes"
    )]
    async fn trace(
        &self,
        Parameters(OneTrace { run, trial, trace_id }): Parameters<OneTrace>,
    ) -> Result<CallToolResult, ErrorData> {
        self.apart(move |library| {
            let entry = library.find(&run)?;
            let found = sql::ask(
                &entry.edition.path,
                &format!(
                    "SELECT span_id, parent_span_id, service, name, kind, status, \
                     round((start_ns - min(start_ns) OVER ()) / 1e6, 3) AS start_ms, round(duration_ms, 3) AS duration_ms, \
                     attributes FROM spans WHERE trial = {trial} AND trace_id = {} ORDER BY start_ns LIMIT 300",
                    sql::literal(&trace_id.to_ascii_lowercase())
                ),
            )?;
            if found.rows.is_empty() {
                return Err(Refusal::NotFound(format!("the run keeps no trace {trace_id} in trial {trial}")));
            }
            Ok(table::csv(&found))
        })
        .await
    }

    #[tool(description = "The page about a kind of finding: how it is detected, false alarms, what to do")]
    async fn explain(&self, Parameters(Topic { kind }): Parameters<Topic>) -> Result<CallToolResult, ErrorData> {
        let page = pages::page(&kind).map(str::to_owned);
        self.apart(move |_| page.ok_or_else(|| Refusal::NotFound(format!("there is no finding of the kind {kind}"))))
            .await
    }
}

#[tool_handler(router = Self::tool_router())]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(tools)
            .with_server_info(Implementation::new("narrows", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "Load experiments against distributed services. Begin with list_runs; verdict says what a run means, findings \
                 why, and query has the rest.",
            )
    }
}

impl Tools {
    /// Runs work that reads files on a blocking thread. A refusal is a tool error, so that the model can correct its call.
    async fn apart(
        &self,
        work: impl FnOnce(&Library) -> Result<String, Refusal> + Send + 'static,
    ) -> Result<CallToolResult, ErrorData> {
        let library = Arc::clone(&self.library);
        let done = tokio::task::spawn_blocking(move || work(&library)).await;
        Ok(match done.map_err(Refusal::from).and_then(|done| done) {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(bounded(&text))]),
            Err(refusal) => CallToolResult::error(vec![ContentBlock::text(bounded(&with_causes(&refusal)))]),
        })
    }
}

/// A text without what a terminal would obey, cut at the limit.
fn bounded(text: &str) -> String {
    let text = printable::lines(text);
    let cut: String = text.chars().take(TEXT_CHARS_MAX).collect();
    if cut.len() < text.len() { format!("{cut}\n(cut here: ask for less)") } else { cut }
}

fn in_list(library: &Library, entry: &Entry) -> Value {
    match &*library.summary(entry) {
        Summary::Unreadable(why) => json!({ "run": entry.name, "unreadable": why }),
        Summary::Read(read) => json!({
            "run": entry.name, "experiment": read.run.experiment, "is_running": read.run.state == RunState::Running,
            "state": read.run.state, "verdict": read.verdict, "sentence": read.sentence, "first_finding": read.finding,
            "variants": read.rates.iter().map(|(name, rate)| json!({ "name": name, "requests_per_second": rate })).collect::<Vec<_>>(),
        }),
    }
}

fn traces(entry: &Entry, trial: &Trial, asked: &TraceSearch) -> Result<Vec<Value>, Refusal> {
    let search = Search {
        trial: trial.id,
        service: asked.service.clone(),
        finding: asked.finding.clone(),
        least_ms: asked.least_ms,
        failed: asked.failed,
        ..Search::default()
    };
    let found = sql::ask(
        &entry.edition.path,
        &format!(
            "SELECT (SELECT trace_hex FROM trace_rows WHERE id = trace), length_ns / 1e6, \
             (SELECT text FROM strings WHERE id = h.service), (SELECT text FROM strings WHERE id = h.name), failed \
             FROM ({}) JOIN span_shape_rows AS h ON h.id = shape ORDER BY length_ns DESC LIMIT 50",
            search.sql()
        ),
    )?;
    let one = |row: &Vec<_>| {
        json!({
            "trial": trial.id, "variant": trial.label(), "trace_id": sql::text(row.first()), "ms": sql::number(row.get(1)),
            "service": sql::text(row.get(2)), "span": sql::text(row.get(3)), "failed": sql::integer(row.get(4)) == Some(1),
        })
    };
    Ok(found.rows.iter().map(one).collect())
}
