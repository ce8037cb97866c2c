//! Gathers what a run file says about each trial, for detectors and reports.

use std::collections::HashMap;
use std::sync::LazyLock;

use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::histogram::Histogram;
use narrows_model::load::{ErrorCounts, LoadSecond};
use narrows_model::messages::MessageEvidence;
use narrows_model::run::{Run, Trial, Window};
use narrows_model::series::{Point, Series, SeriesKey};
use narrows_model::stalls::Stalls;
use narrows_model::time_range::TimeRange;
use narrows_model::trace::{Span, SpanFacts, Trace, TraceId, hex};
use rusqlite::types::FromSqlError;
use rusqlite::{Row, params};

use super::bounds::BoundedConnection;
use super::error::Result;
use super::messages::{self, lines_of};
use super::operations::operations_of;
use super::reader::Reader;
use super::samples::stalls_of;
use super::shared_ids;
use super::trace_choice::{Choice, Selection};
use super::words::{Addend, Attributes, Count, Instant, Json, Name, kind_of, plausible, plausible_weight, status_of};
use crate::normalise::{add_replicas, add_requests};

/// Requests that one bucket of one second can hold: more than any machine sends, and safe to add up.
const BUCKET_COUNT_MAX: u64 = 1 << 40;

/// Bytes that the spans of a trial's traces may hold in memory; no further trace is read once it is reached.
const TRACES_BYTES_MAX: usize = 512 << 20;

/// How many traces of each trial are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceLimit {
    /// Traces of one trial, chosen evenly over its counted windows.
    pub traces: usize,
    /// Spans of all these traces together; no further trace is read once it is reached.
    pub spans: usize,
}

impl Default for TraceLimit {
    fn default() -> Self {
        Self { traces: 1_000, spans: 200_000 }
    }
}

impl Reader {
    /// Everything about every trial, as of one instant, also while the run lasts.
    ///
    /// Of the traces, those are read whose root began in a counted window, at most as many as `limit` says; the same
    /// ones each time. A trace's weight is its root's weight × how many traces of its weight it was chosen from.
    pub fn evidence(&self, limit: TraceLimit) -> Result<RunEvidence> {
        self.evidence_within(limit, &TimeRange::default(), |_| true)
    }

    /// As [`Reader::evidence`], of a part of each trial: what of its windows lies there, with the operations and traces of
    /// that time. A trial may be left without a window, and one that is not meant is without operations and traces.
    pub fn evidence_within(
        &self,
        limit: TraceLimit,
        within: &TimeRange,
        is_meant: impl Fn(&Trial) -> bool,
    ) -> Result<RunEvidence> {
        let _call = self.begin();
        let _snapshot = self.snapshot()?;
        let run = self.run()?;
        let trials = self.trials()?.into_iter().map(|trial| match is_meant(&trial) {
            true => self.trial_evidence(&run, trial, limit, within),
            false => self.trial_load(&run, trial, within),
        });
        Ok(RunEvidence { trials: trials.collect::<Result<_>>()?, run })
    }

    /// As [`Reader::evidence_within`], every trial without operations and traces: what figures of the load and of CPU need,
    /// in a fraction of the time.
    ///
    /// # Errors
    /// As [`Reader::evidence`].
    pub fn loads_within(&self, within: &TimeRange) -> Result<RunEvidence> {
        let _call = self.begin();
        let _snapshot = self.snapshot()?;
        let run = self.run()?;
        let trials = self.trials()?.into_iter().map(|trial| self.trial_load(&run, trial, within));
        Ok(RunEvidence { trials: trials.collect::<Result<_>>()?, run })
    }

    /// The same of one trial; `None` where there is no such trial.
    ///
    /// # Errors
    /// As [`Reader::evidence`].
    pub fn load_of(&self, trial: i64) -> Result<Option<TrialEvidence>> {
        let _call = self.begin();
        let _snapshot = self.snapshot()?;
        let run = self.run()?;
        let found = self.trials()?.into_iter().find(|known| known.id == trial);
        found.map(|trial| self.trial_load(&run, trial, &TimeRange::default())).transpose()
    }

