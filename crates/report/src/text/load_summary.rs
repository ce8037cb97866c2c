//! The summary of a one-shot load, in the words and the order of `hey`, so that its users read it at once.
//!
//! Two things differ on purpose: latency counts from the intended send (a generator that stalls does not hide it), and
//! a line at the end reports whether the generator's own numbers can be trusted. Where values are below a millisecond,
//! seconds get six decimals, and the rows of the histogram as many as tell them apart, so that nothing reads as zero.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_model::evidence::RequestOfLoad;
use narrows_model::histogram::Histogram;
use narrows_model::load::{ErrorCause, ErrorKind, Spread};
use narrows_model::run::{Validity, Verdict};
use narrows_model::units;

use super::paint::clean;
use crate::load::{errors_by_kind, share_of_due};

/// Rows of the response time histogram: the fastest, then ten equal steps up to the slowest; one row where all are alike.
const ROWS: usize = 11;
/// Columns of its longest bar.
const BAR_WIDTH: u64 = 40;
/// The most requests reported one by one.
const REQUESTS_MAX: usize = 50;
/// A load shorter than this gets six decimals, so that its length has at least three digits.
const SHORT_SECONDS: f64 = 0.1;
/// Decimals of seconds at most: nanoseconds.
const DECIMALS_MAX: usize = 9;
/// The shares of the latency distribution, as `hey` prints them.
const SHARES: [u32; 7] = [10, 25, 50, 75, 90, 95, 99];

/// Results of a one-shot load.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadSummary {
    /// The requested URL.
    pub url: String,
    /// From the first send to the last response.
    pub total: Duration,
    /// From intended send to the response's last byte, every complete response.
    pub latency: Histogram,
    /// Bytes of the bodies of all complete responses.
    pub bytes: u64,
    /// Opening a connection; once per connection.
    pub dialup: Spread,
    /// From there until the encryption stood; once per connection, nothing without TLS.
    pub tls: Spread,
    /// Writing the request.
    pub request_write: Spread,
    /// From the request's last byte to the response's first.
    pub response_wait: Spread,
    /// From the response's first byte to its last.
    pub response_read: Spread,
    /// Responses by HTTP status.
    pub statuses: BTreeMap<u16, u64>,
    /// Causes of failures without a complete response.
    pub causes: Vec<ErrorCause>,
    /// Outcome of the iterations of an open model; `None` for a closed one.
    pub arrivals: Option<ArrivalsSummary>,
    /// Results of each request; reported if there are several.
    pub requests: Vec<RequestOfLoad>,
    /// The generator's judgement on its own measurements.
    pub validity: Validity,
}

/// Outcome of the iterations of an open model.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ArrivalsSummary {
    /// Iterations due per second.
    pub offered: f64,
    /// Iterations that began per second.
    pub achieved: f64,
    /// Iterations due.
    pub due: u64,
    /// Of those, how many found every user busy and had to wait.
    pub late: u64,
    /// Of those, how many never began.
    pub dropped: u64,
}

/// The summary as text. Ends with a line feed.
pub fn load_summary(summary: &LoadSummary) -> String {
    let sections = [
        totals(summary),
        arrivals(summary.arrivals),
        requests(&summary.requests),
        histogram(&summary.latency),
        distribution(&summary.latency),
        details(summary),
        statuses(&summary.statuses),
        errors(&summary.causes),
        validity(&summary.validity),
    ];
    let sections: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    sections.join("\n")
}

fn totals(summary: &LoadSummary) -> String {
    let responses: u64 = summary.statuses.values().sum();
    let total = summary.total.as_secs_f64();
    let rate = if total > 0.0 { responses as f64 / total } else { 0.0 };
    let total = seconds(total * 1e9, if total < SHORT_SECONDS { 6 } else { 4 });
    let each = summary.bytes.checked_div(responses).unwrap_or(0);
    let decimals = decimals(&summary.latency);
    // Without a success there is no latency, not one of zero.
    let time = |ns: f64| match summary.latency.count() {
        0 => "–".to_owned(),
        _ => format!("{} secs", seconds(ns, decimals)),
    };
    format!(
        "Summary:\n  URL:          {}\n  Total:        {total} secs\n  Slowest:      {}\n  Fastest:      {}\n  \
         Average:      {}\n  Requests/sec: {rate:.4}\n\n  Total data:   {} bytes ({})\n  Size/request: {each} bytes\n",
        clean(&summary.url),
        time(summary.latency.max_ns() as f64),
        time(summary.latency.min_ns() as f64),
        time(summary.latency.mean_ns()),
        summary.bytes,
        units::bytes(summary.bytes as f64)
    )
}

