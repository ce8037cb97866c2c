//! From a service of the file to its replicas.

use std::net::Ipv6Addr;
use std::path::Path;
use std::time::Duration;

use narrows_telemetry::otlp::Token;
use rustix::process::Signal;
use serde_json::json;

use super::cluster::KUBERNETES;
use super::compose;
use super::network::Network;
use super::sidecar;
use crate::experiment::bound::{BoundService, HostPort, Ready, ReplicaPorts, Restart, Start};
use crate::experiment::declaration::Declaration;
use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report};
use crate::experiment::grammar::check::{Pass, check};
use crate::experiment::grammar::complete::complete;
use crate::experiment::grammar::key::{Key, Value, default, optional, parameter, replica};
use crate::experiment::grammar::kind::{self, AS_TEXT, Refusal, Simple, Whole, Words, no_hint};
use crate::experiment::grammar::shape::{Field, GivenKey, Map, NamedMap, Rule, Scope, Shape};
use crate::experiment::grammar::values::{CORES, DURATION, MANY, MEMORY, POSITIVE_DURATION, environment};
use crate::experiment::language::{Language, kept};
use crate::experiment::load::request;
use crate::experiment::placeholders::names::{SERVICES, SYSTEM, Values};
use crate::experiment::telemetry::TOKEN_TEXT;
use crate::experiment::{paths, quantity};

/// How long a service may take to become ready unless the file says otherwise.
pub(crate) const READY_TIMEOUT: &str = "30s";

/// Most replicas of a service.
const REPLICAS_MAX: u64 = 100;

const REPLICA_TEXT: Value<String> = replica(&kind::TEXT);

pub(crate) const SETUP: Field = optional(
    "setup",
    Shape::List { item: &Shape::Arguments(Scope::Literal), least: 0, most: MANY },
    "Commands that run once in a run, one after the other, before the service's first start.",
);

const SETUP_TIMEOUT: Key<Duration> =
    Key::default("setup_timeout", POSITIVE_DURATION, "10m", "How long all setup commands may take in total.");

pub(crate) const RUN: Field = optional(
    "run",
    Shape::Arguments(Scope::Replica),
    "The program and its arguments, as a list. It does not run in a shell. A program with a `/` in it is looked for from \
     `cwd`, others in `PATH`; `narrows` is this very program.",
);

/// `HOST:PORT` of a service that somebody else started.
static HOST_PORT: Simple<HostPort> = Simple {
    expected: "`HOST:PORT` such as `10.0.0.7:8080`",
    name: "`HOST:PORT`",
    written: AS_TEXT,
    read: host_port,
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": "^([A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+\\]):[0-9]+$" }),
};

const PLACE: Value<HostPort> = parameter(&HOST_PORT);

pub(crate) const ADDRESS: Field = optional(
    "address",
    Shape::Either(&[PLACE.shape(), Shape::List { item: &PLACE.shape(), least: 1, most: REPLICAS_MAX as usize }]),
    "Where the service is that somebody else has started: `HOST:PORT`, or a list with one for each replica. Narrows neither \
     starts nor stops it, and waits until it is ready.",
);

/// Sets the token of services that somebody else has started, without a file.
pub(crate) const SERVICE_TOKEN_VARIABLE: &str = "NARROWS_TOKEN";

const SERVICE_TOKEN: Key<Token> = Key::beside(
    "token",
    parameter(&TOKEN_TEXT),
    &[ADDRESS.name()],
    "The bearer token that the service asks for, which a readiness check by HTTP and the load present: requests without an \
     `Authorization` header of their own. Without it, the value of the environment variable `NARROWS_TOKEN`.",
);

pub(crate) const CWD: Key<String> = Key::default(
    "cwd",
    REPLICA_TEXT,
    ".",
    "The folder that `setup` and `run` are started in, relative to the experiment file's folder. It must exist when the \
     file is checked, unless it depends on more than parameters (`${trial.dir}`) or a service listed earlier has a `setup`.",
);

pub(crate) const ENV: Field = environment(
    &REPLICA_TEXT.shape(),
    "Environment variables, beside those that the service inherits and those that Narrows sets. Those given here win.",
);

pub(crate) const READY: Field = default("ready", READY_SHAPE, "tcp", "How to tell that the service is ready.");

pub(crate) const REPLICAS: Key<u32> = Key::default(
    "replicas",
    parameter(&Whole::new(1, REPLICAS_MAX)),
    "1",
    "How many processes of the service are started, each with its own port.",
);

pub(crate) const PORT: Key<u16> = Key::optional(
    "port",
    parameter(&Whole::new(1, 65_535)),
    "A fixed port, for a service whose port cannot be set; it allows one replica. Without it, each replica is assigned a \
     free one as `${port}`.",
);