    fn trial_evidence(&self, run: &Run, trial: Trial, limit: TraceLimit, within: &TimeRange) -> Result<TrialEvidence> {
        let mut evidence = self.trial_load(run, trial, within)?;
        // All come from one pass over all spans. Traces are chosen by their earliest span without a parent; the root is
        // looked at once a trace is read, since a span with a parent may have been timed by a clock seconds away.
        let mut lines = self.query(|connection| lines_of(connection, &evidence))?;
        let windows: Vec<Window> = evidence.counted_windows().cloned().collect();
        let mut choice = Choice::new(windows.iter(), limit.traces);
        evidence.operations = self.query(|connection| {
            operations_of(connection, &evidence, &mut lines, |trace| {
                choice.see(trace.id, trace.start_ns, trace.weight, trace.has_failed.into());
            })
        })?;
        evidence.messages = self.query(|connection| lines.into_evidence(|id| messages::text_of(connection, id)))?;
        evidence.messages.lines_refused = self.counts(evidence.trial.id)?.logs.refused;
        let chosen = choice.chosen();
        evidence.traces = self.query(|connection| traces_of(connection, &evidence, chosen, limit.spans))?;
        evidence.stalls = self.query(|connection| stalls_of(connection, &evidence))?;
        add_replicas(&mut evidence);
        add_requests(&mut evidence);
        Ok(evidence)
    }

    fn trial_load(&self, run: &Run, mut trial: Trial, within: &TimeRange) -> Result<TrialEvidence> {
        let id = trial.id;
        // Totals of the whole load say nothing about a part of it.
        if let Some(program) = trial.load_program.as_mut().filter(|_| !within.is_all()) {
            program.reported = None;
        }
        let counts = self.counts(id)?;
        Ok(TrialEvidence {
            client_addresses: None,
            arrivals: None,
            windows: within.cut(self.windows(id)?, trial.started_ns.unwrap_or_default()),
            services: self.services(id)?,
            seconds: self.query(|connection| seconds_of(connection, id))?,
            stalls: Stalls::default(),
            series: self.query(|connection| series_of(connection, id))?,
            operations: Vec::new(),
            traces: Vec::new(),
            messages: MessageEvidence::default(),
            spans_total: counts.spans.stored,
            spans_refused: counts.spans.refused,
            spans_thinned: counts.thinned,
            cores: run.environment.cores,
            trial,
        })
    }
}

fn seconds_of(connection: &BoundedConnection, trial: i64) -> rusqlite::Result<Vec<LoadSecond>> {
    let sql = "SELECT (SELECT text FROM strings WHERE id = s.scenario) AS scenario_name, \
               coalesce((SELECT text FROM strings WHERE id = s.request), '') AS request_name, s.* \
               FROM load_second_rows AS s WHERE s.trial = ?1 ORDER BY s.start_ns, s.id";
    connection.rows(sql, [trial], |row| {
        let id: i64 = row.get("id")?;
        let count = |name: &str| -> rusqlite::Result<u64> { Ok(row.get::<_, Addend>(name)?.0) };
        Ok(LoadSecond {
            scenario: row.get::<_, Name>("scenario_name")?.0,
            request: row.get::<_, Name>("request_name")?.0,
            start_ns: row.get::<_, Instant>("start_ns")?.0,
            length_ns: row.get::<_, Instant>("length_ns")?.0,
            vus: row.get("vus")?,
            due: count("due")?,
            late: count("late")?,
            dropped: count("dropped")?,
            sent: count("sent")?,
            repeated: count("repeated")?,
            cut: count("cut")?,
            succeeded: count("succeeded")?,
            errors: ErrorCounts {
                connect: count("errors_connect")?,
                reset: count("errors_reset")?,
                timeout: count("errors_timeout")?,
                protocol: count("errors_protocol")?,
                status: count("errors_status")?,
                check: count("errors_check")?,
            },
            bytes: count("bytes")?,
            latency: histogram_of(connection, row, id, "latency", 0)?,
            service: histogram_of(connection, row, id, "service", 1)?,
            lateness: histogram_of(connection, row, id, "lateness", 2)?,
        })
    })
}

