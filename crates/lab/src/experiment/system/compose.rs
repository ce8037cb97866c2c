//! `system.compose`: a Compose file whose services are part of the system.
//!
//! Services that publish a port join `system.services` before anything is checked, each with its `address`. So the rest
//! of the language knows nothing of Compose, and a service of the same name in the file itself comes first.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::experiment::bound::{BoundCompose, ContainerLimit};
use crate::experiment::compose;
use crate::experiment::document::at::At;
use crate::experiment::document::tree::{Entry, Form, Node, Origin};
use crate::experiment::error::{Problem, Report};
use crate::experiment::grammar::check::{Pass, check};
use crate::experiment::grammar::complete::complete;
use crate::experiment::grammar::key::{Key, Value, literal, optional, parameter};
use crate::experiment::grammar::kind;
use crate::experiment::grammar::shape::{Field, Map, NamedMap, Shape};
use crate::experiment::grammar::values::{CORES, MANY, MEMORY, POSITIVE_DURATION, environment};
use crate::experiment::paths;
use crate::experiment::placeholders::names::{SERVICES, SYSTEM, Values};

/// Larger Compose files are refused, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

const PATH: Value<String> = literal(&kind::TEXT);
const VARIABLE: Value<String> = parameter(&kind::TEXT);

const FILE: Key<String> = Key::required("file", PATH, "The Compose file, relative to the experiment file's folder.");

const ENV: Field = environment(
    &VARIABLE.shape(),
    "Values for the variables of the Compose file, such as the tag of an image, so that variants can change it.",
);

const CPUS: Key<f64> = Key::optional("cpus", CORES, "How many processor cores each of its containers may use.");
const MEMORY_CAP: Key<u64> = Key::optional("memory", MEMORY, "How much memory each of its containers may use.");
const LIMIT: Shape = Shape::Map(Map::new(&[CPUS.field, MEMORY_CAP.field]));

const LIMITS: Field = optional(
    "limits",
    Shape::Named(NamedMap { what: "service", name: &kind::NAME, value: &LIMIT, least: 0, most: MANY }),
    "Limits of services of the Compose file, by name, which replace those that it has.",
);

const TIMEOUT: Key<Duration> =
    Key::default("timeout", POSITIVE_DURATION, "10m", "How long building and starting the containers may take.");

const WHOLE: Shape = Shape::Map(Map::new(&[FILE.field, ENV, LIMITS, TIMEOUT.field]));

const SHAPE: Shape = Shape::Either(&[PATH.shape(), WHOLE]);

pub(crate) const COMPOSE: Field = optional(
    "compose",
    SHAPE,
    "A Compose file that is started for each trial and taken down after it. Each of its services that publishes a port stands \
     in `services` as if it had been written there with its `address`.",
);

/// Adds the services of the Compose file to the document; `None` with errors where the file has any, since all else refers to
/// its services.
pub(crate) fn expand(root: &mut Node, dir: &Path, report: &mut Report) -> Option<()> {
    let Some((file, at)) = file_of(root) else { return Some(()) };
    let path = paths::resolve(dir, &file);
    let mut add = |message: String, hint: Option<String>| {
        report.add(at, format!("{SYSTEM}.{}", COMPOSE.key), Problem { message, hint });
    };
    let source = narrows_files::read_text(&path, FILE_BYTES_MAX)
        .map_err(|error| add(format!("cannot read {}: {error}", path.display()), None))
        .ok()?;
    let published = compose::addresses(&source, &file)
        .map_err(|errors| errors.into_iter().for_each(|error| add(error.to_string(), error.hint)))
        .ok()?;
    let Some(services) = map(root, SYSTEM).and_then(|system| entry(system, SERVICES, at)) else { return Some(()) };
    for (name, address) in published.into_iter().rev() {
        let Some(address) = address.filter(|_| services.iter().all(|known| known.key != name)) else { continue };
        let address = Entry {
            key: super::service::ADDRESS.key.to_owned(),
            key_place: at,
            value: Node::scalar(at, address, Origin::String),
        };
        let value = Node { place: at, form: Form::Map(vec![address]) };
        services.insert(0, Entry { key: name, key_place: at, value });
    }
    Some(())
}

type Place = (usize, usize);

/// The path of the Compose file as it is written, and where.
fn file_of(root: &Node) -> Option<(String, Place)> {
    let compose = root.get(SYSTEM)?.get(COMPOSE.key)?;
    let file = compose.text().or_else(|| compose.get(FILE.name())?.text())?;
    Some((file.to_owned(), compose.place))
}

/// The entries of the map under a key.
fn map<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Vec<Entry>> {
    let Form::Map(entries) = &mut node.form else { return None };
    match &mut entries.iter_mut().find(|entry| entry.key == key)?.value.form {
        Form::Map(entries) => Some(entries),
        _ => None,
    }
}

/// The entries of the map under a key among these, which is made if it is not there.
fn entry<'e>(entries: &'e mut Vec<Entry>, key: &str, at: Place) -> Option<&'e mut Vec<Entry>> {
    if entries.iter().all(|entry| entry.key != key) {
        let value = Node { place: at, form: Form::Map(Vec::new()) };
        entries.push(Entry { key: key.to_owned(), key_place: at, value });
    }
    match &mut entries.iter_mut().find(|entry| entry.key == key)?.value.form {
        Form::Map(entries) => Some(entries),
        _ => None,
    }
}

/// The names of the services of a Compose file, whose errors were reported before.
fn names(source: &str) -> Vec<String> {
    let found = compose::addresses(source, "").unwrap_or_default();
    found.into_iter().map(|(name, _)| name).collect()
}

/// The Compose file of a trial.
pub(crate) fn build(root: At<'_>, values: &Values<'_>, dir: &Path, report: &mut Report) -> Option<BoundCompose> {
    let system = root.named(SYSTEM)?;
    let at = system.get(&COMPOSE)?;
    let read = |path: &Path| narrows_files::read_text(path, FILE_BYTES_MAX).unwrap_or_default();
    if let Some(file) = at.text() {
        let path = paths::resolve(dir, file);
        return Some(BoundCompose { services: names(&read(&path)), ..BoundCompose::of(path) });
    }
    let node = complete(at.node, &SHAPE, values);
    let at = at.with(&node);
    check(at, &SHAPE, Pass::Bound, report);
    let file: PathBuf = paths::resolve(dir, &at.read(&FILE)?);
    let source = read(&file);
    let limit = |(name, at): (&str, At<'_>)| ContainerLimit {
        service: name.to_owned(),
        cpus: at.read(&CPUS),
        memory_bytes: at.read(&MEMORY_CAP),
        written: compose::written_limits(&source, name),
    };
    Some(BoundCompose {
        env: at.get(&ENV).map(super::service::env).unwrap_or_default(),
        limits: at.get(&LIMITS).iter().flat_map(At::entries).map(limit).collect(),
        timeout: at.read(&TIMEOUT)?,
        services: names(&source),
        ..BoundCompose::of(file)
    })
}
