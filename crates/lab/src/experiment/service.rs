//! From a service of the file to its replicas.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::bound::{Bindings, BoundService, Ready, Replica, Restart};
use super::check::{Pass, check};
use super::complete::complete;
use super::grammar::{READY_TIMEOUT, SERVICE};
use super::mistake::{Report, Wrong};
use super::names::Values;
use super::tree::At;
use super::{quantity, read, request};

/// The replicas of all services in the order they are started.
pub(super) fn replicas(root: At<'_>, values: &Values<'_>, report: &mut Report) -> Vec<Replica> {
    let Some(system) = root.get("system") else { return Vec::new() };
    let Some(services) = system.get("services") else { return Vec::new() };
    let mut replicas: Vec<Replica> = Vec::new();
    for (name, at) in services.entries() {
        let node = complete(at.node, &SERVICE, values);
        let at = at.with(&node);
        check(at, &SERVICE, Pass::Bound, report);
        let port: Option<u16> = read::whole(at, "port");
        let count: u32 = read::whole(at, "replicas").unwrap_or(1);
        if let (Some(port), Some(port_at)) = (port, at.get("port")) {
            let taken = replicas.iter().find(|(_, _, other)| *other == Some(port));
            let wrong = match taken {
                Some((other, ..)) => Some(format!("port {port} is taken by `{other}`")),
                None if count > 1 => Some(format!("a fixed port has room for one replica, found {count} replicas")),
                None => None,
            };
            if let Some(message) = wrong {
                report.add(
                    port_at.place(),
                    port_at.path(),
                    Wrong::new(message).hint("without `port`, each replica is handed its own"),
                );
            }
        }
        replicas.extend((0..count).map(|replica| (name.to_owned(), replica, port)));
    }
    replicas
}

/// Checks that the folders which services are started in exist, as far as parameters alone tell which those are: what
/// stands in the trial's folder, or in one named after a port, may come to be. So may any once a setup has run.
pub(super) fn check_folders(root: At<'_>, values: &Values<'_>, dir: &Path, report: &mut Report) {
    let Some(system) = root.get("system") else { return };
    let Some(services) = system.get("services") else { return };
    for (_, at) in services.entries() {
        if at.node.get("cwd").is_some() {
            check_folder(at.with(&complete(at.node, &SERVICE, values)), dir, report);
        }
        if at.get("setup").is_some_and(|setup| setup.items().next().is_some()) {
            return;
        }
    }
}

fn check_folder(service: At<'_>, dir: &Path, report: &mut Report) {
    let Some(at) = service.get("cwd") else { return };
    let Some(text) = at.text() else { return };
    let folder = read::path(dir, text);
    if !folder.is_dir() {
        let wrong = Wrong::new(format!("expected a folder, found none at {}", folder.display()));
        report.add(at.place(), at.path(), wrong.hint("it is relative to the experiment file's folder"));
    }
}

/// All replicas, whole.
pub(super) fn build(
    root: At<'_>,
    values: &Values<'_>,
    bindings: &Bindings,
    dir: &Path,
    report: &mut Report,
) -> Vec<BoundService> {
    let Some(system) = root.get("system") else { return Vec::new() };
    let Some(services) = system.get("services") else { return Vec::new() };
    let mut built = Vec::new();
    for (name, at) in services.entries() {
        for (_, replica, port) in bindings.ports.iter().filter(|(service, ..)| service == name) {
            let values = Values { replica: Some((*replica, *port)), ..*values };
            let node = complete(at.node, &SERVICE, &values);
            built.extend(build_one(at.with(&node), name, (*replica, *port), dir, report));
        }
    }
    built
}

fn build_one(
    at: At<'_>,
    name: &str,
    (replica, port): (u32, u16),
    dir: &Path,
    report: &mut Report,
) -> Option<BoundService> {
    check(at, &SERVICE, Pass::Bound, report);
    let cwd = read::path(dir, at.get("cwd")?.text()?);
    let setup =
        at.get("setup").map_or_else(|| Some(Vec::new()), |setup| setup.items().map(|one| command(one, &cwd)).collect());
    let (ready, ready_timeout) = ready(at.get("ready")?)?;
    let stop = at.get("stop")?;
    Some(BoundService {
        name: name.to_owned(),
        replica,
        port,
        command: command(at.get("run")?, &cwd)?,
        env: env(at),
        setup: setup?,
        setup_timeout: read::duration(at, "setup_timeout")?,
        ready,
        ready_timeout,
        cpus: read::number(at, "cpus"),
        memory_bytes: read::bytes(at, "memory"),
        stop_signal: signal(stop.get("signal")?.text()?)?,
        stop_timeout: read::duration(stop, "timeout")?,
        restart: restart(at.get("restart")?.text()?)?,
        cwd,
    })
}

/// Program and arguments; a program with a `/` in it starts from `cwd`.
pub(super) fn command(at: At<'_>, cwd: &Path) -> Option<Vec<String>> {
    let mut words: Vec<String> = at.items().map(|item| item.text().map(str::to_owned)).collect::<Option<_>>()?;
    let program = words.first_mut()?;
    if program.contains('/') {
        *program = read::path(cwd, program).to_string_lossy().into_owned();
    }
    Some(words)
}

/// The environment variables of something that is started.
pub(super) fn env(at: At<'_>) -> Vec<(String, String)> {
    let Some(env) = at.get("env") else { return Vec::new() };
    env.entries().filter_map(|(name, value)| Some((name.to_owned(), value.text()?.to_owned()))).collect()
}

fn ready(at: At<'_>) -> Option<(Ready, Duration)> {
    let http = |text: &str| {
        let (method, path) = request::line(text).ok()?;
        Some(Ready::Http { method: method.to_owned(), path: path.to_owned() })
    };
    match at.text() {
        Some("tcp") => Some((Ready::Tcp, quantity::duration(READY_TIMEOUT)?)),
        Some(line) => Some((http(line)?, quantity::duration(READY_TIMEOUT)?)),
        None => {
            let timeout = read::duration(at, "timeout")?;
            let ready = match (at.get("http"), at.get("log")) {
                (Some(line), _) => http(line.text()?)?,
                (None, Some(text)) => Ready::Log { text: text.text()?.to_owned() },
                (None, None) => Ready::Tcp,
            };
            Some((ready, timeout))
        }
    }
}

fn restart(word: &str) -> Option<Restart> {
    match word {
        "never" => Some(Restart::Never),
        "always" => Some(Restart::Always),
        _ => None,
    }
}

fn signal(name: &str) -> Option<Signal> {
    match name {
        "TERM" => Some(Signal::TERM),
        "INT" => Some(Signal::INT),
        "QUIT" => Some(Signal::QUIT),
        "HUP" => Some(Signal::HUP),
        "KILL" => Some(Signal::KILL),
        _ => None,
    }
}
