//! The workloads of durable orchestrations by the real binary, and their experiment with few of them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use narrows_testing::{has_programs, postgres_programs};
use serde_json::Value;

use crate::common::{Bench, ask, eventually, free_port, marked, nothing_is_left, text};

const EXPERIMENT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../systems/hello-cities/experiment.yaml"));
const ON_NODES: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../systems/hello-cities/nodes.yaml"));
const FAILURES: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../systems/hello-cities/failures.yaml"));

#[test]
fn settings_that_make_no_sense_are_refused() {
    let bench = Bench::new("");
    for (arguments, expected) in [
        (
            &["once", "hello"][..],
            "expected hello-cities, fan-out-fan-in, sub-orchestrations, entity-calls, counter, periodic or waiting",
        ),
        (&["once", "--n", "0"], "n is \"0\", expected 1 to 10000000"),
        (&["once", "--launch", "later"], "expected direct, entities or one-by-one"),
        (
            &["once", "--store", "tape"],
            "expected files, classic, memory, postgres, postgres-classic, nats, postgres://… or nats://…",
        ),
        (
            &["once", "--store", "nats"],
            "store is \"nats\", expected --nats with the server's connection text beside it",
        ),
        (
            &["once", "--node", "1"],
            "node is \"1\", expected 0: only a store on a server is shared by several processes",
        ),
        (&["once", "--sample", "2"], "sample is \"2\", expected 0 to 1"),
        (&["once", "--partitions", "65"], "option partitions is 65, expected 1 to 64"),
        (&["hub", "--activities", "none"], "expected ordinary or idempotent"),
        (
            &["once", "--node", "1", "--store", "postgres://nobody@127.0.0.1:1/hubs"],
            "hint: see that the server runs and can be reached from here",
        ),
        (&["hubs"], "unrecognized subcommand"),
    ] {
        let refused = bench.run(&[&["system", "hello-cities"], arguments].concat());
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn one_workload_is_a_table_or_json_and_leaves_nothing_behind() {
    let bench = Bench::new("");
    let table = bench.run(&["system", "hello-cities", "once", "--n", "60", "--launch", "entities"]);
    let said = text(&table.stdout);
    assert_eq!(table.status.code(), Some(0), "{}", text(&table.stderr));
    let lines: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert_eq!((&lines[1][..3], lines[1][5]), (&["hello-cities", "entities", "files"][..], "60"), "{said}");
    let json = bench.run(&["system", "hello-cities", "once", "waiting", "--n", "20", "--store", "classic", "--json"]);
    let figures: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&figures["events"], &figures["store"]), (&Value::from(20), &Value::from("classic")), "{figures}");
    assert!(bench.scratch().is_empty(), "{:?}", bench.scratch());
}

