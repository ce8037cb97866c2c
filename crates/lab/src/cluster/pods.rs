//! Pods as the API server lists them: whether they can be used, and what became of them.

use serde_json::Value;

/// Reasons of a container that wait for no time: the cluster does not try again, or trying again is of no use.
const HOPELESS: [&str; 4] =
    ["CreateContainerConfigError", "ErrImageNeverPull", "InvalidImageName", "RunContainerError"];

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pod {
    /// Tells it from a later one of the same name.
    pub(super) uid: String,
    pub(super) name: String,
    /// The Deployment, StatefulSet or other object that keeps it; its own name without one.
    pub(super) workload: String,
    /// None until it has a node.
    pub(super) node: Option<String>,
    /// Whether it gets requests.
    pub(super) is_ready: bool,
    /// Whether it has been asked to end.
    pub(super) is_ending: bool,
    /// How often its containers were started again.
    pub(super) restarts: u64,
    /// Why it is not ready, or why it ended.
    pub(super) problem: Option<Problem>,
}

/// Why a pod cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// In words, such as `container shop: ErrImagePull: not found`.
    pub(super) what: String,
    /// Whether waiting is of no use.
    pub(super) is_hopeless: bool,
}

/// The pods of a list.
pub(super) fn list(list: &Value) -> Vec<Pod> {
    list["items"].as_array().into_iter().flatten().map(pod).collect()
}

