//! Deployments of a variant: what is set, and whether its rollout is complete.

use serde_json::{Map, Value, json};

use super::Cluster;
use super::api::escaped;
use crate::Error;
use crate::experiment::BoundDeployment;

/// Sets what a variant says about a Deployment. One that is so already stays as it is.
pub(super) fn set(cluster: &Cluster, wanted: &BoundDeployment) -> Result<(), Error> {
    let current = get(cluster, wanted)?;
    let container = current["spec"]["template"]["spec"]["containers"][0]["name"].as_str().unwrap_or_default();
    let what = format!("set Deployment `{}`", wanted.name);
    let patched = cluster.api.patch(&path(cluster, wanted), &change(wanted, container));
    patched.map(drop).map_err(|refusal| cluster.refused(refusal, &what))
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

/// The patch, of the first container.
fn change(wanted: &BoundDeployment, container: &str) -> Value {
    let mut one = Map::new();
    if let Some(image) = &wanted.image {
        one.insert("image".to_owned(), image.as_str().into());
    }
    let mut limits = Map::new();
    if let Some(cpus) = wanted.cpus {
        limits.insert("cpu".to_owned(), format!("{}m", ((cpus * 1000.0).round() as u64).max(1)).into());
    }
    if let Some(bytes) = wanted.memory_bytes {
        limits.insert("memory".to_owned(), bytes.to_string().into());
    }
    if !limits.is_empty() {
        one.insert("resources".to_owned(), json!({ "limits": limits }));
    }
    if !wanted.env.is_empty() {
        let variables = wanted.env.iter().map(|(name, value)| json!({ "name": name, "value": value }));
        one.insert("env".to_owned(), variables.collect());
    }
    let mut spec = Map::new();
    if let Some(replicas) = wanted.replicas {
        spec.insert("replicas".to_owned(), replicas.into());
    }
    if !one.is_empty() {
        one.insert("name".to_owned(), container.into());
        spec.insert("template".to_owned(), json!({ "spec": { "containers": [one] } }));
    }
    json!({ "spec": spec })
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
    fn only_what_a_variant_says_is_changed() {
        let mut wanted = BoundDeployment { name: "shop".to_owned(), replicas: Some(3), ..BoundDeployment::default() };
        assert_eq!(change(&wanted, "main"), json!({ "spec": { "replicas": 3 } }));
        wanted =
            BoundDeployment { replicas: None, cpus: Some(0.35), env: vec![("A".to_owned(), "1".to_owned())], ..wanted };
        let container = json!({ "name": "main", "resources": { "limits": { "cpu": "350m" } }, "env": [{ "name": "A", "value": "1" }] });
        assert_eq!(
            change(&wanted, "main"),
            json!({ "spec": { "template": { "spec": { "containers": [container] } } } })
        );
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
