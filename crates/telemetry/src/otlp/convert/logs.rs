//! Log records.

use narrows_model::series::{LogLine, LogStream};
use opentelemetry_proto::tonic::logs::v1 as otlp;

use super::{Converted, Origin, id, instant, shortened, values};
use crate::otlp::wire::{LOGS, Malformed, each_record};

/// The lines of an `ExportLogsServiceRequest`.
///
/// The text is the record's body (JSON unless it is a string) or, without one, its event's name. The time is when it
/// happened, else when it was observed, else `received_ns`. Attributes are not kept.
///
/// # Errors
/// When the bytes are not such a message.
pub fn logs(request: &[u8], received_ns: i64) -> Result<Converted<LogLine>, Malformed> {
    let mut converted = Converted::new();
    each_record(LOGS, request, |origin, bytes| {
        if let Some(record) = converted.decode::<otlp::LogRecord>(bytes)? {
            converted.push(convert(origin, received_ns, record));
        }
        Ok(())
    })?;
    Ok(converted)
}

fn convert(origin: &Origin, received_ns: i64, record: otlp::LogRecord) -> LogLine {
    let body = values::text(record.body);
    let time = instant(record.time_unix_nano).or_else(|| instant(record.observed_time_unix_nano));
    LogLine {
        time_ns: time.unwrap_or(received_ns),
        service: origin.service.clone(),
        replica: origin.replica,
        stream: LogStream::Otlp,
        severity: severity(record.severity_text, record.severity_number),
        text: if body.is_empty() { record.event_name } else { body },
        trace_id: id(&record.trace_id),
    }
}

/// The sender's own word, else the short name that the log data model has for the number.
fn severity(text: String, number: i32) -> String {
    if !text.is_empty() {
        return shortened(text);
    }
    let name = match number {
        1..=4 => "TRACE",
        5..=8 => "DEBUG",
        9..=12 => "INFO",
        13..=16 => "WARN",
        17..=20 => "ERROR",
        21..=24 => "FATAL",
        _ => "",
    };
    name.to_owned()
}
