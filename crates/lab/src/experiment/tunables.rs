//! Values that the services of an experiment are started with: keys of a service, environment variables, arguments, and
//! settings of components, each with its place in the experiment's text.
//!
//! Not here: parameters that the load uses too, since another value would change what is measured, and secrets.

use std::collections::BTreeSet;
use std::ops::Range;

use narrows_telemetry::secrets::is_secret_key;

use super::document::scalars::{ITEM, Role, Scalar, Scalars};
use super::placeholders::names::{PARAMETERS_KEY, SERVICES, SYSTEM};
use super::placeholders::syntax::{TrialPiece, trial_pieces};
use super::prices::PRICES;
use super::system::service;
use super::variants::VARIANTS;
use super::{Experiment, Variant};

/// Keys of a service that say how it is started and stopped, and not how it is sized.
const OTHER_KEYS: [&str; 8] = ["setup", "setup_timeout", "cwd", "ready", "stop", "restart", "port", "sidecar"];
/// Flag of a Java virtual machine that is joined with its value.
const HEAP_FLAG: &str = "-Xmx";

/// A value that a service is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunable {
    /// The service.
    pub service: String,
    /// Key, environment variable or flag; for an argument without a flag, its parameter.
    pub name: String,
    /// The parameter that it is given by; `None` if the value itself is written.
    pub parameter: Option<String>,
    /// The value in a variant; empty for a key that is not written.
    pub value: String,
    pub(super) place: TextPlace,
}

/// Place of a value in the experiment's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextPlace {
    /// A scalar, and the part of its text before the value.
    Scalar { at: Range<usize>, before: String },
    /// The key is not written.
    Missing,
}

impl Tunable {
    /// Whether this is a key of the service itself, such as `replicas`.
    pub fn is_key(&self, key: &str) -> bool {
        self.name == key
    }
}

impl Experiment {
    /// Values that the services are started with in a variant, in the order of the text.
    pub fn tunables(&self, variant: &Variant) -> Vec<Tunable> {
        let scalars = Scalars::of(&self.source).all;
        let elsewhere = parameters_elsewhere(&scalars);
        let mut found: Vec<Tunable> = scalars
            .iter()
            .filter_map(|scalar| tunable(scalar, variant))
            .filter(|one| one.parameter.as_ref().is_none_or(|parameter| !elsewhere.contains(parameter)))
            .filter(|one| !is_secret_key(&one.name) && one.parameter.as_deref().is_none_or(|name| !is_secret_key(name)))
            .collect();
        for service in &self.services {
            let key = service::REPLICAS.name();
            if !found.iter().any(|one| one.service == *service && one.is_key(key)) {
                let (service, name) = (service.clone(), key.to_owned());
                found.push(Tunable { service, name, parameter: None, value: "1".into(), place: TextPlace::Missing });
            }
        }
        found
    }
}

/// Parameters that something else than services and their prices uses.
fn parameters_elsewhere(scalars: &[Scalar]) -> BTreeSet<String> {
    let is_elsewhere = |scalar: &&Scalar| {
        let others = [SYSTEM, PARAMETERS_KEY, VARIANTS.name(), PRICES.name()];
        scalar.path.first().is_some_and(|top| !others.contains(&top.as_str()))
    };
    let names = scalars.iter().filter(is_elsewhere).flat_map(|scalar| names_in(&scalar.text));
    names.map(str::to_owned).collect()
}

/// The names of a text's `${…}`.
fn names_in(text: &str) -> Vec<&str> {
    let pieces = trial_pieces(text).unwrap_or_default();
    let name = |piece| match piece {
        TrialPiece::Name(name) => Some(name),
        TrialPiece::Text(_) => None,
    };
    pieces.into_iter().filter_map(name).collect()
}

