//! `narrows kubernetes manifests`: those of `deploy/kubernetes` are what it prints now, and run on a real cluster where one
//! has been built.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use narrows_testing::{has_programs, postgres_programs, skip};

use crate::common::{Bench, caveats, text};
use crate::server::{Server, response};

/// Writes the manifests anew instead of comparing them.
const WRITE: &str = "NARROWS_WRITE";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files called `manifests.yaml` below a folder.
fn manifests_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let ours = files.into_iter().filter(|path| path.ends_with("manifests.yaml"));
    let mut found: Vec<_> = ours.chain(folders.iter().flat_map(|folder| manifests_below(folder))).collect();
    found.sort();
    found
}

#[test]
fn the_manifests_of_reference_systems_are_current() {
    let files = manifests_below(&root().join("deploy/kubernetes"));
    assert!(files.len() >= 4, "{files:?}");
    let mut stale = Vec::new();
    for file in files {
        let kept = std::fs::read_to_string(&file).unwrap();
        let command = kept.strip_prefix("# Made by `narrows ").and_then(|rest| rest.split_once('`'));
        let (arguments, _) = command.unwrap_or_else(|| panic!("{}: its first line is no command", file.display()));
        let output = Command::new(env!("CARGO_BIN_EXE_narrows"))
            .args(arguments.split(' '))
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        let made = String::from_utf8(output.stdout).unwrap();
        if made != kept {
            stale.push(file.display().to_string());
            if std::env::var_os(WRITE).is_some() {
                std::fs::write(&file, made).unwrap();
            }
        }
    }
    assert!(stale.is_empty() || std::env::var_os(WRITE).is_some(), "not what narrows prints now: {stale:?}");
}

