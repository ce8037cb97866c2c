//! `narrows load URL`: one-shot load with hey's flags and hey's meaning.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use narrows_lab::resolve::resolve;
use narrows_load::{Clock, LoadOutcome};
use narrows_model::load::{Connections, LoadBatch, LoadModel, LoadPlan, RequestTemplate, Scenario, Template};
use narrows_model::units;
use narrows_report::text::{LoadSummary, load_summary};

use crate::Outcome;
use crate::exit::{Exit, Failure, with_causes};
use crate::live::{Spark, StatusLine, distinct_seconds, latency_text};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where to send requests, such as http://127.0.0.1:8080/path
    url: String,
    /// Number of requests in total, exactly
    #[arg(short = 'n', value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    requests: u64,
    /// Number of workers, each with a connection of its own
    #[arg(short = 'c', value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    concurrency: u32,
    /// Rate limit in requests per second for each worker; 0 is no limit
    #[arg(short = 'q', value_name = "RATE", default_value_t = 0.0, value_parser = rate)]
    rate: f64,
    /// Send for this long, such as 10s or 3m; -n is then ignored
    #[arg(short = 'z', value_name = "DURATION", value_parser = duration)]
    duration: Option<Duration>,
    /// HTTP method
    #[arg(short = 'm', value_name = "METHOD", default_value = "GET")]
    method: String,
    /// A header, "Name: value"; may be given several times
    #[arg(short = 'H', value_name = "HEADER", value_parser = header)]
    header: Vec<(String, String)>,
    /// The request's body
    #[arg(short = 'd', value_name = "BODY", conflicts_with = "body_file")]
    body: Option<String>,
    /// The request's body from a file
    #[arg(short = 'D', value_name = "FILE")]
    body_file: Option<PathBuf>,
    /// Timeout for each request in seconds; 0 is none
    #[arg(short = 't', value_name = "SECONDS", default_value_t = 20)]
    timeout: u64,
    /// Content-Type of the body
    #[arg(short = 'T', value_name = "TYPE", default_value = "text/html")]
    content_type: String,
    /// Accept header
    #[arg(short = 'A', value_name = "TYPE")]
    accept: Option<String>,
    /// Host header
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// User-Agent header
    #[arg(short = 'U', value_name = "TEXT")]
    user_agent: Option<String>,
    /// Close the connection after each request
    #[arg(long)]
    disable_keepalive: bool,
    /// Ask for uncompressed answers, as is always done
    #[arg(long)]
    disable_compression: bool,
    /// Do not follow redirects, as is always done
    #[arg(long)]
    disable_redirects: bool,
}

const TIMEOUT_NONE: Duration = Duration::from_secs(365 * 24 * 3600);
const DRAIN: Duration = Duration::from_secs(30);

fn rate(text: &str) -> Result<f64, String> {
    const LEAST: f64 = 1e-6;
    const MOST: f64 = 1e9;
    match text.parse::<f64>() {
        Ok(rate) if rate == 0.0 || (LEAST..=MOST).contains(&rate) => Ok(rate),
        _ => Err("expected requests per second, such as 10 or 0.5; 0 is no limit".to_owned()),
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

fn duration(text: &str) -> Result<Duration, String> {
    narrows_lab::experiment::parse_duration(text)
        .ok_or_else(|| "expected a duration such as 500ms, 10s, 1m30s".to_owned())
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

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let plan = plan(arguments)?;
    let stop =
        crate::signals::stop_flag().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
    let (sender, batches) = sync_channel(64);
    let outcome = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let sender = sender;
            narrows_load::run(&plan, Clock::new(), &stop, &sender)
        });
        follow(&batches);
        load.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let outcome = outcome.map_err(|error| Failure::new(with_causes(&error)))?;
    let has_success = outcome.totals.succeeded > 0;
    super::print(&load_summary(&summary(&arguments.url, outcome)))?;
    Ok(if has_success { Exit::Fine } else { Exit::VerdictFailed })
}

fn summary(url: &str, outcome: LoadOutcome) -> LoadSummary {
    LoadSummary {
        url: url.to_owned(),
        total: Duration::from_nanos((outcome.ended_ns - outcome.started_ns).max(0) as u64),
        latency: outcome.totals.latency,
        bytes: outcome.body_bytes,
        dialup: outcome.phases.connect,
        request_write: outcome.phases.write,
        response_wait: outcome.phases.wait,
        response_read: outcome.phases.read,
        statuses: outcome.statuses,
        causes: outcome.causes,
        validity: outcome.validity,
    }
}

/// Shows the load while it lasts, from its second second on.
fn follow(batches: &Receiver<LoadBatch>) {
    let mut line = StatusLine::new();
    let mut spark = Spark::default();
    let (start, mut total) = (Instant::now(), 0);
    for batch in batches {
        let done: u64 = batch.seconds.iter().map(|row| row.succeeded + row.errors.total()).sum();
        total += done;
        let per_second = done as f64 / distinct_seconds(&batch.seconds).max(1) as f64;
        spark.add(per_second);
        if start.elapsed() >= Duration::from_secs(2) {
            line.show(&format!(
                "{:>3} s  {} requests  {}  {}  {}",
                start.elapsed().as_secs(),
                units::count(total),
                units::rate(per_second),
                latency_text(&batch.seconds),
                spark.draw()
            ));
        }
    }
    line.clear();
}

