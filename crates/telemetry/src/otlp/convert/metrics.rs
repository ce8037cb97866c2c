//! Metric data points.

use std::collections::BTreeMap;

use narrows_model::series::{Point, SeriesKey, names};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1 as otlp;
use otlp::number_data_point::Value;

use super::{Conversion, Origin, instant, shortened, values};
use crate::normalise::{INSTANCE, is_usage, normalise_series};
use crate::otlp::request::{Format, METRICS, MalformedRequest, each_record};

/// The most labels of a point; which stay is decided by their names, in order, so that it is the same each time.
pub const LABELS_MAX: usize = 32;
/// The label that tells a summary's quantiles apart, as Prometheus has it.
const QUANTILE: &str = "quantile";
/// The most quantiles of a summary's data point.
const QUANTILES_MAX: usize = 32;

/// The points of an `ExportMetricsServiceRequest`.
///
/// - A gauge and a sum give one point under the metric's own name, with the value as it came. A cumulative sum stays
///   cumulative; a delta stays a delta and says so by the label [`names::TEMPORALITY`], as those of histograms do.
/// - A histogram, an exponential one too, gives `NAME.count`, `NAME.sum` and, where the sender says them, `NAME.min` and
///   `NAME.max`. Its buckets are not kept: they would be ten times as many points.
/// - A summary gives `NAME.count`, `NAME.sum`, and each of its first 32 quantiles under the metric's own name with the
///   label `quantile`, such as `0.99`.
///
/// Metrics of older conventions come out under the names, units and labels of today, see [`normalise_series`]. Labels
/// are the data point's attributes; what a replica uses has the one that sent it as a label too. `received_ns` is the time of points that say none. Points flagged "no
/// recorded value" are skipped; values that are not finite are left out and counted as malformed.
///
/// # Errors
/// When the bytes are not such a message.
pub fn points(
    request: &[u8],
    format: Format,
    received_ns: i64,
) -> Result<Conversion<(SeriesKey, Point)>, MalformedRequest> {
    let mut converted = Conversion::new();
    each_record(METRICS, format, request, |origin, record| {
        if let Some(metric) = converted.decode::<otlp::Metric>(record)? {
            let (name, unit) = (shortened(metric.name), shortened(metric.unit));
            let is_delta = is_delta(metric.data.as_ref());
            Sink { origin, name, unit, is_delta, received_ns, out: &mut converted }.take(metric.data);
        }
        Ok(())
    })?;
    Ok(converted)
}

struct Sink<'a> {
    origin: &'a Origin,
    name: String,
    unit: String,
    is_delta: bool,
    received_ns: i64,
    out: &'a mut Conversion<(SeriesKey, Point)>,
}

/// Fields that all kinds of data points have.
#[derive(Clone)]
struct Common {
    labels: BTreeMap<String, String>,
    time_ns: Option<i64>,
}

impl Sink<'_> {
    fn take(&mut self, data: Option<otlp::metric::Data>) {
        use otlp::metric::Data;
        match data {
            Some(Data::Gauge(gauge)) => gauge.data_points.into_iter().for_each(|point| self.number(point)),
            Some(Data::Sum(sum)) => sum.data_points.into_iter().for_each(|point| self.number(point)),
            Some(Data::Histogram(histogram)) => {
                histogram.data_points.into_iter().for_each(|point| self.histogram(point));
            }
            Some(Data::ExponentialHistogram(histogram)) => {
                histogram.data_points.into_iter().for_each(|point| self.exponential(point));
            }
            Some(Data::Summary(summary)) => summary.data_points.into_iter().for_each(|point| self.summary(point)),
            None => {}
        }
    }

    fn number(&mut self, point: otlp::NumberDataPoint) {
        let Some(common) = common(point.attributes, point.time_unix_nano, point.flags) else { return };
        match point.value {
            Some(Value::AsDouble(value)) => self.push("", common, value),
            Some(Value::AsInt(value)) => self.push("", common, value as f64),
            None => {}
        }
    }

    fn histogram(&mut self, point: otlp::HistogramDataPoint) {
        let Some(common) = common(point.attributes, point.time_unix_nano, point.flags) else { return };
        self.distribution(common, point.count, point.sum, &[(".min", point.min), (".max", point.max)]);
    }

    fn exponential(&mut self, point: otlp::ExponentialHistogramDataPoint) {
        let Some(common) = common(point.attributes, point.time_unix_nano, point.flags) else { return };
        self.distribution(common, point.count, point.sum, &[(".min", point.min), (".max", point.max)]);
    }

    fn summary(&mut self, point: otlp::SummaryDataPoint) {
        let Some(common) = common(point.attributes, point.time_unix_nano, point.flags) else { return };
        for at in point.quantile_values.into_iter().take(QUANTILES_MAX) {
            let mut common = common.clone();
            common.labels.insert(QUANTILE.to_owned(), at.quantile.to_string());
            self.push("", common, at.value);
        }
        self.distribution(common, point.count, Some(point.sum), &[]);
    }

    fn distribution(&mut self, common: Common, count: u64, sum: Option<f64>, ends: &[(&str, Option<f64>)]) {
        for (suffix, value) in [(".sum", sum)].iter().chain(ends) {
            if let Some(value) = value {
                self.push(suffix, common.clone(), *value);
            }
        }
        self.push(".count", common, count as f64);
    }

    fn push(&mut self, suffix: &str, common: Common, value: f64) {
        if !value.is_finite() {
            let (name, service) = (&self.name, &self.origin.service);
            self.out.leave_out(|| format!("metric {name:?} of {service}: its value {value} is not finite"));
            return;
        }
        let mut key = SeriesKey {
            name: format!("{}{suffix}", self.name),
            unit: if suffix == ".count" { String::new() } else { self.unit.clone() },
            service: self.origin.service.clone(),
            replica: self.origin.replica,
            labels: common.labels,
        };
        let is_end = matches!(suffix, ".min" | ".max");
        if self.is_delta && !is_end {
            key.labels.insert(names::TEMPORALITY.to_owned(), names::DELTA.to_owned());
        }
        let value = normalise_series(&mut key, value);
        if let Some(instance) = self.origin.instance.as_ref().filter(|_| is_usage(&key.name)) {
            key.labels.entry(INSTANCE.to_owned()).or_insert_with(|| instance.clone());
        }
        self.out.push((key, Point { time_ns: common.time_ns.unwrap_or(self.received_ns), value }));
    }
}

/// True if the values of a metric count from the point before.
fn is_delta(data: Option<&otlp::metric::Data>) -> bool {
    use otlp::metric::Data;
    let temporality = match data {
        Some(Data::Sum(sum)) => sum.aggregation_temporality,
        Some(Data::Histogram(histogram)) => histogram.aggregation_temporality,
        Some(Data::ExponentialHistogram(histogram)) => histogram.aggregation_temporality,
        Some(Data::Gauge(_) | Data::Summary(_)) | None => return false,
    };
    temporality == otlp::AggregationTemporality::Delta as i32
}

/// `None` if the point is flagged as having no value.
fn common(attributes: Vec<KeyValue>, unix_nano: u64, flags: u32) -> Option<Common> {
    const NO_RECORDED_VALUE: u32 = 1;
    (flags & NO_RECORDED_VALUE == 0).then(|| Common { labels: labels(attributes), time_ns: instant(unix_nano) })
}

fn labels(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for attribute in attributes {
        labels.insert(shortened(attribute.key), shortened(values::text(attribute.value)));
        if labels.len() > LABELS_MAX {
            labels.pop_last();
        }
    }
    labels
}
