//! `system.kubernetes`: pods of a cluster that somebody else has started, and the Deployments that a variant sets.

use std::time::Duration;

use narrows_telemetry::http::Url;
use serde_json::json;

use super::service::env;
use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report};
use crate::experiment::grammar::check::{Pass, check};
use crate::experiment::grammar::complete::complete;
use crate::experiment::grammar::key::{Key, Value, optional, parameter};
use crate::experiment::grammar::kind::{self, AS_TEXT, Simple, Whole, no_hint};
use crate::experiment::grammar::shape::{Field, Map, NamedMap, Shape};
use crate::experiment::grammar::values::{CORES, DURATION, MANY, MEMORY, POSITIVE_DURATION, environment};
use crate::experiment::placeholders::names::{SYSTEM, Values};

/// Most replicas that a variant sets.
const REPLICAS_MAX: u64 = 1_000;

static SERVER_URL: Simple<Url> = Simple {
    expected: "a URL such as `http://127.0.0.1:8001`",
    name: "`http://HOST:PORT`",
    written: AS_TEXT,
    read: |text| Url::parse(text).map_err(|error| Some(Problem::new(format!("cannot talk to {error}")))),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": "^http://" }),
};

const NAMESPACE: Key<String> =
    Key::default("namespace", parameter(&kind::TEXT), "default", "The namespace of the pods.");

const SELECTOR: Key<String> = Key::required(
    "selector",
    parameter(&kind::TEXT),
    "The labels of the pods, such as `app=shop` or `tier in (front, back)`. At least one pod must match.",
);

const SERVER: Key<Url> = Key::default(
    "server",
    parameter(&SERVER_URL),
    "http://127.0.0.1:8001",
    "Where the API server is reached by plain HTTP: `kubectl proxy` listens there, with your rights.",
);

const TIMEOUT: Key<Duration> =
    Key::default("timeout", POSITIVE_DURATION, "2m", "How long rollouts may take until every pod is ready.");

const SETTLE: Key<Duration> = Key::default(
    "settle",
    DURATION,
    "5s",
    "How long every pod has to be ready before the load, unless all were so at once. Nodes learn of new pods meanwhile.",
);

const TEXT: Value<String> = parameter(&kind::TEXT);

const REPLICAS: Key<u64> = Key::optional("replicas", parameter(&Whole::new(1, REPLICAS_MAX)), "How many pods it has.");

const CPUS: Key<f64> = Key::optional("cpus", CORES, "The limit on processor cores of its first container.");

const MEMORY_CAP: Key<u64> = Key::optional("memory", MEMORY, "The limit on memory of its first container.");

const IMAGE: Key<String> = Key::optional("image", TEXT, "The image of its first container.");

const ENV: Field =
    environment(&TEXT.shape(), "Environment variables of its first container, beside those that it has.");

const DEPLOYMENT: Shape = Shape::Map(Map::new(&[REPLICAS.field, CPUS.field, MEMORY_CAP.field, IMAGE.field, ENV]));

const DEPLOYMENTS: Field = optional(
    "deployments",
    Shape::Named(NamedMap { what: "Deployment", name: &kind::NAME, value: &DEPLOYMENT, least: 0, most: MANY }),
    "What each variant sets of Deployments, before its load. They are set back after the run.",
);

const SHAPE: Shape =
    Shape::Map(Map::new(&[NAMESPACE.field, SELECTOR.field, SERVER.field, TIMEOUT.field, SETTLE.field, DEPLOYMENTS]));

pub(crate) const KUBERNETES: Field = optional(
    "kubernetes",
    SHAPE,
    "Pods of a cluster in which the system runs already. Narrows waits until they are ready, reads their CPU, memory and \
     throttling from their nodes' kubelets, and notes which of them change under load.",
);

/// A system in a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundCluster {
    /// The namespace of its pods.
    pub namespace: String,
    /// Their labels.
    pub selector: String,
    /// Where the API server is.
    pub server: Url,
    /// How long rollouts may take.
    pub timeout: Duration,
    /// How long every pod has to be ready after a change.
    pub settle: Duration,
    /// The Deployments that are set.
    pub deployments: Vec<BoundDeployment>,
}

/// Settings of a Deployment; what is `None` stays as it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BoundDeployment {
    /// Its name.
    pub name: String,
    /// How many pods it has.
    pub replicas: Option<u64>,
    /// The limit on processor time of its first container, in cores.
    pub cpus: Option<f64>,
    /// The limit on memory of its first container.
    pub memory_bytes: Option<u64>,
    /// The image of its first container.
    pub image: Option<String>,
    /// Environment variables of its first container.
    pub env: Vec<(String, String)>,
}

/// The section as a trial has it; `None` if the system is in no cluster.
pub(crate) fn build(root: At<'_>, values: &Values<'_>, report: &mut Report) -> Option<BoundCluster> {
    let system = root.named(SYSTEM)?;
    let at = system.get(&KUBERNETES)?;
    let node = complete(at.node, &SHAPE, values);
    let at = at.with(&node);
    check(at, &SHAPE, Pass::Bound, report);
    let deployment = |(name, at): (&str, At<'_>)| BoundDeployment {
        name: name.to_owned(),
        replicas: at.read(&REPLICAS),
        cpus: at.read(&CPUS),
        memory_bytes: at.read(&MEMORY_CAP),
        image: at.read(&IMAGE),
        env: at.get(&ENV).map(env).unwrap_or_default(),
    };
    Some(BoundCluster {
        namespace: at.read(&NAMESPACE)?,
        selector: at.read(&SELECTOR)?,
        server: at.read(&SERVER)?,
        timeout: at.read(&TIMEOUT)?,
        settle: at.read(&SETTLE)?,
        deployments: at.get(&DEPLOYMENTS).iter().flat_map(At::entries).map(deployment).collect(),
    })
}
