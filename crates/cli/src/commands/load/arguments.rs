//! The arguments of `narrows load`: hey's flags with hey's meaning, and beside them what hey has not.
//!
//! Errors in a single argument are reported here; conflicts between two, where the plan is made.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use narrows_lab::experiment::Objective;
use narrows_model::load::{Arrivals, Retry};

use super::addresses::{AddressRange, address_range};

/// The most connections that may be requested.
const CONNECTIONS_MAX: i64 = 100_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where to send requests, such as http://127.0.0.1:8080/path
    pub(super) url: String,
    /// Number of requests in total, exact (approximate with --arrivals poisson)
    #[arg(short = 'n', value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) requests: u64,
    /// Number of workers, each with its own connection; no effect with --rate [default: 50]
    #[arg(short = 'c', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=CONNECTIONS_MAX))]
    pub(super) concurrency: Option<u32>,
    /// Rate limit in requests per second for each worker; 0 is no limit
    #[arg(short = 'q', value_name = "RATE", default_value_t = 0.0, value_parser = rate_limit)]
    pub(super) rate_limit: f64,
    /// Send for this long, such as 10s or 3m; -n is then ignored
    #[arg(short = 'z', value_name = "DURATION", value_parser = duration)]
    pub(super) duration: Option<Duration>,
    /// HTTP method
    #[arg(short = 'm', value_name = "METHOD", default_value = "GET")]
    pub(super) method: String,
    /// A header, "Name: value"; may be given several times
    #[arg(short = 'H', value_name = "HEADER", value_parser = header)]
    pub(super) header: Vec<(String, String)>,
    /// The request's body
    #[arg(short = 'd', value_name = "BODY", conflicts_with = "body_file")]
    pub(super) body: Option<String>,
    /// The request's body from a file
    #[arg(short = 'D', value_name = "FILE")]
    pub(super) body_file: Option<PathBuf>,
    /// Timeout for each request in seconds; 0 is none
    #[arg(short = 't', value_name = "SECONDS", default_value_t = 20)]
    pub(super) timeout: u64,
    /// Content-Type of the body
    #[arg(short = 'T', value_name = "TYPE", default_value = "text/html")]
    pub(super) content_type: String,
    /// Accept header
    #[arg(short = 'A', value_name = "TYPE")]
    pub(super) accept: Option<String>,
    /// Host header
    #[arg(long, value_name = "HOST")]
    pub(super) host: Option<String>,
    /// User-Agent header
    #[arg(short = 'U', value_name = "TEXT")]
    pub(super) user_agent: Option<String>,
    /// Close the connection after each request
    #[arg(long)]
    pub(super) disable_keepalive: bool,
    /// Which requests are sent a second time when a kept connection breaks before the response: those with an idempotent
    /// method, such as GET and PUT, or none
    #[arg(long, value_name = "idempotent|never", default_value = "idempotent", value_parser = retry)]
    pub(super) retry: Retry,
    /// Do not request gzip. Response sizes are counted as sent, compressed or not
    #[arg(long)]
    pub(super) disable_compression: bool,
    /// Do not follow redirects; otherwise up to 10 are followed within the same server, a chain counting as one request
    #[arg(long)]
    pub(super) disable_redirects: bool,
    /// Use HTTP/2: over https as negotiated by ALPN, over http by prior knowledge
    #[arg(long, visible_alias = "h2")]
    pub(super) http2: bool,
    /// Trust any certificate
    #[arg(short = 'k', long, conflicts_with = "cacert")]
    pub(super) insecure: bool,
    /// Trust the authorities in this PEM file instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(super) cacert: Option<PathBuf>,
    #[command(flatten)]
    pub(super) open: OpenModel,
    #[command(flatten)]
    pub(super) goals: Goals,
    #[command(flatten)]
    pub(super) results: Results,
}

/// How the load is given where requests do not wait for workers, and from where.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Load")]
pub(super) struct OpenModel {
    /// Start this many requests per second in total, whether or not responses arrive (an open model). It lasts for
    /// the time of -z or for -n requests
    #[arg(long, value_name = "RATE", value_parser = arrival_rate, conflicts_with = "rate_limit")]
    pub(super) rate: Option<f64>,
    /// How the requests of --rate are spaced: evenly, or at random as those of many independent clients
    #[arg(long, value_name = "uniform|poisson", default_value = "uniform", value_parser = arrivals, requires = "rate")]
    pub(super) arrivals: Arrivals,
    /// The most connections of --rate at a time; a request that finds all of them busy waits and counts as late
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=CONNECTIONS_MAX), requires = "rate")]
    pub(super) max_connections: u32,
    /// Send for this long before anything counts
    #[arg(long, value_name = "DURATION", default_value = "0s", hide_default_value = true, value_parser = duration_or_none)]
    pub(super) warmup: Duration,
    /// Wait this long for outstanding responses after the last request was sent [default: as long as -t allows]
    #[arg(long, value_name = "DURATION", value_parser = duration_or_none)]
    pub(super) drain: Option<Duration>,
    /// Connect from these addresses in turn, such as 127.0.0.2,127.0.0.8-127.0.0.15
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',', value_parser = address_range)]
    pub(super) from_address: Vec<AddressRange>,
}

