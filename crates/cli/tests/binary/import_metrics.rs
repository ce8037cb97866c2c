//! `narrows import` of metrics alone: tables, Prometheus' text and JSON, and a server that wants HTTPS and an authorisation.

use std::process::Output;

use crate::common::{Bench, text};
use crate::server::{ReceivedRequest, Server, response};

/// 2023-11-14T22:13:20Z, in seconds since 1970.
const START_S: i64 = 1_700_000_000;
/// Seconds from one row to the next.
const STEP_S: i64 = 15;
const SECRET: &str = "s3cret-token";

/// A table in which price takes so many milliseconds, and front, which calls it, 5 ms more.
fn table(start_s: i64, intervals: i64, price_ms: i64) -> String {
    let mut rows = "time,service,metric,value\n".to_owned();
    for at in 0..intervals {
        let (time_s, latency_ms) = (start_s + at * STEP_S, price_ms + at % 2);
        for (service, latency_ms) in [("front", latency_ms + 5), ("price", latency_ms)] {
            rows += &format!("{time_s},{service},requests,20\n{time_s},{service},p50_ms,{latency_ms}\n");
        }
    }
    rows
}

fn write(bench: &Bench, name: &str, text: &str) {
    std::fs::write(bench.path(name), text).unwrap();
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stderr)
}

#[test]
fn tables_with_a_mapping_and_a_graph_say_which_service_got_slower() {
    let bench = Bench::new("");
    write(&bench, "mapping.csv", "metric,role,unit\np50_ms,latency,ms\n");
    write(&bench, "edges.csv", "caller,callee\nfront,price\n");
    for (out, table) in [("before.narrows", table(START_S, 40, 10)), ("after.narrows", table(START_S + 3_600, 6, 40))] {
        write(&bench, "table.csv", &table);
        let arguments = ["import", "table.csv", "--mapping", "mapping.csv", "--graph", "edges.csv", "--out", out];
        succeeded(&bench.run(&arguments));
    }
    let diff = bench.run(&["diff", "before.narrows", "after.narrows"]);
    succeeded(&diff);
    let shown = text(&diff.stdout);
    let role = |service: &str| {
        let row = shown.lines().find(|line| line.starts_with(&format!("{service} ")));
        row.and_then(|row| row.split_whitespace().nth(1)).unwrap_or_default().to_owned()
    };
    assert_eq!((role("price"), role("front")), ("slower".to_owned(), "waits".to_owned()), "{shown}");
    assert!(!shown.contains("--repeat"), "an imported run cannot be repeated: {shown}");
}

/// The part of a response of Prometheus' API that holds these values, one for each of the first minutes.
fn matrix(labels: &str, value: impl Fn(i64) -> f64) -> String {
    let values: Vec<String> = (1..20).map(|at| format!("[{},\"{}\"]", START_S + at * 60, value(at))).collect();
    format!(r#"{{"resultType":"matrix","result":[{{"metric":{{{labels}}},"values":[{}]}}]}}"#, values.join(","))
}

#[test]
fn text_and_json_of_prometheus_are_read_together() {
    let bench = Bench::new("");
    let line = |at: i64| format!("http_requests_total{{job=\"price\"}} {} {}000\n", at * 300, START_S + at * STEP_S);
    write(&bench, "metrics.txt", &(0..20).map(line).collect::<String>());
    let data = matrix(r#""__name__":"http_requests_total","job":"front""#, |at| 600.0 * at as f64);
    write(&bench, "range.json", &format!(r#"{{"status":"success","data":{data}}}"#));
    let said = succeeded(&bench.run(&["import", "metrics.txt", "range.json", "--out", "metrics.narrows"]));
    assert!(said.contains("imported 0 spans, 39 metric points, 0 log records; 0 left out as malformed"), "{said}");
}

/// A Prometheus that knows the requests of one service.
fn prometheus(request: &ReceivedRequest) -> String {
    if !request.headers.contains(&format!("authorization: bearer {SECRET}")) {
        return response("401 Unauthorized", "", "who are you?");
    }
    let data = match request.path() {
        path if path.contains("/label/") => r#"["http_requests_total"]"#.to_owned(),
        path if path.contains("count_over_time") => matrix("", |_| 8.0),
        _ => matrix(r#""job":"price""#, |_| 20.0),
    };
    response("200 OK", "", &format!(r#"{{"status":"success","data":{data}}}"#))
}

#[test]
fn a_server_is_asked_over_https_and_its_authorisation_is_kept_nowhere() {
    let (bench, server) = (Bench::new(""), Server::secure(prometheus));
    write(&bench, "authority.pem", &server.pem);
    write(&bench, "auth", &format!("{SECRET}\n"));
    let url = format!("https://localhost:{}", server.address.port());
    let import = |more: &[&str], environment: &[(&str, &str)]| {
        let time = ["--from", "2023-11-14T22:13:20Z", "--to", "2023-11-14T22:33:20Z"];
        let mut command = bench.narrows(&["import", "--prometheus", &url, "--out", "metrics.narrows"]);
        command.args(time).args(more).env_remove("SSL_CERT_FILE").env_remove("NARROWS_PROMETHEUS_AUTH");
        command.envs(environment.iter().copied()).output().unwrap()
    };
    let trusted = ("SSL_CERT_FILE", "authority.pem");
    for (more, environment, expected) in [
        (&["--auth-file", "auth"][..], vec![], ["cannot encrypt the connection", "SSL_CERT_FILE"]),
        (&[], vec![trusted], ["it responds with 401 Unauthorized", "--auth-file"]),
        (&[], vec![trusted, ("NARROWS_PROMETHEUS_AUTH", "s3cret\ntoken")], ["NARROWS_PROMETHEUS_AUTH", "on one line"]),
    ] {
        let output = import(more, &environment);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && expected.iter().all(|part| said.contains(part)), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
    let said = succeeded(&import(&["--auth-file", "auth"], &[trusted]));
    assert!(said.contains("imported 0 spans, 19 metric points"), "{said}");
    let kept = std::fs::read(bench.path("metrics.narrows")).unwrap();
    assert!(!kept.windows(SECRET.len()).any(|bytes| bytes == SECRET.as_bytes()), "{SECRET} is in the run file");
    std::fs::remove_file(bench.path("metrics.narrows")).unwrap();
    succeeded(&import(&[], &[trusted, ("NARROWS_PROMETHEUS_AUTH", SECRET)]));
}

#[test]
fn an_address_and_times_that_make_no_sense_are_refused_with_what_would() {
    let bench = Bench::new("");
    for (arguments, expected) in [
        (["nonsense", "--from", "1h"].as_slice(), "expected such as http://127.0.0.1:9090"),
        (&["http://127.0.0.1:9090", "--from", "yesterday"], "expected an instant such as 2026-11-23T09:10:00Z"),
        (&["http://127.0.0.1:9090", "--from", "1h", "--to", "2h"], "--from is not before --to"),
        (&["http://127.0.0.1:9090"], "--from <TIME>"),
    ] {
        let output = bench.run(&[&["import", "--prometheus"], arguments].concat());
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(expected), "{said}");
    }
}
