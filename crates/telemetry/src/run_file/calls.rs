//! The rows that are written by calls that wait: trials and what is known of them, load, and conclusions.

use narrows_model::call_graph::{CallGraph, NodeKind};
use narrows_model::finding::{Finding, Wording};
use narrows_model::histogram::Histogram;
use narrows_model::load::{ErrorKind, LoadBatch, LoadSecond, Sample};
use narrows_model::run::{ServiceInstance, Trial, Window};
use rusqlite::{Connection, params};
use serde_json::Value;

use super::error::{Error, Result};
use super::folding::SECOND_NS;
use super::intern::Strings;
use super::rows::Rows;
use super::words::{json, signed, word};
use crate::KeptCounts;

/// Statements that delete every row of a trial, children before parents.
const DELETE_TRIAL: [&str; 15] = [
    "DELETE FROM windows WHERE trial = ?1",
    "DELETE FROM services WHERE trial = ?1",
    "DELETE FROM load_latency_rows WHERE second IN (SELECT id FROM load_second_rows WHERE trial = ?1)",
    "DELETE FROM load_second_rows WHERE trial = ?1",
    "DELETE FROM sample_rows WHERE trial = ?1",
    "DELETE FROM inbox_rows WHERE trial = ?1",
    "DELETE FROM span_rows WHERE trace IN (SELECT id FROM trace_rows WHERE trial = ?1)",
    "DELETE FROM trace_rows WHERE trial = ?1",
    "DELETE FROM span_shape_rows WHERE trial = ?1",
    "DELETE FROM span_count_rows WHERE trial = ?1",
    "DELETE FROM points WHERE series IN (SELECT id FROM series WHERE trial = ?1)",
    "DELETE FROM series WHERE trial = ?1",
    "DELETE FROM log_rows WHERE trial = ?1",
    "DELETE FROM findings WHERE trial = ?1",
    "DELETE FROM call_graph WHERE trial = ?1",
];

/// Writes a key and its value, in place of an earlier value.
pub(super) const PUT_CONCLUSION: &str = "INSERT INTO conclusions (key, value) VALUES (?1, ?2) \
                                         ON CONFLICT (key) DO UPDATE SET value = excluded.value";

impl Rows {
    pub(super) fn put_trial(&mut self, trial: &Trial, caveats: &Value) -> Result<()> {
        let sql = "INSERT INTO trials (id, variant, repetition, state, started_ns, ended_ns, parameters, validity, \
                   validity_reasons, error, caveats, load_program) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, \
                   ?12) \
                   ON CONFLICT (id) DO UPDATE SET variant = excluded.variant, repetition = excluded.repetition, \
                   state = excluded.state, started_ns = excluded.started_ns, ended_ns = excluded.ended_ns, \
                   parameters = excluded.parameters, validity = excluded.validity, \
                   validity_reasons = excluded.validity_reasons, error = excluded.error, caveats = excluded.caveats, \
                   load_program = excluded.load_program";
        let columns = params![
            trial.id,
            trial.variant,
            trial.repetition,
            word(trial.state),
            trial.started_ns,
            trial.ended_ns,
            json(&trial.parameters),
            word(trial.validity.verdict),
            json(&trial.validity.reasons),
            trial.error,
            caveats.to_string(),
            trial.load_program.as_ref().map(json),
        ];
        self.connection.prepare_cached(sql).and_then(|mut insert| insert.execute(columns)).map_err(self.wrap())?;
        Ok(())
    }

    pub(super) fn put_windows(&mut self, trial: i64, windows: &[Window]) -> Result<()> {
        self.enter(trial)?;
        replace_windows(&self.connection, trial, windows).map_err(self.wrap())
    }

    pub(super) fn put_service(&mut self, trial: i64, service: &ServiceInstance) -> Result<()> {
        self.enter(trial)?;
        let sql = "INSERT INTO services (trial, service, replica, pid, port, command, cpu_limit_cores, \
                   memory_limit_bytes, stand_in_ports) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
                   ON CONFLICT (trial, service, replica) DO UPDATE SET pid = excluded.pid, port = excluded.port, \
                   command = excluded.command, cpu_limit_cores = excluded.cpu_limit_cores, \
                   memory_limit_bytes = excluded.memory_limit_bytes, stand_in_ports = excluded.stand_in_ports";
        let columns = params![
            trial,
            service.service,
            service.replica,
            service.pid,
            service.port,
            json(&service.command),
            service.cpu_limit_cores,
            service.memory_limit_bytes.map(signed),
            json(&service.stand_in_ports),
        ];
        self.connection.prepare_cached(sql).and_then(|mut insert| insert.execute(columns)).map_err(self.wrap())?;
        Ok(())
    }