/// Conditions of exit code 1.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Verdict")]
pub(super) struct Goals {
    /// Count a response as a success only with one of these statuses, such as 200 or 200-299,304 [default: below 400]
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = status_range)]
    pub(super) check_status: Vec<(u16, u16)>,
    /// Exit with 1 unless this objective is met, such as "p95 < 10ms", "error_rate < 1%", "rate >= 100/s"; may be given
    /// several times
    #[arg(long, value_name = "OBJECTIVE", value_parser = narrows_lab::experiment::parse_objective)]
    pub(super) objective: Vec<Objective>,
    /// Stop early once an objective can no longer be met
    #[arg(long, requires = "objective")]
    pub(super) abort: bool,
    /// Exit with 1 when the generator's own numbers are invalid
    #[arg(long)]
    pub(super) strict: bool,
}

/// Outputs beside, or in place of, the summary.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Results")]
pub(super) struct Results {
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Write a row for each second
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Write a row for each request of a bounded sample, which includes the slowest of each second
    #[arg(long, value_name = "FILE")]
    pub(super) csv_requests: Option<PathBuf>,
    /// Write the latency of each second as an HdrHistogram log
    #[arg(long, value_name = "FILE")]
    pub(super) hdr: Option<PathBuf>,
    /// Write counters and latency as OpenMetrics text
    #[arg(long, value_name = "FILE")]
    pub(super) openmetrics: Option<PathBuf>,
}

fn rate_limit(text: &str) -> Result<f64, String> {
    const LEAST: f64 = 1e-6;
    const MOST: f64 = 1e9;
    match text.parse::<f64>() {
        Ok(rate) if rate == 0.0 || (LEAST..=MOST).contains(&rate) => Ok(rate),
        _ => Err("expected requests per second, such as 10 or 0.5; 0 is no limit".to_owned()),
    }
}

fn arrival_rate(text: &str) -> Result<f64, String> {
    use narrows_load::{RATE_MAX, RATE_MIN};
    let rate = text.strip_suffix("/s").unwrap_or(text).parse::<f64>().ok();
    rate.filter(|rate| (RATE_MIN..=RATE_MAX).contains(rate))
        .ok_or_else(|| format!("expected requests per second from {RATE_MIN} to {RATE_MAX}, such as 500"))
}

fn arrivals(text: &str) -> Result<Arrivals, String> {
    match text {
        "uniform" => Ok(Arrivals::Uniform),
        "poisson" => Ok(Arrivals::Poisson),
        _ => Err("expected uniform or poisson".to_owned()),
    }
}

fn retry(text: &str) -> Result<Retry, String> {
    match text {
        "idempotent" => Ok(Retry::Idempotent),
        "never" => Ok(Retry::Never),
        _ => Err("expected idempotent or never".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    narrows_lab::experiment::parse_duration(text)
        .ok_or_else(|| "expected a duration such as 500ms, 10s, 1m30s".to_owned())
}

fn duration_or_none(text: &str) -> Result<Duration, String> {
    if matches!(text, "0" | "0s") { Ok(Duration::ZERO) } else { duration(text) }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected `Name: value`")?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    match (name.trim(), value.trim()) {
        (name, value) if !name.is_empty() && name.bytes().all(is_token) && !value.contains(['\r', '\n', '\0']) => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected `Name: value`, the name of letters, digits and dashes".to_owned()),
    }
}

fn status_range(text: &str) -> Result<(u16, u16), String> {
    let status = |text: &str| text.trim().parse::<u16>().ok().filter(|status| (100..=999).contains(status));
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    match (status(from), status(to)) {
        (Some(from), Some(to)) if from <= to => Ok((from, to)),
        _ => Err("expected a status such as 200, or a range such as 200-299".to_owned()),
    }
}

/// hey writes its long flags with one dash. They mean the same here; those that do not exist here are then refused by
/// their name instead of being read as `-d` or `-h` and a value.
pub(crate) fn with_two_dashes(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    const LONG: [&str; 6] =
        ["-disable-keepalive", "-disable-compression", "-disable-redirects", "-host", "-h2", "-cpus"];
    let mut arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_some_and(|command| command == "load") {
        for argument in &mut arguments {
            if LONG.iter().any(|long| argument == long) {
                *argument = OsString::from(format!("-{}", argument.to_string_lossy()));
            }
        }
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heys_long_flags_get_their_second_dash() {
        let spelled = |line: &str| {
            let words = with_two_dashes(line.split(' ').map(OsString::from));
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(spelled("narrows load -disable-keepalive -n 5 u"), "narrows load --disable-keepalive -n 5 u");
        assert_eq!(spelled("narrows load -h2 -host a u"), "narrows load --h2 --host a u");
        assert_eq!(spelled("narrows run -host"), "narrows run -host");
    }

    #[test]
    fn headers() {
        assert_eq!(header("X-A: b c"), Ok(("X-A".into(), "b c".into())));
        for wrong in ["X-A", ": b", "X A: b", "A: b\r\nC: d"] {
            assert!(header(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_and_statuses_are_bounded() {
        assert_eq!((arrival_rate("2000"), arrival_rate("0.5/s")), (Ok(2000.0), Ok(0.5)));
        for wrong in ["", "0", "-1", "NaN", "inf", "1e9", "2k"] {
            assert!(arrival_rate(wrong).is_err(), "{wrong}");
        }
        assert_eq!((status_range("200"), status_range("200-299")), (Ok((200, 200)), Ok((200, 299))));
        for wrong in ["", "20", "2xx", "299-200", "200-", "70000"] {
            assert!(status_range(wrong).is_err(), "{wrong}");
        }
    }
}
