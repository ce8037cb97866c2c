//! Telemetry of a trial, as files of other programs.
//!
//! OTLP's JSON as the Collector's file exporter writes it: a line for each request. Jaeger's as its user interface loads
//! it: one object, traces one after the other. Both are written as they are read, and need no memory for the whole.

use std::collections::BTreeMap;
use std::io::{self, Write};

use narrows_model::series::{LogLine, LogStream, Point, SeriesKey};
use narrows_model::trace::{Span, SpanKind, SpanStatus, hex};
use serde_json::{Map, Value, json};

use crate::otlp::encode::{TRIAL, trace_state};
use crate::otlp::numbers::{kind_number, status_number};
use crate::run_file::{self, Reader, SpanOrder};

/// Records in a line of OTLP's JSON.
const LINE_RECORDS: usize = 512;
/// The most spans of one trace that Jaeger's JSON is given; it must be held in memory, here and there.
const TRACE_SPANS_MAX: usize = 100_000;

/// A kind of telemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Spans,
    /// Metric points.
    Metrics,
    /// Log lines.
    Logs,
}

/// Why nothing could be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run file cannot be read.
    #[error(transparent)]
    RunFile(#[from] run_file::Error),
    /// The file cannot be written.
    #[error("cannot write what was exported")]
    Write(#[from] io::Error),
}

/// Counts of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExportCounts {
    /// Records.
    pub records: u64,
    /// Spans that were left out because their trace has more than Jaeger can be given.
    pub left_out: u64,
}

/// Writes one signal of a trial as lines of OTLP's JSON. `label` is the trial's, which each resource names.
///
/// # Errors
/// When the run file cannot be read or `out` cannot be written.
pub fn write_otlp(
    reader: &Reader,
    trial: i64,
    label: &str,
    signal: Signal,
    out: &mut dyn Write,
) -> Result<ExportCounts, Error> {
    let mut written = ExportCounts::default();
    match signal {
        Signal::Spans => {
            let mut lines = Lines::new(out, &mut written, |spans| span_line(spans, label));
            reader.each_span(trial, SpanOrder::Any, &mut |span| lines.push(span))??;
            lines.flush()?;
        }
        Signal::Metrics => {
            let mut lines = Lines::new(out, &mut written, |points| point_line(points, label));
            reader.each_point(trial, &mut |point| lines.push(point))??;
            lines.flush()?;
        }
        Signal::Logs => {
            let mut lines = Lines::new(out, &mut written, |logs| log_line(logs, label));
            reader.each_log(trial, &mut |line| lines.push(line))??;
            lines.flush()?;
        }
    }
    Ok(written)
}

/// Gathers records for a line.
struct Lines<'o, T, F> {
    out: &'o mut dyn Write,
    written: &'o mut ExportCounts,
    line: F,
    waiting: Vec<T>,
}

impl<'o, T, F: Fn(Vec<T>) -> Value> Lines<'o, T, F> {
    fn new(out: &'o mut dyn Write, written: &'o mut ExportCounts, line: F) -> Self {
        Self { out, written, line, waiting: Vec::with_capacity(LINE_RECORDS) }
    }