const CPUS: Key<f64> =
    Key::optional("cpus", CORES, "How many processor cores each replica may use, such as 0.25. Without it, all.");

const MEMORY_CAP: Key<u64> = Key::optional(
    "memory",
    MEMORY,
    "How much memory each replica may use: bytes, or a number with B, kB, MB, GB, KiB, MiB or GiB. Without it, there is no cap.",
);

const STOP: Field = default(
    "stop",
    Shape::Map(Map::new(&[STOP_SIGNAL.field, STOP_TIMEOUT.field])),
    "{}",
    "How each replica is stopped.",
);

const STOP_SIGNAL: Key<Signal> = Key::default(
    "signal",
    parameter(&Words(&[
        ("TERM", Signal::TERM),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("HUP", Signal::HUP),
        ("KILL", Signal::KILL),
    ])),
    "TERM",
    "The signal that stops it.",
);

const STOP_TIMEOUT: Key<Duration> =
    Key::default("timeout", DURATION, "10s", "How long it may take to exit before it is killed.");

const RESTART: Key<Restart> = Key::default(
    "restart",
    parameter(&Words(&[("never", Restart::Never), ("always", Restart::Always)])),
    "never",
    "Whether a replica that ends by itself under load is started again, at most five times in a trial, or ends the run.",
);

const IMAGE: Key<String> = Key::optional(
    "image",
    parameter(&kind::TEXT),
    "The container image that has the program, for `narrows kubernetes manifests`.",
);

/// `tcp`, or `METHOD /path`.
pub(crate) static PROBE_TEXT: Simple<Ready> = Simple {
    expected: "`tcp` or a request such as `GET /health`",
    name: "`tcp` or `METHOD /path`",
    written: AS_TEXT,
    read: probe,
    hint: no_hint,
    schema: || json!({ "anyOf": [{ "const": "tcp" }, { "type": "string", "pattern": request::line_pattern() }] }),
};

const PROBE: Value<Ready> = replica(&PROBE_TEXT);

const READY_SHAPE: Shape = Shape::Either(&[
    PROBE.shape(),
    Shape::Map(Map {
        fields: &[READY_HTTP.field, READY_LOG.field, READY_AFTER.field],
        rules: &[Rule::AtMostOne([READY_HTTP.given(), READY_LOG.given()])],
        others: None,
    }),
]);

const READY_HTTP: Key<(String, String)> =
    Key::optional("http", replica(&request::REQUEST_LINE), "A request that must return a status below 400.");

const READY_LOG: Key<String> =
    Key::optional("log", REPLICA_TEXT, "A text that must appear in a line that the service prints.");

pub(crate) const READY_AFTER: Key<Duration> =
    Key::default("timeout", POSITIVE_DURATION, READY_TIMEOUT, "How long that may take.");

/// Keys of programs, which stand before the components'.
const PROGRAM_FIELDS: [Field; 3] = [SETUP, SETUP_TIMEOUT.field, RUN];

/// Keys that are allowed only beside `run`.
const PROGRAM_KEYS: &[&str] = &[SETUP.name(), SETUP_TIMEOUT.name(), CWD.name()];

/// Keys that say how a service is started, and say nothing of one that somebody else has started.
const STARTED_KEYS: &[&str] = &[
    ENV.name(),
    REPLICAS.name(),
    PORT.name(),
    CPUS.name(),
    MEMORY_CAP.name(),
    STOP.name(),
    RESTART.name(),
    sidecar::SIDECAR,
];

/// Keys of all services, which stand behind them.
const COMMON_FIELDS: [Field; 10] =
    [CWD.field, ENV, READY, REPLICAS.field, PORT.field, CPUS.field, MEMORY_CAP.field, STOP, RESTART.field, IMAGE.field];

/// The grammar of one service: a program, one of these components or an address, perhaps with one of these proxies beside
/// it.
pub(crate) fn shape(components: &[&Declaration], proxies: Vec<&'static str>) -> Shape {
    let of_components: Vec<Field> = components.iter().map(|component| component.field()).collect();
    let starts: Vec<GivenKey> = [RUN].iter().chain(&of_components).chain([&ADDRESS]).map(Field::given).collect();
    let sidecar = optional(
        sidecar::SIDECAR,
        sidecar::shape(proxies),
        "A proxy beside each replica, through which it is called and calls other services.",
    );
    let rules = [
        Rule::ExactlyOne(kept(starts)),
        Rule::OnlyBeside(PROGRAM_KEYS, RUN.name()),
        Rule::NotBeside(STARTED_KEYS, ADDRESS.name()),
    ];
    Shape::Map(Map {
        fields: kept(
            [&PROGRAM_FIELDS, &of_components[..], &[ADDRESS, SERVICE_TOKEN.field], &COMMON_FIELDS, &[sidecar]].concat(),
        ),
        rules: kept(rules),
        others: None,
    })
}