fn pod(item: &Value) -> Pod {
    let (metadata, status) = (&item["metadata"], &item["status"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let is_true = |condition: &&Value| condition["type"] == "Ready" && condition["status"] == "True";
    Pod {
        uid: text(&metadata["uid"]),
        name: text(&metadata["name"]),
        workload: workload(metadata).unwrap_or_else(|| text(&metadata["name"])),
        node: item["spec"]["nodeName"].as_str().map(str::to_owned),
        is_ready: conditions.clone().any(|condition| is_true(&condition)),
        is_ending: metadata["deletionTimestamp"].is_string(),
        restarts: containers(status).filter_map(|one| one["restartCount"].as_u64()).sum(),
        problem: problem(status),
    }
}

/// A Deployment keeps pods through a ReplicaSet, which is named after it and the hash of their template.
fn workload(metadata: &Value) -> Option<String> {
    let owner = metadata["ownerReferences"][0]["name"].as_str()?;
    let hash = metadata["labels"]["pod-template-hash"].as_str();
    let deployment = hash.and_then(|hash| owner.strip_suffix(hash)?.strip_suffix('-'));
    Some(deployment.unwrap_or(owner).to_owned())
}

/// States of all containers, those of sidecars first.
fn containers(status: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainerStatuses", "containerStatuses"].map(|key| status[key].as_array());
    lists.into_iter().flatten().flatten()
}

fn problem(status: &Value) -> Option<Problem> {
    let said = |of: &Value| {
        let (reason, message) = (of["reason"].as_str()?, of["message"].as_str().unwrap_or_default());
        Some(if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") })
    };
    // An evicted pod says so itself.
    if let Some(what) = said(status) {
        return Some(Problem { what, is_hopeless: true });
    }
    for container in containers(status) {
        let name = container["name"].as_str().unwrap_or_default();
        let (waiting, ended) = (&container["state"]["waiting"], &container["lastState"]["terminated"]);
        let waits = said(waiting)
            .filter(|_| waiting["reason"] != "PodInitializing" && waiting["reason"] != "ContainerCreating");
        let is_hopeless = HOPELESS.iter().any(|reason| waiting["reason"] == *reason);
        if let Some(what) = waits.or_else(|| said(ended)) {
            return Some(Problem { what: format!("container {name}: {what}"), is_hopeless });
        }
    }
    let conditions = status["conditions"].as_array().into_iter().flatten();
    // A pod without a node is said to be without one before it is said to be unready.
    let of =
        |kind: &str| conditions.clone().filter(|one| one["type"] == kind && one["status"] == "False").find_map(said);
    of("PodScheduled").or_else(|| of("Ready")).map(|what| Problem { what, is_hopeless: false })
}

/// Changes to pods between two lists, in words.
pub(super) fn changes(before: &[Pod], after: &[Pod]) -> Vec<String> {
    let mut changes = Vec::new();
    for old in before {
        match after.iter().find(|pod| pod.uid == old.uid) {
            None => changes.push(format!("{} is gone", old.name)),
            Some(now) if now.is_ending => changes.push(format!("{} was told to end", old.name)),
            Some(now) => {
                let why = now.problem.as_ref().map_or_else(String::new, |problem| format!(" ({})", problem.what));
                if now.restarts > old.restarts {
                    changes.push(format!("{} was started again{why}", old.name));
                } else if !now.is_ready {
                    changes.push(format!("{} is no longer ready{why}", old.name));
                }
            }
        }
    }
    let new = after.iter().filter(|pod| before.iter().all(|old| old.uid != pod.uid));
    changes.extend(new.map(|pod| format!("{} is new", pod.name)));
    changes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(status: &Value) -> Pod {
        let item =
            json!({ "metadata": { "name": "shop-1", "uid": "u1" }, "spec": { "nodeName": "n1" }, "status": status });
        list(&json!({ "items": [item] })).remove(0)
    }

    fn ready() -> Value {
        json!({
            "conditions": [{ "type": "PodScheduled", "status": "True" }, { "type": "Ready", "status": "True" }],
            "containerStatuses": [{ "name": "shop", "restartCount": 1, "state": { "running": {} } }],
            "initContainerStatuses": [{ "name": "sidecar", "restartCount": 2, "state": { "running": {} } }],
        })
    }

    #[test]
    fn a_pod_says_whether_it_can_be_used_and_why_not() {
        let pod = of(&ready());
        assert_eq!(pod.workload, "shop-1");
        let owned = json!({ "ownerReferences": [{ "name": "shop-6f4" }], "labels": { "pod-template-hash": "6f4" } });
        assert_eq!(workload(&owned).as_deref(), Some("shop"));
        assert_eq!(workload(&json!({ "ownerReferences": [{ "name": "micron" }] })).as_deref(), Some("micron"));
        assert_eq!((pod.is_ready, pod.restarts, pod.node.as_deref(), pod.problem), (true, 3, Some("n1"), None));
        let waiting = |reason: &str| {
            let state = json!({ "waiting": { "reason": reason, "message": "no image" } });
            of(&json!({ "containerStatuses": [{ "name": "shop", "state": state }] })).problem
        };
        assert_eq!(waiting("ContainerCreating"), None);
        let missing = waiting("ErrImageNeverPull").unwrap();
        assert_eq!((missing.what.as_str(), missing.is_hopeless), ("container shop: ErrImageNeverPull: no image", true));
        assert!(!waiting("ImagePullBackOff").unwrap().is_hopeless, "the registry may come back");
        let evicted =
            of(&json!({ "phase": "Failed", "reason": "Evicted", "message": "low on memory" })).problem.unwrap();
        assert_eq!((evicted.what.as_str(), evicted.is_hopeless), ("Evicted: low on memory", true));
        let killed = json!({ "name": "shop", "state": { "running": {} }, "lastState": { "terminated": { "reason": "OOMKilled" } } });
        assert_eq!(of(&json!({ "containerStatuses": [killed] })).problem.unwrap().what, "container shop: OOMKilled");
        let nowhere =
            json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes" });
        assert_eq!(of(&json!({ "conditions": [nowhere] })).problem.unwrap().what, "Unschedulable: 0/1 nodes");
        let message = "containers with unready status: [shop]";
        let unready = json!({ "type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": message });
        let problem = of(&json!({ "conditions": [unready] })).problem.unwrap();
        assert_eq!((problem.what, problem.is_hopeless), (format!("ContainersNotReady: {message}"), false));
        assert_eq!(list(&json!({})), []);
    }

    #[test]
    fn changes_between_two_lists_are_named() {
        let before = of(&ready());
        let with = |change: fn(&mut Pod)| {
            let mut pod = before.clone();
            change(&mut pod);
            pod
        };
        let changed = |after: &[Pod]| changes(std::slice::from_ref(&before), after);
        assert_eq!(changed(std::slice::from_ref(&before)), [""; 0]);
        assert_eq!(changed(&[]), ["shop-1 is gone"]);
        assert_eq!(changed(&[with(|pod| pod.is_ending = true)]), ["shop-1 was told to end"]);
        assert_eq!(changed(&[with(|pod| pod.restarts += 1)]), ["shop-1 was started again"]);
        assert_eq!(changed(&[with(|pod| pod.is_ready = false)]), ["shop-1 is no longer ready"]);
        assert_eq!(changed(&[with(|pod| pod.uid = "u2".to_owned())]), ["shop-1 is gone", "shop-1 is new"]);
    }
}