    fn push(&mut self, record: T) -> io::Result<()> {
        self.waiting.push(record);
        if self.waiting.len() < LINE_RECORDS { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        let records = std::mem::take(&mut self.waiting);
        if records.is_empty() {
            return Ok(());
        }
        self.written.records += records.len() as u64;
        writeln!(self.out, "{}", (self.line)(records))
    }
}

fn span_line(spans: Vec<Span>, trial: &str) -> Value {
    let mut groups: BTreeMap<String, BTreeMap<String, Vec<Value>>> = BTreeMap::new();
    for span in spans {
        let (service, scope) = (span.service.clone(), span.scope.clone());
        groups.entry(service).or_default().entry(scope).or_default().push(otlp_span(span));
    }
    let resource_spans = groups.into_iter().map(|(service, scopes)| {
        let scope_spans = scopes.into_iter().map(|(name, spans)| json!({ "scope": { "name": name }, "spans": spans }));
        json!({ "resource": resource(&service, 0, trial), "scopeSpans": scope_spans.collect::<Value>() })
    });
    json!({ "resourceSpans": resource_spans.collect::<Value>() })
}

fn otlp_span(span: Span) -> Value {
    let mut value = json!({
        "traceId": hex(&span.trace_id),
        "spanId": hex(&span.span_id),
        "name": span.name,
        "kind": kind_number(span.kind),
        "startTimeUnixNano": span.start_ns.to_string(),
        "endTimeUnixNano": span.end_ns.max(0).to_string(),
        "attributes": attributes(span.attributes),
        "status": { "code": status_number(span.status), "message": span.status_message },
    });
    if let Some(parent) = span.parent_id {
        value["parentSpanId"] = json!(hex(&parent));
    }
    let state = trace_state(span.weight);
    if !state.is_empty() {
        value["traceState"] = json!(state);
    }
    value
}

fn point_line(points: Vec<(SeriesKey, Point)>, trial: &str) -> Value {
    type Metrics = BTreeMap<(String, String), Vec<Value>>;
    let mut groups: BTreeMap<(String, u32), Metrics> = BTreeMap::new();
    for (key, point) in points {
        let labels: Map<String, Value> =
            key.labels.into_iter().map(|(label, value)| (label, Value::from(value))).collect();
        let value = json!({
            "attributes": attributes(labels),
            "timeUnixNano": point.time_ns.max(0).to_string(),
            "asDouble": point.value,
        });
        groups.entry((key.service, key.replica)).or_default().entry((key.name, key.unit)).or_default().push(value);
    }
    let resource_metrics = groups.into_iter().map(|((service, replica), by_name)| {
        let metrics = by_name
            .into_iter()
            .map(|((name, unit), points)| json!({ "name": name, "unit": unit, "gauge": { "dataPoints": points } }));
        let metrics: Value = metrics.collect();
        json!({ "resource": resource(&service, replica, trial), "scopeMetrics": [{ "metrics": metrics }] })
    });
    json!({ "resourceMetrics": resource_metrics.collect::<Value>() })
}

fn log_line(lines: Vec<LogLine>, trial: &str) -> Value {
    let mut groups: BTreeMap<(String, u32), Vec<Value>> = BTreeMap::new();
    for line in lines {
        groups.entry((line.service.clone(), line.replica)).or_default().push(otlp_log(line));
    }
    let resource_logs = groups.into_iter().map(|((service, replica), records)| {
        json!({ "resource": resource(&service, replica, trial), "scopeLogs": [{ "logRecords": records }] })
    });
    json!({ "resourceLogs": resource_logs.collect::<Value>() })
}

fn otlp_log(line: LogLine) -> Value {
    let mut value = json!({
        "timeUnixNano": line.time_ns.max(0).to_string(),
        "severityText": line.severity,
        "body": { "stringValue": line.text },
    });
    if let Some(trace) = line.trace_id {
        value["traceId"] = json!(hex(&trace));
    }
    if line.stream != LogStream::Otlp {
        value["attributes"] = json!([{ "key": "log.iostream", "value": { "stringValue": line.stream.as_str() } }]);
    }
    value
}

fn resource(service: &str, replica: u32, trial: &str) -> Value {
    let mut of = Map::from_iter([("service.name".to_owned(), json!(service)), (TRIAL.to_owned(), json!(trial))]);
    if replica > 0 {
        of.insert("narrows.replica".to_owned(), json!(replica));
    }
    json!({ "attributes": attributes(of) })
}

fn attributes(map: Map<String, Value>) -> Value {
    map.into_iter().map(|(key, value)| json!({ "key": key, "value": any(value) })).collect()
}

fn any(value: Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(value) => json!({ "boolValue": value }),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => json!({ "intValue": whole.to_string() }),
            None => json!({ "doubleValue": number.as_f64() }),
        },
        Value::String(text) => json!({ "stringValue": text }),
        Value::Array(items) => json!({ "arrayValue": { "values": items.into_iter().map(any).collect::<Value>() } }),
        Value::Object(fields) => json!({ "kvlistValue": { "values": attributes(fields) } }),
    }
}

/// Writes the spans of trials as one object of Jaeger's JSON.
///
/// # Errors
/// When the run file cannot be read or `out` cannot be written.
pub fn write_jaeger(reader: &Reader, trials: &[(i64, String)], out: &mut dyn Write) -> Result<ExportCounts, Error> {
    let mut traces = Traces { out, written: ExportCounts::default(), spans: Vec::new(), label: "", has_any: false };
    traces.out.write_all(b"{\"data\":[")?;
    for (trial, label) in trials {
        traces.label = label;
        reader.each_span(*trial, SpanOrder::ByTrace, &mut |span| traces.push(span))??;
        traces.flush()?;
    }
    traces.out.write_all(b"],\"total\":0,\"limit\":0,\"offset\":0,\"errors\":null}\n")?;
    Ok(traces.written)
}

