//! A service as objects of a cluster: its pods, its Service, and the ConfigMaps that its containers read.

use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::container::{Words, folder_name, of_run, of_server, password_of};
use super::{FILE_BYTES_MAX, FOLDER, ManifestError, Manifests, Plan, dns, server, sidecar};
use crate::components::container::Container;
use crate::experiment::{BoundService, Start};

/// A service of a plan.
pub(super) struct Workload<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) service: &'a BoundService,
    replicas: usize,
    /// The same service as its second replica, if its texts differ from those of the first.
    second: Option<BoundService>,
}

/// Parts of a pod.
#[derive(Default)]
pub(super) struct Pod {
    pub(super) containers: Vec<Value>,
    pub(super) sidecars: Vec<Value>,
    pub(super) volumes: Vec<Value>,
    pub(super) user: Option<u32>,
}

impl<'a> Workload<'a> {
    pub(super) fn new(plan: &'a Plan<'a>, service: &'a BoundService) -> Result<Self, ManifestError> {
        let replicas = plan.count(&service.name);
        let mut second = None;
        if replicas > 1 {
            let bound = plan.bind(Some(&service.name))?;
            second = bound.into_iter().find(|one| one.name == service.name && texts(one) != texts(service));
        }
        Ok(Self { plan, service, replicas, second })
    }

    /// Whether its replicas know their numbers.
    pub(super) fn is_numbered(&self) -> bool {
        self.second.is_some()
    }

    /// Its words and the values of its environment, as its second replica has them.
    pub(super) fn second_texts(&self) -> Option<Vec<String>> {
        self.second.as_ref().map(texts)
    }

    /// Whether its arguments name a folder for its files.
    pub(super) fn keeps_files(&self) -> bool {
        texts(self.service).iter().any(|text| text.contains(FOLDER))
    }

    /// The databases of the plan: service, URL up to the user, and the place at which this service reaches it.
    pub(super) fn databases(&self) -> Vec<(&'a str, &'static str, String)> {
        let databases = self.plan.services.iter().filter_map(|one| Some((one, server(one)?.ok()?)));
        let place = |one: &BoundService| {
            let listeners = self.service.sidecar.iter().flat_map(|sidecar| &sidecar.outbound);
            match listeners.into_iter().find(|outbound| outbound.service == one.name) {
                Some(outbound) => format!("127.0.0.1:{}", outbound.listen),
                None => format!("{}:{}", dns(&one.name), one.advertised_port()),
            }
        };
        databases.map(|(one, server)| (one.name.as_str(), server.url, place(one))).collect()
    }

    /// Adds its objects.
    pub(super) fn add_to(&self, made: &mut Manifests) -> Result<(), ManifestError> {
        let mut pod = Pod::default();
        match &self.service.start {
            Start::Run { command, .. } => {
                let mut words = Words::of(self, command);
                made.secrets.append(&mut words.secrets);
                pod.containers.push(of_run(self, words)?);
                pod.volumes.push(empty("tmp"));
                if self.keeps_files() {
                    pod.volumes.push(empty("data"));
                }
            }
            Start::Component { .. } => self.add_server(&mut pod, made)?,
            // Somebody else has started it.
            Start::Elsewhere { .. } => return Ok(()),
        }
        if let Some(bound) = &self.service.sidecar {
            sidecar::add(self, bound, &mut pod, made)?;
        }
        made.objects.push(self.controller(pod));
        made.objects.push(self.address());
        Ok(())
    }

    fn add_server(&self, pod: &mut Pod, made: &mut Manifests) -> Result<(), ManifestError> {
        let service = self.service;
        let no_container = |reason| ManifestError::NoContainer { service: service.name.clone(), reason };
        let server = match server(service) {
            Some(server) => server.map_err(no_container)?,
            None => return Ok(()),
        };
        if self.replicas > 1 {
            return Err(no_container(format!("it has {} replicas, which do not share their data", self.replicas)));
        }
        pod.containers.push(of_server(service, &server));
        pod.user = Some(server.user);
        pod.volumes.extend((0..server.folders.len()).map(|index| empty(&folder_name(index))));
        if !server.sql.is_empty() {
            let name = format!("{}-sql", dns(&service.name));
            pod.volumes.push(json!({ "name": "sql", "configMap": { "name": name } }));
            made.objects.push(self.config_map(&name, files(&server)?));
        }
        made.secrets.push(password_of(&service.name));
        Ok(())
    }

