//! From the arguments to the plan that the load engine takes, and to the words that describe it.

use std::path::Path;
use std::time::Duration;

use narrows_model::load::{
    Arrivals, Check, Connections, Cookies, Flow, Iterations, LoadModel, LoadPlan, Protocol, RequestTemplate, Scenario,
    Step, Template, ThinkTime, Tls, Trust,
};
use narrows_model::units;

use super::addresses::all_of;
use super::arguments::Arguments;
use super::target::{Scheme, Target};
use crate::exit::Failure;

/// The name of the one scenario.
pub(super) const SCENARIO: &str = "load";
/// hey's number of workers.
const CONCURRENCY: u32 = 50;
const TIMEOUT_NONE: Duration = Duration::from_secs(365 * 24 * 3600);
/// As many as hey follows.
const REDIRECTS_MAX: u8 = 10;
/// One thread per so many requests per second of an open model: more would only wake up more often.
const RATE_PER_THREAD: f64 = 10_000.0;
/// Files with authorities above this are refused, in bytes.
const PEM_BYTES_MAX: u64 = 16 << 20;

pub(super) fn plan(arguments: &Arguments, target: &Target) -> Result<LoadPlan, Failure> {
    let model = model(arguments)?;
    let timeout = if arguments.timeout == 0 { TIMEOUT_NONE } else { Duration::from_secs(arguments.timeout) };
    Ok(LoadPlan {
        targets: vec![target.address()?],
        client_addresses: all_of(&arguments.open.from_address).map_err(Failure::new)?,
        protocol: if arguments.http2 { Protocol::Http2 } else { Protocol::Http1 },
        tls: tls(arguments, target)?,
        threads: threads(&model),
        scenarios: vec![Scenario {
            name: SCENARIO.to_owned(),
            model,
            warmup: arguments.open.warmup,
            flows: vec![Flow { name: String::new(), weight: 1.0, steps: vec![step(arguments, target)?] }],
            cookies: Cookies::Ignored,
            think_time: ThinkTime::default(),
            pace: (arguments.rate_limit > 0.0).then(|| Duration::from_secs_f64(1.0 / arguments.rate_limit)),
        }],
        data: Vec::new(),
        tracing: None,
        timeout,
        drain: arguments.open.drain.unwrap_or(timeout),
        retry: arguments.retry,
        seed: 1,
        connections: if arguments.disable_keepalive { Connections::PerRequest } else { Connections::KeepAlive },
    })
}

fn model(arguments: &Arguments) -> Result<LoadModel, Failure> {
    let vus = arguments.concurrency.unwrap_or(CONCURRENCY);
    if let Some(rate) = arguments.open.rate {
        let as_long_as_needed = || Duration::try_from_secs_f64(arguments.requests as f64 / rate);
        let duration = arguments.duration.map_or_else(as_long_as_needed, Ok).map_err(|_| {
            Failure::new(format!("-n {} at --rate {rate} takes longer than can be measured", arguments.requests))
                .hint("set the duration with -z")
        })?;
        let (vus_max, arrivals) = (arguments.open.max_connections, arguments.open.arrivals);
        return Ok(LoadModel::ConstantArrivalRate { rate, duration, vus_max, arrivals });
    }
    match arguments.duration {
        Some(duration) => Ok(LoadModel::ConstantVus { vus, duration }),
        None if arguments.requests < u64::from(vus) => {
            Err(Failure::new(format!("-n {} is less than -c {vus}", arguments.requests))
                .hint("every worker sends at least one request: raise -n or lower -c"))
        }
        None => {
            Ok(LoadModel::Iterations { vus, iterations: Iterations::Shared(arguments.requests), max_duration: None })
        }
    }
}

fn threads(model: &LoadModel) -> usize {
    let cores = narrows_lab::environment::cores();
    let limits = model.limits();
    let useful = match limits.rate_max {
        Some(rate) => (rate / RATE_PER_THREAD).ceil().min(f64::from(limits.vus_max)) as u32,
        None => limits.vus_max,
    };
    useful.clamp(1, cores.max(1)) as usize
}

fn tls(arguments: &Arguments, target: &Target) -> Result<Option<Tls>, Failure> {
    if target.scheme == Scheme::Http {
        return Ok(None);
    }
    let trust = match &arguments.cacert {
        _ if arguments.insecure => Trust::Anything,
        Some(path) => Trust::Authorities(authorities(path)?),
        None => Trust::System,
    };
    Ok(Some(Tls { server_name: target.host().to_owned(), trust }))
}

fn authorities(path: &Path) -> Result<Vec<u8>, Failure> {
    let wrong = |why: String| Failure::new(format!("cannot read the authorities from {}: {why}", path.display()));
    narrows_files::read(path, PEM_BYTES_MAX).map_err(|error| wrong(error.to_string()))
}

