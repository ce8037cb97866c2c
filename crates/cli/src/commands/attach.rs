//! `narrows attach --for 60s`: collects from a system that already runs, under whatever load, then reports findings.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_diagnose::words::trial_caveat;
use narrows_lab::attach::{ArrivalCounts, Event, Options, attach};
use narrows_lab::experiment::{OTLP_TOKEN_VARIABLE, ServerUrl};
use narrows_model::units;
use narrows_telemetry::otlp::{NotAToken, Token, is_loopback};
use narrows_telemetry::scrape::Endpoint;

use crate::exit::Failure;
use crate::live::Screen;
use crate::watched::{WatchedArguments, named};
use crate::{Outcome, runs_folder, stderr};

/// The value of `--otlp` for no receiver.
const NOWHERE: &str = "none";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How long to collect; Ctrl-C ends it early, as a complete run
    #[arg(long = "for", value_name = "DURATION", value_parser = some_time)]
    duration: Duration,
    /// Listen for OTLP here, HTTP and gRPC on each; `none` turns it off
    #[arg(
        long,
        value_name = "ADDRESS",
        value_delimiter = ',',
        default_value = "127.0.0.1:4318,127.0.0.1:4317",
        value_parser = listen_on
    )]
    otlp: Vec<ListenOn>,
    /// The bearer token that senders of OTLP must present; addresses beyond loopback always need one
    ///
    /// Other users of this machine can read it in the output of `ps`: the environment variable NARROWS_OTLP_TOKEN sets it too.
    /// Without either, a random token is made for addresses beyond loopback and printed once.
    #[arg(long, value_name = "TOKEN", value_parser = token)]
    token: Option<Result<Token, NotAToken>>,
    #[command(flatten)]
    watched: WatchedArguments,
    /// Scrape this page of metrics, in Prometheus' text format or OpenMetrics; may be given several times
    #[arg(long, value_name = "[NAME=]URL", value_parser = endpoint)]
    prometheus: Vec<Endpoint>,
    /// Ask this PostgreSQL, MariaDB, MySQL or Redis server about itself as that service; may be given several times
    ///
    /// Other users of this machine can read a password in the URL in the output of `ps`. Without one, PGPASSWORD, MYSQL_PWD
    /// or REDISCLI_AUTH is used.
    #[arg(long, value_name = "NAME=URL", value_parser = named_server)]
    observe: Vec<(String, ServerUrl)>,
    /// Interval between samples of processes and of pages of metrics
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = interval)]
    every: Duration,
    /// The service whose server spans are the requests [default: those that no other span caused]
    #[arg(long, value_name = "SERVICE")]
    target: Option<String>,
    /// How long after the end to accept spans that senders still buffer
    #[arg(long, value_name = "DURATION", default_value = "5500ms", value_parser = time_or_none)]
    settle: Duration,
    /// The run's name
    #[arg(long, value_name = "NAME", default_value = "attach", value_parser = run_name)]
    name: String,
    /// The run file [default: runs/NAME-DATE-TIME.narrows]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A value of `--otlp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListenOn {
    Address(SocketAddr),
    Nowhere,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let options = options(arguments, &Tokens::find(arguments)?)?;
    for (address, _) in options.otlp.iter().filter(|(address, _)| !is_loopback(address.ip())) {
        stderr::say(&format!(
            "caveat: other machines can reach {address}, and OTLP is not encrypted there: the network can read the token"
        ));
    }
    let stop =
        crate::signals::stop_flag().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
    let mut screen = Screen::new();
    let collected = attach(&options, &stop, &mut |event| tell(&mut screen, event));
    screen.clear();
    collected?;
    conclude(&options.path, arguments.json)
}

/// The token of each address.
enum Tokens {
    /// Given by the user: for every address.
    Given(Token),
    /// Made up: for addresses beyond loopback.
    Random(Token),
    /// All addresses are of loopback.
    NotNeeded,
}

