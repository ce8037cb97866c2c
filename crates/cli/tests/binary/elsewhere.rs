//! Services that somebody else has started: measured by an experiment with their traces and their own figures; and the rule
//! about addresses that other machines can reach.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{self, Bench, ask, caveats, end, text};
use crate::server;

/// Stands for another machine: other tests use 127.0.0.1.
const OTHER: &str = "127.0.0.8";
/// Of RFC 5737's block for documentation, which no machine has.
const FOREIGN: &str = "192.0.2.1";
const SERVICE_TOKEN: &str = "token-of-the-services";
const OTLP_TOKEN: &str = "token-of-the-telemetry";

fn free_port() -> u16 {
    TcpListener::bind((OTHER, 0)).unwrap().local_addr().unwrap().port()
}

/// A process that is killed with the value.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

/// A service of the reference system on the other machine, which asks for a token and sends its telemetry to a port of it.
fn delivery(bench: &Bench, otlp: u16) -> (Started, SocketAddr) {
    use std::io::BufRead as _;
    let mut command = bench.narrows(&["system", "drone-delivery", "delivery", "--listen", OTHER]);
    command
        .env("NARROWS_TOKEN", SERVICE_TOKEN)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{OTHER}:{otlp}"))
        .env("OTEL_EXPORTER_OTLP_HEADERS", format!("authorization=Bearer%20{OTLP_TOKEN}"))
        .env("OTEL_SERVICE_NAME", "delivery")
        .env("OTEL_BSP_SCHEDULE_DELAY", "100")
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap());
    let service = Started(child);
    let mut line = String::new();
    while !line.contains("listens on http://") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the service ended");
    }
    // Read on, or the service would block one day on a full pipe.
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    (service, line.trim().rsplit_once("http://").unwrap().1.parse().unwrap())
}

fn experiment(address: &str, telemetry: &str) -> String {
    format!(
        r#"experiment: elsewhere
system:
  services:
    delivery: {{ address: "{address}", ready: {{ http: "GET /health", timeout: 200ms }} }}
telemetry: {telemetry}
load:
  target: delivery
  warmup: 0s
  scenarios:
    read: {{ model: constant-vus, vus: 2, duration: 3s, request: "GET /api/deliveries/summary?ownerId=o0001&year=2024&month=6" }}
"#
    )
}

fn run(bench: &Bench, tokens: Option<(&str, &str)>) -> Output {
    let mut command = bench.narrows(&["run", "--out", "run.narrows"]);
    if let Some((service, otlp)) = tokens {
        command.env("NARROWS_TOKEN", service).env("NARROWS_OTLP_TOKEN", otlp);
    }
    end(command)
}

#[test]
fn a_service_elsewhere_is_measured_with_its_traces_and_its_own_figures() {
    let otlp = free_port();
    let seconds = AtomicU64::new(0);
    let page = server::Server::plain(move |_| {
        let used = seconds.fetch_add(1, Ordering::Relaxed) as f64 / 4.0;
        let page = format!("process_cpu_seconds_total {used}\nprocess_resident_memory_bytes 1048576\n");
        server::response("200 OK", "Content-Type: text/plain\r\n", &page)
    });
    let services = Bench::new("");
    let (_service, address) = delivery(&services, otlp);
    let telemetry =
        format!("{{ listen: \"{OTHER}:{otlp}\", settle: 1s, metrics: [\"delivery={}\"] }}", page.url("/metrics"));
    let bench = Bench::new(&experiment(&address.to_string(), &telemetry));
    let run = run(&bench, Some((SERVICE_TOKEN, OTLP_TOKEN)));
    assert!(run.status.success(), "{}", text(&run.stderr));
    let file = bench.path("run.narrows");
    assert_eq!(
        ask(
            &file,
            "select sum(errors_connect + errors_reset + errors_timeout + errors_protocol + errors_status) from load_seconds"
        ),
        "0"
    );
    assert_eq!(ask(&file, "select count(*) > 0 from spans where service = 'delivery'"), "1");
    assert_eq!(ask(&file, "select count(*) from services"), "0", "nothing was started");
    let said = caveats(&file);
    let elsewhere = format!("Narrows did not start delivery, which is at {address}: its CPU and memory");
    assert!(said.iter().any(|caveat| caveat.starts_with(&elsewhere)), "{said:?}");
    let report = bench.run(&["diagnose", "run.narrows", "--json"]);
    assert!(report.status.success(), "{}", text(&report.stderr));
    let bytes = std::fs::read(&file).unwrap();
    for secret in [SERVICE_TOKEN, OTLP_TOKEN] {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret} is in the run file");
        assert!(!text(&run.stderr).contains(secret) && !text(&run.stdout).contains(secret));
    }
}

