//! OTLP's JSON, as the Collector's file exporter writes it and as it is sent over HTTP.
//!
//! Version 3 of Jaeger's API returns it as the member `result`.

use super::{Complaint, Format, List, Records};
use crate::otlp::convert::{self, Conversion};
use crate::otlp::{Format as Encoding, MalformedRequest, Weights};

pub(super) const FORMAT: Format = Format {
    name: "OTLP",
    lists: &[
        List { name: "resourceSpans", read: spans },
        List { name: "resourceMetrics", read: metrics },
        List { name: "resourceLogs", read: logs },
    ],
    wrappers: &["result"],
    records: &[],
};

/// The spans of one resource.
pub(super) fn spans(text: &str, weights: &Weights) -> Records {
    let convert = |request: &[u8]| convert::spans(request, Encoding::Json, weights);
    records("resourceSpans", text, convert, |records, converted| {
        records.without_kind = converted.without_kind;
        records.spans = converted.records;
    })
}

fn metrics(text: &str, _: &Weights) -> Records {
    let convert = |request: &[u8]| convert::points(request, Encoding::Json, crate::now_ns());
    records("resourceMetrics", text, convert, |records, converted| records.points = converted.records)
}

fn logs(text: &str, _: &Weights) -> Records {
    let convert = |request: &[u8]| convert::logs(request, Encoding::Json, crate::now_ns());
    records("resourceLogs", text, convert, |records, converted| records.logs = converted.records)
}

/// OTLP is converted request by request, so each resource is wrapped as a request.
fn records<T>(
    list: &str,
    text: &str,
    convert: impl Fn(&[u8]) -> Result<Conversion<T>, MalformedRequest>,
    put: impl Fn(&mut Records, Conversion<T>),
) -> Records {
    match convert(format!("{{\"{list}\":[{text}]}}").as_bytes()) {
        Ok(mut converted) => {
            let what = converted.complaint.take();
            let mut records = Records {
                malformed: converted.malformed,
                over_limit: converted.over_limit,
                complaint: what.map(|what| Complaint { place: String::new(), what }),
                ..Records::default()
            };
            put(&mut records, converted);
            records
        }
        Err(MalformedRequest { place, what }) => {
            let place = place.strip_prefix(&format!("{list}[0]")).unwrap_or_default().to_owned();
            Records { malformed: 1, complaint: Some(Complaint { place, what }), ..Records::default() }
        }
    }
}
