//! The commands that need no run.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use crate::common::{Bench, TWO_FILE_SERVERS, has_python, text};

const FIVE_MISTAKES: &str = r#"experiment: Five Mistakes
system:
  services:
    web:
      run: "python3 -m http.server"
      replica: 2
load:
  target: wbe
  scenarios:
    browse:
      model: constant-vus
      vus: many
      duration: 4s
      request: "GET /"
"#;

#[test]
fn five_mistakes_are_five_reports() {
    let bench = Bench::new(FIVE_MISTAKES);
    let check = bench.run(&["check", "experiment.yaml"]);
    let said = text(&check.stdout);
    assert_eq!(check.status.code(), Some(1), "{said}");
    assert!(said.contains("experiment.yaml: 5 errors"), "{said}");
    for place in
        ["experiment.yaml:1:", "experiment.yaml:5:", "experiment.yaml:6:", "experiment.yaml:8:", "experiment.yaml:12:"]
    {
        assert!(said.contains(place), "{place} is missing in\n{said}");
    }
    let run = bench.run(&["run"]);
    assert_eq!(run.status.code(), Some(2));
    assert_eq!(text(&run.stderr).matches("experiment.yaml:").count(), 5, "{}", text(&run.stderr));
}

#[test]
fn a_program_that_is_not_there_is_reported_with_its_place() {
    let bench = Bench::new(&TWO_FILE_SERVERS.replace("python3", "pyton3"));
    let check = bench.run(&["check"]);
    assert_eq!(check.status.code(), Some(1));
    insta::assert_snapshot!(text(&check.stdout), @r"
    experiment.yaml:7:13: system.services.files.run[0]: program `pyton3` is not in PATH
      hint: install it, or write its path with a `/`, such as `./program`
    experiment.yaml: 1 error
    ");
}

#[test]
fn what_init_writes_passes_check() {
    if !has_python() {
        return;
    }
    let bench = Bench::new("");
    assert!(bench.run(&["init", "first.yaml"]).status.success());
    let check = bench.run(&["check", "first.yaml"]);
    assert!(check.status.success(), "{}", text(&check.stdout));
    let again = bench.run(&["init", "first.yaml"]);
    assert_eq!(again.status.code(), Some(2), "an existing file is not overwritten");
}

#[test]
fn generated_texts() {
    let bench = Bench::new("");
    let schema: serde_json::Value = serde_json::from_slice(&bench.run(&["schema"]).stdout).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(text(&bench.run(&["completions", "bash"]).stdout).contains("complete"));
    assert!(text(&bench.run(&["man"]).stdout).contains(".TH narrows"));
    assert!(bench.run(&["man", "--out", "man"]).status.success());
    assert!(bench.path("man/narrows-run.1").exists());
    let doctor = bench.run(&["doctor"]);
    assert!(doctor.status.success() && text(&doctor.stdout).contains("caps (cgroups)"));
}

#[test]
fn pages_of_the_reference_are_printed_and_the_nearest_is_proposed() {
    let bench = Bench::new("");
    let docs = |topic: &[&str]| bench.run(&[&["docs"][..], topic].concat());
    let list = text(&docs(&[]).stdout);
    assert!(list.starts_with("agents ") && list.contains("\nexperiment        The experiment file\n"), "{list}");
    assert!(text(&docs(&["experiment"]).stdout).starts_with("# The experiment file\n"));
    assert!(text(&docs(&["n-plus-one"]).stdout).starts_with("# n-plus-one\n"));
    let near = docs(&["experimnt"]);
    assert_eq!(near.status.code(), Some(2));
    assert_eq!(text(&near.stderr), "error: no page is called `experimnt`\nhint: did you mean `experiment`?\n");
    assert!(text(&docs(&["xyz"]).stderr).ends_with("hint: `narrows docs` lists the pages\n"));
}

#[cfg(feature = "reference-systems")]
#[test]
fn the_document_store_is_a_service_like_any_other() {
    let bench = Bench::new(
        r#"
experiment: store
system:
  services:
    store: { run: [narrows, engine, docstore, --no-auth, --port, "${port}", --throughput, "90"], ready: "GET /" }
load:
  target: store
  scenarios:
    ranges: { model: constant-vus, vus: 2, duration: 2s, think_time: 20ms, request: "GET /dbs/dronedelivery/colls/utilization/pkranges" }
objectives: ["error_rate == 0"]
"#,
    );
    let run = bench.run(&["run"]);
    assert!(run.status.success(), "{}{}", text(&run.stdout), text(&run.stderr));
}

/// Responds to every request on every connection with `hello`; counts them.
fn server() -> (String, std::sync::Arc<std::sync::atomic::AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let count = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = count.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let counted = counted.clone();
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                for line in BufReader::new(stream.try_clone().unwrap()).lines() {
                    let Ok(line) = line else { return };
                    if line.is_empty() {
                        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    (address, count)
}

#[test]
fn load_sends_exactly_n_requests() {
    let bench = Bench::new("");
    let (url, count) = server();
    let load = bench.run(&["load", &url, "-n", "1003", "-c", "7"]);
    let said = text(&load.stdout);
    assert!(load.status.success(), "{said}{}", text(&load.stderr));
    assert_eq!(count.load(std::sync::atomic::Ordering::SeqCst), 1003);
    assert!(said.contains("[200]") && said.contains("1003"), "{said}");
}

#[test]
fn load_says_what_it_cannot_do() {
    let bench = Bench::new("");
    let cases: [(&[&str], &str); 4] = [
        (&["load", "ftp://127.0.0.1/"], "`ftp://127.0.0.1/` is not a URL"),
        (&["load", "http://127.0.0.1:1/", "-n", "1"], "-n 1 is less than -c 50"),
        (&["load", "nonsense"], "`nonsense` is not a URL"),
        (&["load", "http://127.0.0.1:1/", "-z", "soon"], "expected a duration"),
    ];
    for (arguments, expected) in cases {
        let said = bench.run(arguments);
        assert_eq!(said.status.code(), Some(2), "{arguments:?}");
        assert!(text(&said.stderr).contains(expected), "{arguments:?}: {}", text(&said.stderr));
    }
    let refused = bench.run(&["load", "http://127.0.0.1:1/", "-n", "2", "-c", "1"]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stderr));
}
