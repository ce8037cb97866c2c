//! A whole exposition: Prometheus' text format 0.0.4 or OpenMetrics 1.0, to points.
//!
//! Each sample is a series of its own name, as Prometheus stores it: `NAME_sum` and `NAME_count` of histograms and
//! summaries, a summary's quantiles by the label `quantile`; one that is known by OTLP too has the name that it has there.
//! Buckets are left out, and so are the times at which
//! counters were made (`NAME_created`): neither is a measurement that anything reads. A sample that is not finite says
//! that there is nothing to say.
//!
//! A line that is no sample is counted and left out; those beside it stay, because a page is requested again and again.

use std::collections::{BTreeMap, HashMap};

use narrows_model::series::{Point, SeriesKey};

use super::line::{About, Sample, about, sample};
use super::names::as_by_otlp;

/// The most points of one page.
pub(super) const POINTS_MAX: usize = 50_000;
/// The most families whose type is remembered.
const FAMILIES_MAX: usize = 20_000;
/// The longest name, label or label's value, in bytes.
const TEXT_BYTES_MAX: usize = 512;
/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;

/// How a page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// 0.0.4: times are milliseconds.
    Text,
    /// OpenMetrics: times are seconds.
    OpenMetrics,
}

/// Counts of a page.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Page {
    pub(crate) points: Vec<(SeriesKey, Point)>,
    /// Lines that made no sense.
    pub(crate) malformed: u64,
    /// Fault of the first of them, with its number.
    pub(crate) complaint: Option<String>,
    /// Samples beyond [`POINTS_MAX`].
    pub(crate) over_limit: u64,
}

#[derive(Debug, Default)]
struct Family {
    kind: Kind,
    unit: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Unknown,
    Counter,
    Gauge,
    Distribution,
}

/// Reads a page of `service`. Samples that say no time have `now_ns`.
pub(super) fn read(bytes: &[u8], format: Format, service: &str, now_ns: i64) -> Page {
    let bounds = Bounds { points_max: POINTS_MAX, lines_before: 0 };
    read_lines(bytes, format, Some(service), now_ns, bounds)
}

/// Reads a part of a file that others wrote, after so many lines: names stay as they are, there is no service, and samples
/// without a time have 0.
pub(crate) fn read_text(bytes: &[u8], lines_before: u64) -> Page {
    read_lines(bytes, Format::Text, None, 0, Bounds { points_max: usize::MAX, lines_before })
}

/// Whether a line is a sample.
pub(crate) fn is_sample(line: &str) -> bool {
    sample(line).is_ok()
}

#[derive(Debug, Clone, Copy)]
struct Bounds {
    points_max: usize,
    lines_before: u64,
}

fn read_lines(bytes: &[u8], format: Format, service: Option<&str>, now_ns: i64, bounds: Bounds) -> Page {
    let mut reading = Reading { format, service, now_ns, bounds, families: HashMap::new(), page: Page::default() };
    for (number, line) in (bounds.lines_before + 1..).zip(bytes.split(|byte| *byte == b'\n')) {
        match reading.line(line) {
            Ok(Goes::On) => {}
            Ok(Goes::NoFurther) => break,
            Err(what) => {
                reading.page.malformed += 1;
                reading.page.complaint.get_or_insert_with(|| format!("line {number}: {what}"));
            }
        }
    }
    reading.page
}

enum Goes {
    On,
    NoFurther,
}

struct Reading<'a> {
    format: Format,
    /// `None` in a file of others.
    service: Option<&'a str>,
    now_ns: i64,
    bounds: Bounds,
    families: HashMap<String, Family>,
    page: Page,
}

