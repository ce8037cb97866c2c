//! `narrows serve`: every page of a run that was recorded, of one with hostile names, and of one that is under way; and who may
//! look.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use narrows_testing::{has_programs, is_disabled};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::{Bench, TIMEOUT, end, text};
use crate::server::{Server, hello};

const EVIL: &str = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u{202e}";

/// A server that ends with the test.
struct Pages {
    child: Child,
    host: String,
}

impl Drop for Pages {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// A response: status, head and body.
struct Page {
    status: u16,
    head: String,
    body: String,
}

impl Pages {
    fn start(bench: &Bench, place: &str) -> Self {
        let (child, mut lines) = {
            let mut command = bench.narrows(&["serve", place, "--listen", "127.0.0.1:0"]);
            let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
            let lines = BufReader::new(child.stderr.take().unwrap());
            (child, lines)
        };
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let host =
            line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_else(|| panic!("{line}"));
        Self { child, host: host.to_owned() }
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Page {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let host = if headers.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.host) };
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\n{host}{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        let said = String::from_utf8_lossy(&said).into_owned();
        let (head, body) = said.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{path}: {said}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        Page { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Page {
        self.send("GET", path, "", "")
    }

    /// A page that is there.
    fn page(&self, path: &str) -> String {
        let page = self.get(path);
        assert_eq!(page.status, 200, "{path}: {}", page.body);
        page.body
    }
}

/// Traces of a shop, each with two queries; every 20th is slow, and its customer is large.
fn traces(count: u64, name: &str) -> String {
    let attribute = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    let spans = (0..count).flat_map(|n| {
        let (trace, start) = (format!("{:032x}", n + 1), 1_790_000_000_000_000_000 + n * 10_000_000);
        let is_slow = n % 20 == 0;
        let end = start + if is_slow { 300_000_000 } else { 5_000_000 + n * 1_000 };
        let size = if is_slow { "large" } else { "small" };
        let span = move |id: u64, parent: &str, name: &str, kind: u8, end: u64, attributes: Vec<Value>| {
            json!({ "traceId": trace, "spanId": format!("{id:016x}"), "parentSpanId": parent, "name": name, "kind": kind,
                "startTimeUnixNano": start.to_string(), "endTimeUnixNano": end.to_string(), "attributes": attributes })
        };
        let root = span(1, "", name, 2, end, vec![attribute("customer.size", size), attribute(name, name)]);
        let query = vec![attribute("db.system.name", "postgresql"), attribute("db.query.text", "SELECT 1")];
        let below = [2, 3].map(|id| span(id, "0000000000000001", "SELECT", 3, start + 1_000_000, query.clone()));
        [vec![root], below.to_vec()].concat()
    });
    let service = json!([attribute("service.name", name)]);
    json!({ "resourceSpans": [{ "resource": { "attributes": service }, "scopeSpans": [{ "spans": spans.collect::<Vec<_>>() }] }] })
        .to_string()
}

fn import(bench: &Bench, traces: &str, run: &str) {
    std::fs::write(bench.path("in.json"), traces).unwrap();
    let import = bench.run(&["import", "in.json", "--out", run]);
    assert!(import.status.success(), "{}", text(&import.stderr));
}

const TRACE: &str = "00000000000000000000000000000001";

#[test]
fn a_run_can_be_looked_at_from_all_sides() {
    let bench = Bench::new("");
    import(&bench, &traces(600, "shop"), "first run.narrows");
    import(&bench, &traces(600, "shop"), "b.narrows");
    let pages = Pages::start(&bench, ".");
    let list = pages.page("/");
    assert!(list.contains("/runs/first%20run\"") && list.contains("2 of 2"), "{list}");
    assert!(pages.page("/?filter=first").contains("1 of 2"));
    let report = pages.page("/runs/first%20run");
    assert!(report.contains("id=\"findings\"") && report.contains("id=\"requests\""), "{report}");
    let found = pages.page("/runs/b/traces?service=shop&least=100&order=slowest");
    assert!(found.contains("30 traces") && found.contains(&format!("/runs/b/traces/1/{TRACE}")), "{found}");
    assert!(pages.page("/runs/b/traces?attribute=customer.size%3Dlarge").contains("30 traces"));
    assert!(pages.page("/runs/b/traces?status=failed").contains("No trace is kept that fits"));
    let trace = pages.page(&format!("/runs/b/traces/1/{TRACE}"));
    assert!(trace.contains("300 ms in 3 spans of one service") && trace.contains("On the critical path"), "{trace}");
    assert_eq!(pages.page(&format!("/runs/b/traces/any/{TRACE}")), trace);
    let both = pages.page(&format!("/runs/b/traces/1/{TRACE}?with=00000000000000000000000000000002"));
    assert_eq!(both.matches("class=\"waterfall\"").count(), 2);
    assert!(pages.page("/runs/b/map").contains("Operations"));
    let distinct = pages.page("/runs/b/distinct");
    assert!(distinct.contains("customer.size") && distinct.contains("large"), "{distinct}");
    let asked = pages.page("/runs/b/ask?in=kql&q=requests%20%7C%20summarize%20count()%20by%20name");
    assert!(asked.contains("600"), "{asked}");
    let csv = pages.get("/runs/b/ask?in=sql&q=SELECT%201%20AS%20n&as=csv");
    assert!(csv.head.contains("text/csv") && csv.body.starts_with("n\n1"), "{}", csv.body);
    let wrong = pages.page("/runs/b/ask?in=sql&q=DROP%20TABLE%20run");
    assert!(wrong.contains("role=\"alert\""), "{wrong}");
    let compared = pages.page("/compare?run=b&run=first+run");
    assert!(compared.contains("From first run to b") || compared.contains("From b to first run"), "{compared}");
    for missing in ["/runs/none", "/runs/..%2Fb", "/runs/b/traces/1/ffff", "/nothing", "/runs/b/traces?trial=none"] {
        assert_eq!(pages.get(missing).status, 404, "{missing}");
    }
    assert_eq!(pages.get("/compare?run=b").status, 400);
    let file = pages.get("/runs/b/download");
    assert!(file.status == 200 && file.head.contains("b.narrows") && file.body.starts_with("SQLite format 3"));
    for asset in ["report.css", "report.js", "app.css", "app.js", "live.js"] {
        pages.page(&format!("/assets/{asset}"));
    }
}

#[test]
fn runs_are_renamed_and_deleted_by_own_pages_only() {
    let bench = Bench::new("");
    import(&bench, &traces(3, "shop"), "a.narrows");
    let pages = Pages::start(&bench, ".");
    let own = format!("Origin: http://{}\r\n", pages.host);
    let rename =
        |headers: &str, name: &str| pages.send("POST", "/runs/a/rename", headers, &format!("name={name}")).status;
    assert_eq!(rename("Origin: http://evil.example\r\n", "b"), 403);
    assert_eq!(rename("Sec-Fetch-Site: cross-site\r\n", "b"), 403);
    assert_eq!(rename(&own, "..%2Fb"), 400);
    std::fs::write(bench.path("a.narrows-wal"), "rows that a killed run left").unwrap();
    assert_eq!((rename(&own, "b"), pages.get("/runs/a/download").status), (400, 400), "its log would be lost");
    std::fs::remove_file(bench.path("a.narrows-wal")).unwrap();
    assert_eq!(rename(&own, "b"), 303);
    assert!(bench.path("b.narrows").exists() && !bench.path("a.narrows").exists());
    let delete = |body: &str| pages.send("POST", "/runs/b/delete", &own, body).status;
    assert_eq!((delete("name=x"), bench.path("b.narrows").exists()), (400, true));
    assert_eq!((delete("name=b"), bench.path("b.narrows").exists()), (303, false));
    assert_eq!(pages.send("GET", "/", "Host: evil.example\r\n", "").status, 421);
    let page = pages.get("/");
    for header in ["content-security-policy: default-src 'none'; script-src 'self';", "x-content-type-options: nosniff"]
    {
        assert!(page.head.contains(header), "{}", page.head);
    }
}

#[test]
fn hostile_names_stay_text_on_every_page() {
    let bench = Bench::new("");
    let long = format!("{EVIL}{}", "x".repeat(100_000));
    import(&bench, &traces(450, EVIL), "evil.narrows");
    import(&bench, &traces(30, &long), "long.narrows");
    std::fs::write(bench.path("broken.narrows"), "no run file").unwrap();
    let pages = Pages::start(&bench, ".");
    let query = "/ask?in=sql&q=SELECT%20service%2C%20attributes%20FROM%20spans%20LIMIT%205";
    let paths = ["", "/traces", "/distinct", "/ask", "/map", query, &format!("/traces/1/{TRACE}")];
    let all = ["evil", "long"].iter().flat_map(|run| paths.iter().map(move |path| format!("/runs/{run}{path}")));
    for path in all.chain(["/".to_owned()]) {
        let page = pages.page(&path);
        assert!(
            !page.contains("<script>alert") && !page.contains("<img src=x") && !page.contains('\u{202e}'),
            "{path}"
        );
        assert!(page.len() < 4_000_000, "{path} has {} bytes", page.len());
    }
    assert!(pages.page("/").contains("unreadable"));
    assert_eq!(pages.get("/runs/broken").status, 500);
}

#[test]
fn a_run_is_followed_while_it_lasts_and_stopped() {
    let target = Server::plain(hello);
    let url = target.url("");
    let bench = Bench::new(&format!(
        "experiment: live\nload:\n  target: {url}\n  scenarios:\n    a: {{ model: constant-vus, vus: 2, duration: 60s, pace: 20ms, \
         request: \"GET /\" }}\n"
    ));
    let (mut run, mut said) = bench.start_until(&["run", "--out", "a.narrows"], "load");
    let pages = Pages::start(&bench, "a.narrows");
    assert!(pages.page("/runs/a/live").contains("data-events=\"/runs/a/events\""));
    let mut events = BufReader::new(TcpStream::connect(&pages.host).unwrap());
    events.get_ref().set_read_timeout(Some(TIMEOUT)).unwrap();
    write!(events.get_mut(), "GET /runs/a/events HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", pages.host)
        .unwrap();
    let mut next = || -> Value {
        loop {
            let mut line = String::new();
            assert!(events.read_line(&mut line).unwrap() > 0, "the events ended");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).unwrap();
            }
        }
    };
    let mut seen = 0;
    while seen < 3 {
        let progress = next();
        assert_eq!(progress["state"], "running");
        assert_eq!(progress["from"], seen, "{progress}");
        let seconds = progress["seconds"].as_array().unwrap();
        seen += seconds.len();
        assert!(seconds.iter().all(|second| second["users"] == 2 && second["rate"].as_f64() > Some(0.0)), "{progress}");
    }
    let own = format!("Origin: http://{}\r\n", pages.host);
    assert_eq!(pages.send("POST", "/runs/a/stop", &own, "").status, 303);
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    run.wait().unwrap();
    let last = loop {
        let progress = next();
        if progress["state"] != "running" {
            break progress;
        }
    };
    assert_eq!(last["state"], "interrupted", "{rest}");
    assert_eq!(pages.send("POST", "/runs/a/stop", &own, "").status, 400, "it is over");
}

#[test]
fn programs_ask_by_the_model_context_protocol() {
    let bench = Bench::new("");
    import(&bench, &traces(600, "shop"), "a.narrows");
    let mut command = bench.narrows(&["mcp", "."]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut number = 0;
    let mut ask = |method: &str, parameters: Value| -> Value {
        number += 1;
        let request = json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": parameters });
        writeln!(to, "{request}").unwrap();
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        let response: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(response["id"], number, "{response}");
        if method == "initialize" {
            writeln!(to, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
        }
        response["result"].clone()
    };
    let client = json!({ "name": "test", "version": "1" });
    let hello = ask("initialize", json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client }));
    assert_eq!(hello["serverInfo"]["name"], "narrows", "{hello}");
    let listed = ask("tools/list", json!({}));
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    let expected = ["compare", "explain", "find_traces", "findings", "list_runs", "query", "trace", "verdict"];
    assert!(expected.iter().all(|name| names.contains(name)), "{names:?}");
    let mut call = |name: &str, arguments: Value| -> (bool, String) {
        let result = ask("tools/call", json!({ "name": name, "arguments": arguments }));
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned();
        (result["isError"] == true, text)
    };
    let runs = call("list_runs", json!({})).1;
    assert!(runs.contains("\"run\":\"a\""), "{runs}");
    assert!(call("verdict", json!({ "run": "a" })).1.contains("imported"));
    assert!(call("findings", json!({ "run": "a" })).1.starts_with('['));
    let rows = call("query", json!({ "run": "a", "question": "SELECT count(*) AS n FROM spans" })).1;
    assert_eq!(rows, "n\n1800\n");
    let slow = call("find_traces", json!({ "run": "a", "least_ms": 100.0 })).1;
    assert!(slow.contains(TRACE) && slow.matches("trace_id").count() == 30, "{slow}");
    let spans = call("trace", json!({ "run": "a", "trial": 1, "trace_id": TRACE })).1;
    assert_eq!(spans.lines().count(), 4, "{spans}");
    assert!(call("explain", json!({ "kind": "n-plus-one" })).1.contains("# n-plus-one"));
    assert!(call("compare", json!({ "before": "a", "after": "a" })).1.contains("a → a"));
    for (name, arguments) in [
        ("verdict", json!({ "run": "../a" })),
        ("query", json!({ "run": "a", "question": "DELETE FROM run" })),
        ("explain", json!({ "kind": "nothing" })),
    ] {
        assert!(call(name, arguments).0, "{name} is refused");
    }
    drop(to);
    assert!(child.wait().unwrap().success());
}

#[test]
fn pages_are_used_in_chromium() {
    if is_disabled("NARROWS_TEST_SKIP_CHROMIUM") || !has_programs(&["chromium", "python3"]) {
        return;
    }
    let bench = Bench::new("");
    import(&bench, &traces(600, "shop"), "a.narrows");
    std::fs::write(bench.path("browser.py"), include_str!("../../../../testing/browser.py")).unwrap();
    std::fs::write(bench.path("pages.py"), include_str!("serve_pages.py")).unwrap();
    let pages = Pages::start(&bench, ".");
    let mut command = Command::new("python3");
    command.args(["pages.py", &format!("http://{}/", pages.host), "a"]).current_dir(bench.path(""));
    let output = end(command);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}