fn arrivals(arrivals: Option<ArrivalsSummary>) -> String {
    let Some(arrivals) = arrivals else { return String::new() };
    let share = |count| share_of_due(count, arrivals.due);
    format!(
        "Arrivals:\n  Offered/sec:  {:.4}\n  Achieved/sec: {:.4}\n  Due:          {}\n  Late:         {}\n  \
         Dropped:      {}\n",
        arrivals.offered,
        arrivals.achieved,
        arrivals.due,
        share(arrivals.late),
        share(arrivals.dropped)
    )
}

/// A block for each request, in the order of the load; nothing for a load of one request, which is reported as a whole.
fn requests(requests: &[RequestOfLoad]) -> String {
    if requests.len() < 2 {
        return String::new();
    }
    let mut out = "Requests:\n".to_owned();
    for request in requests.iter().take(REQUESTS_MAX) {
        let (latency, decimals) = (request.totals.latency(), decimals(&request.totals.latency));
        let name = if request.request.is_empty() { &request.scenario } else { &request.request };
        out += &format!("  [{}] {} responses", clean(name), request.totals.ended());
        if latency.count > 0 {
            let [mean, p50, p95, p99] =
                [latency.mean_ns, latency.p50_ns as f64, latency.p95_ns as f64, latency.p99_ns as f64]
                    .map(|ns| seconds(ns, decimals));
            out += &format!(", average {mean}, 50% {p50}, 95% {p95}, 99% {p99} secs");
        }
        if request.totals.errors.total() > 0 {
            out += &format!(", errors: {}", errors_by_kind(request.totals.errors));
        }
        out.push('\n');
    }
    match requests.len().saturating_sub(REQUESTS_MAX) {
        0 => out,
        more => out + &format!("  and {more} more\n"),
    }
}

/// Four decimals as `hey` has them, six when the fastest value is below a millisecond.
fn decimals(histogram: &Histogram) -> usize {
    if histogram.min_ns() < 1_000_000 { 6 } else { 4 }
}

/// As many decimals as distinguish the rows of the histogram: three as `hey` has them, more where their bounds would read
/// alike or as zero.
fn decimals_of_rows(histogram: &Histogram) -> usize {
    let step = (histogram.max_ns() - histogram.min_ns()) as f64 / (ROWS - 1) as f64;
    let finest_ns =
        if step > 0.0 { step.min(histogram.min_ns().max(1) as f64) } else { histogram.min_ns().max(1) as f64 };
    let needed = (9.0 - finest_ns.log10()).ceil();
    (needed as usize).clamp(3, DECIMALS_MAX)
}

fn seconds(ns: f64, decimals: usize) -> String {
    format!("{:.decimals$}", ns / 1e9)
}

/// Six decimals; a time too short for them is not zero. A response in one piece takes no time from its first byte to
/// its last.
fn short_seconds(ns: f64) -> String {
    const SHOWN_FROM_NS: f64 = 500.0;
    if ns < SHOWN_FROM_NS { "<0.000001".to_owned() } else { seconds(ns, 6) }
}

/// Upper bound (nanoseconds) and count of each row; together the counts are all values. The first row holds the
/// fastest value alone unless others share its bucket's middle.
fn rows(histogram: &Histogram) -> Vec<(f64, u64)> {
    let (low, high) = (histogram.min_ns() as f64, histogram.max_ns() as f64);
    let step = (high - low) / (ROWS - 1) as f64;
    let count = if step > 0.0 { ROWS } else { 1 };
    let mut rows: Vec<(f64, u64)> = (0..count).map(|row| (low + step * row as f64, 0)).collect();
    for bucket in histogram.buckets() {
        let middle = ((bucket.lower_ns + bucket.upper_ns) as f64 / 2.0).clamp(low, high);
        let row = if step > 0.0 { ((middle - low) / step).ceil() as usize } else { 0 };
        rows[row.min(count - 1)].1 += bucket.count;
    }
    if rows[0].1 == 0
        && let Some((_, count)) = rows.iter_mut().skip(1).find(|(_, count)| *count > 0)
    {
        *count -= 1;
        rows[0].1 = 1;
    }
    rows
}