fn plan(arguments: &Arguments) -> Result<LoadPlan, Failure> {
    let target = Target::parse(&arguments.url)?;
    if arguments.duration.is_none() && arguments.requests < u64::from(arguments.concurrency) {
        return Err(Failure::new(format!("-n {} is less than -c {}", arguments.requests, arguments.concurrency))
            .hint("every worker sends at least one request: raise -n or lower -c"));
    }
    let vus = arguments.concurrency;
    let model = match arguments.duration {
        Some(duration) => LoadModel::ConstantVus { vus, duration },
        None => LoadModel::SharedIterations { vus, iterations: arguments.requests, max_duration: None },
    };
    Ok(LoadPlan {
        targets: vec![target.address()?],
        scenarios: vec![Scenario {
            name: "load".to_owned(),
            model,
            warmup: Duration::ZERO,
            request: request(arguments, &target)?,
            think_time: Duration::ZERO,
            pace: (arguments.rate > 0.0).then(|| Duration::from_secs_f64(1.0 / arguments.rate)),
        }],
        data: Vec::new(),
        tracing: None,
        timeout: if arguments.timeout == 0 { TIMEOUT_NONE } else { Duration::from_secs(arguments.timeout) },
        drain: DRAIN,
        seed: 1,
        threads: narrows_lab::environment::cores().min(vus) as usize,
        connections: if arguments.disable_keepalive { Connections::PerRequest } else { Connections::KeepAlive },
    })
}

fn request(arguments: &Arguments, target: &Target) -> Result<RequestTemplate, Failure> {
    let body = match (&arguments.body, &arguments.body_file) {
        (Some(body), _) => Some(body.clone()),
        (None, Some(path)) => Some(
            std::fs::read_to_string(path)
                .map_err(|error| Failure::new(format!("cannot read the body from {}: {error}", path.display())))?,
        ),
        (None, None) => None,
    };
    let mut headers: Vec<(String, Template)> =
        arguments.header.iter().map(|(name, value)| (name.clone(), Template::text(value))).collect();
    let mut add = |name: &str, value: &str| {
        if !headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)) {
            headers.push((name.to_owned(), Template::text(value)));
        }
    };
    if let Some(accept) = &arguments.accept {
        add("Accept", accept);
    }
    if let Some(user_agent) = &arguments.user_agent {
        add("User-Agent", user_agent);
    }
    if body.is_some() {
        add("Content-Type", &arguments.content_type);
    }
    Ok(RequestTemplate {
        method: arguments.method.to_ascii_uppercase(),
        path: Template::text(&target.path),
        headers,
        body: body.map(Template::text),
        host: arguments.host.clone().unwrap_or_else(|| target.authority.clone()),
    })
}

/// A parsed URL.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    authority: String,
    path: String,
}

impl Target {
    fn parse(url: &str) -> Result<Self, Failure> {
        if url.starts_with("https://") {
            return Err(
                Failure::new(format!("{url}: https is not supported yet")).hint("put load on the plain http port")
            );
        }
        let wrong =
            || Failure::new(format!("`{url}` is not a URL")).hint("expected something like http://127.0.0.1:8080/path");
        let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let is_sendable = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let has_user = authority.contains('@');
        let has_wrong_port = authority.rsplit_once(':').is_some_and(|(host, port)| {
            !port.contains(']') && !host.is_empty() && !port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        if has_user {
            return Err(Failure::new(format!("`{url}` has a user in it"))
                .hint("give it as a header: -H 'Authorization: Basic …'"));
        }
        if has_wrong_port {
            return Err(Failure::new(format!("the port of `{url}` is not a number from 1 to 65535")));
        }
        if authority.is_empty() || !is_sendable(authority) || !is_sendable(path) {
            return Err(wrong());
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { authority: authority.to_owned(), path })
    }

    fn address(&self) -> Result<SocketAddr, Failure> {
        resolve(&self.authority)
            .map_err(|reason| Failure::new(format!("cannot find the address of `{}`: {reason}", self.authority)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let parse = |url: &str| Target::parse(url).ok().map(|target| (target.authority, target.path));
        let pair = |authority: &str, path: &str| Some((authority.to_owned(), path.to_owned()));
        assert_eq!(parse("http://a:80/x?y=1#z"), pair("a:80", "/x?y=1"));
        assert_eq!(parse("http://a"), pair("a", "/"));
        assert_eq!(parse("http://a?q"), pair("a", "/?q"));
        for wrong in [
            "a",
            "http://",
            "http://u:p@a/",
            "http://a:99999/",
            "http://a:0",
            "http://a:b",
            "https://a",
            "http://a/b c",
            "ftp://a",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

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
}
