//! `system.compose` over a stand-in for Docker: one container, which is a web server, and every command in a log.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{self, Bench, ask, caveats, end, eventually, free_port, has_python, start_until, text};

const DOCKER: &str = r#"#!/bin/sh
echo "$*" >>"$FAKE/log"
case "$1 $2" in
"compose --file")
    [ ! -e "$FAKE/broken" ] || { echo "failed to build web"; exit 17; }
    cp "$5" "$FAKE/override.yaml"
    setsid python3 -m http.server "$FAKE_PORT" --bind 127.0.0.1 >/dev/null 2>&1 &
    echo $! >"$FAKE/pid" ;;
"ps --all") [ ! -e "$FAKE/pid" ] || cat "$FAKE/pid" ;;
"inspect --format") echo "$(cat "$FAKE/pid") shop-web-1 web"; echo "0 shop-worker-1 worker" ;;
"rm --force") kill -9 "$(cat "$FAKE/pid")"; rm "$FAKE/pid" ;;
esac
exit 0
"#;

/// A folder with an experiment over a Compose file, and the stand-in.
struct Shop {
    bench: Bench,
    port: u16,
}

impl Shop {
    fn new(duration: &str) -> Self {
        let port = free_port();
        let bench = Bench::new(&format!(
            r#"experiment: shop
system:
  compose: {{ file: compose.yaml, limits: {{ web: {{ cpus: 0.5 }} }} }}
load:
  target: web
  warmup: 0s
  scenarios: {{ read: {{ model: constant-vus, vus: 1, duration: {duration}, request: GET / }} }}
"#
        ));
        let compose = format!(
            "services:\n  web:\n    build: .\n    ports: [\"127.0.0.1:{port}:80\"]\n  worker: {{ image: worker }}\n"
        );
        std::fs::write(bench.path("compose.yaml"), compose).unwrap();
        std::fs::create_dir(bench.path("bin")).unwrap();
        std::fs::write(bench.path("bin/docker"), DOCKER).unwrap();
        std::fs::set_permissions(bench.path("bin/docker"), std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { bench, port }
    }

    fn command(&self) -> Command {
        let mut command = self.bench.narrows(&["run", "--out", "run.narrows"]);
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("PATH", format!("{}:{path}", self.bench.path("bin").display()))
            .env("FAKE", self.bench.path(""))
            .env("FAKE_PORT", self.port.to_string());
        command
    }

    fn run(&self) -> Output {
        end(self.command())
    }

    fn has_container(&self) -> bool {
        self.bench.path("pid").exists()
    }
}

#[test]
fn a_compose_file_is_started_sampled_and_taken_down() {
    if !has_python() {
        return;
    }
    let shop = Shop::new("2s");
    let run = shop.run();
    assert!(run.status.success(), "{}", text(&run.stderr));
    let file = shop.bench.path("run.narrows");
    assert_eq!(
        ask(
            &file,
            "select sum(errors_connect + errors_reset + errors_timeout + errors_protocol + errors_status) from load_seconds"
        ),
        "0"
    );
    assert_eq!(ask(&file, "select group_concat(service) from services"), "web");
    let sampled = "select count(*) > 0 from metrics where service = 'web' and name = 'process.cpu.cores'";
    assert_eq!(ask(&file, sampled), "1");
    assert!(caveats(&file).iter().all(|caveat| !caveat.contains("did not start web, which")), "{:?}", caveats(&file));
    let over = std::fs::read_to_string(shop.bench.path("override.yaml")).unwrap();
    assert_eq!(over, r#"{"services":{"web":{"deploy":{"resources":{"limits":{"cpus":"0.5"}}}}}}"#);
    assert!(!shop.has_container());
    common::nothing_is_left(&shop.bench, &file);
}

#[test]
fn containers_go_with_a_run_that_is_killed() {
    if !has_python() {
        return;
    }
    let shop = Shop::new("10m");
    let (mut run, _lines) = start_until(&mut shop.command(), "setting up compose");
    let file = shop.bench.path("run.narrows");
    eventually("load", || common::succeeded(&file, 1) > 0);
    assert!(shop.has_container());
    kill_process(Pid::from_child(&run), Signal::KILL).unwrap();
    run.wait().unwrap();
    eventually("the end of the container", || !shop.has_container());
}

#[test]
fn a_compose_file_that_does_not_start_is_one_message() {
    let shop = Shop::new("2s");
    std::fs::write(shop.bench.path("broken"), "").unwrap();
    let run = shop.run();
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("compose.yaml: it exited with code 17") && said.contains("failed to build web"), "{said}");
    assert_eq!(ask(&shop.bench.path("run.narrows"), "select count(*) from load_seconds"), "0");
    let log = std::fs::read_to_string(shop.bench.path("log")).unwrap();
    assert!(log.contains("ps --all --quiet --filter label=com.docker.compose.project=narrows-"), "{log}");

    std::fs::write(shop.bench.path("compose.yaml"), "services: [\n").unwrap();
    let check = shop.bench.run(&["check"]);
    assert!(text(&check.stdout).contains("system.compose: compose.yaml:"), "{}", text(&check.stdout));
    std::fs::remove_file(shop.bench.path("compose.yaml")).unwrap();
    let check = shop.bench.run(&["check"]);
    assert!(text(&check.stdout).contains("system.compose: cannot read"), "{}", text(&check.stdout));
}
