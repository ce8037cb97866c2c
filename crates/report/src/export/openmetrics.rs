//! The load as counters and histograms in the OpenMetrics text format 1.0, for a Prometheus or its push gateway.
//!
//! Boundaries of the histograms are fixed, so that those of several loads can be added up. A value counts below the
//! boundary when the middle of the bucket it was counted in does: at most 0.8 % of a boundary's own value are unsure.

use std::fmt::Write;

use narrows_model::evidence::{LoadTotals, RequestOfLoad};
use narrows_model::histogram::Histogram;
use narrows_model::load::ErrorKind;

/// The upper boundaries of the histograms, as they are printed, and in nanoseconds.
const BOUNDARIES: [(&str, u64); 19] = [
    ("0.0001", 100_000),
    ("0.00025", 250_000),
    ("0.0005", 500_000),
    ("0.001", 1_000_000),
    ("0.0025", 2_500_000),
    ("0.005", 5_000_000),
    ("0.01", 10_000_000),
    ("0.025", 25_000_000),
    ("0.05", 50_000_000),
    ("0.1", 100_000_000),
    ("0.25", 250_000_000),
    ("0.5", 500_000_000),
    ("1.0", 1_000_000_000),
    ("2.5", 2_500_000_000),
    ("5.0", 5_000_000_000),
    ("10.0", 10_000_000_000),
    ("25.0", 25_000_000_000),
    ("60.0", 60_000_000_000),
    ("120.0", 120_000_000_000),
];

/// A distribution that is exported: its name, what it is, and where it is found.
type Distribution = (&'static str, &'static str, fn(&LoadTotals) -> &Histogram);
/// A counter of a scenario, reported with its first request.
type Counter = (&'static str, &'static str, fn(&LoadTotals) -> u64);

const DISTRIBUTIONS: [Distribution; 3] = [
    ("narrows_latency_seconds", "From the intended send to the last byte of the response, successes.", |t| &t.latency),
    ("narrows_service_seconds", "From the actual send to the last byte of the response, successes.", |t| &t.service),
    ("narrows_lateness_seconds", "From the intended to the actual send, every request.", |t| &t.lateness),
];
const COUNTERS: [Counter; 6] = [
    ("narrows_sent", "Requests sent, each counted once.", |t| t.sent),
    ("narrows_repeated", "Requests sent a second time, after a kept connection broke without a response.", |t| {
        t.repeated
    }),
    ("narrows_cut", "Requests without a response when the load was stopped.", |t| t.cut),
    ("narrows_iterations_due", "Iterations of an open model that were due.", |t| t.due),
    ("narrows_iterations_late", "Iterations due that found every user busy and had to wait.", |t| t.late),
    ("narrows_iterations_dropped", "Iterations due that never began.", |t| t.dropped),
];

/// The exposition, with its `# EOF`. `labels` stand at every sample before `scenario` and `request`; their names must be
/// those of OpenMetrics labels, others are left out.
pub fn openmetrics(requests: &[RequestOfLoad], labels: &[(&str, &str)]) -> String {
    let labelled: Vec<(String, &LoadTotals)> =
        requests.iter().map(|request| (labels_of(request, labels), &request.totals)).collect();
    let mut out = String::new();
    add_responses(&mut out, &labelled);
    for (name, help, count) in COUNTERS {
        add_head(&mut out, name, "counter", "", help);
        for (labels, totals) in &labelled {
            // Writing to a `String` cannot fail.
            let _ = writeln!(out, "{name}_total{{{labels}}} {}", count(totals));
        }
    }
    add_head(&mut out, "narrows_received_bytes", "counter", "bytes", "Bytes of the responses, heads included.");
    for (labels, totals) in &labelled {
        let _ = writeln!(out, "narrows_received_bytes_total{{{labels}}} {}", totals.bytes);
    }
    for (name, help, histogram) in DISTRIBUTIONS {
        add_head(&mut out, name, "histogram", "seconds", help);
        for (labels, totals) in &labelled {
            add_histogram(&mut out, name, labels, histogram(totals));
        }
    }
    out + "# EOF\n"
}

fn add_head(out: &mut String, name: &str, kind: &str, unit: &str, help: &str) {
    let _ = writeln!(out, "# TYPE {name} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
    let _ = writeln!(out, "# HELP {name} {help}");
}

/// Requests that ended, by how.
fn add_responses(out: &mut String, labelled: &[(String, &LoadTotals)]) {
    let name = "narrows_requests";
    add_head(out, name, "counter", "", "Requests that ended, by result: success or the kind of the error.");
    for (labels, totals) in labelled {
        let _ = writeln!(out, "{name}_total{{{labels},result=\"success\"}} {}", totals.succeeded);
        for kind in ErrorKind::ALL {
            let _ = writeln!(out, "{name}_total{{{labels},result=\"{}\"}} {}", kind.as_str(), totals.errors.of(kind));
        }
    }
}

fn add_histogram(out: &mut String, name: &str, labels: &str, histogram: &Histogram) {
    let mut buckets = histogram.buckets().peekable();
    let mut below = 0;
    for (le, limit_ns) in BOUNDARIES {
        while let Some(bucket) = buckets.next_if(|b| b.lower_ns + (b.upper_ns - b.lower_ns) / 2 <= limit_ns) {
            below += bucket.count;
        }
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{le}\"}} {below}");
    }
    let (count, sum) = (histogram.count(), histogram.sum_ns() as f64 / 1e9);
    let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
    let _ = writeln!(out, "{name}_sum{{{labels}}} {sum:?}");
    let _ = writeln!(out, "{name}_count{{{labels}}} {count}");
}

