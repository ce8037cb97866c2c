//! Files of metrics, tables, and a stand-in for a Prometheus server.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;

use narrows_model::series::{Series, services};
use tempfile::TempDir;

use super::*;
use crate::exchange::tests::Memory;
use crate::exchange::{ImportCounts, ImportError, import};
use crate::http::Url;
use crate::normalise::{Requests, known};

const SECOND: i64 = 1_000_000_000;

struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    fn with(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Each series that a file becomes: service, callee, name, and its first value.
    fn read(&self, text: &str, mapping: &Mapping) -> Vec<(String, f64)> {
        let (path, memory) = (self.with("file", text), Memory::default());
        let mut imported = ImportCounts::default();
        import(&path, mapping, &memory, &mut imported).unwrap();
        series(&memory)
    }

    fn error(&self, text: &str) -> String {
        let path = self.with("file", text);
        import(&path, &Mapping::default(), &Memory::default(), &mut ImportCounts::default()).unwrap_err().to_string()
    }
}

fn series(memory: &Memory) -> Vec<(String, f64)> {
    let mut all: Vec<Series> = Vec::new();
    for (key, point) in memory.points() {
        match all.iter_mut().find(|known| known.key == key) {
            Some(known) => known.points.push(point),
            None => all.push(Series { key, points: vec![point] }),
        }
    }
    let mut requests = Requests::new(known());
    for series in all.iter().filter(|series| !series.key.unit.ends_with("/s")) {
        requests.add(&series.key, &|| series.rates(), &|| series.points.clone());
    }
    all.retain(|series| [services::REQUESTS, services::ERRORS, services::LATENCY].contains(&series.key.name.as_str()));
    all.retain(|series| series.key.unit.ends_with("/s") || series.key.name == services::LATENCY);
    let shown = |series: &Series| {
        let peer = series.key.labels.get(services::PEER).map_or(String::new(), |peer| format!(">{peer}"));
        (format!("{}{peer} {}", series.key.service, series.key.name), series.points[0].value)
    };
    let mut shown: Vec<(String, f64)> = requests.series().iter().chain(&all).map(shown).collect();
    shown.sort_by(|one, other| one.0.cmp(&other.0));
    shown
}