fn histogram_of(
    connection: &BoundedConnection,
    row: &Row<'_>,
    second: i64,
    measure: &str,
    number: i64,
) -> rusqlite::Result<Histogram> {
    let sql = "SELECT lower_ns, count FROM load_latency_rows WHERE second = ?1 AND measure = ?2 ORDER BY lower_ns";
    let buckets = connection.rows(sql, [second, number], |bucket| {
        let (lower, count) = (bucket.get::<_, Count>(0)?.0, bucket.get::<_, Count>(1)?.0);
        match count {
            count if count <= BUCKET_COUNT_MAX => Ok((lower, count)),
            count => Err(FromSqlError::OutOfRange(count as i64).into()),
        }
    })?;
    let exact = |figure: &str| -> rusqlite::Result<u64> {
        Ok(row.get::<_, Count>(format!("{measure}_{figure}_ns").as_str())?.0)
    };
    let count = row.get::<_, Addend>(format!("{measure}_count").as_str())?.0;
    let histogram = Histogram::from_buckets(buckets, u128::from(exact("sum")?), exact("min")?, exact("max")?);
    let histogram = histogram.with_count(count);
    connection.collect(histogram.bytes())?;
    Ok(histogram)
}

fn series_of(connection: &BoundedConnection, trial: i64) -> rusqlite::Result<Vec<Series>> {
    let sql = "SELECT * FROM series WHERE trial = ?1 ORDER BY id";
    connection.rows(sql, [trial], |row| {
        let key = SeriesKey {
            name: row.get::<_, Name>("name")?.0,
            unit: row.get::<_, Name>("unit")?.0,
            service: row.get::<_, Name>("service")?.0,
            replica: row.get("replica")?,
            labels: row.get::<_, Json<_>>("labels")?.0,
        };
        let id: i64 = row.get("id")?;
        let sql = "SELECT time_ns, value FROM points WHERE series = ?1 ORDER BY time_ns, id";
        let points = connection.rows(sql, [id], |point| {
            let value = point.get::<_, Option<f64>>(1)?.unwrap_or(f64::NAN);
            Ok(Point { time_ns: plausible(point.get(0)?), value })
        })?;
        Ok(Series { key, points })
    })
}

fn traces_of(
    connection: &BoundedConnection,
    trial: &TrialEvidence,
    mut chosen: Selection,
    mut spans_left: usize,
) -> rusqlite::Result<Vec<Trace>> {
    let mut texts = HashMap::new();
    let mut read: Vec<Vec<Span>> = Vec::new();
    let collected_max = connection.collected().saturating_add(TRACES_BYTES_MAX);
    for trace in chosen.traces() {
        let spans = spans_of(connection, &mut texts, trial.trial.id, &trace.id, spans_left.saturating_add(1))?;
        if spans.len() > spans_left || connection.collected() > collected_max {
            break;
        }
        spans_left -= spans.len();
        read.push(spans);
    }
    chosen.truncate(read.len());
    let is_counted = |trace: &Trace| trace.root().is_some_and(|root| trial.is_counted(root.start_ns));
    let weights = chosen.stand_for();
    let traces = chosen.traces().iter().zip(read).zip(weights);
    let traces = traces.filter_map(|((trace, spans), weight)| trace_from(trace.id, spans, weight).filter(is_counted));
    let mut traces: Vec<Trace> = traces.collect();
    traces.sort_by_key(|trace| (trace.spans.first().map(|span| span.start_ns), trace.id));
    Ok(traces)
}

fn trace_from(id: TraceId, mut spans: Vec<Span>, stands_for: f64) -> Option<Trace> {
    shared_ids::separate(&mut spans);
    let mut trace = Trace { id, spans, weight: stands_for };
    trace.weight *= trace.root().or(trace.spans.first())?.weight;
    Some(trace)
}

/// Texts of the `strings` table that were read already.
type Texts = HashMap<i64, String>;