fn labels_of(request: &RequestOfLoad, labels: &[(&str, &str)]) -> String {
    const OWN: [&str; 4] = ["scenario", "request", "result", "le"];
    let is_label = |name: &str| {
        let mut bytes = name.bytes();
        bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !OWN.contains(&name)
    };
    let given = labels.iter().copied().filter(|(name, _)| is_label(name));
    let own = [("scenario", request.scenario.as_str()), ("request", request.request.as_str())];
    let all = given.chain(own).map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    all.collect::<Vec<_>>().join(",")
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use narrows_model::counting::Phase;

    use super::super::testing::{EVIL, rows};
    use super::*;

    fn requests() -> Vec<RequestOfLoad> {
        let mut requests = Vec::new();
        rows()
            .iter()
            .filter(|row| row.sent > 0)
            .for_each(|row| RequestOfLoad::add_to(&mut requests, row, Phase::Sending));
        requests
    }

    /// Name, labels and value of a sample line.
    fn sample(line: &str) -> (&str, Vec<(String, String)>, f64) {
        let (name, rest) = line.split_once('{').expect("labels");
        let (mut labels, mut rest) = (Vec::new(), rest);
        while let Some((label, quoted)) = rest.split_once("=\"").filter(|_| !rest.starts_with('}')) {
            let (mut value, mut chars) = (String::new(), quoted.char_indices());
            let end = loop {
                match chars.next().expect("a closing quote") {
                    (at, '"') => break at,
                    (_, '\\') => value.push(match chars.next().expect("what is escaped").1 {
                        'n' => '\n',
                        c => c,
                    }),
                    (_, c) => value.push(c),
                }
            };
            labels.push((label.to_owned(), value));
            rest = &quoted[end + 1..];
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        (name, labels, rest.strip_prefix("} ").expect("a value").parse().expect("a number"))
    }

    #[test]
    fn families_are_whole_and_their_samples_belong_to_them() {
        let text = openmetrics(&requests(), &[("variant", EVIL), ("0bad", "x"), ("le", "x")]);
        assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1);
        let (mut family, mut kind, mut seen) = ("", "", Vec::new());
        for line in text.lines().filter(|line| *line != "# EOF") {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                (family, kind) = rest.split_once(' ').unwrap();
                assert!(!seen.contains(&family), "{family} comes once");
                seen.push(family);
            } else if let Some(rest) = line.strip_prefix("# UNIT ") {
                let unit = rest.strip_prefix(family).unwrap().trim();
                assert!(family.ends_with(&format!("_{unit}")), "{line}");
            } else if !line.starts_with("# HELP ") {
                let (name, labels, value) = sample(line);
                let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("{line} is of {family}"));
                let allowed: &[&str] = if kind == "counter" { &["_total"] } else { &["_bucket", "_sum", "_count"] };
                assert!(allowed.contains(&suffix) && value >= 0.0, "{line}");
                assert_eq!(labels[0], ("variant".to_owned(), EVIL.to_owned()), "{line}");
                assert!(labels.iter().all(|(name, value)| name != "0bad" && value != "x"), "{line}");
            }
        }
        assert_eq!(seen.len(), 11);
    }

    #[test]
    fn buckets_rise_to_the_count_and_counters_are_those_of_the_load() {
        let text = openmetrics(&requests(), &[]);
        let of = |name: &str, request: &str| -> Vec<f64> {
            let samples = text.lines().filter(|line| !line.starts_with('#')).map(sample);
            let is_meant = |labels: &[(String, String)]| labels.iter().any(|(n, v)| n == "request" && v == request);
            samples.filter(|(n, labels, _)| *n == name && is_meant(labels)).map(|(.., value)| value).collect()
        };
        let buckets = of("narrows_latency_seconds_bucket", "list");
        assert_eq!(buckets.len(), BOUNDARIES.len() + 1);
        assert!(buckets.windows(2).all(|pair| pair[0] <= pair[1]), "{buckets:?}");
        assert_eq!((buckets[4], buckets[19]), (0.0, 20.0), "none within 2.5 ms");
        assert_eq!(buckets[7], 20.0, "all within 25 ms");
        assert_eq!(of("narrows_latency_seconds_count", "list"), [20.0]);
        assert_eq!(of("narrows_latency_seconds_sum", "list"), [0.21]);
        assert_eq!(of("narrows_requests_total", "list"), [20.0, 0.0, 0.0, 2.0, 0.0, 0.0, 4.0]);
        assert_eq!(
            (of("narrows_iterations_due_total", "list"), of("narrows_iterations_due_total", EVIL)),
            (vec![28.0], vec![0.0])
        );
        assert_eq!(of("narrows_received_bytes_total", EVIL), [1234.0]);
    }
}
