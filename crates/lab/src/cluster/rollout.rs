//! Deployments of a variant: what is set, whether its rollout is complete, and what was there before the run.

use narrows_telemetry::http::Url;
use serde_json::{Map, Value, json};

use super::api::{Api, escaped};
use super::{Cluster, refused};
use crate::Error;
use crate::experiment::BoundDeployment;

/// Deployments as a run found them, as far as it has changed them.
#[derive(Debug, Default)]
pub(crate) struct Found(Vec<FoundDeployment>);

#[derive(Debug)]
struct FoundDeployment {
    server: Url,
    path: String,
    name: String,
    /// None until a variant sets them.
    replicas: Option<Value>,
    /// None until a variant sets something of them.
    containers: Option<Value>,
}

impl Found {
    /// Sets what a variant says about a Deployment; what it does not say becomes as it was before the run.
    pub(super) fn set(&mut self, cluster: &Cluster, wanted: &BoundDeployment) -> Result<(), Error> {
        let path = path(cluster, wanted);
        let current = get(cluster, wanted)?;
        let server = &cluster.settings.server;
        let known = self.0.iter().position(|found| found.path == path && found.server == *server);
        let known = known.unwrap_or_else(|| {
            let (server, name) = (server.clone(), wanted.name.clone());
            self.0.push(FoundDeployment { server, path, name, replicas: None, containers: None });
            self.0.len() - 1
        });
        let found = &mut self.0[known];
        found.keep(&current["spec"], wanted);
        found.patch(wanted, "set")
    }

    /// Sets all of them back, without waiting for their rollouts. Returns an error for each that the API server did not set back.
    #[must_use]
    pub(crate) fn restore(&mut self) -> Vec<Error> {
        let nothing = BoundDeployment::default();
        self.0.drain(..).filter_map(|found| found.patch(&nothing, "set back").err()).collect()
    }
}

impl FoundDeployment {
    /// Keeps the parts that a variant is the first to set.
    fn keep(&mut self, spec: &Value, wanted: &BoundDeployment) {
        if wanted.replicas.is_some() && self.replicas.is_none() {
            self.replicas = Some(spec["replicas"].clone());
        }
        let BoundDeployment { cpus, memory_bytes, image, env, .. } = wanted;
        let is_of_container = cpus.is_some() || memory_bytes.is_some() || image.is_some() || !env.is_empty();
        if is_of_container && self.containers.is_none() {
            self.containers = Some(spec["template"]["spec"]["containers"].clone());
        }
    }

    fn patch(&self, wanted: &BoundDeployment, verb: &str) -> Result<(), Error> {
        let patched = Api::new(self.server.clone()).patch(&self.path, &self.with(wanted));
        patched
            .map(drop)
            .map_err(|refusal| refused(&self.server, refusal, &format!("{verb} Deployment `{}`", self.name)))
    }

    /// The Deployment as it was, with what a variant sets. A list of containers replaces the whole list.
    fn with(&self, wanted: &BoundDeployment) -> Value {
        let mut spec = Map::new();
        if let Some(replicas) = &self.replicas {
            spec.insert("replicas".to_owned(), wanted.replicas.map_or_else(|| replicas.clone(), Value::from));
        }
        if let Some(containers) = &self.containers {
            let mut containers = containers.clone();
            if let Some(first) = containers.get_mut(0) {
                change(first, wanted);
            }
            spec.insert("template".to_owned(), json!({ "spec": { "containers": containers } }));
        }
        json!({ "spec": spec })
    }
}

fn change(container: &mut Value, wanted: &BoundDeployment) {
    if let Some(image) = &wanted.image {
        container["image"] = image.as_str().into();
    }
    if let Some(cpus) = wanted.cpus {
        container["resources"]["limits"]["cpu"] = format!("{}m", ((cpus * 1000.0).round() as u64).max(1)).into();
    }
    if let Some(bytes) = wanted.memory_bytes {
        container["resources"]["limits"]["memory"] = bytes.to_string().into();
    }
    if !wanted.env.is_empty() {
        let old = container["env"].as_array().cloned().unwrap_or_default();
        let kept = old.into_iter().filter(|one| wanted.env.iter().all(|(name, _)| one["name"] != name.as_str()));
        let new = wanted.env.iter().map(|(name, value)| json!({ "name": name, "value": value }));
        container["env"] = kept.chain(new).collect();
    }
}