/// The section of services.
pub(crate) fn system(service: &'static Shape) -> Field {
    let services = optional(
        SERVICES,
        Shape::Named(NamedMap { what: "service", name: &kind::NAME, value: service, least: 1, most: MANY }),
        "The services by name. They are started in this order, each when the one before it is ready, and stopped in \
         reverse.",
    );
    optional(
        SYSTEM,
        Shape::Map(Map::new(kept([compose::COMPOSE, KUBERNETES, services]))),
        "What Narrows starts, or finds at an address. Without it, the load goes to a system that already runs.",
    )
}

/// Reports a `ready` with more than a timeout beside a component, which has its own readiness check.
pub(crate) fn check_readiness(root: At<'_>, language: Language, report: &mut Report) {
    let Some(system) = root.named(SYSTEM) else { return };
    let Some(services) = system.named(SERVICES) else { return };
    for (_, service) in services.entries() {
        let Some(ready) = service.get(&READY) else { continue };
        if let (true, Some(log)) = (service.has(&ADDRESS), ready.get(&READY_LOG)) {
            let problem = Problem::new("Narrows does not see what a service prints that it has not started");
            report.add(log.key_place(), ready.path(), problem.hint("use `tcp` or `http`"));
        }
        let Some((component, _)) = language.component(&service) else { continue };
        let is_only_timeout = ready.text().is_none() && ready.entries().all(|(key, _)| key == READY_AFTER.name());
        if !is_only_timeout {
            let problem = Problem::new(format!("`{}` allows no readiness check", component.key));
            report.add(ready.place(), ready.path(), problem.hint("set only `timeout`: `{ timeout: 2m }`"));
        }
    }
}

/// Checks that the folders which services are started in and the files which components read exist, as far as
/// parameters alone tell which those are: what stands in the trial's folder, or in one named after a port, may come to
/// be. So may any once a setup has run.
pub(crate) fn check_folders(root: At<'_>, language: Language, values: &Values<'_>, dir: &Path, report: &mut Report) {
    let Some(system) = root.named(SYSTEM) else { return };
    let Some(services) = system.named(SERVICES) else { return };
    for (_, at) in services.entries() {
        let node = complete(at.node, language.service, values);
        let whole = at.with(&node);
        match language.component(&whole) {
            Some((component, settings)) => (component.check_files)(settings, dir, report),
            None if at.has(&CWD) => check_folder(whole, dir, report),
            None => {}
        }
        if at.get(&SETUP).is_some_and(|setup| setup.items().next().is_some()) {
            return;
        }
    }
}

fn check_folder(service: At<'_>, dir: &Path, report: &mut Report) {
    let Some(at) = service.get(&CWD) else { return };
    let Some(text) = at.text() else { return };
    let folder = paths::resolve(dir, text);
    if !folder.is_dir() {
        let problem = Problem::new(format!("expected a folder, found none at {}", folder.display()));
        report.add(at.place(), at.path(), problem.hint("it is relative to the experiment file's folder"));
    }
}

/// All replicas, whole.
pub(crate) fn build(
    root: At<'_>,
    language: Language,
    values: &Values<'_>,
    network: &Network<'_>,
    dir: &Path,
    report: &mut Report,
) -> Vec<BoundService> {
    let Some(system) = root.named(SYSTEM) else { return Vec::new() };
    let Some(services) = system.named(SERVICES) else { return Vec::new() };
    let mut built = Vec::new();
    for (name, at) in services.entries() {
        for replica in network.of_service(name) {
            let values = Values { replica: Some(replica), ..*values };
            let node = complete(at.node, language.service, &values);
            let built_one = build_one(at.with(&node), language, replica, network, dir, report);
            built.extend(built_one.map(|service| with_own_defaults(service, at, language)));
        }
    }
    built
}