fn expected<const N: usize>(of: [(&str, f64); N]) -> Vec<(String, f64)> {
    of.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

#[test]
fn text_with_times_is_read_with_and_without_names_before_the_labels() {
    let mut text = String::from("# TYPE http_request_duration_seconds histogram\n");
    for at in 0..3_i64 {
        let time_ms = 1_700_000_000_000 + at * 15_000;
        for (part, growth) in [("count", 150), ("sum", 30)] {
            text += &format!(
                "http_request_duration_seconds_{part}{{job=\"shop/cart\",code=\"200\"}} {} {time_ms}\n",
                at * growth
            );
        }
        text +=
            &format!("{{__name__=\"http_server_request_duration_seconds_count\",job=\"web\"}} {} {time_ms}\n", at * 30);
        text +=
            &format!("{{__name__=\"http_server_request_duration_seconds_sum\",job=\"web\"}} {} {time_ms}\n", at * 15);
    }
    let found = Files::new().read(&text, &Mapping::default());
    let all = [
        ("cart service.errors", 0.0),
        ("cart service.latency", 0.2),
        ("cart service.requests", 10.0),
        ("web service.latency", 0.5),
        ("web service.requests", 2.0),
    ];
    assert_eq!(found, expected(all));
    assert!(Files::new().error("up{job=\"a\"} 1\n").contains("a sample has no time"));
}

#[test]
fn a_saved_response_is_read() {
    let row = |part: &str, growth: i64| {
        let values: Vec<String> =
            (0..3_i64).map(|at| format!("[{},\"{}\"]", 1_700_000_000 + at * 60, at * growth)).collect();
        format!(
            "{{\"metric\":{{\"__name__\":\"http_server_requests_seconds_{part}\",\"application\":\"cart\"}},\"values\":[{}]}}",
            values.join(",")
        )
    };
    let text =
        |rows: &str| format!("{{\"status\":\"success\",\"data\":{{\"resultType\":\"matrix\",\"result\":[{rows}]}}}}");
    let found = Files::new().read(&text(&[row("count", 600), row("sum", 60)].join(",")), &Mapping::default());
    assert_eq!(found, expected([("cart service.latency", 0.1), ("cart service.requests", 10.0)]));
    let unnamed = text("{\"metric\":{},\"values\":[[1700000000,\"1\"]]}");
    assert!(Files::new().error(&unnamed).contains("data.result[0]: a series has no name"));
    let error = Files::new().error("{\"status\":\"error\",\"error\":\"bad query\",\"data\":null}");
    assert!(error.contains("it is an error: bad query"), "{error}");
}

#[test]
fn a_table_holds_means_of_intervals() {
    let files = Files::new();
    let mapping = files.with("mapping.csv", "metric,role,unit\nlatency_p50_ms,latency,ms\n");
    let text = "time,service,metric,value,peer\n1700000000,cart,requests,12.5,\n1700000000,cart,latency_p50_ms,40,\n\
                2023-11-14T22:13:20Z,cart,latency,0.03,db\nnever,cart,latency,0.03,\n1700000015,cart,latency,NaN,\n";
    let found = files.read(text, &Mapping::read(&mapping).unwrap());
    let all = [("cart service.latency", 0.04), ("cart service.requests", 12.5), ("cart>db service.latency", 0.03)];
    assert_eq!(found, expected(all));
    assert!(files.error("time,service,metric,value\nnever,cart,latency,1\n").contains("line 2: `never` is no time"));
}

#[test]
fn other_metrics_are_mapped_and_wrong_tables_refused() {
    let files = Files::new();
    let table = "# of our own\nmetric,role,service,peer,unit\nshop_calls_ms,duration,caller,callee,ms\n";
    let mapping = Mapping::read(&files.with("mapping.csv", table)).unwrap();
    let line = |part: &str, at: i64, value: i64| {
        format!("shop_calls_ms_{part}{{caller=\"web\",callee=\"cart\"}} {value} {}\n", 1_700_000_000_000 + at * 15_000)
    };
    let text: String = (0..3).map(|at| line("count", at, at * 15) + &line("sum", at, at * 300)).collect();
    assert_eq!(
        files.read(&text, &mapping),
        expected([("web>cart service.latency", 0.02), ("web>cart service.requests", 1.0)])
    );
    for (table, expected) in [
        ("metric,role\na,speed\n", "line 2: `speed` is no role"),
        ("metric\na\n", "line 1: there is no column `role`"),
        ("metric,role\n,errors\n", "line 2: `metric` or `role` is empty"),
        ("metric,role,unit\na,duration,h\n", "`h` is no unit"),
    ] {
        let error = Mapping::read(&files.with("wrong.csv", table)).unwrap_err();
        assert!(error.to_string().contains(expected) && error.hint().is_some(), "{error}");
    }
}

#[test]
fn a_graph_is_kept_as_calls() {
    let files = Files::new();
    let (memory, mut imported) = (Memory::default(), ImportCounts::default());
    import_graph(&files.with("edges.csv", "caller,callee\nweb,cart\ncart,db\n"), SECOND, &memory, &mut imported)
        .unwrap();
    let calls: Vec<(String, String)> =
        memory.points().into_iter().map(|(key, _)| (key.service, key.labels[services::PEER].clone())).collect();
    assert_eq!(calls, [("web", "cart"), ("cart", "db")].map(|(one, other)| (one.to_owned(), other.to_owned())));
    let wrong = import_graph(&files.with("edges.csv", "from,to\nweb,cart\n"), SECOND, &memory, &mut imported);
    assert!(wrong.unwrap_err().to_string().contains("there is no column `caller`"));
}

/// Responds to each path that contains a key with its value, as Prometheus' API does, until the test ends.
fn server(responses: Vec<(&'static str, String)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = BufReader::new(stream);
            let mut request = String::new();
            let mut line = String::new();
            while stream.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
                request += &line;
                line.clear();
            }
            let path = request.lines().next().unwrap_or_default();
            let response = responses.iter().find(|(key, _)| path.contains(key)).map(|(_, data)| data);
            let body = match response {
                Some(data) => format!("{{\"status\":\"success\",\"data\":{data}}}"),
                None => "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"unknown query\"}".to_owned(),
            };
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n", body.len());
            let _ = stream.get_mut().write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes());
        }
    });
    format!("http://{address}/prometheus/")
}

