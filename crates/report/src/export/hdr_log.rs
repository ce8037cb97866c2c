//! The latency of every second as an HdrHistogram interval log, which its plotters and readers take.
//!
//! One line for each second and request, tagged `scenario` or `scenario/request`: a V2 histogram of latency from the
//! intended send in nanoseconds, compressed and in base64. The smallest and the largest value are as they were, others
//! are the middles of the buckets in which they were counted, at most 0.8 % off. Seconds without a success have no line.

use std::time::Duration;

use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use narrows_model::histogram::Histogram;
use narrows_model::load::LoadSecond;

/// Significant digits of the histograms; finer than the buckets the values come from.
const DIGITS: u8 = 3;
/// The largest value of a log line is printed in milliseconds, as is the custom.
const MAX_DIVISOR: f64 = 1e6;
/// The least span between an HdrHistogram's smallest and largest value.
const HIGH_MIN: u64 = 2;

/// A log that is written as its rows arrive, so that a long one needs no more memory than a short one.
#[derive(Debug, Default)]
pub struct HdrLog {
    /// Start of the first line; the times of other lines are relative to it.
    start_ns: Option<i64>,
}

impl HdrLog {
    /// The lines of further rows, in order of time. The first call with a row also returns the header.
    pub fn lines(&mut self, rows: &[LoadSecond]) -> String {
        let mut rows: Vec<&LoadSecond> = rows.iter().filter(|row| row.latency.count() > 0).collect();
        rows.sort_by_key(|row| row.start_ns);
        let Some(first) = rows.first() else { return String::new() };
        match self.start_ns {
            Some(start_ns) => {
                let log = log(start_ns, &rows);
                let header = log_header(start_ns).len();
                log[header..].to_owned()
            }
            None => {
                let start_ns = first.start_ns.max(0);
                self.start_ns = Some(start_ns);
                log(start_ns, &rows)
            }
        }
    }

    /// The rest of the log at the end of the load: the header, if no line was written.
    pub fn end(self) -> String {
        self.start_ns.map_or_else(|| log_header(0), |_| String::new())
    }
}

fn log_header(start_ns: i64) -> String {
    log(start_ns, &[])
}

