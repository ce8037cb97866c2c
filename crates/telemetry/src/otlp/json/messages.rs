//! Spans, metrics and log records: the fields of them that are kept.

use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint,
    Metric, NumberDataPoint, Sum, Summary, SummaryDataPoint, metric, number_data_point,
    summary_data_point::ValueAtQuantile,
};
use opentelemetry_proto::tonic::trace::v1::{Span, Status, span, status};
use serde_json::Value;

use super::fields::{Fields, FromJson, Mistake, double, signed};

impl FromJson for Span {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        let mut fields = Fields::from_value(value)?;
        Ok(Self {
            trace_id: fields.id("traceId")?,
            span_id: fields.id("spanId")?,
            parent_span_id: fields.id("parentSpanId")?,
            trace_state: fields.text("traceState")?,
            name: fields.text("name")?,
            kind: fields.variant("kind", |name| span::SpanKind::from_str_name(name).map(i32::from))?,
            start_time_unix_nano: fields.u64("startTimeUnixNano")?,
            end_time_unix_nano: fields.u64("endTimeUnixNano")?,
            attributes: fields.list("attributes")?,
            events: fields.list("events")?,
            status: fields.message("status")?,
            ..Self::default()
        })
    }
}

impl FromJson for span::Event {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        let mut fields = Fields::from_value(value)?;
        Ok(Self {
            time_unix_nano: fields.u64("timeUnixNano")?,
            name: fields.text("name")?,
            attributes: fields.list("attributes")?,
            ..Self::default()
        })
    }
}

impl FromJson for Status {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        let mut fields = Fields::from_value(value)?;
        let code = fields.variant("code", |name| status::StatusCode::from_str_name(name).map(i32::from))?;
        Ok(Self { message: fields.text("message")?, code })
    }
}

impl FromJson for LogRecord {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        let mut fields = Fields::from_value(value)?;
        Ok(Self {
            time_unix_nano: fields.u64("timeUnixNano")?,
            observed_time_unix_nano: fields.u64("observedTimeUnixNano")?,
            severity_number: fields
                .variant("severityNumber", |name| SeverityNumber::from_str_name(name).map(i32::from))?,
            severity_text: fields.text("severityText")?,
            body: fields.message("body")?,
            attributes: fields.list("attributes")?,
            trace_id: fields.id("traceId")?,
            span_id: fields.id("spanId")?,
            event_name: fields.text("eventName")?,
            ..Self::default()
        })
    }
}

impl FromJson for Metric {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        use metric::Data;
        let mut fields = Fields::from_value(value)?;
        let found = [
            fields.message("gauge")?.map(Data::Gauge),
            fields.message("sum")?.map(Data::Sum),
            fields.message("histogram")?.map(Data::Histogram),
            fields.message("exponentialHistogram")?.map(Data::ExponentialHistogram),
            fields.message("summary")?.map(Data::Summary),
        ];
        let data = found.into_iter().flatten().next();
        Ok(Self { name: fields.text("name")?, unit: fields.text("unit")?, data, ..Self::default() })
    }
}

impl FromJson for Gauge {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        Ok(Self { data_points: Fields::from_value(value)?.list("dataPoints")? })
    }
}

fn temporality(fields: &mut Fields) -> Result<i32, Mistake> {
    let by_name = |name: &str| AggregationTemporality::from_str_name(name).map(|temporality| temporality as i32);
    fields.variant("aggregationTemporality", by_name)
}

impl FromJson for Sum {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        let mut fields = Fields::from_value(value)?;
        let aggregation_temporality = temporality(&mut fields)?;
        Ok(Self { data_points: fields.list("dataPoints")?, aggregation_temporality, ..Self::default() })
    }
}

impl FromJson for Histogram {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        let mut fields = Fields::from_value(value)?;
        let aggregation_temporality = temporality(&mut fields)?;
        Ok(Self { data_points: fields.list("dataPoints")?, aggregation_temporality })
    }
}

impl FromJson for ExponentialHistogram {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        let mut fields = Fields::from_value(value)?;
        let aggregation_temporality = temporality(&mut fields)?;
        Ok(Self { data_points: fields.list("dataPoints")?, aggregation_temporality })
    }
}

impl FromJson for Summary {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        Ok(Self { data_points: Fields::from_value(value)?.list("dataPoints")? })
    }
}

impl FromJson for NumberDataPoint {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        use number_data_point::Value as Number;
        let mut fields = Fields::from_value(value)?;
        let whole = fields.read("asInt", signed)?.map(Number::AsInt);
        Ok(Self {
            attributes: fields.list("attributes")?,
            time_unix_nano: fields.u64("timeUnixNano")?,
            flags: fields.u32("flags")?,
            value: fields.read("asDouble", double)?.map(Number::AsDouble).or(whole),
            ..Self::default()
        })
    }
}

impl FromJson for HistogramDataPoint {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        let mut fields = Fields::from_value(value)?;
        Ok(Self {
            attributes: fields.list("attributes")?,
            time_unix_nano: fields.u64("timeUnixNano")?,
            flags: fields.u32("flags")?,
            count: fields.u64("count")?,
            sum: fields.number("sum")?,
            min: fields.number("min")?,
            max: fields.number("max")?,
            ..Self::default()
        })
    }
}

impl FromJson for ExponentialHistogramDataPoint {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        let mut fields = Fields::from_value(value)?;
        Ok(Self {
            attributes: fields.list("attributes")?,
            time_unix_nano: fields.u64("timeUnixNano")?,
            flags: fields.u32("flags")?,
            count: fields.u64("count")?,
            sum: fields.number("sum")?,
            min: fields.number("min")?,
            max: fields.number("max")?,
            ..Self::default()
        })
    }
}

impl FromJson for SummaryDataPoint {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        let mut fields = Fields::from_value(value)?;
        Ok(Self {
            attributes: fields.list("attributes")?,
            time_unix_nano: fields.u64("timeUnixNano")?,
            flags: fields.u32("flags")?,
            count: fields.u64("count")?,
            sum: fields.f64("sum")?,
            quantile_values: fields.list("quantileValues")?,
            ..Self::default()
        })
    }
}

impl FromJson for ValueAtQuantile {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        let mut fields = Fields::from_value(value)?;
        Ok(Self { quantile: fields.f64("quantile")?, value: fields.f64("value")? })
    }
}
