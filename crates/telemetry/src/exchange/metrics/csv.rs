//! Tables of `time,service,metric,value`, and of a callee as `peer` where there is such a column.
//!
//! Columns are found by their names, in any order; further ones are left out. Times are seconds, milliseconds or
//! nanoseconds since 1970, or instants such as `2026-11-23T09:10:00Z`.

use std::io::BufRead;

use csv::{ReaderBuilder, StringRecord};
use narrows_model::series::{Point, SeriesKey, names, services};

use super::{Mapping, cut};
use crate::exchange::formats::{Complaint, Records};
use crate::ranges::INSTANT_NS_MAX;

/// Points that are handed on at once.
const POINTS_AT_ONCE: usize = 10_000;

/// Metrics of a table: word, name and unit. Their values are means over the time since the row before.
const METRICS: [(&str, &str, &str); 5] = [
    ("requests", services::REQUESTS, "{request}/s"),
    ("errors", services::ERRORS, "{request}/s"),
    ("latency", services::LATENCY, "s"),
    ("cpu", names::CPU_CORES, "{cpu}"),
    ("memory", names::MEMORY_BYTES, "By"),
];

/// Gives a series the name and unit of a role of tables.
pub(super) fn name_as(key: &mut SeriesKey, word: &str) {
    if let Some((_, name, unit)) = METRICS.iter().find(|(known, ..)| *known == word) {
        (key.name, key.unit) = ((*name).to_owned(), (*unit).to_owned());
    }
}

pub(super) fn is_header(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let columns: Vec<String> =
        line.trim().split(',').map(|name| name.trim_matches(['"', ' ']).to_lowercase()).collect();
    ["time", "service", "metric", "value"].iter().all(|name| columns.iter().any(|column| column == name))
}

struct Columns {
    time: usize,
    service: usize,
    metric: usize,
    value: usize,
    peer: Option<usize>,
}

impl Columns {
    fn of(header: &StringRecord) -> Option<Self> {
        let at = |name: &str| header.iter().position(|column| column.trim().eq_ignore_ascii_case(name));
        Some(Self {
            time: at("time")?,
            service: at("service")?,
            metric: at("metric")?,
            value: at("value")?,
            peer: at("peer"),
        })
    }

    fn point(&self, row: &StringRecord, mapping: &Mapping) -> Result<(SeriesKey, Point), String> {
        let cell = |at: usize| row.get(at).map(str::trim).filter(|cell| !cell.is_empty());
        let time = cell(self.time).ok_or("it has no time")?;
        let time_ns = instant(time).ok_or_else(|| format!("`{}` is no time", cut(time.to_owned())))?;
        let value = cell(self.value).ok_or("it has no value")?;
        let value: f64 = value.parse().map_err(|_| format!("`{}` is no number", cut(value.to_owned())))?;
        let mut key = SeriesKey {
            name: cut(cell(self.metric).ok_or("it has no metric")?.to_owned()),
            service: cut(cell(self.service).ok_or("it has no service")?.to_owned()),
            ..SeriesKey::default()
        };
        let peer = self.peer.and_then(cell);
        key.labels.extend(peer.map(|peer| (services::PEER.to_owned(), cut(peer.to_owned()))));
        let word = key.name.clone();
        name_as(&mut key, &word);
        let value = mapping.apply_to_mean(&mut key, value).unwrap_or(value);
        Ok((key, Point { time_ns, value }))
    }
}

/// An instant in nanoseconds since 1970.
fn instant(text: &str) -> Option<i64> {
    let ns = match text.parse::<f64>() {
        Ok(number) if number < 1e11 => number * 1e9,
        Ok(number) if number < 1e14 => number * 1e6,
        Ok(number) if number < 1e17 => number * 1e3,
        Ok(number) => number,
        Err(_) => text.parse::<jiff::Timestamp>().ok()?.as_nanosecond() as f64,
    };
    (ns > 0.0 && ns < INSTANT_NS_MAX as f64).then_some(ns as i64)
}

pub(super) fn read(
    reader: &mut dyn BufRead,
    mapping: &Mapping,
    take: &mut dyn FnMut(Records) -> Result<(), String>,
) -> Result<(), String> {
    let mut table = ReaderBuilder::new().flexible(true).from_reader(reader);
    let header = table.headers().map_err(|error| error.to_string())?.clone();
    let columns = Columns::of(&header).ok_or("its columns are not time, service, metric and value")?;
    let mut records = Records::default();
    let mut row = StringRecord::new();
    loop {
        let result = match table.read_record(&mut row) {
            Ok(false) => break,
            Ok(true) => columns.point(&row, mapping),
            Err(error) if error.is_io_error() => return Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match result {
            // An interval without a figure has no row that counts.
            Ok((_, point)) if !point.value.is_finite() => {}
            Ok(point) => records.points.push(point),
            Err(what) => {
                let line = row.position().map_or(0, ::csv::Position::line);
                records.malformed += 1;
                records.complaint.get_or_insert_with(|| Complaint { place: format!("line {line}"), what });
            }
        }
        if records.points.len() >= POINTS_AT_ONCE {
            take(std::mem::take(&mut records))?;
        }
    }
    take(records)
}