/// Needs the programs of testing/kubernetes/build.sh, and root.
#[test]
fn the_reference_systems_run_on_a_real_cluster() {
    if !root().join("target/kubernetes/traefik").is_file() || !rustix::process::geteuid().is_root() {
        skip("no Kubernetes to start: testing/kubernetes/build.sh builds one, and root starts it");
        return;
    }
    // One after the other: both start a cluster.
    for script in [&["prove.sh", "0.2"][..], &["agents.sh"]] {
        let proof = Command::new(root().join("testing/kubernetes").join(script[0]))
            .arg(env!("CARGO_BIN_EXE_narrows"))
            .args(&script[1..])
            .output()
            .unwrap();
        let said = [proof.stdout, proof.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(proof.status.success(), "{said}");
    }
}

/// Needs podman with names for pods, PostgreSQL, and root.
#[test]
fn podman_plays_the_manifests_of_customer_360() {
    if !has_programs(&["podman", "runc", "dnsmasq", "python3"]) || postgres_programs().is_none() {
        return;
    }
    if !Path::new("/usr/lib/cni/dnsname").is_file() || !rustix::process::geteuid().is_root() {
        skip("podman gives pods no names without its plugin dnsname, and plays for root only here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let proof = Command::new(root().join("testing/kubernetes/podman.sh"))
        .arg(env!("CARGO_BIN_EXE_narrows"))
        .env("NARROWS_KUBERNETES", folder.path())
        .output()
        .unwrap();
    let said = [proof.stdout, proof.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(proof.status.success(), "{said}");
}

#[test]
fn an_experiment_without_images_is_refused_by_service() {
    let bench = Bench::new(
        "experiment: shop\n\
         system: { services: { shop: { run: [./shop, --port, \"${port}\"] } } }\n\
         load:\n  target: shop\n  scenarios: { main: { model: constant-vus, vus: 1, duration: 1s, request: GET / } }\n",
    );
    let refused = |arguments: &[&str]| {
        let output = bench.run(&[&["kubernetes", "manifests"][..], arguments].concat());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        refused(&[]),
        "error: `shop` runs `./shop` and has no `image`\nhint: name one that has the program: `image: registry/shop:1`\n"
    );
    assert!(
        refused(&["--variant", "other"]).starts_with("error: the experiment has no variant `other`\nhint: it has ")
    );
    assert!(refused(&["--only", "shp"]).contains("no service `shp`\nhint: did you mean `shop`?"));
    assert!(refused(&["missing.yaml"]).starts_with("error: "));
}

/// An experiment on the pods of a cluster, of which one is the load's target.
fn in_a_cluster(api: &str, target: &str) -> Bench {
    Bench::new(&format!(
        "experiment: shop\n\
         system:\n  kubernetes: {{ namespace: shop, selector: app=web, server: \"{api}\", timeout: 30s, settle: 0s }}\n  \
         services: {{ web: {{ address: \"{target}\" }} }}\n\
         load:\n  target: web\n  warmup: 0s\n  \
         scenarios: {{ main: {{ model: constant-vus, vus: 1, duration: 2s, think_time: 100ms, request: GET / }} }}\n"
    ))
}

/// A list of one pod, which is ready from the second time on, and has restarted by the third.
fn pods(times: u64) -> String {
    let (ready, restarts) = (if times > 0 { "True" } else { "False" }, u64::from(times > 1));
    let pod = serde_json::json!({
        "metadata": {
            "name": "web-6f4-x",
            "uid": "1",
            "labels": { "pod-template-hash": "6f4" },
            "ownerReferences": [{ "name": "web-6f4" }],
        },
        "spec": { "nodeName": "node-1" },
        "status": {
            "conditions": [{ "type": "Ready", "status": ready }],
            "containerStatuses": [{ "name": "main", "restartCount": restarts, "state": { "running": {} } }],
        },
    });
    response("200 OK", "Content-Type: application/json\r\n", &serde_json::json!({ "items": [pod] }).to_string())
}

#[test]
fn pods_are_waited_for_measured_and_watched() {
    let (lists, seconds) = (AtomicU64::new(0), AtomicU64::new(0));
    let cluster = Server::plain(move |request| {
        let path = request.path();
        if path == "/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb" {
            return pods(lists.fetch_add(1, Ordering::Relaxed));
        }
        let used = seconds.fetch_add(1, Ordering::Relaxed);
        match path.strip_prefix("/api/v1/nodes/node-1/proxy/metrics/") {
            Some("resource") => {
                let page = format!("pod_cpu_usage_seconds_total{{namespace=\"shop\",pod=\"web-6f4-x\"}} {used}\n");
                response("200 OK", "Content-Type: text/plain\r\n", &page)
            }
            Some("cadvisor") => response("200 OK", "Content-Type: text/plain\r\n", "machine_cpu_cores 2\n"),
            _ => response("200 OK", "", "hello"),
        }
    });
    let bench = in_a_cluster(&cluster.url(""), &cluster.address.to_string());
    let run = bench.run(&["run", "--out", "run.narrows"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let said = caveats(&bench.path("run.narrows"));
    let is_said = |part: &str| said.iter().any(|caveat| caveat.contains(part));
    assert!(is_said("Pods changed under load") && is_said("web-6f4-x was started again"), "{said:?}");
    assert_eq!(said.iter().filter(|caveat| caveat.starts_with("Narrows did not start web")).count(), 1, "{said:?}");
    let asked = cluster.asked();
    for page in ["resource", "cadvisor"] {
        assert!(asked.iter().any(|request| request.path().ends_with(page)), "{page}");
    }
}

#[test]
fn a_cluster_that_cannot_be_used_ends_the_run_before_its_load() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let run = in_a_cluster(&format!("http://{unused}"), "127.0.0.1:1").run(&["run", "--out", "run.narrows"]);
    assert_eq!(run.status.code(), Some(2));
    let said = text(&run.stderr);
    assert!(said.contains(&format!("cannot list pods: no API server at http://{unused}")), "{said}");
    assert!(said.contains("hint: start `kubectl proxy`"), "{said}");
}