    /// A ConfigMap with these files.
    pub(super) fn config_map(&self, name: &str, files: Map<String, Value>) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": name, "labels": self.plan.labels(&self.service.name) },
            "data": files,
        })
    }

    /// The object that keeps its pods.
    fn controller(&self, pod: Pod) -> Value {
        let name = dns(&self.service.name);
        let labels = self.plan.labels(&self.service.name);
        let mut spec = json!({
            "replicas": self.replicas,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": self.pod_spec(pod) },
        });
        let (kind, how) = match (self.is_numbered(), &self.service.start) {
            (true, _) => {
                spec["serviceName"] = name.as_str().into();
                ("StatefulSet", ("podManagementPolicy", json!("Parallel")))
            }
            // Two servers at a time would be two databases behind one address.
            (false, Start::Component { .. }) => ("Deployment", ("strategy", json!({ "type": "Recreate" }))),
            (false, _) => ("Deployment", ("progressDeadlineSeconds", self.deadline_s().into())),
        };
        spec[how.0] = how.1;
        json!({
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": { "name": name, "labels": labels },
            "spec": spec,
        })
    }

    /// Seconds until a rollout without progress counts as failed.
    fn deadline_s(&self) -> u64 {
        const LEAST: u64 = 60;
        self.service.ready_timeout.as_secs().max(LEAST)
    }

    fn pod_spec(&self, pod: Pod) -> Value {
        let mut spec = json!({
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": self.service.stop_timeout.as_secs().max(1),
            "containers": pod.containers,
            "volumes": pod.volumes,
        });
        if !pod.sidecars.is_empty() {
            spec["initContainers"] = pod.sidecars.into();
        }
        if let Some(user) = pod.user {
            spec["securityContext"] =
                json!({ "runAsUser": user, "runAsGroup": user, "fsGroup": user, "runAsNonRoot": true });
        }
        spec
    }

    /// The Service by whose name others reach it.
    fn address(&self) -> Value {
        let port = |name: &str, port: u16| json!({ "name": name, "port": port, "targetPort": port });
        let mut ports = vec![port("main", self.service.advertised_port())];
        let tls = self.service.sidecar.as_ref().and_then(|sidecar| sidecar.tls_port);
        ports.extend(tls.map(|tls| port("mutual-tls", tls)));
        let labels = self.plan.labels(&self.service.name);
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "name": dns(&self.service.name), "labels": labels },
            "spec": { "selector": labels, "ports": ports },
        })
    }
}

/// A folder that goes with the pod.
pub(super) fn empty(name: &str) -> Value {
    json!({ "name": name, "emptyDir": {} })
}

/// The words of a program and the values of its environment, in their order.
fn texts(service: &BoundService) -> Vec<String> {
    let command = match &service.start {
        Start::Run { command, .. } => command.clone(),
        _ => Vec::new(),
    };
    command.into_iter().chain(service.env.iter().map(|(_, value)| value.clone())).collect()
}

/// The files of SQL by a name that keeps their order.
fn files(server: &Container) -> Result<Map<String, Value>, ManifestError> {
    let named = server.sql.iter().enumerate().map(|(index, path)| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok((format!("{:02}-{name}", index + 1), Value::from(read(path)?)))
    });
    named.collect()
}

fn read(path: &Path) -> Result<String, ManifestError> {
    let failed = |reason: String| ManifestError::File { path: path.to_owned(), reason };
    let file = narrows_files::open(path).map_err(|error| failed(error.to_string()))?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(failed(format!("it is larger than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}
