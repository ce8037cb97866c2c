//! Log records.

use narrows_model::series::{LogLine, LogStream};
use opentelemetry_proto::tonic::logs::v1 as otlp;

use super::exceptions::Exception;
use super::{Conversion, Origin, cut, id, instant, shortened, values};
use crate::otlp::request::{Format, LOGS, MalformedRequest, each_record};

/// The lines of an `ExportLogsServiceRequest`.
///
/// The text is the record's body (JSON unless it is a string) or, without one, its event's name. The time is when it
/// happened, else when it was observed, else `received_ns`. Of the attributes only an exception's are kept, as three
/// lines after the text: `exception.type=…`, `exception.message=…`, `exception.stacktrace=…` (the last may go on over
/// many). Such a record is an ERROR if it does not say how severe it is.
///
/// # Errors
/// When the bytes are not such a message.
pub fn logs(request: &[u8], format: Format, received_ns: i64) -> Result<Conversion<LogLine>, MalformedRequest> {
    let mut converted = Conversion::new();
    each_record(LOGS, format, request, |origin, record| {
        if let Some(record) = converted.decode::<otlp::LogRecord>(record)? {
            converted.push(convert(origin, received_ns, record));
        }
        Ok(())
    })?;
    Ok(converted)
}

/// The longest text before an exception's lines, in bytes, so that those are not what a limit on lines cuts off.
const TEXT_BYTES_MAX: usize = 8 << 10;

fn convert(origin: &Origin, received_ns: i64, record: otlp::LogRecord) -> LogLine {
    let body = values::text(record.body);
    let text = if body.is_empty() { record.event_name } else { body };
    let time = instant(record.time_unix_nano).or_else(|| instant(record.observed_time_unix_nano));
    let severity = severity(record.severity_text, record.severity_number);
    let (severity, text) = match Exception::from_attributes(record.attributes) {
        Some(exception) if severity.is_empty() => ("ERROR".to_owned(), with(&exception, text)),
        Some(exception) => (severity, with(&exception, text)),
        None => (severity, text),
    };
    LogLine {
        time_ns: time.unwrap_or(received_ns),
        service: origin.service.clone(),
        replica: origin.replica,
        stream: LogStream::Otlp,
        severity,
        text,
        trace_id: id(&record.trace_id),
    }
}

fn with(exception: &Exception, text: String) -> String {
    let Exception { kind, message, stacktrace } = exception;
    let text = if text.is_empty() { "exception".to_owned() } else { cut(text, TEXT_BYTES_MAX) };
    format!("{text}\nexception.type={kind}\nexception.message={message}\nexception.stacktrace={stacktrace}")
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