    pub(super) fn put_load(&mut self, trial: i64, batch: &LoadBatch) -> Result<KeptCounts> {
        self.enter(trial)?;
        for second in &batch.seconds {
            insert_second(&self.connection, &mut self.strings, trial, second).map_err(self.wrap())?;
            self.folding.see(trial, second.start_ns.saturating_add(SECOND_NS));
        }
        self.keep(
            trial,
            &batch.samples,
            |limits| limits.samples,
            |counts| &mut counts.samples,
            |connection, strings, sample| insert_sample(connection, strings, trial, sample),
        )
    }

    pub(super) fn put_findings(&mut self, trial: i64, findings: &[(Finding, Wording)]) -> Result<()> {
        self.enter(trial)?;
        if let Some((endless, _)) = findings.iter().find(|(finding, _)| !finding.cost_share.is_finite()) {
            return Err(Error::NotFinite(format!("finding {}", endless.kind())));
        }
        replace_findings(&self.connection, trial, findings).map_err(self.wrap())
    }

    pub(super) fn put_call_graph(&mut self, trial: i64, graph: &CallGraph, labels: &[String]) -> Result<()> {
        self.enter(trial)?;
        replace_call_graph(&self.connection, trial, graph, labels).map_err(self.wrap())
    }

    pub(super) fn put_conclusion(&mut self, key: &str, value: &str) -> Result<()> {
        self.connection.execute(PUT_CONCLUSION, [key, value]).map_err(self.wrap())?;
        Ok(())
    }

    /// Deletes all rows of a trial and sets it back to `planned`.
    pub(super) fn restart_trial(&mut self, trial: i64) -> Result<()> {
        self.enter(trial)?;
        self.forget_trial(trial);
        for sql in DELETE_TRIAL {
            self.connection.execute(sql, [trial]).map_err(self.wrap())?;
        }
        let sql = "UPDATE trials SET state = 'planned', started_ns = NULL, ended_ns = NULL, validity = 'valid', \
                   validity_reasons = '[]', error = NULL, caveats = '[]', load_program = NULL, spans_stored = 0, spans_refused = 0, \
                   points_stored = 0, points_refused = 0, logs_stored = 0, logs_refused = 0, samples_stored = 0, \
                   samples_refused = 0, spans_thinned = 0, spans_one_in = 1, spans_thinned_one_in = 1, \
                   spans_thinned_before_ns = NULL WHERE id = ?1";
        self.connection.execute(sql, [trial]).map_err(self.wrap())?;
        Ok(())
    }
}

fn replace_windows(connection: &Connection, trial: i64, windows: &[Window]) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM windows WHERE trial = ?1", [trial])?;
    let mut insert = connection.prepare_cached(
        "INSERT OR REPLACE INTO windows (trial, position, kind, label, start_ns, end_ns, drained_ns, vus, rate) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for window in windows {
        let Window { index, kind, label, start_ns, end_ns, drained_ns, vus, rate } = window;
        insert.execute(params![
            trial,
            index,
            word(kind),
            label,
            start_ns,
            end_ns,
            drained_ns,
            vus,
            rate.filter(|rate| rate.is_finite())
        ])?;
    }
    Ok(())
}

fn insert_second(
    connection: &Connection,
    strings: &mut Strings,
    trial: i64,
    second: &LoadSecond,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO load_second_rows (trial, scenario, request, start_ns, length_ns, vus, due, late, dropped, sent, repeated, cut, \
         succeeded, errors_connect, errors_reset, errors_timeout, errors_protocol, errors_status, errors_check, bytes, \
         latency_count, latency_sum_ns, latency_min_ns, latency_max_ns, \
         service_count, service_sum_ns, service_min_ns, service_max_ns, \
         lateness_count, lateness_sum_ns, lateness_min_ns, lateness_max_ns) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, \
         ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32)",
    )?;
    let error = |kind| signed(second.errors.of(kind));
    let [latency, service, lateness] = [&second.latency, &second.service, &second.lateness].map(exact_figures);
    let id = insert.insert(params![
        trial,
        strings.id(connection, &second.scenario)?,
        request_id(connection, strings, &second.request)?,
        second.start_ns,
        second.length_ns,
        second.vus,
        signed(second.due),
        signed(second.late),
        signed(second.dropped),
        signed(second.sent),
        signed(second.repeated),
        signed(second.cut),
        signed(second.succeeded),
        error(ErrorKind::Connect),
        error(ErrorKind::Reset),
        error(ErrorKind::Timeout),
        error(ErrorKind::Protocol),
        error(ErrorKind::Status),
        error(ErrorKind::Check),
        signed(second.bytes),
        latency[0],
        latency[1],
        latency[2],
        latency[3],
        service[0],
        service[1],
        service[2],
        service[3],
        lateness[0],
        lateness[1],
        lateness[2],
        lateness[3],
    ])?;
    for (measure, histogram) in [&second.latency, &second.service, &second.lateness].into_iter().enumerate() {
        insert_buckets(connection, id, measure as i64, histogram)?;
    }
    Ok(())
}