impl Reading<'_> {
    fn line(&mut self, line: &[u8]) -> Result<Goes, &'static str> {
        if line.len() > LINE_BYTES_MAX {
            return Err("it is longer than 64 KiB");
        }
        let line = std::str::from_utf8(line).map_err(|_| "it is not UTF-8")?.trim();
        if let Some(comment) = line.strip_prefix('#') {
            return Ok(self.about(about(comment)));
        }
        if !line.is_empty() {
            let sample = sample(line)?;
            self.sample(sample)?;
        }
        Ok(Goes::On)
    }

    fn about(&mut self, about: About<'_>) -> Goes {
        match about {
            About::End if self.format == Format::OpenMetrics => return Goes::NoFurther,
            About::End | About::Nothing => {}
            About::Type(name, kind) => {
                if let Some(family) = self.family(name) {
                    family.kind = match kind {
                        "counter" => Kind::Counter,
                        "gauge" => Kind::Gauge,
                        "histogram" | "gaugehistogram" | "summary" => Kind::Distribution,
                        _ => Kind::Unknown,
                    };
                }
            }
            About::Unit(name, unit) => {
                if let Some(family) = self.family(name) {
                    family.unit = Some(cut(unit.to_owned()));
                }
            }
        }
        Goes::On
    }

    fn family(&mut self, name: &str) -> Option<&mut Family> {
        if self.families.len() >= FAMILIES_MAX && !self.families.contains_key(name) {
            return None;
        }
        Some(self.families.entry(cut(name.to_owned())).or_default())
    }

    fn sample(&mut self, sample: Sample) -> Result<(), &'static str> {
        let time_ns = self.time_ns(sample.time.as_deref())?;
        if !sample.value.is_finite() || self.is_left_out(&sample) {
            return Ok(());
        }
        if self.page.points.len() >= self.bounds.points_max {
            self.page.over_limit += 1;
            return Ok(());
        }
        let labels: BTreeMap<String, String> =
            sample.labels.into_iter().map(|(label, value)| (cut(label), cut(value))).collect();
        let mut key = SeriesKey {
            unit: self.unit(&sample.name),
            name: cut(sample.name),
            service: self.service.unwrap_or_default().to_owned(),
            replica: 0,
            labels,
        };
        let value = if self.service.is_some() { as_by_otlp(&mut key, sample.value) } else { sample.value };
        self.page.points.push((key, Point { time_ns, value }));
        Ok(())
    }

    fn time_ns(&self, time: Option<&str>) -> Result<i64, &'static str> {
        let Some(time) = time else { return Ok(self.now_ns) };
        let number = time.parse::<f64>().map_err(|_| "its time is not a number")?;
        let ns = match self.format {
            Format::Text => number * 1e6,
            Format::OpenMetrics => number * 1e9,
        };
        let is_instant = ns > 0.0 && ns < i64::MAX as f64;
        if is_instant { Ok(ns as i64) } else { Err("its time is no instant after 1970") }
    }

    /// Buckets, and the instants at which something began to count.
    fn is_left_out(&self, sample: &Sample) -> bool {
        let kind_without = |suffix: &str| {
            let family = sample.name.strip_suffix(suffix)?;
            Some(self.families.get(family).map_or(Kind::Unknown, |family| family.kind))
        };
        if self.families.contains_key(&sample.name) {
            return false;
        }
        match kind_without("_bucket") {
            Some(Kind::Distribution) => return true,
            Some(Kind::Unknown) => return sample.labels.contains_key("le"),
            _ => {}
        }
        matches!(kind_without("_created"), Some(Kind::Distribution | Kind::Counter))
    }

    /// The unit that the page says, else the one that the name ends with; empty for counts and where neither says one.
    fn unit(&self, name: &str) -> String {
        const PARTS: [&str; 4] = ["_total", "_sum", "_gsum", "_max"];
        if name.ends_with("_count") || name.ends_with("_gcount") {
            return String::new();
        }
        let family = PARTS.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
        let declared = [name, family].iter().find_map(|name| self.families.get(*name)?.unit.clone());
        let word = declared.as_deref().or_else(|| family.rsplit_once('_').map(|(_, word)| word));
        word.and_then(ucum).map_or_else(|| declared.clone().unwrap_or_default(), str::to_owned)
    }
}