fn histogram(latency: &Histogram) -> String {
    if latency.count() == 0 {
        return String::new();
    }
    let rows = rows(latency);
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let digits = most.to_string().len() + 2;
    let decimals = decimals_of_rows(latency);
    let mut out = "Response time histogram:\n".to_owned();
    for (upper, count) in rows {
        let bar = "■".repeat(((count * BAR_WIDTH * 2 / most).div_ceil(2)) as usize);
        let count = format!("[{count}]");
        out += format!("  {} {count:<digits$} |{bar}", seconds(upper, decimals)).trim_end();
        out.push('\n');
    }
    out
}

fn distribution(latency: &Histogram) -> String {
    if latency.count() == 0 {
        return String::new();
    }
    let decimals = decimals(latency);
    let mut out = "Latency distribution:\n".to_owned();
    for share in SHARES {
        let at = latency.quantile_ns(f64::from(share) / 100.0) as f64;
        out += &format!("  {share}% in {} secs\n", seconds(at, decimals));
    }
    out
}

fn details(summary: &LoadSummary) -> String {
    if summary.statuses.is_empty() {
        return String::new();
    }
    let mut parts = vec![
        ("DNS+dialup:", &summary.dialup),
        ("req write:", &summary.request_write),
        ("resp wait:", &summary.response_wait),
        ("resp read:", &summary.response_read),
    ];
    if summary.tls.count > 0 {
        parts.insert(1, ("TLS:", &summary.tls));
    }
    let mut out = "Details (average, fastest, slowest):\n".to_owned();
    for (name, part) in parts {
        let values = [part.mean_ns(), part.min_ns as f64, part.max_ns as f64].map(short_seconds);
        out += &format!("  {name:<12} {} secs, {} secs, {} secs\n", values[0], values[1], values[2]);
    }
    out
}

fn statuses(statuses: &BTreeMap<u16, u64>) -> String {
    if statuses.is_empty() {
        return String::new();
    }
    let mut out = "Status code distribution:\n".to_owned();
    statuses.iter().for_each(|(status, count)| out += &format!("  [{status}] {count} responses\n"));
    out
}

fn errors(causes: &[ErrorCause]) -> String {
    if causes.is_empty() {
        return String::new();
    }
    let mut out = "Error distribution:\n".to_owned();
    for cause in causes {
        out += &format!("  [{}] {}: {}\n", cause.count, in_words(cause.kind), clean(&cause.text));
    }
    out
}

fn in_words(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Connect => "no connection could be opened",
        ErrorKind::Reset => "the connection broke before the response was complete",
        ErrorKind::Timeout => "no complete response in time",
        ErrorKind::Protocol => "the response was not HTTP",
        ErrorKind::Status => "a status of 400 or above, or one that the checks do not allow",
        ErrorKind::Check => "the response failed a check",
    }
}

fn validity(validity: &Validity) -> String {
    let verdict = match validity.verdict {
        Verdict::Valid => return "Validity: valid. Nothing speaks against these numbers.\n".to_owned(),
        Verdict::Doubtful => "doubtful",
        Verdict::Invalid => "INVALID",
    };
    format!("Validity: {verdict}. {}\n", clean(&validity.reasons.join(" ")))
}

#[cfg(test)]
mod tests {
    use narrows_model::evidence::LoadTotals;

    use super::*;

    fn histogram_of(values_us: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        values_us.into_iter().for_each(|us| histogram.record(us * 1000));
        histogram
    }

    fn spread_of(values_us: impl IntoIterator<Item = i64>) -> Spread {
        let mut spread = Spread::default();
        values_us.into_iter().for_each(|us| spread.add(0, us * 1000));
        spread
    }

