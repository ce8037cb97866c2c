//! Trials against an API server of a few responses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, sync_channel};

use serde_json::json;

use super::*;
use crate::experiment::BoundDeployment;

/// Serves these responses, one for each request, then closes. Requests come out of the channel: their first line and
/// their body.
fn server(responses: Vec<(u16, Value)>) -> (Url, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let (sender, requests) = sync_channel(16);
    std::thread::spawn(move || {
        for (status, body) in responses {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut first = String::new();
            reader.read_line(&mut first).unwrap();
            let mut length = 0;
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 2 {
                if let Some(value) = line.strip_prefix("Content-Length: ") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut change = vec![0; length];
            reader.read_exact(&mut change).unwrap();
            let _ =
                sender.send(format!("{}{}", first.replace(" HTTP/1.0\r\n", ""), String::from_utf8(change).unwrap()));
            write!(stream, "HTTP/1.0 {status} x\r\n\r\n{body}").unwrap();
        }
    });
    (url, requests)
}

fn settings(server: Url, deployments: Vec<BoundDeployment>) -> BoundCluster {
    BoundCluster {
        namespace: "shop".to_owned(),
        selector: "app=shop".to_owned(),
        server,
        timeout: Duration::from_secs(60),
        settle: Duration::ZERO,
        deployments,
    }
}

fn pod(name: &str, status: &str) -> Value {
    json!({
        "metadata": { "name": name, "uid": name },
        "spec": { "nodeName": "node-1" },
        "status": { "conditions": [{ "type": "Ready", "status": status }] },
    })
}

fn list(pods: &[Value]) -> (u16, Value) {
    (200, json!({ "items": pods }))
}

fn attach(settings: BoundCluster) -> Result<Cluster, (String, Option<String>)> {
    Cluster::attach(settings, &mut Found::default(), &mut || Ok(())).map_err(|error| (error.to_string(), error.hint()))
}

#[test]
fn a_system_is_used_once_its_pods_are_ready_and_watched_from_then_on() {
    let (one, other) = (pod("a", "True"), pod("b", "True"));
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let node = json!({ "status": { "nodeInfo": { "bootID": boot_id.trim() } } });
    let (url, requests) = server(vec![
        list(&[one.clone(), pod("b", "False")]),
        list(&[one.clone(), other.clone()]),
        (200, node),
        list(&[one.clone(), other]),
        list(&[one]),
    ]);
    let cluster = attach(settings(url.clone(), Vec::new())).unwrap();
    assert_eq!(requests.recv().unwrap(), "GET /api/v1/namespaces/shop/pods?labelSelector=app%3Dshop");
    let pages: Vec<String> = cluster.pages().iter().map(|page| page.url.path().to_owned()).collect();
    assert_eq!(pages, PAGES.map(|page| format!("/api/v1/nodes/node-1/proxy/{page}")));
    let places = |name: &str| TrialCaveat::ServiceElsewhere {
        service: name.to_owned(),
        places: vec![name.to_owned()],
        is_here: true,
    };
    assert_eq!(cluster.workloads(), ["a", "b"].map(places));
    assert_eq!(cluster.changes().unwrap(), None);
    assert_eq!(cluster.changes().unwrap(), Some(TrialCaveat::PodsChanged { changes: vec!["b is gone".to_owned()] }));
    let error = cluster.changes().unwrap_err();
    assert!(error.to_string().starts_with("cannot list pods: no API server at http://127.0.0.1:"), "{error}");
    assert!(error.hint().unwrap().contains("kubectl proxy"));
}

#[test]
fn a_variant_sets_deployments_waits_for_their_rollout_and_sets_them_back() {
    let deployment = |replicas: u64, available: u64| {
        let status = json!({ "observedGeneration": 1, "updatedReplicas": available, "availableReplicas": available, "replicas": available });
        (200, json!({ "metadata": { "generation": 1 }, "spec": { "replicas": replicas }, "status": status }))
    };
    let pods = list(&[pod("a", "True")]);
    let (before, patched, unready, ready) = (deployment(2, 2), deployment(3, 2), deployment(3, 2), deployment(3, 3));
    let (url, requests) = server(vec![before.clone(), patched, unready, pods.clone(), ready, pods, before]);
    let wanted = BoundDeployment { name: "shop".to_owned(), replicas: Some(3), ..BoundDeployment::default() };
    let mut found = Found::default();
    Cluster::attach(settings(url, vec![wanted]), &mut found, &mut || Ok(())).unwrap();
    assert!(found.restore().is_empty());
    assert!(found.restore().is_empty());
    let path = "/apis/apps/v1/namespaces/shop/deployments/shop";
    let all: Vec<String> = requests.iter().collect();
    let patch = |replicas: u64| format!("PATCH {path}{}", json!({ "spec": { "replicas": replicas } }));
    assert_eq!(all[..2], [format!("GET {path}"), patch(3)]);
    assert_eq!(all[2..].iter().filter(|request| request.starts_with("PATCH")).collect::<Vec<_>>(), [&patch(2)]);
}

#[test]
fn a_deployment_that_cannot_be_set_back_leaves_no_other_as_it_is() {
    let deployment =
        (200, json!({ "spec": { "replicas": 1 }, "status": { "updatedReplicas": 2, "availableReplicas": 2 } }));
    let (patched, ready) = (deployment.clone(), deployment.clone());
    let refusal = |name: &str| (404, json!({ "message": format!("{name} not found") }));
    let (url, requests) = server(vec![
        deployment.clone(),
        patched.clone(),
        deployment,
        patched.clone(),
        ready.clone(),
        ready,
        list(&[pod("a", "True")]),
        refusal("front"),
        refusal("back"),
    ]);
    let wanted = ["front", "back"].map(|name| BoundDeployment {
        name: name.to_owned(),
        replicas: Some(2),
        ..BoundDeployment::default()
    });
    let mut found = Found::default();
    Cluster::attach(settings(url, wanted.to_vec()), &mut found, &mut || Ok(())).unwrap();
    let failures: Vec<String> = found.restore().iter().map(ToString::to_string).collect();
    let failure =
        |name: &str| format!("cannot set back Deployment `{name}`: the API server responds 404: {name} not found");
    assert_eq!(failures, ["front", "back"].map(failure));
    assert_eq!(requests.iter().filter(|request| request.starts_with("PATCH")).count(), 4);
}

#[test]
fn a_system_that_cannot_be_used_is_an_error_with_its_reason() {
    let of = |response: (u16, Value)| attach(settings(server(vec![response]).0, Vec::new())).map(drop).unwrap_err();
    let (what, hint) = of(list(&[]));
    assert_eq!(what, "no pod in namespace `shop` matches `app=shop`");
    assert!(hint.unwrap().contains("--show-labels"));
    let state = json!({ "waiting": { "reason": "ErrImageNeverPull", "message": "not present" } });
    let missing =
        json!({ "metadata": { "name": "a" }, "status": { "containerStatuses": [{ "name": "main", "state": state }] } });
    let (what, _) = of(list(&[missing]));
    assert_eq!(what, "the system in namespace `shop` is not ready: a: container main: ErrImageNeverPull: not present");
    let (what, hint) = of((403, json!({ "message": "pods is forbidden" })));
    assert_eq!(what, "cannot list pods: the API server responds 403: pods is forbidden");
    assert!(hint.unwrap().contains("rights"));
}