fn tunable(scalar: &Scalar, variant: &Variant) -> Option<Tunable> {
    let Role::Value(context) = &scalar.role else { return None };
    let path: Vec<&str> = scalar.path.iter().map(String::as_str).collect();
    let [top, services, service, rest @ ..] = &path[..] else { return None };
    if (*top, *services) != (SYSTEM, SERVICES) || OTHER_KEYS.contains(rest.first()?) {
        return None;
    }
    let (before, parameter, value) = value_of(&scalar.text, variant)?;
    let name = match rest {
        ["run", ITEM] => argument_name(&before, context.last(), parameter.as_deref())?,
        [.., key] if *key != ITEM => (*key).to_owned(),
        _ => return None,
    };
    let place = TextPlace::Scalar { at: scalar.place.clone(), before };
    Some(Tunable { service: (*service).to_owned(), name, parameter, value, place })
}

/// The text before a value, its parameter, and the value. `None` if a text is not one value.
fn value_of(text: &str, variant: &Variant) -> Option<(String, Option<String>, String)> {
    match names_in(text)[..] {
        [] => {
            let (before, value) = written_value(text)?;
            Some((before.to_owned(), None, value.to_owned()))
        }
        [name] => {
            let value = variant.parameters.get(name)?;
            let before = text.split("${").next().unwrap_or_default();
            Some((before.to_owned(), Some(name.to_owned()), value.clone()))
        }
        _ => None,
    }
}

/// A value in a text, which is all of it or stands behind a flag, and the text before it.
fn written_value(text: &str) -> Option<(&str, &str)> {
    let (before, value) = match (text.split_once('='), text.strip_prefix(HEAP_FLAG)) {
        (Some((flag, value)), _) => (&text[..=flag.len()], value),
        (None, Some(size)) => (HEAP_FLAG, size),
        (None, None) => ("", text),
    };
    let is_value = value.starts_with(|c: char| c.is_ascii_digit())
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.');
    let is_switch = ["true", "false", "on", "off", "yes", "no"].contains(&value);
    (is_value || is_switch).then_some((before, value))
}

/// The flag of an argument: before its `=`, or the argument before it.
fn argument_name(before: &str, previous: Option<&String>, parameter: Option<&str>) -> Option<String> {
    let own = before.trim_end_matches('=');
    let is_flag = |previous: &&str| previous.starts_with('-') && !previous.contains(['=', '$']);
    let flag = previous.map(String::as_str).filter(is_flag);
    let name = if own.is_empty() { flag.or(parameter)? } else { own };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const SOURCE: &str = r#"
experiment: shop
parameters: { workers: "2", heap: 64m, users: 8, token_secret: "4", mode: fast }
system:
  services:
    web:
      run: [gunicorn, --workers, "${workers}", --threads=4, -w, "3", "-Xmx${heap}", "${mode}", "7", "--port=${port}"]
      env: { POOL: 5, USERS: "${users}", KEEPALIVE: off, NAME: shop, TOKEN: "${token_secret}" }
      ready: { http: "GET /", timeout: 9s }
    db:
      run: [db]
      replicas: 2
      cpus: 0.5
load:
  target: web
  scenarios: { s: { model: constant-vus, vus: "${users}", duration: 1s, request: GET / } }
variants: [{ name: a }, { name: b, workers: "9" }]
"#;

    #[test]
    fn values_of_services_have_a_name_a_parameter_and_a_value() {
        let experiment = crate::language().parse(SOURCE, "e.yaml", Path::new("/")).expect("an experiment");
        let shown = |variant: usize| -> Vec<String> {
            let tunables = experiment.tunables(&experiment.variants[variant]);
            let one = |one: Tunable| {
                let parameter = one.parameter.map_or_else(String::new, |name| format!(" by {name}"));
                format!("{} {}={}{parameter}", one.service, one.name, one.value)
            };
            tunables.into_iter().map(one).collect()
        };
        let expected = [
            "web --workers=2 by workers",
            "web --threads=4",
            "web -w=3",
            "web -Xmx=64m by heap",
            "web mode=fast by mode",
            "web POOL=5",
            "web KEEPALIVE=off",
            "db replicas=2",
            "db cpus=0.5",
            "web replicas=1",
        ];
        assert_eq!(shown(0), expected, "without the users, which the load has too, and the secret");
        assert_eq!(shown(1)[0], "web --workers=9 by workers");
    }
}