#[test]
fn the_table_has_the_figures_that_the_service_measured_beside_the_published_ones() {
    let few = EXPERIMENT.replace("n: 10000,", "n: 100,").replace("n: 1000 ", "n: 60 ");
    let few = few.replace("runs: 300", "runs: 3").replace("runs: 30", "runs: 2");
    let few = few.replace("value: 8", "value: 2");
    let bench = Bench::new(&few);
    let variants = ["classic-1000", "durable-1000", "classic-10000", "durable-10000"].map(|name| ["--variant", name]);
    let output = bench.run(&[&["run", "--json", "--out", "run.narrows"], variants.as_flattened()].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = outcome["beside"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{outcome:#}");
    let cells = |row: usize, what: &str| -> Vec<Option<f64>> {
        rows[row]["cells"].as_array().unwrap().iter().map(|cell| cell[what].as_f64()).collect()
    };
    assert_eq!(rows[0]["metric"], "hello_cities.time (s)");
    assert_eq!(cells(0, "published"), [Some(22.5), Some(5.9), None, None]);
    assert_eq!(cells(1, "published"), [Some(445.0), Some(1708.0), None, None]);
    let [times, events, orchestrations] = [0, 1, 2].map(|row| cells(row, "measured"));
    for ((time, events), orchestrations) in times.iter().zip(&events).zip(&orchestrations) {
        assert!(time.is_some_and(|seconds| seconds > 0.0), "{outcome:#}");
        // Medians over runs of either, so they need not belong to one run.
        assert!((events.unwrap() / orchestrations.unwrap() / 10.0 - 1.0).abs() < 1e-6, "{outcome:#}");
    }
    let run = bench.path("run.narrows");
    assert_eq!(ask(&run, "select count(*) from spans where name = 'POST /workloads/{workload}'"), "9");
    let id = ask(&run, "select id from run");
    eventually("the end of every process of the run", || marked(&id).is_empty());
}

/// Whether the servers that nodes share are installed; the test is skipped where they are not.
fn has_servers() -> bool {
    has_programs(&["nats-server"]) && postgres_programs().is_some()
}

#[test]
fn nodes_share_a_hub_on_each_server_and_all_orchestrations_complete() {
    if !has_servers() {
        return;
    }
    // A trial is shorter than the time from one export to the next.
    let few = ON_NODES.replace("INTERVAL: \"2000\"", "INTERVAL: \"200\"");
    let few = few.replace("n: 90000 ", "n: 100 ").replace("n: 5000", "n: 60");
    let few =
        few.replace("value: 0.05", "value: 1").replace("nodes: 4\n", "nodes: 2\n").replace("nodes: 12", "nodes: 3");
    let bench = Bench::new(&few);
    let variants = ["--variant", "classic-4", "--variant", "durable-12", "--variant", "postgres-4"];
    let output = bench.run(&[&["run", "--json", "--out", "run.narrows"], &variants[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = outcome["beside"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[0]["published"], Value::from(1479.0), "{outcome:#}");
    let measured = cells.iter().filter(|cell| cell["measured"].as_f64().is_some_and(|rate| rate > 0.0)).count();
    assert_eq!(measured, 3, "{outcome:#}");
    let run = bench.path("run.narrows");
    let nodes = "select count(distinct replica) from metrics where name = 'durable.node.lease.left' and value > 0";
    assert_eq!(ask(&run, nodes), "3");
    nothing_is_left(&bench, &run);
}

#[test]
fn a_workload_completes_while_nodes_are_killed() {
    if !has_servers() {
        return;
    }
    let bench = Bench::new(&FAILURES.replace("n: 3000 ", "n: 300 "));
    let arguments = ["run", "--out", "run.narrows", "--variant", "nats-nodes-killed", "--time-scale", "0.3"];
    let output = bench.run(&arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stdout));
    assert_eq!(said.matches("was killed").count(), 4, "{said}");
    nothing_is_left(&bench, &bench.path("run.narrows"));
}

/// Processes of a test, which end with it.
struct Processes(Vec<Child>);

impl Processes {
    fn add(&mut self, command: &mut Command) {
        self.0.push(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
    }

    fn end_last(&mut self) {
        let mut last = self.0.pop().unwrap();
        last.kill().unwrap();
        last.wait().unwrap();
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for process in self.0.iter_mut().rev() {
            // One that has ended already needs no signal.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

#[test]
fn nodes_are_shown_with_their_partitions_and_silent_ones_apart() {
    if !has_programs(&["nats-server"]) {
        return;
    }
    let bench = Bench::new("");
    let port = free_port().to_string();
    let url = format!("nats://127.0.0.1:{port}/cities");
    let none = bench.run(&["orchestrations", "nodes", &url]);
    assert_eq!(none.status.code(), Some(2), "{}", text(&none.stderr));
    assert!(text(&none.stderr).contains(&port), "{}", text(&none.stderr));
    let mut processes = Processes(Vec::new());
    let folder = bench.path("nats");
    processes.add(Command::new("nats-server").args(["-js", "-a", "127.0.0.1", "-p", &port, "-sd"]).arg(folder));
    eventually("the server", || std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
    for node in ["0", "1"] {
        let hub =
            ["system", "hello-cities", "hub", "--port", "0", "--store", &url, "--node", node, "--partitions", "3"];
        processes.add(&mut bench.narrows(&hub));
    }
    let nodes = || -> Value {
        let output = bench.run(&["orchestrations", "nodes", &url, "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    };
    let shares = |said: &Value| -> Vec<(String, usize)> {
        let nodes = said["nodes"].as_array().cloned().unwrap_or_default();
        let of =
            |node: &Value| (node["state"].as_str().unwrap().to_owned(), node["partitions"].as_array().unwrap().len());
        nodes.iter().map(of).collect()
    };
    let alive = |count| ("alive".to_owned(), count);
    eventually("both nodes have their share", || {
        let mut shares = shares(&nodes());
        shares.sort();
        shares == [alive(1), alive(2)]
    });
    let idle = nodes();
    assert_eq!(idle["advised"]["nodes"], Value::from(1), "{idle:#}");
    processes.0[2].kill().unwrap();
    eventually("the partitions of the node that was killed are elsewhere", || {
        shares(&nodes()) == [alive(3), ("silent".to_owned(), 0)]
    });
    let rows = text(&bench.run(&["orchestrations", "nodes", &url, "--partitions"]).stdout);
    assert_eq!(rows.lines().filter(|line| line.contains("node-0")).count(), 3, "{rows}");
    assert!(rows.contains("3 partitions on 1 node, 1 silent"), "{rows}");
}

/// Publishes a message as any other client of the server could.
fn publish(port: &str, subject: &str, payload: &str) {
    let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let publish = format!("PUB {subject} {}\r\n{payload}", payload.len());
    stream.write_all(format!("CONNECT {{\"verbose\":false}}\r\n{publish}\r\nPING\r\n").as_bytes()).unwrap();
    assert!(BufReader::new(stream).lines().any(|line| line.unwrap() == "PONG"));
}

#[test]
fn a_partition_without_a_node_says_why_and_a_repair_of_the_hub_helps() {
    if !has_programs(&["nats-server"]) {
        return;
    }
    let bench = Bench::new("");
    let port = free_port().to_string();
    let url = format!("nats://127.0.0.1:{port}/cities");
    let mut processes = Processes(Vec::new());
    let folder = bench.path("nats");
    processes.add(Command::new("nats-server").args(["-js", "-a", "127.0.0.1", "-p", &port, "-sd"]).arg(folder));
    eventually("the server", || std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
    let hub = ["system", "hello-cities", "hub", "--port", "0", "--store", &url, "--partitions", "2"];
    let said = |arguments: &[&str]| -> (Option<i32>, String) {
        let output = bench.run(arguments);
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let repair = ["orchestrations", "repair", &url];
    processes.add(&mut bench.narrows(&hub));
    eventually("the node has both", || said(&["orchestrations", "nodes", &url]).1.contains("2 partitions on 1 node"));
    let (code, refused) = said(&repair);
    assert_eq!(code, Some(2), "{refused}");
    assert!(refused.contains("is in use by node node-0"), "{refused}");
    processes.end_last();
    eventually("the hub is sound", || said(&repair) == (Some(0), sound(&port)));

    publish(&port, "nrw.cities.p0.log", "garbage, but long enough for a head of a message");
    let (code, report) = said(&repair);
    assert_eq!(code, Some(1), "{report}");
    assert!(report.starts_with("partition 0 is damaged\n"), "{report}");
    processes.add(&mut bench.narrows(&hub));
    eventually("the reason is shown", || {
        let shown = said(&["orchestrations", "nodes", &url]).1;
        shown.lines().any(|line| line.starts_with("partition 0 stopped at ") && line.contains(" is damaged: "))
    });
    processes.end_last();
    let accepted = [&repair[..], &["--accept-loss"]].concat();
    eventually("it is repaired", || {
        let (code, report) = said(&accepted);
        code == Some(0) && report.ends_with("copies of what was damaged are in stream NRW_cities_damaged_1\n")
    });
    eventually("the hub is sound", || said(&repair) == (Some(0), sound(&port)));
}

fn sound(port: &str) -> String {
    format!("NATS 127.0.0.1:{port}, hub cities is sound: 2 partitions, nothing is damaged\n")
}
