//! `system.compose` over real containers: built by podman-compose, found by name, sampled, and gone afterwards.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use narrows_testing::{has_programs, skip};

use crate::common::{Bench, ask, caveats, end, free_port, text};

/// A program that finds no Docker here, so that podman is taken.
const NO_DOCKER: &str = "#!/bin/sh\nexit 1\n";

/// An image of the binary, and what was built on it; removed at the end.
struct Image {
    bench: Bench,
    tag: String,
}

impl Image {
    fn podman(&self, arguments: &[&str]) -> String {
        let output = Command::new("podman").args(arguments).output().unwrap();
        assert!(output.status.success(), "podman {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn label(&self) -> String {
        format!("label=narrows-test={}", std::process::id())
    }

    fn load(&self) {
        let archive = self.bench.path("image.tar");
        let packer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/kubernetes/image.py");
        let program = format!("{}:/narrows", env!("CARGO_BIN_EXE_narrows"));
        let mut pack = Command::new("python3");
        pack.arg(packer).arg(&self.tag).arg(&archive).args(["--entry", "/narrows", &program]);
        let packed = pack.output().unwrap();
        assert!(packed.status.success(), "{}", text(&packed.stderr));
        self.podman(&["load", "--quiet", "--input", archive.to_str().unwrap()]);
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        for words in [&["image", "prune", "--force", "--filter", &self.label()][..], &["rmi", &self.tag]] {
            let _ = Command::new("podman").args(words).output();
        }
    }
}

#[test]
fn containers_are_built_named_sampled_and_removed() {
    if !has_programs(&["podman", "podman-compose", "python3"]) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return skip("only root may sample containers");
    }
    let port = free_port();
    let request = "GET /api/dronedeliveries/utilization?ownerId=o1&year=2024&month=6";
    let bench = Bench::new(&format!(
        r#"experiment: drones
system:
  compose: compose.yaml
load:
  target: scheduler
  warmup: 0s
  scenarios:
    plan: {{ model: constant-vus, vus: 2, duration: 12s, request: "{request}" }}
"#
    ));
    let tag = format!("localhost/narrows-test:{}", std::process::id());
    let compose = format!(
        r#"services:
  scheduler:
    build: .
    command: ["system", "drone-delivery", "dronescheduler", "--listen", "0.0.0.0", "--insecure", "--port", "8080", "--store", "http://docstore:8081"]
    ports: ["127.0.0.1:{port}:8080"]
    depends_on: [docstore]
  docstore:
    build: .
    command: ["engine", "docstore", "--listen", "0.0.0.0", "--insecure", "--port", "8081", "--no-auth"]
"#
    );
    std::fs::write(bench.path("compose.yaml"), compose).unwrap();
    let dockerfile = format!("FROM {tag}\nLABEL narrows-test={}\n", std::process::id());
    std::fs::write(bench.path("Dockerfile"), dockerfile).unwrap();
    // Limits that podman can set without CAP_SYS_RESOURCE; crun refuses a mixture of both versions of control groups.
    let runtime = if Path::new("/usr/sbin/runc").exists() { "[engine]\nruntime = \"runc\"\n" } else { "" };
    let limits = "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n";
    std::fs::write(bench.path("containers.conf"), format!("{limits}{runtime}")).unwrap();
    std::fs::create_dir(bench.path("bin")).unwrap();
    std::fs::write(bench.path("bin/docker"), NO_DOCKER).unwrap();
    std::fs::set_permissions(bench.path("bin/docker"), std::fs::Permissions::from_mode(0o755)).unwrap();

    let image = Image { bench, tag };
    image.load();
    let path = format!("{}:{}", image.bench.path("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut run = image.bench.narrows(&["run", "--out", "run.narrows"]);
    run.env("PATH", path).env("CONTAINERS_CONF", image.bench.path("containers.conf"));
    let run = end(run);
    let said = text(&run.stderr);
    if said.contains("cannot find each other by name") {
        return skip(
            "podman's networks have no name server (Debian 12: golang-github-containernetworking-plugin-dnsname)",
        );
    }
    assert!(run.status.success(), "{said}");

    let file = image.bench.path("run.narrows");
    let sampled = "select group_concat(distinct service) from (select service from metrics where service in ('scheduler', 'docstore') \
                   and name = 'process.cpu.cores' order by service)";
    assert_eq!(ask(&file, sampled), "docstore,scheduler");
    let calls = "select group_concat(call) from (select distinct caller || ' to ' || callee as call from call_graph \
                 where callee in ('scheduler', 'docstore') order by call)";
    assert_eq!(ask(&file, calls), "narrows to scheduler,scheduler to docstore", "{:?}", caveats(&file));

    let project = format!("narrows-{}", ask(&file, "select id from run"));
    for things in [&["ps", "--all", "--format", "{{.Names}}"][..], &["network", "ls", "--format", "{{.Name}}"]] {
        assert!(!image.podman(things).contains(&project), "{}", image.podman(things));
    }
    assert!(
        !image.podman(&["images", "--format", "{{.Repository}}"]).contains(&project),
        "the name of the trial is gone"
    );
    assert_ne!(
        image.podman(&["images", "--quiet", "--filter", &image.label()]),
        "",
        "the image is the next build's cache"
    );
}
