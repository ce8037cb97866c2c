//! Objects of small experiments.

use std::path::Path;

use super::*;

const SHOP: &str = r#"
experiment: shop-1
parameters: { proxy: none, workers: 2, image: "registry.example/shop:1" }
system:
  services:
    db:
      postgres: { database: orders, settings: { work_mem: 4MB } }
      cpus: 0.5
      sidecar: { proxy: "${proxy}", tls: true }
    worker:
      run: [narrows, system, micron, instance, --port, "${port}", --instance, "${replica}", --database, "${db.urls}"]
      replicas: "${workers}"
    shop:
      run: [./shop, --port, "${port}", --worker, "${worker.urls}", "$${KEPT} $(KEPT)"]
      image: "${image}"
      env: { STORE: "${trial.dir}/store", DATABASE: "${db.url}" }
      ready: "GET /health"
      memory: 64MiB
      sidecar: { proxy: "${proxy}", tls: true, access_log: true }
load:
  target: shop
  scenarios: { main: { model: constant-vus, vus: 1, duration: 1s, request: GET / } }
variants:
  - { name: plain }
  - { name: beside, proxy: narrows, workers: 1 }
  - { name: envoy, proxy: envoy }
"#;

fn made(variant: &str, wanted: &Wanted) -> Result<Manifests, ManifestError> {
    let experiment = crate::language().parse(SHOP, "e.yaml", Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    let variant = experiment.variants.iter().find(|one| one.name == variant).unwrap();
    manifests(&experiment, variant, wanted)
}

fn object<'a>(made: &'a Manifests, kind: &str, name: &str) -> &'a Value {
    let found = made.objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name} in {}", made.yaml()))
}

fn container(controller: &Value) -> &Value {
    &controller["spec"]["template"]["spec"]["containers"][0]
}

fn variable<'a>(container: &'a Value, name: &str) -> &'a Value {
    let found = container["env"].as_array().unwrap().iter().find(|variable| variable["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {container:#}"))
}

#[test]
fn a_program_becomes_a_deployment_with_the_names_of_services() {
    let made = made("plain", &Wanted::default()).unwrap();
    let deployment = object(&made, "Deployment", "shop");
    let shop = container(deployment);
    assert_eq!(shop["image"], "registry.example/shop:1");
    assert_eq!(shop["command"], json!(["./shop"]));
    assert_eq!(shop["args"], json!(["--port", "8080", "--worker", "http://worker:8080", "${KEPT} $$(KEPT)"]));
    assert_eq!(variable(shop, "STORE")["value"], "/var/lib/narrows/store");
    assert_eq!(variable(shop, "DATABASE")["value"], "postgres://postgres:$(DB_PASSWORD)@db:5432/orders");
    assert_eq!(variable(shop, "DB_PASSWORD")["valueFrom"]["secretKeyRef"], json!({ "name": "db", "key": "password" }));
    assert_eq!(shop["readinessProbe"]["httpGet"], json!({ "path": "/health", "port": 8080 }));
    assert_eq!(shop["resources"]["limits"], json!({ "memory": "67108864" }));
    assert!(shop.get("securityContext").is_none(), "the needs of an unknown image are not known");
    let selector = &deployment["spec"]["selector"]["matchLabels"];
    assert_eq!(selector, &json!({ "app.kubernetes.io/name": "shop", "app.kubernetes.io/part-of": "shop-1" }));
    assert_eq!(&object(&made, "Service", "shop")["spec"]["selector"], selector);
    assert_eq!(made.secrets.iter().map(|secret| secret.name.as_str()).collect::<Vec<_>>(), ["db"]);
}

#[test]
fn replicas_that_know_their_numbers_become_a_stateful_set() {
    let made = made("plain", &Wanted::default()).unwrap();
    let set = object(&made, "StatefulSet", "worker");
    assert_eq!((&set["spec"]["replicas"], &set["spec"]["serviceName"]), (&json!(2), &json!("worker")));
    let worker = container(set);
    assert_eq!(worker["image"], container::NARROWS_IMAGE);
    assert!(worker.get("command").is_none(), "the image starts narrows by itself");
    let args = worker["args"].as_array().unwrap();
    assert_eq!(args[6], "$(REPLICA)");
    assert_eq!(args[args.len() - 3..], ["--listen", "0.0.0.0", "--insecure"]);
    assert!(variable(worker, "REPLICA")["valueFrom"]["fieldRef"]["fieldPath"].as_str().unwrap().contains("pod-index"));
    assert_eq!(
        container(object(&super::tests::made("beside", &Wanted::default()).unwrap(), "Deployment", "worker"))["args"]
            [6],
        "0"
    );
}

