//! Kubernetes: manifests of an experiment's services, for a cluster that starts them instead of Narrows.
//!
//! A variant is bound as for a trial, with the names of services for hosts and the same ports in every pod. What it
//! starts then becomes objects: a Deployment and a Service for each service, or a StatefulSet where several replicas know
//! their numbers; a component becomes the server's public image; a sidecar is a container beside the service. Balancing
//! calls over replicas is the cluster's: a service gets one address of another, that of its Service.
//!
//! No password or key is written. Objects refer to Secrets, which [`Manifests::secrets`] lists.

mod container;
mod sidecar;
mod workload;
mod yaml;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::components::BoundComponent;
use crate::components::container::{Container, Endpoint};
use crate::experiment::{
    Bindings, BoundService, Experiment, FileError, Host, Replica, ReplicaPorts, Start, Variant, nearest,
};
use workload::Workload;

/// The port of a service, unless the experiment fixes another or its kind of server has its own.
const PORT: u16 = 8080;
/// The first of the other ports in a pod: those of sidecars, and what a server behind one listens on.
const FURTHER_PORT: u16 = 9001;
/// Place of what services keep: `${trial.dir}`. It goes with the pod.
const FOLDER: &str = "/var/lib/narrows";
/// The largest file that a ConfigMap takes, in bytes.
const FILE_BYTES_MAX: u64 = 1_000_000;

/// Choices about manifests that the experiment does not say.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The services; all of them if empty.
    pub only: Vec<String>,
    /// Where services send their telemetry, `http://HOST:PORT`; without it, they send none.
    pub otlp: Option<String>,
    /// Whether the load's target is reached through an Ingress.
    pub ingress: bool,
}

/// Objects of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifests {
    objects: Vec<Value>,
    /// The Secrets that have to be there, with their keys.
    pub secrets: Vec<Secret>,
}

/// A Secret that manifests refer to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secret {
    /// Its name.
    pub name: String,
    /// Its keys.
    pub keys: Vec<&'static str>,
    /// Use of it.
    pub purpose: String,
}

/// Why an experiment has no manifests.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The variant cannot be bound.
    #[error("the variant cannot be bound")]
    Experiment(Vec<FileError>),
    /// A service does not exist.
    #[error("the experiment has no service `{0}`")]
    UnknownService(String, Option<String>),
    /// A service has no image.
    #[error("`{service}` runs `{program}` and has no `image`")]
    NoImage {
        /// The service.
        service: String,
        /// Its program.
        program: String,
    },
    /// A component has no container form.
    #[error("`{service}` has no manifest: {reason}")]
    NoContainer {
        /// The service.
        service: String,
        /// Why.
        reason: String,
    },
    /// A file that a server is filled with cannot be put into a ConfigMap.
    #[error("cannot put {} into a ConfigMap: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The load has no service for its target.
    #[error("an Ingress needs a service as the target of the load")]
    NoTarget,
}

impl ManifestError {
    /// Possible remedy, if one is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownService(_, nearest) => nearest.as_ref().map(|name| format!("did you mean `{name}`?")),
            Self::NoImage { service, .. } => {
                Some(format!("name one that has the program: `image: registry/{service}:1`"))
            }
            Self::NoContainer { .. } => Some("leave it out with `--only`, which lists the other services".to_owned()),
            Self::Experiment(_) | Self::File { .. } | Self::NoTarget => None,
        }
    }
}

impl Manifests {
    /// The objects as YAML documents.
    pub fn yaml(&self) -> String {
        yaml::documents(&self.objects)
    }
}

/// A service's name as a label of DNS, which names of objects are.
fn dns(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}

/// The manifests of a variant.
///
/// # Errors
/// [`ManifestError`] when a service cannot be a container.
pub fn manifests(experiment: &Experiment, variant: &Variant, wanted: &Wanted) -> Result<Manifests, ManifestError> {
    for name in &wanted.only {
        if !experiment.services.contains(name) {
            let known: Vec<&str> = experiment.services.iter().map(String::as_str).collect();
            return Err(ManifestError::UnknownService(name.clone(), nearest(name, &known).map(str::to_owned)));
        }
    }
    let plan = Plan::new(experiment, variant, wanted)?;
    let mut made = Manifests { objects: Vec::new(), secrets: Vec::new() };
    for service in plan.services.iter().filter(|service| wanted.only.is_empty() || wanted.only.contains(&service.name))
    {
        Workload::new(&plan, service)?.add_to(&mut made)?;
    }
    if wanted.ingress {
        made.objects.push(plan.ingress()?);
    }
    made.secrets.sort();
    made.secrets.dedup();
    Ok(made)
}

