//! The JSON of Prometheus' `/api/v1/query_range`.

use std::collections::BTreeMap;

use narrows_model::series::{Point, SeriesKey};
use serde::Deserialize;

use super::{Mapping, cut, kept};
use crate::exchange::formats::{Complaint, Records};
use crate::ranges::INSTANT_NS_MAX;

/// A response of Prometheus' API.
#[derive(Debug, Deserialize)]
pub(super) struct Response<T> {
    pub(super) status: String,
    pub(super) error: Option<String>,
    pub(super) data: Option<T>,
}

/// The data of a range query.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Matrix {
    result_type: String,
    #[serde(default)]
    result: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

/// Labels and points of one series; values that are no numbers are left out.
pub(super) struct Labelled {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) points: Vec<Point>,
}

/// The series of a response.
///
/// # Errors
/// In words, when it is an error or no matrix.
pub(super) fn series(bytes: &[u8]) -> Result<Vec<Labelled>, String> {
    let matrix: Matrix = data(bytes)?;
    if matrix.result_type != "matrix" {
        return Err(format!("its result is a {}, expected the matrix of a range query", cut(matrix.result_type)));
    }
    let point = |(seconds, value): (f64, String)| {
        let (ns, value) = (seconds * 1e9, value.parse::<f64>().ok()?);
        let is_instant = ns > 0.0 && ns < INSTANT_NS_MAX as f64;
        (is_instant && value.is_finite()).then_some(Point { time_ns: ns as i64, value })
    };
    let labelled = |row: Row| Labelled {
        labels: row.metric.into_iter().map(|(label, value)| (cut(label), cut(value))).collect(),
        points: row.values.into_iter().filter_map(point).collect(),
    };
    Ok(matrix.result.into_iter().map(labelled).collect())
}

/// The data of a response.
pub(super) fn data<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, String> {
    let response: Response<T> =
        serde_json::from_slice(bytes).map_err(|error| format!("it is no response of Prometheus' API: {error}"))?;
    match (response.status.as_str(), response.data) {
        ("success", Some(data)) => Ok(data),
        _ => Err(format!("it is an error: {}", cut(response.error.unwrap_or_else(|| "no reason is given".into())))),
    }
}

pub(super) fn read(
    bytes: &[u8],
    mapping: &Mapping,
    take: &mut dyn FnMut(Records) -> Result<(), String>,
) -> Result<(), String> {
    let mut records = Records::default();
    for (at, Labelled { mut labels, points }) in series(bytes)?.into_iter().enumerate() {
        let Some(name) = labels.remove("__name__") else {
            records.malformed += 1;
            let what = "a series has no name; query the metric itself, without functions".to_owned();
            let place = || format!("data.result[{at}]");
            records.complaint.get_or_insert_with(|| Complaint { place: place(), what });
            continue;
        };
        let key = SeriesKey { name, labels, ..SeriesKey::default() };
        records.points.extend(points.into_iter().map(|point| kept(key.clone(), point, mapping)));
    }
    take(records)
}
