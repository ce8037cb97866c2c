//! A system in a Kubernetes cluster: its pods are looked at before and after each load, its Deployments set to a variant.
//!
//! Nothing is started or deleted, and what was set is set back after the run. A trial waits until rollouts are complete and
//! every pod of the selector is ready, and
//! fails with the reason of the first that cannot be. Pods that change under load are a caveat, not an error: the load has
//! felt it. CPU, memory and throttling come from the kubelets' pages, through the API server.

mod api;
mod pods;
mod rollout;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use narrows_model::caveat::TrialCaveat;
use narrows_telemetry::http::Url;
use narrows_telemetry::scrape::Endpoint;
use serde_json::Value;

use crate::Error;
use crate::experiment::BoundCluster;
use api::{Api, Refusal, escaped};
use pods::Pod;
pub(crate) use rollout::Found;

const POLL: Duration = Duration::from_millis(500);
/// Of each node's kubelet: sums of pods, and containers with their limits and throttling.
const PAGES: [&str; 2] = ["metrics/resource", "metrics/cadvisor"];
/// Service of series that name no pod.
const KUBELET: &str = "kubelet";

/// A cluster with its pods as they were when the load began.
pub(crate) struct Cluster {
    settings: BoundCluster,
    api: Api,
    pods: Vec<Pod>,
}

impl Cluster {
    /// Sets the Deployments of a variant, keeps how they were found, and waits until the system can be used. `meanwhile` is
    /// called between two looks; its error ends the wait.
    ///
    /// # Errors
    /// [`Error::Cluster`] when the API server cannot be used, the selector matches nothing, or a pod is not ready in time.
    pub(crate) fn attach(
        settings: BoundCluster,
        found: &mut Found,
        meanwhile: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut cluster = Self { api: Api::new(settings.server.clone()), settings, pods: Vec::new() };
        for change in &cluster.settings.deployments {
            found.set(&cluster, change)?;
        }
        let deadline = Instant::now() + cluster.settings.timeout;
        let Some(mut problem) = cluster.look(deadline)? else { return Ok(cluster) };
        // Proxies of nodes learn of a pod after it is ready. Connections that are opened before then all go to older pods.
        let settle = cluster.settings.settle;
        let mut ready_since = None;
        loop {
            meanwhile()?;
            if ready_since.is_some_and(|since: Instant| since.elapsed() >= settle) {
                return Ok(cluster);
            }
            if ready_since.is_none() && Instant::now() > deadline {
                return Err(cluster.not_ready(&problem));
            }
            std::thread::sleep(POLL);
            match cluster.look(deadline)? {
                Some(missing) => (problem, ready_since) = (missing, None),
                None => ready_since = ready_since.or_else(|| Some(Instant::now())),
            }
        }
    }

    /// Looks once; what is still missing, if anything is.
    fn look(&mut self, deadline: Instant) -> Result<Option<String>, Error> {
        for change in &self.settings.deployments {
            if let Some(missing) = rollout::missing(self, change)? {
                // Its pods know better why.
                let why = self.list()?.iter().find_map(|pod| Some((pod.name.clone(), pod.problem.clone()?)));
                return match why {
                    Some((pod, problem)) if problem.is_hopeless => {
                        Err(self.not_ready(&format!("{pod}: {}", problem.what)))
                    }
                    Some((pod, problem)) => Ok(Some(format!("{missing}; {pod}: {}", problem.what))),
                    None => Ok(Some(missing)),
                };
            }
        }
        self.pods = self.list()?;
        if self.pods.is_empty() && (self.settings.deployments.is_empty() || Instant::now() > deadline) {
            let BoundCluster { namespace, selector, .. } = &self.settings;
            return Err(failed(
                format!("no pod in namespace `{namespace}` matches `{selector}`"),
                "`kubectl get pods --all-namespaces --show-labels` lists pods with their labels",
            ));
        }
        Ok(match self.pods.iter().find(|pod| !pod.is_ready || pod.is_ending) {
            None if self.pods.is_empty() => Some("no pod is there yet".to_owned()),
            None => None,
            Some(pod) if pod.is_ending => Some(format!("{} is still ending", pod.name)),
            Some(pod) => match &pod.problem {
                Some(problem) if problem.is_hopeless => {
                    return Err(self.not_ready(&format!("{}: {}", pod.name, problem.what)));
                }
                Some(problem) => Some(format!("{}: {}", pod.name, problem.what)),
                None => Some(format!("{} is not ready", pod.name)),
            },
        })
    }