/// A variant as a cluster has it.
struct Plan<'a> {
    experiment: &'a Experiment,
    variant: &'a Variant,
    wanted: &'a Wanted,
    replicas: Vec<Replica>,
    /// The ports of components' servers, by service.
    ports: BTreeMap<String, u16>,
    /// The first replica of each service.
    services: Vec<BoundService>,
}

impl<'a> Plan<'a> {
    fn new(experiment: &'a Experiment, variant: &'a Variant, wanted: &'a Wanted) -> Result<Self, ManifestError> {
        let replicas = experiment.replicas(variant).map_err(ManifestError::Experiment)?;
        let mut plan = Self { experiment, variant, wanted, replicas, ports: BTreeMap::new(), services: Vec::new() };
        // Only a bound component knows which port its server usually has.
        let bound = plan.bind(None)?;
        plan.ports = bound.iter().filter_map(|one| Some((one.name.clone(), server(one)?.ok()?.port))).collect();
        plan.services = plan.bind(None)?;
        Ok(plan)
    }

    /// One replica of each service, number 0, but 1 of the service `second`.
    fn bind(&self, second: Option<&str>) -> Result<Vec<BoundService>, ManifestError> {
        let first = self.replicas.iter().filter(|replica| replica.replica == 0);
        let bindings = Bindings {
            ports: first
                .map(|replica| self.allot(replica, u32::from(second == Some(replica.service.as_str()))))
                .collect(),
            otlp_endpoint: self.wanted.otlp.clone().unwrap_or_else(|| "http://127.0.0.1:4318".to_owned()),
            trial_dir: PathBuf::from(FOLDER),
            seed: self.experiment.seed,
            time_scale: 1.0,
        };
        let bound = self.experiment.bind_some(self.variant, &bindings).map_err(ManifestError::Experiment)?;
        Ok(bound.services)
    }

    fn allot(&self, of: &Replica, number: u32) -> ReplicaPorts {
        let usual = self.ports.get(&of.service).copied().unwrap_or(PORT);
        // A service that somebody else has started stays where it is.
        let (name, port) = match &of.elsewhere {
            Some(place) => (place.host.clone(), place.port),
            None => (dns(&of.service), of.port.unwrap_or(usual)),
        };
        ReplicaPorts {
            service: of.service.clone(),
            replica: number,
            host: Host { name, address: IpAddr::V4(Ipv4Addr::LOCALHOST) },
            port,
            further: (FURTHER_PORT..).take(of.further).collect(),
        }
    }

    /// The host by which pods reach a service.
    fn host(&self, service: &str) -> String {
        match self.services.iter().find(|one| one.name == service).map(|one| &one.start) {
            Some(Start::Elsewhere { place, .. }) => place.host.clone(),
            _ => dns(service),
        }
    }

    /// How many replicas a service has.
    fn count(&self, service: &str) -> usize {
        self.replicas.iter().filter(|replica| replica.service == service).count()
    }

    /// Labels that tell the pods of a service from all others.
    fn labels(&self, service: &str) -> Value {
        json!({
            "app.kubernetes.io/name": dns(service),
            "app.kubernetes.io/part-of": dns(&self.experiment.name),
        })
    }

    fn ingress(&self) -> Result<Value, ManifestError> {
        let target = self.experiment.load.target.as_ref();
        let target = target.and_then(|target| self.services.iter().find(|service| service.name == *target));
        let target = target.ok_or(ManifestError::NoTarget)?;
        let backend = json!({
            "service": { "name": dns(&target.name), "port": { "number": target.advertised_port() } },
        });
        Ok(json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": { "name": dns(&self.experiment.name), "labels": self.labels(&target.name) },
            "spec": { "rules": [{ "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": backend }] } }] },
        }))
    }
}

/// A component's server as a container; `None` if the service is no component.
fn server(service: &BoundService) -> Option<Result<Container, String>> {
    let Start::Component { settings, .. } = &service.start else { return None };
    let address = if service.sidecar.is_some() { "127.0.0.1" } else { "0.0.0.0" };
    Some(BoundComponent::of(settings).settings().container(Endpoint { address, port: service.port }))
}

#[cfg(test)]
mod tests;
