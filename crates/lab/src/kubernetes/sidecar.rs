//! The proxy beside a service, as a container that the pod starts before its main one and ends after it.

use std::path::Path;

use narrows_model::run::sidecar_name;
use serde_json::{Value, json};

use super::container::{NARROWS_IMAGE, locked, resources, telemetry};
use super::workload::{Pod, Workload, empty};
use super::{ManifestError, Manifests, Secret, dns};
use crate::components::sidecar::hop_list;
use crate::experiment::BoundSidecar;

/// The one kind of proxy that manifests have: it is in the same image as the services.
const KIND: &str = "narrows";
const CONFIGURATION: &str = "/etc/narrows";
const CERTIFICATES: &str = "/etc/narrows-tls";

/// Adds the container, its configuration and its certificates.
pub(super) fn add(
    workload: &Workload<'_>,
    bound: &BoundSidecar,
    pod: &mut Pod,
    made: &mut Manifests,
) -> Result<(), ManifestError> {
    let service = workload.service;
    if bound.proxy != KIND {
        let reason = format!("its sidecar is {}, and only `{KIND}` has one", bound.proxy);
        return Err(ManifestError::NoContainer { service: service.name.clone(), reason });
    }
    let name = dns(&service.name);
    let certificates = bound.tls_port.map(|_| Path::new(CERTIFICATES));
    let log = bound.has_access_log.then(|| Path::new("/tmp/access.log"));
    let mut list = hop_list(service, bound, certificates, log);
    lead_to_names(&mut list, bound, workload);
    let map_name = format!("{name}-sidecar");
    let text = format!("{list:#}\n");
    made.objects.push(workload.config_map(&map_name, [("sidecar.json".to_owned(), text.into())].into_iter().collect()));

    let mut mounts = vec![
        json!({ "name": "sidecar", "mountPath": CONFIGURATION, "readOnly": true }),
        json!({ "name": "sidecar-tmp", "mountPath": "/tmp" }),
    ];
    pod.volumes.push(json!({ "name": "sidecar", "configMap": { "name": map_name } }));
    pod.volumes.push(empty("sidecar-tmp"));
    if bound.tls_port.is_some() {
        let secret = format!("{name}-tls");
        mounts.push(json!({ "name": "tls", "mountPath": CERTIFICATES, "readOnly": true }));
        pod.volumes.push(json!({ "name": "tls", "secret": { "secretName": secret } }));
        made.secrets.push(Secret {
            name: secret,
            keys: vec!["ca.crt", "tls.crt", "tls.key"],
            purpose: format!("a certificate for {}, from the authority of all sidecars", service.name),
        });
    }
    let mut container = json!({
        "name": "sidecar",
        "image": NARROWS_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "args": ["engine", "sidecar", "--config", format!("{CONFIGURATION}/sidecar.json"), "--listen", "0.0.0.0", "--insecure"],
        "restartPolicy": "Always",
        "ports": [{ "containerPort": bound.port }],
        "resources": resources(bound.cpus, bound.memory_bytes),
        "securityContext": locked(true),
        "volumeMounts": mounts,
    });
    let env = telemetry(workload, &sidecar_name(&service.name), &mut made.secrets);
    if !env.is_empty() {
        container["env"] = env.into();
    }
    pod.sidecars.push(container);
    Ok(())
}

/// Has outbound hops lead to the names of services, whose addresses only the cluster knows.
fn lead_to_names(list: &mut Value, bound: &BoundSidecar, workload: &Workload<'_>) {
    let hops = list["hops"].as_array_mut().into_iter().flatten().filter(|hop| hop["direction"] == "outbound");
    for (hop, outbound) in hops.zip(&bound.outbound) {
        hop["upstream"] = format!("{}:{}", workload.plan.host(&outbound.service), outbound.upstream.port()).into();
    }
}