fn matrix(series: &[(&str, f64)]) -> String {
    let row = |(labels, value): &(&str, f64)| {
        let values: Vec<String> = (1..4).map(|at| format!("[{},\"{value}\"]", 1_700_000_000 + at * 60)).collect();
        format!("{{\"metric\":{{{labels}}},\"values\":[{}]}}", values.join(","))
    };
    let rows: Vec<String> = series.iter().map(row).collect();
    format!("{{\"resultType\":\"matrix\",\"result\":[{}]}}", rows.join(","))
}

fn asked(url: &str) -> (Result<(), ImportError>, Memory) {
    let (memory, mut imported) = (Memory::default(), ImportCounts::default());
    let (from_ns, until_ns) = (1_700_000_000 * SECOND, 1_700_000_240 * SECOND);
    let query = PrometheusQuery { url: Url::parse(url).unwrap(), authorization: None, from_ns, until_ns };
    (import_prometheus(&query, &Mapping::default(), &memory, &mut imported), memory)
}

#[test]
fn a_server_is_asked_for_rates_of_the_metrics_that_it_has() {
    let names = "[\"go_goroutines\",\"http_server_request_duration_seconds_count\",\
                 \"http_server_request_duration_seconds_sum\",\"container_cpu_usage_seconds_total\"]";
    let ok = "\"job\":\"shop/cart\",\"http_response_status_code\":\"200\"";
    let failed = "\"job\":\"shop/cart\",\"http_response_status_code\":\"503\"";
    let url = server(vec![
        ("/prometheus/api/v1/label/__name__/values?start=1700000000&end=1700000240", names.to_owned()),
        ("count_over_time", matrix(&[("", 8.0)])),
        ("rate%28http_server_request_duration_seconds_count%5B60s%5D%29", matrix(&[(ok, 9.0), (failed, 1.0)])),
        ("rate%28http_server_request_duration_seconds_sum%5B60s%5D%29", matrix(&[(ok, 0.9), (failed, 0.6)])),
        ("rate%28container_cpu", matrix(&[("\"pod\":\"cart-0\",\"container\":\"app\"", 0.25)])),
    ]);
    let (result, memory) = asked(&url);
    result.unwrap();
    let all = [("cart service.errors", 1.0), ("cart service.latency", 0.15), ("cart service.requests", 10.0)];
    assert_eq!(series(&memory), expected(all));
    let cpu = memory.points().into_iter().find(|(key, _)| key.name == "process.cpu.cores").unwrap();
    assert_eq!((cpu.0.service.as_str(), cpu.1.value), ("cart", 0.25));
}

#[test]
fn what_a_server_cannot_say_is_an_error_with_a_hint() {
    let cases = [
        (vec![("/label/", "[\"up\"]".to_owned())], "it has no metric of requests that is known", "--mapping FILE"),
        (vec![], "it is an error: unknown query", "Prometheus' own page"),
        (
            vec![
                ("/label/", "[\"http_requests_total\"]".to_owned()),
                ("query_range", "{\"resultType\":\"matrix\",\"result\":[]}".to_owned()),
            ],
            "it has nothing of the known metrics at that time",
            "UTC",
        ),
    ];
    for (responses, expected, hint) in cases {
        let error = asked(&server(responses)).0.unwrap_err();
        assert!(error.to_string().contains(expected) && error.hint().unwrap().contains(hint), "{error}");
    }
    let error = asked("http://127.0.0.1:1").0.unwrap_err();
    assert!(error.to_string().starts_with("cannot import from http://127.0.0.1:1/: cannot connect"), "{error}");
}