/// Progress that is still missing, if any is.
pub(super) fn missing(cluster: &Cluster, wanted: &BoundDeployment) -> Result<Option<String>, Error> {
    Ok(unfinished(&get(cluster, wanted)?).map(|what| format!("Deployment `{}` {what}", wanted.name)))
}

fn get(cluster: &Cluster, wanted: &BoundDeployment) -> Result<Value, Error> {
    cluster.get(&path(cluster, wanted), &format!("read Deployment `{}`", wanted.name))
}

fn path(cluster: &Cluster, wanted: &BoundDeployment) -> String {
    let (namespace, name) = (escaped(&cluster.settings.namespace), escaped(&wanted.name));
    format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
}

/// State of a rollout that is not complete; `None` if it is.
fn unfinished(deployment: &Value) -> Option<String> {
    let status = &deployment["status"];
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let wanted = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
    if number(&status["observedGeneration"]) < number(&deployment["metadata"]["generation"]) {
        return Some("has not been looked at by its controller".to_owned());
    }
    let (updated, available) = (number(&status["updatedReplicas"]), number(&status["availableReplicas"]));
    if updated < wanted || available < wanted {
        return Some(format!("has {} of {wanted} new replicas ready", available.min(updated)));
    }
    let all = number(&status["replicas"]);
    (all > updated).then(|| format!("has {} old replicas left", all - updated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_is_changed_from_what_it_was_and_only_where_a_variant_sets_it() {
        let server = Url::parse("http://127.0.0.1:1").unwrap();
        let mut found =
            FoundDeployment { server, path: String::new(), name: String::new(), replicas: None, containers: None };
        let was = json!([
            { "name": "main", "env": [{ "name": "A", "value": "0" }, { "name": "B", "value": "0" }] },
            { "name": "other" },
        ]);
        let spec = json!({ "replicas": 2, "template": { "spec": { "containers": was } } });
        let nothing = BoundDeployment::default();
        let scaled = BoundDeployment { replicas: Some(3), ..nothing.clone() };
        found.keep(&spec, &scaled);
        assert_eq!(found.with(&scaled), json!({ "spec": { "replicas": 3 } }));
        let limited =
            BoundDeployment { cpus: Some(0.35), env: vec![("A".to_owned(), "1".to_owned())], ..nothing.clone() };
        found.keep(&spec, &limited);
        let limits = json!({ "limits": { "cpu": "350m" } });
        let env = json!([{ "name": "B", "value": "0" }, { "name": "A", "value": "1" }]);
        let containers = json!([{ "name": "main", "env": env, "resources": limits }, { "name": "other" }]);
        let of = |containers: &Value| json!({ "spec": { "containers": containers } });
        assert_eq!(found.with(&limited), json!({ "spec": { "replicas": 2, "template": of(&containers) } }));
        // A value that a variant has set is not one that was found.
        found.keep(&json!({ "replicas": 3, "template": of(&containers) }), &limited);
        assert_eq!(found.with(&nothing), json!({ "spec": { "replicas": 2, "template": of(&was) } }));
    }

    #[test]
    fn a_rollout_is_complete_once_only_new_replicas_are_there() {
        let of = |observed: u64, updated: u64, available: u64, all: u64| {
            unfinished(&json!({
                "metadata": { "generation": 2 },
                "spec": { "replicas": 2 },
                "status": {
                    "observedGeneration": observed,
                    "updatedReplicas": updated,
                    "availableReplicas": available,
                    "replicas": all,
                },
            }))
        };
        assert_eq!(of(2, 2, 2, 2), None);
        assert_eq!(of(1, 2, 2, 2).as_deref(), Some("has not been looked at by its controller"));
        assert_eq!(of(2, 2, 1, 2).as_deref(), Some("has 1 of 2 new replicas ready"));
        assert_eq!(of(2, 1, 2, 3).as_deref(), Some("has 1 of 2 new replicas ready"));
        assert_eq!(of(2, 2, 2, 3).as_deref(), Some("has 1 old replicas left"));
    }
}