impl Tokens {
    fn find(arguments: &Arguments) -> Result<Self, Failure> {
        if let Some(token) = &arguments.token {
            return token.clone().map(Self::Given).map_err(|error| Failure::new(format!("invalid --token: {error}")));
        }
        let invalid = |error| Failure::new(format!("invalid {OTLP_TOKEN_VARIABLE}: {error}"));
        if let Some(token) = Token::of_variable(OTLP_TOKEN_VARIABLE).map_err(invalid)? {
            return Ok(Self::Given(token));
        }
        if arguments.addresses().all(|address| is_loopback(address.ip())) {
            return Ok(Self::NotNeeded);
        }
        let token = Token::random().map_err(|error| {
            Failure::new(format!("cannot make a random token from /dev/urandom: {error}"))
                .hint(format!("set one in {OTLP_TOKEN_VARIABLE}"))
        })?;
        let secret = token.secret();
        stderr::say(&format!("senders need OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20{secret}"));
        Ok(Self::Random(token))
    }

    fn for_address(&self, address: &SocketAddr) -> Option<Token> {
        match self {
            Self::Given(token) => Some(token.clone()),
            Self::Random(token) => (!is_loopback(address.ip())).then(|| token.clone()),
            Self::NotNeeded => None,
        }
    }
}

impl Arguments {
    fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.otlp.iter().filter_map(|listen| match listen {
            ListenOn::Address(address) => Some(*address),
            ListenOn::Nowhere => None,
        })
    }
}

fn options(arguments: &Arguments, tokens: &Tokens) -> Result<Options, Failure> {
    let otlp = arguments.addresses().map(|address| (address, tokens.for_address(&address)));
    let options = Options {
        name: arguments.name.clone(),
        path: arguments.out.clone().unwrap_or_else(|| runs_folder::new_path(&arguments.name)),
        duration: arguments.duration,
        settle: arguments.settle,
        interval: arguments.every,
        otlp: otlp.collect(),
        target: arguments.target.clone(),
        processes: arguments.watched.pids.clone(),
        cgroups: arguments.watched.cgroups(),
        endpoints: arguments.prometheus.clone(),
        servers: arguments.observe.clone(),
    };
    if options.otlp.len() < arguments.otlp.len() && arguments.otlp.len() > 1 {
        return Err(Failure::new(format!("--otlp {NOWHERE} cannot be combined with an address")));
    }
    let is_nothing = options.processes.is_empty()
        && options.cgroups.is_empty()
        && options.endpoints.is_empty()
        && options.servers.is_empty();
    if options.otlp.is_empty() && is_nothing {
        return Err(Failure::new(format!("--otlp {NOWHERE} leaves nothing to collect"))
            .hint("name a process with --pid, a container with --container, a control group with --cgroup, a page with --prometheus or a server with --observe"));
    }
    Ok(options)
}

/// Prints what a run file of an observed system shows, and where it is.
pub(super) fn conclude(path: &Path, is_json: bool) -> Outcome {
    let outcome = narrows_lab::conclude::outcome(path)?;
    let exit = match is_json {
        true => super::print_json(narrows_report::json::outcome(&outcome)),
        false => super::print_painted(&format!("\n{}", narrows_report::text::outcome(&outcome, super::style()))),
    }?;
    super::say_where(path);
    Ok(exit)
}

fn tell(screen: &mut Screen, event: &Event<'_>) {
    match event {
        Event::Began { path, listening } => {
            let listening: Vec<String> = listening.iter().map(ToString::to_string).collect();
            let place = if listening.is_empty() { "nothing".to_owned() } else { listening.join(" and ") };
            screen.keep(&format!("{}: collecting; OTLP on {place}", path.display()));
        }
        Event::Second { elapsed, duration, arrived } => {
            let line = progress(*elapsed, *duration, arrived);
            match screen.width() {
                Some(_) => screen.show(&[line]),
                None => screen.say_now_and_then(|| line),
            }
        }
        Event::Settling(time) => screen.phase(&format!("  waiting {} for the last spans", time_of(*time))),
        Event::Caveat(caveat) => screen.keep(&format!("  caveat: {}", trial_caveat(caveat))),
    }
}