/// The id of a request's name; none without a name.
fn request_id(connection: &Connection, strings: &mut Strings, name: &str) -> rusqlite::Result<Option<i64>> {
    (!name.is_empty()).then(|| strings.id(connection, name)).transpose()
}

/// Count, sum, smallest and largest value. A sum beyond SQLite's integers (292 years) is stored as the largest integer.
fn exact_figures(histogram: &Histogram) -> [i64; 4] {
    let sum = i64::try_from(histogram.sum_ns()).unwrap_or(i64::MAX);
    [signed(histogram.count()), sum, signed(histogram.min_ns()), signed(histogram.max_ns())]
}

fn insert_buckets(connection: &Connection, second: i64, measure: i64, histogram: &Histogram) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO load_latency_rows (second, measure, lower_ns, upper_ns, count) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for bucket in histogram.buckets() {
        let (lower, upper) = (signed(bucket.lower_ns), signed(bucket.upper_ns));
        insert.execute(params![second, measure, lower, upper, signed(bucket.count)])?;
    }
    Ok(())
}

fn insert_sample(
    connection: &Connection,
    strings: &mut Strings,
    trial: i64,
    sample: &Sample,
) -> rusqlite::Result<usize> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO sample_rows (trial, scenario, request, vu, agent, intended_ns, sent_ns, done_ns, status, error, bytes, \
         trace_id, weight) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?;
    insert.execute(params![
        trial,
        strings.id(connection, &sample.scenario)?,
        request_id(connection, strings, &sample.request)?,
        sample.vu,
        sample.agent.as_deref().map(|agent| strings.id(connection, agent)).transpose()?,
        sample.intended_ns,
        sample.sent_ns,
        sample.done_ns,
        sample.status,
        sample.error.map(ErrorKind::as_str),
        signed(sample.bytes),
        sample.trace_id,
        if sample.weight.is_finite() && sample.weight > 0.0 { sample.weight } else { 1.0 },
    ])
}

fn replace_call_graph(
    connection: &Connection,
    trial: i64,
    graph: &CallGraph,
    labels: &[String],
) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM call_graph WHERE trial = ?1", [trial])?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO call_graph (trial, level, label, caller, callee, callee_kind, is_background, rate, waiting_low, waiting_high, \
         wait_low_ms, wait_high_ms, unread, connections, one_way, opened, sent_bytes, received_bytes) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
    )?;
    for edge in &graph.edges {
        let kind = graph.node(&edge.callee).map_or(NodeKind::Outside, |node| node.kind);
        for (at, (level, label)) in (0_i64..).zip(edge.levels.iter().zip(labels)) {
            let calls = &level.all;
            let (waiting, wait) = (calls.requests(), calls.wait_ns());
            insert.execute(params![
                trial,
                at,
                label,
                edge.caller,
                edge.callee,
                kind.as_str(),
                level.is_background,
                calls.rate,
                waiting.low,
                waiting.high,
                wait.map(|wait| wait.low / 1e6),
                wait.map(|wait| wait.high / 1e6),
                calls.unread,
                calls.connections,
                calls.one_way,
                calls.opened,
                calls.sent_bytes,
                calls.received_bytes,
            ])?;
        }
    }
    Ok(())
}

fn replace_findings(connection: &Connection, trial: i64, findings: &[(Finding, Wording)]) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM findings WHERE trial = ?1", [trial])?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO findings (trial, rank, detector, version, title, resource, operation, cost_share, confidence, \
         body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    for (rank, (finding, wording)) in (1_i64..).zip(findings) {
        insert.execute(params![
            trial,
            rank,
            finding.kind().id(),
            finding.version,
            wording.title,
            finding.resource,
            finding.operation,
            finding.cost_share,
            finding.confidence.as_str(),
            finding.to_json(wording).to_string(),
        ])?;
    }
    Ok(())
}