fn step(arguments: &Arguments, target: &Target) -> Result<Step, Failure> {
    let checks = match &arguments.goals.check_status {
        statuses if statuses.is_empty() => Vec::new(),
        statuses => vec![Check::Status(statuses.clone())],
    };
    let redirects_max = if arguments.disable_redirects { 0 } else { REDIRECTS_MAX };
    Ok(Step { checks, redirects_max, ..Step::new(request(arguments, target)?) })
}

fn request(arguments: &Arguments, target: &Target) -> Result<RequestTemplate, Failure> {
    let body = match (&arguments.body, &arguments.body_file) {
        (Some(body), _) => Some(body.clone()),
        (None, Some(path)) => Some(
            narrows_files::read_text(path, u64::MAX)
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
    if !arguments.disable_compression {
        add("Accept-Encoding", "gzip");
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

/// The load in words: `2,000/s in all, evenly spaced, for 5.00 s, over at most 1,000 connections`.
pub(super) fn in_words(plan: &LoadPlan) -> String {
    let Some(scenario) = plan.scenarios.first() else { return String::new() };
    let time = |time: &Duration| units::duration(time.as_nanos() as f64);
    let each = |pace: Duration| format!(", each at most {}", units::rate(1.0 / pace.as_secs_f64()));
    let pace = scenario.pace.map_or_else(String::new, each);
    let warmup = match scenario.warmup {
        Duration::ZERO => String::new(),
        warmup => format!(", after a warm-up of {}", time(&warmup)),
    };
    let limits = scenario.model.limits();
    let length = limits.duration.map_or_else(String::new, |duration| format!(", for {}", time(&duration)));
    let load = match (limits.rate_max, limits.iterations) {
        (Some(rate), _) => {
            let spaced = if limits.arrivals == Some(Arrivals::Poisson) { "at random" } else { "evenly spaced" };
            let connections = counted(u64::from(limits.vus_max), "connection");
            format!("{} in all, {spaced}{length}, over at most {connections}", units::rate(rate))
        }
        (None, Some(iterations)) => {
            let workers = counted(u64::from(limits.vus_max), "worker");
            format!("{} by {workers}{pace}", counted(iterations, "request"))
        }
        (None, None) => format!("{}{pace}{length}", counted(u64::from(limits.vus_max), "worker")),
    };
    format!("{load}{warmup}")
}

/// `1 worker`, `1,000 workers`.
fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", units::count(n), if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn planned(line: &str) -> Result<LoadPlan, Failure> {
        let words = ["load", "http://127.0.0.1:1/"].into_iter().chain(line.split_whitespace());
        let arguments = Command::try_parse_from(words).unwrap().arguments;
        let target = Target::parse(&arguments.url).ok().unwrap();
        plan(&arguments, &target)
    }

    #[test]
    fn the_load_is_what_the_flags_say() {
        let cases = [
            ("-n 1000 -c 1", "1,000 requests by 1 worker"),
            ("-n 10 -c 5 -q 2", "10 requests by 5 workers, each at most 2.00/s"),
            ("-z 3s", "50 workers, for 3.00 s"),
            ("-z 3s --warmup 500ms", "50 workers, for 3.00 s, after a warm-up of 500 ms"),
            ("--rate 2000 -z 3s", "2,000/s in all, evenly spaced, for 3.00 s, over at most 1,000 connections"),
            (
                "--rate 50 -n 100 --arrivals poisson --max-connections 1",
                "50.0/s in all, at random, for 2.00 s, over at most 1 connection",
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(in_words(&planned(line).unwrap()), expected, "{line}");
        }
    }

    #[test]
    fn responses_are_requested_as_hey_does() {
        let step = |line: &str| planned(line).unwrap().scenarios[0].flows[0].steps[0].clone();
        let plain = step("");
        assert_eq!(plain.redirects_max, 10);
        assert_eq!(plain.request.headers, [("Accept-Encoding".to_owned(), Template::text("gzip"))]);
        let bare = step("--disable-compression --disable-redirects");
        assert_eq!((bare.redirects_max, bare.request.headers), (0, Vec::new()));
        assert_eq!(step("-H accept-encoding:br").request.headers.len(), 1);
        assert_eq!(step("--check-status 200-201,404").checks, [Check::Status(vec![(200, 201), (404, 404)])]);
    }

    #[test]
    fn responses_are_waited_for_as_long_as_the_timeout_or_the_drain_says() {
        let seconds = |line: &str| {
            let plan = planned(line).unwrap();
            (plan.timeout.as_secs(), plan.drain.as_secs())
        };
        assert_eq!(seconds(""), (20, 20));
        assert_eq!(seconds("-t 90"), (90, 90));
        assert_eq!(seconds("-t 90 --drain 5s"), (90, 5));
        assert_eq!(seconds("--drain 0"), (20, 0));
        assert_eq!(seconds("-t 0"), (TIMEOUT_NONE.as_secs(), TIMEOUT_NONE.as_secs()));
    }

    #[test]
    fn what_cannot_be_planned_is_reported() {
        assert!(planned("-n 1").is_err());
        assert!(planned("--rate 0.001 -n 18446744073709551615").is_err());
    }
}