#[test]
fn what_cannot_be_measured_elsewhere_is_one_message_before_any_load() {
    let services = Bench::new("");
    let (service, address) = delivery(&services, free_port());
    let taken = TcpListener::bind((OTHER, 0)).unwrap();
    let (occupied, free) = (taken.local_addr().unwrap(), free_port());
    let good = address.to_string();
    let unused = format!("{OTHER}:{free}");
    let not_a_page = format!("metrics: [\"http://{address}/nothing\"]");
    let cases = [
        (&*good, "{}".to_owned(), Some(("wrong", "unused")), "/health returned 401", "it asks for another token"),
        (&*good, "{}".to_owned(), Some(("not a token", "unused")), "invalid NARROWS_TOKEN: expected 1 to 256", ""),
        (&*unused, "{}".to_owned(), None, "delivery: nothing usable at", "Narrows does not start a service"),
        ("a..b:80", "{}".to_owned(), None, "delivery: `a..b:80` does not resolve to an address", ""),
        (
            &*good,
            format!("{{ listen: \"{occupied}\" }}"),
            None,
            "cannot listen for OTLP on 127.0.0.8",
            "another program",
        ),
        (
            &*good,
            format!("{{ listen: \"{FOREIGN}:4318\", token: some-token }}"),
            None,
            "cannot listen for OTLP on 192.0.2.1:4318",
            "this machine has no such address",
        ),
        (
            &*good,
            "{ listen: \"0.0.0.0:4318\" }".to_owned(),
            None,
            "cannot listen on 0.0.0.0:4318 without protection",
            "set `telemetry.token`",
        ),
        (
            &*good,
            "{ listen: \"0.0.0.0:4318\" }".to_owned(),
            Some((SERVICE_TOKEN, "not a token")),
            "invalid NARROWS_OTLP_TOKEN: expected 1 to 256",
            "",
        ),
        (
            &*good,
            format!("{{ {not_a_page} }}"),
            Some((SERVICE_TOKEN, "unused")),
            "no metrics from http://127.0.0.8",
            "",
        ),
    ];
    for (address, telemetry, tokens, message, hint) in cases {
        let bench = Bench::new(&experiment(address, &telemetry));
        let run = run(&bench, tokens);
        let said = text(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{message}: {said}");
        assert!(said.contains(message) && said.contains(hint), "{message}, {hint}:\n{said}");
        assert_eq!(said.matches("error: ").count(), 1, "{said}");
        let file = bench.path("run.narrows");
        assert_eq!(ask(&file, "select state from run"), "failed", "{message}");
        assert_eq!(ask(&file, "select count(*) from load_seconds"), "0", "{message}");
        common::nothing_is_left(&bench, &file);
    }
    drop(taken);
    assert!(kill_process(Pid::from_child(&service.0), Signal::CONT).is_ok(), "what others started still runs");
}

#[test]
fn no_server_listens_beyond_loopback_without_protection() {
    let bench = Bench::new("");
    let hop = r#"{"name": "in", "direction": "inbound", "listen": "127.0.0.1:0", "protocol": "http", "upstream": "127.0.0.1:1"}"#;
    std::fs::write(bench.path("sidecar.json"), format!(r#"{{"service": "a", "hops": [{hop}]}}"#)).unwrap();
    let servers: [&[&str]; 8] = [
        &["system", "drone-delivery", "delivery"],
        &[
            "system",
            "drone-delivery",
            "gateway",
            "--delivery",
            "http://a",
            "--package",
            "http://a",
            "--dronescheduler",
            "http://a",
        ],
        &["system", "micron", "instance", "--database", "mysql://root@127.0.0.1:1/micron"],
        &["system", "customer-360", "customer", "--person", "http://a"],
        &["system", "customer-360", "person", "--name", "http://a", "--stack", "spring"],
        &["system", "hello-cities", "hub", "--store", "memory"],
        &["engine", "docstore", "--no-auth", "--documents", "0"],
        &["engine", "sidecar", "--config", "sidecar.json"],
    ];
    for server in servers {
        let said = refused(&bench, &[server, &["--listen", "0.0.0.0"]].concat());
        assert!(said.contains("without protection: other machines can reach it"), "{server:?}: {said}");
        assert!(said.contains("\nhint: ") && said.contains("--insecure"), "{server:?}: {said}");
    }
    for server in servers.into_iter().filter(|server| !server.contains(&"spring")) {
        let said = refused(&bench, &[server, &["--listen", FOREIGN, "--insecure"]].concat());
        assert!(said.contains("listen on 192.0.2.1"), "{server:?}: {said}");
        assert!(said.contains("this machine has no such address"), "{server:?}: {said}");
    }
    let taken = TcpListener::bind((OTHER, 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for server in [servers[0], servers[6]] {
        let said = refused(&bench, &[server, &["--listen", OTHER, "--port", &port]].concat());
        assert!(said.contains("another process listens there"), "{server:?}: {said}");
    }
    let said = refused(&bench, &["system", "drone-delivery", "delivery", "--token", "not a token"]);
    assert!(said.contains("invalid --token: expected 1 to 256") && !said.contains("not a token"), "{said}");
}

#[test]
fn the_compose_files_of_the_reference_systems_have_commands_that_narrows_knows() {
    let bench = Bench::new("");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/compose");
    let mut commands = 0;
    for file in std::fs::read_dir(folder).unwrap().map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
    {
        for line in file.lines().filter_map(|line| line.trim().strip_prefix("command: ")) {
            let command: Vec<String> = serde_json::from_str(line).unwrap();
            let command: Vec<&str> =
                command.iter().map(|word| if word == "0.0.0.0" { FOREIGN } else { word }).collect();
            assert!(refused(&bench, &command).contains("listen on 192.0.2.1"), "{line}");
            commands += 1;
        }
    }
    assert_eq!(commands, 10);
}

/// Standard error of a server that does not start.
fn refused(bench: &Bench, arguments: &[&str]) -> String {
    let command: Command = bench.narrows(arguments);
    let output = end(command);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    said
}