    fn list(&self) -> Result<Vec<Pod>, Error> {
        let namespace = escaped(&self.settings.namespace);
        let selector = escaped(&self.settings.selector);
        let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector={selector}");
        Ok(pods::list(&self.get(&path, "list pods")?))
    }

    fn get(&self, path: &str, what: &str) -> Result<Value, Error> {
        self.api.get(path).map_err(|refusal| refused(&self.settings.server, refusal, what))
    }

    /// The pages of the kubelets whose pods take part.
    pub(crate) fn pages(&self) -> Vec<Endpoint> {
        let page = |node: &str, page: &str| Endpoint {
            service: KUBELET.to_owned(),
            url: self.api.url(&format!("/api/v1/nodes/{}/proxy/{page}", escaped(node))),
            // A node has pods of others, whose workloads may have the same names.
            only: Some(("namespace".to_owned(), self.settings.namespace.clone())),
        };
        self.nodes()
            .iter()
            .flat_map(|node| PAGES.iter().map(move |name| (node, name)))
            .map(|(node, name)| page(node, name))
            .collect()
    }

    /// A caveat for each workload, under whose name figures of its pods are kept.
    pub(crate) fn workloads(&self) -> Vec<TrialCaveat> {
        let here: Vec<&str> = self.nodes().into_iter().filter(|node| self.is_here(node)).collect();
        let mut workloads: BTreeMap<&str, (Vec<String>, bool)> = BTreeMap::new();
        for pod in &self.pods {
            let (places, is_here) = workloads.entry(&pod.workload).or_insert((Vec::new(), true));
            places.push(pod.name.clone());
            *is_here &= pod.node.as_ref().is_some_and(|node| here.contains(&node.as_str()));
        }
        let caveat = |(service, (places, is_here)): (&str, _)| TrialCaveat::ServiceElsewhere {
            service: service.to_owned(),
            places,
            is_here,
        };
        workloads.into_iter().map(caveat).collect()
    }

    /// The nodes of the pods, each once.
    fn nodes(&self) -> BTreeSet<&str> {
        self.pods.iter().filter_map(|pod| pod.node.as_deref()).collect()
    }

    /// Whether a node has this machine's kernel, as those of kind have. False where the API server does not say.
    fn is_here(&self, node: &str) -> bool {
        let Ok(boot_id) = std::fs::read_to_string("/proc/sys/kernel/random/boot_id") else { return false };
        let found = self.api.get(&format!("/api/v1/nodes/{}", escaped(node)));
        found.is_ok_and(|node| node["status"]["nodeInfo"]["bootID"].as_str() == Some(boot_id.trim()))
    }

    /// Caveat on pods that have changed since the load began, if any have.
    ///
    /// # Errors
    /// [`Error::Cluster`] when the API server cannot be used any more: what became of the pods is unknown.
    pub(crate) fn changes(&self) -> Result<Option<TrialCaveat>, Error> {
        let changes = pods::changes(&self.pods, &self.list()?);
        Ok((!changes.is_empty()).then_some(TrialCaveat::PodsChanged { changes }))
    }

    fn not_ready(&self, problem: &str) -> Error {
        let namespace = &self.settings.namespace;
        failed(
            format!("the system in namespace `{namespace}` is not ready: {problem}"),
            format!("`kubectl --namespace {namespace} describe pods` says more"),
        )
    }
}

fn refused(server: &Url, refusal: Refusal, what: &str) -> Error {
    match refusal {
        Refusal::Unreachable(why) => failed(
            format!("cannot {what}: no API server at {server}: {why}"),
            "start `kubectl proxy`, or set `system.kubernetes.server` to where one listens",
        ),
        Refusal::Status(status @ (401 | 403), message) => failed(
            format!("cannot {what}: the API server responds {status}: {message}"),
            "`kubectl proxy` uses your own rights; docs/reference/kubernetes.md lists those that are needed",
        ),
        Refusal::Status(status, message) => {
            Error::Cluster { what: format!("cannot {what}: the API server responds {status}: {message}"), hint: None }
        }
    }
}

fn failed(what: String, hint: impl Into<String>) -> Error {
    Error::Cluster { what, hint: Some(hint.into()) }
}

#[cfg(test)]
mod tests;