/// UCUM's code of a base unit as Prometheus' naming conventions write it out.
fn ucum(word: &str) -> Option<&'static str> {
    const UNITS: [(&str, &str); 10] = [
        ("seconds", "s"),
        ("milliseconds", "ms"),
        ("bytes", "By"),
        ("ratio", "1"),
        ("percent", "%"),
        ("celsius", "Cel"),
        ("meters", "m"),
        ("volts", "V"),
        ("amperes", "A"),
        ("joules", "J"),
    ];
    UNITS.iter().find(|(name, _)| *name == word).map(|(_, code)| *code)
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        let end = (0..=TEXT_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_NS: i64 = 1_700_000_000_000_000_000;

    fn values(page: &Page) -> Vec<(String, String, f64)> {
        let point = |(key, point): &(SeriesKey, Point)| {
            let labels: Vec<String> = key.labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
            (format!("{}{{{}}}", key.name, labels.join(",")), key.unit.clone(), point.value)
        };
        page.points.iter().map(point).collect()
    }

    #[test]
    fn a_page_of_the_text_format() {
        let text = "# HELP http_requests_total Requests.\n# TYPE http_requests_total counter\n\
            http_requests_total{code=\"200\"} 1027 1395066363000\n\
            # TYPE rpc_duration_seconds summary\nrpc_duration_seconds{quantile=\"0.5\"} 0.05\n\
            rpc_duration_seconds{quantile=\"0.9\"} NaN\nrpc_duration_seconds_sum 17.5\nrpc_duration_seconds_count 2693\n\
            # TYPE size_bytes histogram\nsize_bytes_bucket{le=\"+Inf\"} 3\nsize_bytes_sum 30\nsize_bytes_count 3\n\
            # a comment\n\nprocess_resident_memory_bytes 2.5e6\r\n";
        let page = read(text.as_bytes(), Format::Text, "web", NOW_NS);
        let expected = [
            ("http_requests_total{code=200}", "", 1027.0),
            ("rpc_duration_seconds{quantile=0.5}", "s", 0.05),
            ("rpc_duration_seconds_sum{}", "s", 17.5),
            ("rpc_duration_seconds_count{}", "", 2693.0),
            ("size_bytes_sum{}", "By", 30.0),
            ("size_bytes_count{}", "", 3.0),
            ("process.memory.usage{narrows.original_name=process_resident_memory_bytes}", "By", 2.5e6),
        ];
        let expected: Vec<_> = expected.map(|(key, unit, value)| (key.to_owned(), unit.to_owned(), value)).into();
        assert_eq!(values(&page), expected);
        assert_eq!((page.malformed, page.over_limit), (0, 0));
        assert_eq!(page.points[0].1.time_ns, 1_395_066_363_000_000_000);
        assert_eq!(page.points[1].1.time_ns, NOW_NS);
        assert!(page.points.iter().all(|(key, _)| key.service == "web"));
    }

    #[test]
    fn a_page_of_openmetrics() {
        let text = "# TYPE acme_http counter\n# UNIT acme_http parsecs\nacme_http_total{a=\"b\"} 17 1520879607.5 # {t=\"x\"} 1\n\
            acme_http_created{a=\"b\"} 1520430000.123\n# TYPE queue gauge\nqueue 3\n# EOF\nqueue 4\n";
        let page = read(text.as_bytes(), Format::OpenMetrics, "web", NOW_NS);
        let expected = [
            ("acme_http_total{a=b}".to_owned(), "parsecs".to_owned(), 17.0),
            ("queue{}".to_owned(), String::new(), 3.0),
        ];
        assert_eq!(values(&page), expected);
        assert_eq!(page.points[0].1.time_ns, 1_520_879_607_500_000_000);
    }

    #[test]
    fn a_gauge_may_be_called_like_a_part_of_something_else() {
        let text = "# TYPE a_created gauge\na_created 5\nb_bucket 6\nb_bucket{le=\"1\"} 7\nc_created 8\n";
        let page = read(text.as_bytes(), Format::Text, "web", NOW_NS);
        let names: Vec<&str> = page.points.iter().map(|(key, _)| key.name.as_str()).collect();
        assert_eq!(names, ["a_created", "b_bucket", "c_created"]);
    }

    #[test]
    fn what_makes_no_sense_is_counted_and_the_first_is_named() {
        let mut page = b"ok 1\nbad\n".to_vec();
        page.extend_from_slice(b"\xff\xfe 1\nlate 1 -5\nfine 2\n");
        page.extend(std::iter::repeat_n(b'x', LINE_BYTES_MAX + 1));
        let page = read(&page, Format::Text, "web", NOW_NS);
        assert_eq!((page.points.len(), page.malformed), (2, 4));
        assert_eq!(page.complaint.as_deref(), Some("line 2: it has no value"));
    }

    #[test]
    fn a_page_has_an_end() {
        let text: String = (0..POINTS_MAX + 3).map(|n| format!("a{{n=\"{n}\"}} 1\n")).collect();
        let page = read(text.as_bytes(), Format::Text, "web", NOW_NS);
        assert_eq!((page.points.len(), page.over_limit), (POINTS_MAX, 3));
        let long = format!("{} 1\n", "é".repeat(600));
        assert_eq!(read(long.as_bytes(), Format::Text, "web", NOW_NS).malformed, 1, "letters of a name are ASCII");
        let long = format!("a{{b=\"{}\"}} 1\n", "é".repeat(600));
        let page = read(long.as_bytes(), Format::Text, "web", NOW_NS);
        assert_eq!(page.points[0].0.labels["b"].len(), TEXT_BYTES_MAX);
    }
}