/// The first spans of one trace of one trial: columns of their own, then the facts, in the order in which [`facts_of`]
/// reads them.
static SPANS: LazyLock<String> = LazyLock::new(|| {
    let template = |name: &str| {
        format!("printf((SELECT text FROM strings WHERE id = h.{name}), a1, a2, a3, a4, a5, a6, a7, a8, a9)")
    };
    let own = ["t.trace_id", "s.span_id", "s.parent_span_id", "h.service", "h.scope", "h.name", "h.kind", "s.start_ns"];
    let of_shapes = |names: &[&str]| names.iter().map(|name| format!("h.{name}")).collect::<Vec<_>>();
    let of_spans = |names: &[&str]| names.iter().map(|name| format!("s.{name}")).collect::<Vec<_>>();
    let columns = [
        own.map(str::to_owned).to_vec(),
        vec!["s.length_ns".into(), "h.status".into(), template("status_message"), template("attributes")],
        vec!["h.weight * t.weight".into()],
        of_shapes(&SpanFacts::TEXTS),
        SpanFacts::TEMPLATES.map(template).to_vec(),
        of_shapes(&SpanFacts::CODES),
        of_spans(&SpanFacts::COUNTS),
        of_spans(&SpanFacts::AMOUNTS),
    ];
    format!(
        "SELECT {} FROM trace_rows AS t CROSS JOIN span_rows AS s ON s.trace = t.id CROSS JOIN span_shape_rows AS h \
         ON h.id = s.shape WHERE t.trial = ?1 AND t.trace_hex = ?2 ORDER BY s.start_ns, s.span_id, s.kind LIMIT ?3",
        columns.concat().join(", ")
    )
});
/// Columns of [`SPANS`] before the facts.
const FACTS_AT: usize = 13;

fn spans_of(
    connection: &BoundedConnection,
    texts: &mut Texts,
    trial: i64,
    trace: &TraceId,
    spans_max: usize,
) -> rusqlite::Result<Vec<Span>> {
    let spans_max = i64::try_from(spans_max).unwrap_or(i64::MAX);
    connection.rows(&SPANS, params![trial, hex(trace), spans_max], |row| span_of(connection, texts, row))
}

fn span_of(connection: &BoundedConnection, texts: &mut Texts, row: &Row<'_>) -> rusqlite::Result<Span> {
    let number = |at: usize| row.get::<_, i64>(at);
    let unknown = |at: usize| rusqlite::Error::from(FromSqlError::OutOfRange(at as i64));
    let mut text = |at: usize| -> rusqlite::Result<Option<String>> {
        row.get::<_, Option<i64>>(at)?.map(|id| text_of(connection, texts, id)).transpose()
    };
    let (service, scope, name) = (text(3)?, text(4)?, text(5)?);
    Ok(Span {
        trace_id: row.get(0)?,
        span_id: row.get(1)?,
        parent_id: row.get(2)?,
        service: service.unwrap_or_default(),
        scope: scope.unwrap_or_default(),
        name: name.unwrap_or_default(),
        kind: kind_of(number(6)?).ok_or_else(|| unknown(6))?,
        start_ns: plausible(number(7)?),
        end_ns: plausible(number(7)?.saturating_add(number(8)?)),
        status: status_of(number(9)?).ok_or_else(|| unknown(9))?,
        status_message: row.get(10)?,
        facts: facts_of(row, text)?,
        attributes: row.get::<_, Attributes>(11)?.0,
        weight: plausible_weight(row.get::<_, Option<f64>>(12)?.unwrap_or(1.0)),
    })
}

fn facts_of(
    row: &Row<'_>,
    mut text: impl FnMut(usize) -> rusqlite::Result<Option<String>>,
) -> rusqlite::Result<SpanFacts> {
    let mut facts = SpanFacts::default();
    let mut columns = FACTS_AT..;
    let mut next = || columns.next().unwrap_or_default();
    for fact in facts.texts_mut() {
        *fact = text(next())?;
    }
    for fact in facts.templates_mut() {
        *fact = row.get(next())?;
    }
    let mut codes = [None; SpanFacts::CODES.len()];
    for code in &mut codes {
        *code = row.get(next())?;
    }
    facts.set_codes(codes);
    let mut counts = [None; SpanFacts::COUNTS.len()];
    for count in &mut counts {
        *count = row.get::<_, Option<Count>>(next())?.map(|count| count.0);
    }
    facts.set_counts(counts);
    for fact in facts.amounts_mut() {
        *fact = row.get(next())?;
    }
    Ok(facts)
}

fn text_of(connection: &BoundedConnection, texts: &mut Texts, id: i64) -> rusqlite::Result<String> {
    if let Some(text) = texts.get(&id) {
        connection.collect(text.len())?;
        return Ok(text.clone());
    }
    let mut find = connection.prepare_cached("SELECT text FROM strings WHERE id = ?1")?;
    let text: String = find.query_row([id], |row| row.get(0))?;
    connection.collect(2 * text.len())?;
    texts.insert(id, text.clone());
    Ok(text)
}