fn build_one(
    at: At<'_>,
    language: Language,
    replica: &ReplicaPorts,
    network: &Network<'_>,
    dir: &Path,
    report: &mut Report,
) -> Option<BoundService> {
    check(at, language.service, Pass::Bound, report);
    let cwd = paths::resolve(dir, &at.read(&CWD)?);
    let setup =
        at.get(&SETUP).map_or_else(|| Some(Vec::new()), |setup| setup.items().map(|one| command(one, &cwd)).collect());
    let (ready, ready_timeout) = ready(at.get(&READY)?)?;
    let stop = at.get(&STOP)?;
    let start = match language.component(&at) {
        Some((component, settings)) => {
            let settings = (component.read)(settings, dir, report)?;
            Start::Component { settings, siblings: network.siblings(replica) }
        }
        None => match addresses(at).into_iter().nth(replica.replica as usize) {
            Some(place) => {
                Start::Elsewhere { place, address: replica.address(), ready, token: at.read(&SERVICE_TOKEN) }
            }
            None => Start::Run { command: command(at.get(&RUN)?, &cwd)?, ready },
        },
    };
    Some(BoundService {
        name: replica.service.clone(),
        replica: replica.replica,
        port: network.own_port(replica),
        start,
        env: at.get(&ENV).map(env).unwrap_or_default(),
        setup: setup?,
        setup_timeout: at.read(&SETUP_TIMEOUT)?,
        ready_timeout,
        cpus: at.read(&CPUS),
        memory_bytes: at.read(&MEMORY_CAP),
        stop_signal: stop.read(&STOP_SIGNAL)?,
        stop_timeout: stop.read(&STOP_TIMEOUT)?,
        restart: at.read(&RESTART)?,
        image: at.read(&IMAGE),
        sidecar: network.sidecar(replica, at),
        stand_in_ports: network.stand_in_ports(replica),
        cwd,
    })
}

/// Habits of a component unless the file says otherwise: the signal that ends it, the time until it is ready.
fn with_own_defaults(mut service: BoundService, written: At<'_>, language: Language) -> BoundService {
    let Some((component, _)) = language.component(&written) else { return service };
    let sets = |section: &Field, key: &Field| written.get(section).is_some_and(|at| at.has(key));
    if !sets(&STOP, &STOP_SIGNAL) {
        service.stop_signal = component.stop_signal;
    }
    if let (false, Some(timeout)) = (sets(&READY, &READY_AFTER), quantity::duration(component.ready_timeout)) {
        service.ready_timeout = timeout;
    }
    service
}

/// Addresses of the replicas of a service that somebody else has started; empty for any other.
pub(crate) fn addresses(service: At<'_>) -> Vec<HostPort> {
    let Some(at) = service.get(&ADDRESS) else { return Vec::new() };
    let one = at.value(PLACE);
    one.into_iter().chain(at.items().filter_map(|item| item.value(PLACE))).collect()
}

/// Program and arguments; a program with a `/` in it starts from `cwd`.
pub(crate) fn command(at: At<'_>, cwd: &Path) -> Option<Vec<String>> {
    let mut words: Vec<String> = at.items().map(|item| item.text().map(str::to_owned)).collect::<Option<_>>()?;
    let program = words.first_mut()?;
    if program.contains('/') {
        *program = paths::resolve(cwd, program).to_string_lossy().into_owned();
    }
    Some(words)
}

/// The environment variables of something that is started.
pub(crate) fn env(section: At<'_>) -> Vec<(String, String)> {
    section.entries().filter_map(|(name, value)| Some((name.to_owned(), value.text()?.to_owned()))).collect()
}

fn host_port(text: &str) -> Result<HostPort, Refusal> {
    let parts = text.rsplit_once(':').and_then(|(host, port)| {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let name = (!host.is_empty() && host.bytes().all(is_plain)).then_some(host);
        let host = name.or_else(|| bare.filter(|host| host.parse::<Ipv6Addr>().is_ok()))?;
        Some(HostPort { host: host.to_owned(), port: port.parse().ok().filter(|port| *port > 0)? })
    });
    parts.ok_or(None)
}

fn probe(text: &str) -> Result<Ready, Refusal> {
    if text == "tcp" {
        return Ok(Ready::Tcp);
    }
    match request::line(text) {
        Ok((method, path)) => Ok(Ready::Http { method: method.to_owned(), path: path.to_owned() }),
        Err(problem) => Err(text.contains('/').then_some(problem)),
    }
}

fn ready(at: At<'_>) -> Option<(Ready, Duration)> {
    if let Some(probe) = at.value(PROBE) {
        return Some((probe, quantity::duration(READY_TIMEOUT)?));
    }
    let timeout = at.read(&READY_AFTER)?;
    let ready = if at.has(&READY_HTTP) {
        let (method, path) = at.read(&READY_HTTP)?;
        Ready::Http { method, path }
    } else if at.has(&READY_LOG) {
        Ready::Log { text: at.read(&READY_LOG)? }
    } else {
        Ready::Tcp
    };
    Some((ready, timeout))
}