fn log(start_ns: i64, rows: &[&LoadSecond]) -> String {
    let start = Duration::from_nanos(start_ns.unsigned_abs()).as_secs_f64();
    let mut out: Vec<u8> = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    // Other readers look for this version before anything else.
    let begun = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment(&format!("[StartTime: {start:.3} (seconds since epoch)]"))
        .with_max_value_divisor(MAX_DIVISOR)
        .begin_log_with(&mut out, &mut serializer);
    if let Ok(mut log) = begun {
        for row in rows {
            let since = Duration::from_nanos(row.start_ns.saturating_sub(start_ns).max(0).unsigned_abs());
            let length = Duration::from_nanos(row.length_ns.max(0).unsigned_abs());
            let tag = tag_of(row);
            if let Some(histogram) = hdr_of(&row.latency) {
                // Writing to memory cannot fail, and every histogram of this kind can be written.
                let _ = log.write_histogram(&histogram, since, length, Tag::new(&tag));
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A tag holds no comma, space or line end.
fn tag_of(row: &LoadSecond) -> String {
    let name = if row.request.is_empty() { row.scenario.clone() } else { format!("{}/{}", row.scenario, row.request) };
    name.chars().map(|c| if c == ',' || c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}

/// `None` if the bounds are not those of an HdrHistogram, which those of a latency always are.
fn hdr_of(histogram: &Histogram) -> Option<Hdr<u64>> {
    let mut hdr = Hdr::<u64>::new_with_bounds(1, histogram.max_ns().max(HIGH_MIN), DIGITS).ok()?;
    // The smallest and the largest value are known by themselves.
    let mut exact = [Some(histogram.min_ns()), Some(histogram.max_ns()).filter(|_| histogram.count() > 1)];
    let last = histogram.buckets().last();
    for bucket in histogram.buckets() {
        let middle = bucket.lower_ns + (bucket.upper_ns - bucket.lower_ns) / 2;
        let mut count = bucket.count;
        let ends = [true, Some(bucket) == last];
        for value in exact.iter_mut().zip(ends).filter(|(_, is_here)| *is_here).filter_map(|(value, _)| value.take()) {
            hdr.saturating_record(value);
            count = count.saturating_sub(1);
        }
        hdr.saturating_record_n(middle.clamp(histogram.min_ns(), histogram.max_ns()), count);
    }
    Some(hdr)
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::super::testing::{rows, second};
    use super::*;

    /// Tag, start, length and distribution of every line, as the library's own reader has them.
    fn read(log: &str) -> Vec<(String, Duration, Duration, Hdr<u64>)> {
        let mut lines = Vec::new();
        for entry in IntervalLogIterator::new(log.as_bytes()) {
            if let LogEntry::Interval(line) = entry.expect("a line that can be read") {
                let bytes = decode(line.encoded_histogram());
                let hdr = Deserializer::new().deserialize::<u64, _>(&mut &bytes[..]).expect("a histogram");
                let tag = line.tag().map(|tag| tag.as_str().to_owned()).unwrap_or_default();
                lines.push((tag, line.start_timestamp(), line.duration(), hdr));
            }
        }
        lines
    }

    /// Base64 (RFC 4648), written out so that no other library is needed.
    fn decode(text: &str) -> Vec<u8> {
        const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let sextets = text.bytes().filter(|byte| *byte != b'=');
        let (mut bytes, mut bits, mut held) = (Vec::new(), 0u32, 0u32);
        for sextet in sextets {
            bits = bits << 6 | DIGITS.iter().position(|digit| *digit == sextet).expect("a digit") as u32;
            held += 6;
            if held >= 8 {
                held -= 8;
                bytes.push((bits >> held) as u8);
                bits &= (1 << held) - 1;
            }
        }
        bytes
    }

    #[test]
    fn the_librarys_own_reader_reads_it_back() {
        let rows = rows();
        let log = HdrLog::default().lines(&rows);
        assert!(log.starts_with("#[Histogram log format version 1.3]\n#[StartTime: 1763728200.000 (seconds"), "{log}");
        let lines = read(&log);
        let told: Vec<_> = lines.iter().map(|(tag, start, ..)| (tag.as_str(), start.as_secs())).collect();
        assert_eq!(told, [("shop/list", 0), ("shop/buy_\"pay\\\"__now", 0), ("shop/list", 1)]);
        for ((_, _, length, hdr), row) in lines.iter().zip(&rows) {
            assert_eq!((length.as_secs(), hdr.len()), (1, row.latency.count()));
            for q in [0.5, 0.95, 1.0] {
                let (read, counted) = (hdr.value_at_quantile(q) as f64, row.latency.quantile_ns(q) as f64);
                assert!((read / counted - 1.0).abs() < 0.01, "{q}: {read} for {counted}");
            }
            assert!(hdr.max().abs_diff(row.latency.max_ns()) <= row.latency.max_ns() / 1000);
        }
    }

    #[test]
    fn lines_are_in_order_of_time_whatever_the_rows_are() {
        let log = HdrLog::default().lines(&[second(5, "b", 9), second(3, "a", 2)]);
        let starts: Vec<u64> = read(&log).iter().map(|line| line.1.as_secs()).collect();
        assert_eq!(starts, [0, 2]);
        assert!(log.contains("[StartTime: 1763728203.000 "));
        assert_eq!(HdrLog::default().lines(&[]), "");
        assert_eq!(read(&HdrLog::default().end()), []);
        let mut extreme = second(0, "", 1);
        [0, 1, u64::MAX].iter().for_each(|ns| extreme.latency.record(*ns));
        assert_eq!(read(&HdrLog::default().lines(&[extreme]))[0].3.len(), 13);
    }

    #[test]
    fn a_log_in_parts_is_the_log_of_all() {
        let all = [second(3, "a", 2), second(4, "a", 5), second(5, "b", 9)];
        let mut parts = HdrLog::default();
        let empty = LoadSecond { start_ns: 0, ..LoadSecond::default() };
        let written = [&[empty][..], &all[..1], &all[1..]].map(|rows| parts.lines(rows)).concat();
        assert_eq!(written + &parts.end(), HdrLog::default().lines(&all));
    }
}