struct Traces<'o> {
    out: &'o mut dyn Write,
    written: ExportCounts,
    /// Of one trace.
    spans: Vec<Span>,
    /// The trial's.
    label: &'o str,
    has_any: bool,
}

impl Traces<'_> {
    fn push(&mut self, span: Span) -> io::Result<()> {
        if self.spans.first().is_some_and(|first| first.trace_id != span.trace_id) {
            self.flush()?;
        }
        match self.spans.len() < TRACE_SPANS_MAX {
            true => self.spans.push(span),
            false => self.written.left_out += 1,
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let spans = std::mem::take(&mut self.spans);
        let Some(first) = spans.first() else { return Ok(()) };
        let trace_id = hex(&first.trace_id);
        let mut processes: Vec<String> = spans.iter().map(|span| span.service.clone()).collect();
        processes.sort();
        processes.dedup();
        self.written.records += spans.len() as u64;
        let id_of =
            |service: &str| processes.binary_search_by(|known| known.as_str().cmp(service)).map_or(0, |at| at + 1);
        let spans: Value = spans.into_iter().map(|span| jaeger_span(span, &trace_id, &id_of)).collect();
        let tags = json!([tag(TRIAL, Value::from(self.label))]);
        let process =
            |(at, service): (usize, &String)| (format!("p{}", at + 1), json!({ "serviceName": service, "tags": tags }));
        let processes: Map<String, Value> = processes.iter().enumerate().map(process).collect();
        let trace = json!({ "traceID": trace_id, "spans": spans, "processes": processes, "warnings": null });
        let comma = if self.has_any { ",\n" } else { "" };
        self.has_any = true;
        write!(self.out, "{comma}{trace}")
    }
}

fn jaeger_span(span: Span, trace_id: &str, id_of: &dyn Fn(&str) -> usize) -> Value {
    let reference = |parent| json!([{ "refType": "CHILD_OF", "traceID": trace_id, "spanID": hex(parent) }]);
    let length_ns = span.duration_ns();
    let process = format!("p{}", id_of(&span.service));
    let (span_id, references) =
        (hex(&span.span_id), span.parent_id.as_ref().map_or_else(|| json!([]), |id| reference(id)));
    json!({
        "traceID": trace_id,
        "spanID": span_id,
        "operationName": span.name.clone(),
        "references": references,
        "startTime": span.start_ns / 1_000,
        // Rounded up, as Jaeger does not: a call of less than a microsecond took time.
        "duration": length_ns.div_ceil(1_000),
        "tags": jaeger_tags(span),
        "logs": [],
        "processID": process,
        "warnings": null,
    })
}

fn jaeger_tags(span: Span) -> Value {
    let mut tags: Vec<Value> = span.attributes.into_iter().map(|(key, value)| tag(&key, value)).collect();
    if span.kind != SpanKind::Internal {
        tags.push(tag("span.kind", Value::from(span.kind.as_str())));
    }
    match span.status {
        SpanStatus::Error => {
            tags.push(tag("error", Value::Bool(true)));
            tags.push(tag("otel.status_code", Value::from("ERROR")));
        }
        SpanStatus::Ok => tags.push(tag("otel.status_code", Value::from("OK"))),
        SpanStatus::Unset => {}
    }
    let texts = [
        ("otel.status_description", span.status_message),
        ("otel.scope.name", span.scope),
        ("w3c.tracestate", trace_state(span.weight)),
    ];
    tags.extend(texts.into_iter().filter(|(_, text)| !text.is_empty()).map(|(key, text)| tag(key, Value::from(text))));
    Value::Array(tags)
}

/// A tag of the type that its value has; lists and objects are texts of JSON, as OpenTelemetry has it for Jaeger.
fn tag(key: &str, value: Value) -> Value {
    let (kind, value) = match value {
        Value::String(_) => ("string", value),
        Value::Bool(_) => ("bool", value),
        Value::Number(ref number) if number.is_i64() => ("int64", value),
        Value::Number(_) => ("float64", value),
        Value::Null => ("string", Value::from("")),
        Value::Array(_) | Value::Object(_) => ("string", Value::from(value.to_string())),
    };
    json!({ "key": key, "type": kind, "value": value })
}