#[test]
fn a_database_becomes_its_public_image_with_a_password() {
    let made = made("plain", &Wanted::default()).unwrap();
    let deployment = object(&made, "Deployment", "db");
    let db = container(deployment);
    assert_eq!(deployment["spec"]["strategy"]["type"], "Recreate");
    assert_eq!(db["args"], json!(["-c", "listen_addresses=0.0.0.0", "-c", "port=5432", "-c", "work_mem=4MB"]));
    assert_eq!(variable(db, "POSTGRES_DB")["value"], "orders");
    assert_eq!(db["resources"]["limits"]["cpu"], "500m");
    assert!(!made.yaml().contains("postgres@"), "every URL has a password");
}

#[test]
fn a_sidecar_stands_before_its_service_and_leads_to_names() {
    let made = made("beside", &Wanted::default()).unwrap();
    let pod = &object(&made, "Deployment", "shop")["spec"]["template"]["spec"];
    let sidecar = &pod["initContainers"][0];
    assert_eq!((&sidecar["restartPolicy"], &sidecar["ports"][0]["containerPort"]), (&json!("Always"), &json!(8080)));
    let args = pod["containers"][0]["args"].as_array().unwrap();
    assert!(!args.contains(&json!("--listen")), "the service stays on loopback");
    let text = object(&made, "ConfigMap", "shop-sidecar")["data"]["sidecar.json"].as_str().unwrap();
    let list: Value = serde_json::from_str(text).unwrap();
    let hops = list["hops"].as_array().unwrap();
    let upstream =
        |name: &str| hops.iter().find(|hop| hop["name"] == name).unwrap()["upstream"].as_str().unwrap().to_owned();
    assert!(upstream("inbound").starts_with("127.0.0.1:"));
    assert_eq!(upstream("to worker"), "worker:8080");
    let ports = object(&made, "Service", "db")["spec"]["ports"].as_array().unwrap().clone();
    assert_eq!(upstream("to db"), format!("db:{}", ports[1]["port"]), "by mutual TLS");
    let database = variable(&pod["containers"][0], "DATABASE")["value"].as_str().unwrap();
    assert!(database.starts_with("postgres://postgres:$(DB_PASSWORD)@127.0.0.1:"), "{database}");
    let db = container(object(&made, "Deployment", "db"));
    assert_eq!(db["args"][1], "listen_addresses=127.0.0.1");
    assert_eq!(list["tls"]["key"], "/etc/narrows-tls/tls.key");
    assert_eq!(
        made.secrets.iter().map(|secret| secret.name.as_str()).collect::<Vec<_>>(),
        ["db", "db-tls", "shop-tls"]
    );
}

#[test]
fn telemetry_and_an_ingress_are_there_when_they_are_asked_for() {
    let wanted = Wanted { only: vec!["shop".to_owned()], otlp: Some("http://narrows:4318".to_owned()), ingress: true };
    let made = made("plain", &wanted).unwrap();
    let kinds: Vec<&str> = made.objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Deployment", "Service", "Ingress"]);
    let backend = &made.objects[2]["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"];
    assert_eq!(backend, &json!({ "name": "shop", "port": { "number": 8080 } }));
    let shop = container(&made.objects[0]);
    assert_eq!(variable(shop, "OTEL_EXPORTER_OTLP_ENDPOINT")["value"], "http://narrows:4318");
    assert!(made.secrets.iter().any(|secret| secret.name == "telemetry"));
}

#[test]
fn a_service_that_cannot_be_a_container_is_named() {
    let error = made("envoy", &Wanted::default()).unwrap_err();
    assert_eq!(error.to_string(), "`db` has no manifest: its sidecar is envoy, and only `narrows` has one");
    let wanted = Wanted { only: vec!["shp".to_owned()], ..Wanted::default() };
    let error = made("plain", &wanted).unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.hint().as_deref()),
        ("the experiment has no service `shp`", Some("did you mean `shop`?"))
    );
}