    fn summary() -> LoadSummary {
        LoadSummary {
            url: "http://127.0.0.1:8080/orders".to_owned(),
            total: Duration::from_millis(2000),
            latency: histogram_of((0..1000).map(|n| 2_000 + n * n / 50)),
            bytes: 2_400_000,
            dialup: spread_of([90, 110, 130]),
            request_write: spread_of([4, 5, 9]),
            response_wait: spread_of([1_900, 2_500]),
            response_read: spread_of([20, 40]),
            statuses: BTreeMap::from([(200, 990), (503, 10)]),
            causes: vec![ErrorCause { kind: ErrorKind::Timeout, text: "nothing came".to_owned(), count: 3 }],
            ..LoadSummary::default()
        }
    }

    #[test]
    fn reads_like_hey() {
        insta::assert_snapshot!(load_summary(&summary()), @r"
        Summary:
          URL:          http://127.0.0.1:8080/orders
          Total:        2.0000 secs
          Slowest:      0.0220 secs
          Fastest:      0.0020 secs
          Average:      0.0087 secs
          Requests/sec: 500.0000

          Total data:   2400000 bytes (2.29 MiB)
          Size/request: 2400 bytes

        Response time histogram:
          0.002 [1]   |
          0.004 [316] |■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
          0.006 [129] |■■■■■■■■■■■■■■■■
          0.008 [102] |■■■■■■■■■■■■■
          0.010 [83]  |■■■■■■■■■■■
          0.012 [74]  |■■■■■■■■■
          0.014 [71]  |■■■■■■■■■
          0.016 [61]  |■■■■■■■■
          0.018 [60]  |■■■■■■■■
          0.020 [50]  |■■■■■■
          0.022 [53]  |■■■■■■■

        Latency distribution:
          10% in 0.0022 secs
          25% in 0.0032 secs
          50% in 0.0070 secs
          75% in 0.0132 secs
          90% in 0.0182 secs
          95% in 0.0201 secs
          99% in 0.0216 secs

        Details (average, fastest, slowest):
          DNS+dialup:  0.000110 secs, 0.000090 secs, 0.000130 secs
          req write:   0.000006 secs, 0.000004 secs, 0.000009 secs
          resp wait:   0.002200 secs, 0.001900 secs, 0.002500 secs
          resp read:   0.000030 secs, 0.000020 secs, 0.000040 secs

        Status code distribution:
          [200] 990 responses
          [503] 10 responses

        Error distribution:
          [3] no complete response in time: nothing came

        Validity: valid. Nothing speaks against these numbers.
        ");
    }

    fn step(request: &str, latency_us: u64, checks: u64) -> RequestOfLoad {
        let mut totals =
            LoadTotals { succeeded: 100, latency: histogram_of([latency_us; 100]), ..LoadTotals::default() };
        totals.errors.check = checks;
        RequestOfLoad { scenario: "load".to_owned(), request: request.to_owned(), totals }
    }

    #[test]
    fn an_open_load_of_several_requests_over_tls() {
        let arrivals = ArrivalsSummary { offered: 100.0, achieved: 97.5, due: 200, late: 9, dropped: 5 };
        let text = load_summary(&LoadSummary {
            arrivals: Some(arrivals),
            requests: vec![step("list", 2_000, 0), step("pay", 70, 3)],
            tls: spread_of([900, 1_100]),
            ..summary()
        });
        let sections: Vec<&str> = text.split("\n\n").collect();
        insta::assert_snapshot!(format!("{}\n\n{}\n\n{}", sections[2], sections[3], sections[6]), @r"
        Arrivals:
          Offered/sec:  100.0000
          Achieved/sec: 97.5000
          Due:          200
          Late:         9 (4.5 %)
          Dropped:      5 (2.5 %)

        Requests:
          [list] 100 responses, average 0.0020, 50% 0.0020, 95% 0.0020, 99% 0.0020 secs
          [pay] 103 responses, average 0.000070, 50% 0.000070, 95% 0.000070, 99% 0.000070 secs, errors: 3 check

        Details (average, fastest, slowest):
          DNS+dialup:  0.000110 secs, 0.000090 secs, 0.000130 secs
          TLS:         0.001000 secs, 0.000900 secs, 0.001100 secs
          req write:   0.000006 secs, 0.000004 secs, 0.000009 secs
          resp wait:   0.002200 secs, 0.001900 secs, 0.002500 secs
          resp read:   0.000030 secs, 0.000020 secs, 0.000040 secs
        ");
    }

    #[test]
    fn tiny_latencies_read_as_what_they_are() {
        let text = load_summary(&LoadSummary {
            total: Duration::from_micros(3_141),
            latency: histogram_of((0..100).map(|n| 41 + n % 10)),
            statuses: BTreeMap::from([(200, 100)]),
            dialup: spread_of([30]),
            request_write: spread_of([4]),
            response_wait: spread_of([35]),
            response_read: spread_of([0]),
            ..summary()
        });
        let sections: Vec<&str> = text.split("\n\n").collect();
        let told = [sections[0], sections[2], sections[3], sections[4]].join("\n\n");
        insta::assert_snapshot!(told, @r"
        Summary:
          URL:          http://127.0.0.1:8080/orders
          Total:        0.003141 secs
          Slowest:      0.000050 secs
          Fastest:      0.000041 secs
          Average:      0.000046 secs
          Requests/sec: 31836.9946

        Response time histogram:
          0.0000410 [1]  |■■
          0.0000419 [9]  |■■■■■■■■■■■■■■■■■■
          0.0000428 [20] |■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
          0.0000437 [0]  |
          0.0000446 [10] |■■■■■■■■■■■■■■■■■■■■
          0.0000455 [10] |■■■■■■■■■■■■■■■■■■■■
          0.0000464 [10] |■■■■■■■■■■■■■■■■■■■■
          0.0000473 [10] |■■■■■■■■■■■■■■■■■■■■
          0.0000482 [10] |■■■■■■■■■■■■■■■■■■■■
          0.0000491 [10] |■■■■■■■■■■■■■■■■■■■■
          0.0000500 [10] |■■■■■■■■■■■■■■■■■■■■

        Latency distribution:
          10% in 0.000041 secs
          25% in 0.000043 secs
          50% in 0.000045 secs
          75% in 0.000048 secs
          90% in 0.000049 secs
          95% in 0.000050 secs
          99% in 0.000050 secs

        Details (average, fastest, slowest):
          DNS+dialup:  0.000030 secs, 0.000030 secs, 0.000030 secs
          req write:   0.000004 secs, 0.000004 secs, 0.000004 secs
          resp wait:   0.000035 secs, 0.000035 secs, 0.000035 secs
          resp read:   <0.000001 secs, <0.000001 secs, <0.000001 secs
        ");
        let slow_half = histogram_of([40; 10].into_iter().chain([90_000; 90]));
        assert!(distribution(&slow_half).contains("10% in 0.000040 secs"), "the fast ones are not zero");
        let alike = histogram(&histogram_of([41; 100]));
        assert_eq!(alike.lines().count(), 2, "one row where all are alike: {alike}");
    }

    #[test]
    fn every_response_is_in_one_row() {
        for latency in [summary().latency, histogram_of([7]), histogram_of([1, 1, 1]), histogram_of([0, 5_000_000])] {
            assert_eq!(rows(&latency).iter().map(|(_, count)| count).sum::<u64>(), latency.count());
        }
    }

    #[test]
    fn a_load_without_responses_is_reported_plainly() {
        let causes = vec![ErrorCause { kind: ErrorKind::Connect, text: "Connection refused".to_owned(), count: 12 }];
        let validity = Validity { verdict: Verdict::Invalid, reasons: vec!["No request got a response.".to_owned()] };
        let text = load_summary(&LoadSummary { causes, validity, ..LoadSummary::default() });
        assert!(!text.contains("NaN") && !text.contains("histogram"), "{text}");
        assert!(text.contains("[12] no connection could be opened: Connection refused"), "{text}");
        assert!(text.ends_with("Validity: INVALID. No request got a response.\n"), "{text}");
    }
}