/// `  12s of 60s: 1,204 spans, 36 metric points, 0 log records; 480 points scraped`
fn progress(elapsed: Duration, duration: Duration, arrived: &ArrivalCounts) -> String {
    let count = units::count;
    let scraped = match (arrived.scraped, arrived.missing_pages) {
        (0, 0) => String::new(),
        (points, 0) => format!("; {} points scraped", count(points)),
        (points, missing) => format!("; {} points scraped, {} pages missing", count(points), count(missing)),
    };
    let refused = match arrived.unauthenticated {
        0 => String::new(),
        refused => format!("; {} requests refused without the token", count(refused)),
    };
    format!(
        "  {} of {}: {} spans, {} metric points, {} log records{scraped}{refused}",
        time_of(Duration::from_secs(elapsed.as_secs())),
        time_of(duration),
        count(arrived.spans),
        count(arrived.points),
        count(arrived.logs),
    )
}

fn time_of(duration: Duration) -> String {
    units::duration(duration.as_nanos() as f64)
}

/// A run's name, which is part of its file's.
pub(super) fn run_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name =
        text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.len() <= 64 && text.chars().all(is_plain);
    if is_name { Ok(text.to_owned()) } else { Err("expected letters, digits, `-`, `_` and `.`, at most 64".to_owned()) }
}

fn time_or_none(text: &str) -> Result<Duration, String> {
    narrows_lab::experiment::parse_duration(text)
        .ok_or_else(|| "expected a duration such as 500ms, 10s, 1m30s".to_owned())
}

fn some_time(text: &str) -> Result<Duration, String> {
    time_or_none(text)?.checked_sub(Duration::from_millis(1)).ok_or("expected more than 0")?;
    time_or_none(text)
}

fn interval(text: &str) -> Result<Duration, String> {
    let least = narrows_sampler::INTERVAL_MIN;
    time_or_none(text)?.checked_sub(least).ok_or_else(|| format!("expected {} or more", time_of(least)))?;
    time_or_none(text)
}

/// Never an error here: clap would print the value with it.
fn token(text: &str) -> Result<Result<Token, NotAToken>, Infallible> {
    Ok(Token::parse(text))
}

fn listen_on(text: &str) -> Result<ListenOn, String> {
    if text == NOWHERE {
        return Ok(ListenOn::Nowhere);
    }
    let address = narrows_lab::experiment::listen_address(text);
    address.map(ListenOn::Address).ok_or_else(|| "expected an address and a port such as 127.0.0.1:4318".to_owned())
}

fn named_server(text: &str) -> Result<(String, ServerUrl), String> {
    let (name, url) = named(text).ok_or("expected a service and a URL such as db=postgres://user@host:5432/shop")?;
    Ok((name.to_owned(), ServerUrl::parse(url)?))
}

fn endpoint(text: &str) -> Result<Endpoint, String> {
    Endpoint::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn values_are_read_or_refused() {
        let loopback = |port| Ok(ListenOn::Address(SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
        assert_eq!(listen_on("127.0.0.1:4318"), loopback(4318));
        assert_eq!(listen_on("4318"), loopback(4318));
        assert_eq!(listen_on("none"), Ok(ListenOn::Nowhere));
        assert!(listen_on("localhost").is_err() && listen_on("70000").is_err());
        assert!(some_time("0").is_err() && some_time("1s").is_ok() && interval("10ms").is_err());
        assert!(run_name("a-b.1").is_ok() && run_name("../a").is_err() && run_name("").is_err());
    }

    #[test]
    fn progress_says_what_came() {
        let arrived =
            ArrivalCounts { spans: 1204, points: 36, logs: 0, unauthenticated: 1, scraped: 480, missing_pages: 2 };
        let line = progress(Duration::from_millis(12_300), Duration::from_secs(60), &arrived);
        assert!(
            line.contains(
                "spans, 36 metric points, 0 log records; 480 points scraped, 2 pages missing; 1 requests refused"
            ),
            "{line}"
        );
    }
}
