//! Secrets stay out of every file and every output.
//!
//! Each is planted in a place of its own, as a random-looking text that nothing else holds; then all that commands print
//! and leave is searched for every one.

use std::path::Path;
use std::process::Output;

use crate::common::{Bench, ask, has_python, text};

/// Secrets in the experiment file.
const PLANTED: [&str; 24] = [
    "comment",
    "parameter",
    "variant",
    "used-parameter",
    "reasoned-parameter",
    "argument-after-flag",
    "argument-with-flag",
    "argument-by-p",
    "argument-by-parameter",
    "env",
    "env-url",
    "env-quoted",
    "env-block",
    "query",
    "header-authorization",
    "header-api-key",
    "header-cookie",
    "header-basic",
    "json-body",
    "nested-json-body",
    "text-body",
    "setup-argument",
    "data",
    "env-list-like",
];

/// Secrets that only the service knows.
const PRINTED: [&str; 56] = [
    "equals",
    "single-quotes",
    "double-quotes",
    "colon",
    "json-in-line",
    "json-line",
    "bearer",
    "basic",
    "header",
    "flag",
    "address",
    "user-part",
    "span-header",
    "span-url",
    "span-mysql",
    "span-postgres",
    "span-plugin",
    "span-redis",
    "span-redis-config",
    "span-redis-hello",
    "span-exception",
    "span-event",
    "span-status",
    "span-note",
    "coloured",
    "coloured-json",
    "percent-name",
    "nested-address",
    "har",
    "kubernetes",
    "element",
    "named-element",
    "part-of-form",
    "password-confirmation",
    "new-password",
    "secret-key-base",
    "plural",
    "go-dsn",
    "oracle-dsn",
    "mysql-option",
    "curl-option",
    "redis-option",
    "cut",
    "span-name",
    "span-name-of-redis",
    "span-namespace",
    "span-scope",
    "span-key",
    "span-arguments",
    "span-pairs",
    "span-mongo",
    "span-comment",
    "span-connection",
    "span-copy",
    "metric-name",
    "severity",
];

fn canary(name: &str) -> String {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("Zk{hash:016x}qV")
}

fn canaries() -> Vec<(&'static str, String)> {
    PLANTED.iter().chain(&PRINTED).map(|name| (*name, canary(name))).collect()
}

/// Puts the canaries where a text has `<name>`.
fn filled(template: &str) -> String {
    canaries().iter().fold(template.to_owned(), |text, (name, canary)| text.replace(&format!("<{name}>"), canary))
}

const EXPERIMENT: &str = r#"experiment: secrets
# password: <comment> is not the one that is used
parameters:
  api_token: <parameter>
  plain: <used-parameter>
  client_secret: { value: <reasoned-parameter>, reason: it has to be something }
system:
  services:
    web:
      setup:
        - [python3, -c, "print('set up')", --api-key, <setup-argument>]
      run: [python3, server.py, "${port}", --token, <argument-after-flag>, "--password=<argument-with-flag>", -p, "<argument-by-p>",
            "${api_token}", --secret, "<argument-by-parameter>"]
      env:
        DB_PASSWORD: <env>
        DATABASE_URL: "postgres://shop:<env-url>@127.0.0.1/shop"
        SMTP_PASSWORD: '<env-quoted>'
        SIGNING_KEY: |
          <env-block>
          of two lines
        OPTIONS: "password='<env-list-like>' user=joe"
        API_TOKEN: "${plain}"
        COLLECTOR: "${otlp.endpoint}"
load:
  target: web
  data: { token: { values: ["<data>"] } }
  scenarios:
    main:
      model: shared-iterations
      vus: 1
      iterations: 3
      steps:
        - name: first
          request:
            method: POST
            path: /a?token=<query>&page=1
            headers:
              Authorization: Bearer <header-authorization>
              X-Api-Key: "<header-api-key>"
              Cookie: "sid=<header-cookie>; theme=dark"
              X-Secret: "{{token}}"
            json: { user: joe, password: <json-body>, nested: { client_secret: [<nested-json-body>] } }
        - name: second
          request:
            method: POST
            path: /b
            headers: { Proxy-Authorization: Basic <header-basic>, X-Token: "${api_token}" }
            body: '{"user":"joe","password":"<text-body>"}'
variants:
  - { name: one }
  - { name: two, api_token: <variant> }
"#;

const SERVER: &str = r#"import http.server, json, os, sys, time, urllib.request

def say(text):
    print(text, flush=True)

def shapes():
    say("login password=<equals> ok")
    say("login password='<single-quotes>' ok")
    say('login password="<double-quotes>" ok')
    say("password: <colon>")
    say('ctx={"password":"<json-in-line>","a":1} more')
    say(json.dumps({"user": "joe", "auth": {"token": "<json-line>"}}))
    say("sent with Bearer <bearer> to there")
    say("sent with Basic <basic> to there")
    say("X-Auth-Token: <header>")
    say("run --api-key <flag> --verbose")
    say("GET /a?access_token=<address>&b=1")
    say("at https://joe:<user-part>@127.0.0.1/a")
    say("\x1b[36mpassword\x1b[0m=\x1b[33m<coloured>\x1b[0m ok")
    say(json.dumps({"line": "\x1b[36mtoken\x1b[0m=<coloured-json>"}))
    say("POST /login user%5Bpassword%5D=<percent-name>&b=1")
    say("GET /login?next=https%3A%2F%2Fh%2F%3Ftoken%3D<nested-address>")
    say(json.dumps({"headers": [{"name": "Authorization", "value": "Bearer <har>"}, {"name": "Accept", "value": "x"}]}))
    say("env is [{name: DB_PASSWORD, value: <kubernetes>}]")
    say("<a><password><element></password></a>")
    say('<entry key="password"><named-element></entry>')
    say(json.dumps('form-data; name="password"\r\n\r\n<part-of-form>\r\n--'))
    say("password_confirmation=<password-confirmation> newpassword=<new-password> secret_key_base: <secret-key-base>")
    say('{"passwords":["<plural>"]}')
    say("dsn app:<go-dsn>@tcp(db:3306)/shop or scott/<oracle-dsn>@//db:1521/orcl")
    say("$ mysql -uroot -p<mysql-option> shop; curl -u joe:<curl-option> http://h/; redis-cli -a <redis-option> ping")
    say("x" * (8 * 1024 - 20) + " password=<cut> ok")

def known():
    for name in ["DB_PASSWORD", "DATABASE_URL", "SMTP_PASSWORD", "SIGNING_KEY", "OPTIONS", "API_TOKEN"]:
        say("value of it is " + os.environ[name])
    say("started as " + " ".join(sys.argv[2:5] + sys.argv[7:]))
    say("x" * (16 * 1024 - 10) + os.environ["DB_PASSWORD"])

def attribute(key, value):
    return {"key": key, "value": {"stringValue": value}}

def span(number, name, attributes, **more):
    now = time.time_ns()
    return {"traceId": "%032x" % (now + number), "spanId": "%016x" % (number + 1), "name": name, "kind": 2,
            "startTimeUnixNano": str(now - 1000), "endTimeUnixNano": str(now),
            "attributes": [attribute(*pair) for pair in attributes], **more}

def export():
    env = os.environ
    spans = [
        span(0, "POST /a", [("http.request.header.authorization", "Bearer <span-header>"),
                            ("url.full", "http://127.0.0.1/a?api_key=<span-url>&b=1"),
                            ("app.note", "password='<span-note>'"), ("app.said", "it is " + env["DB_PASSWORD"])]),
        span(1, "SET", [("db.system.name", "mysql"), ("db.query.text", "SET PASSWORD FOR u = PASSWORD('<span-mysql>')")]),
        span(2, "ALTER", [("db.query.text", 'ALTER ROLE u ENCRYPTED PASSWORD "<span-postgres>"')]),
        span(3, "ALTER", [("db.query.text", "ALTER USER u IDENTIFIED WITH x BY '<span-plugin>'")]),
        span(4, "AUTH", [("db.query.text", "AUTH <span-redis>")]),
        span(5, "CONFIG", [("db.query.text", "CONFIG SET requirepass <span-redis-config>")]),
        span(6, "HELLO", [("db.query.text", "HELLO 3 AUTH u <span-redis-hello>")]),
        span(7, "SELECT", [("db.query.text", "SELECT * FROM t WHERE a = '" + env["API_TOKEN"] + "'")]),
        span(8, "fail " + env["SMTP_PASSWORD"], [("exception.message", "bad password: <span-exception>")],
             status={"code": 2, "message": "refused, token=<span-status>"},
             events=[{"timeUnixNano": str(time.time_ns()), "name": "exception",
                      "attributes": [attribute("exception.message", "refused: Bearer <span-event>")]}]),
        span(9, "login password=<span-name>", [("db.namespace", "jdbc:x://h/d?password=<span-namespace>"),
                                               ("token=<span-key>", "1"), ("of " + env["DB_PASSWORD"], "1")]),
        span(10, "AUTH <span-name-of-redis>", [("db.system.name", "redis")]),
        span(11, "createUser", [("db.query.text", '{"createUser": "u", "pwd": "<span-mongo>"}')]),
        span(12, "CREATE", [("db.query.text", "CREATE USER u IDENTIFIED BY /* c */ '<span-comment>'")]),
        span(13, "CREATE", [("db.query.text", "CREATE SUBSCRIPTION s CONNECTION 'host=h password=<span-connection>'")]),
        span(14, "COPY", [("db.query.text", "COPY t FROM 's3://b' CREDENTIALS 'aws_secret_access_key=<span-copy>'")]),
    ]
    spans[9]["attributes"] += [
        {"key": "process.command_args", "value": values({"stringValue": "mysql"}, {"stringValue": "-p<span-arguments>"})},
        {"key": "env", "value": values({"kvlistValue": {"values": [attribute("name", "TOKEN"), attribute("value", "<span-pairs>")]}})},
    ]
    resource = {"attributes": [attribute("service.name", "web")]}
    send("traces", {"resourceSpans": [{"resource": resource, "scopeSpans": [
        {"scope": {"name": "s"}, "spans": spans},
        {"scope": {"name": "of token=<span-scope>"}, "spans": [span(20, "scoped", [])]}]}]})
    now = str(time.time_ns())
    point = {"gauge": {"dataPoints": [{"timeUnixNano": now, "asDouble": 1}]}}
    send("metrics", {"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"metrics": [
        {"name": "calls.password=<metric-name>", **point}]}]}]})
    send("logs", {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [
        {"timeUnixNano": now, "severityText": "token=<severity>", "body": {"stringValue": "logged"}}]}]}]})

def values(*values):
    return {"arrayValue": {"values": list(values)}}

def send(signal, body):
    request = urllib.request.Request(os.environ["COLLECTOR"] + "/v1/" + signal, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    urllib.request.urlopen(request).read()

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        say(self.path + " with " + body)
        for name, value in self.headers.items():
            say("got " + value)
        export()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass

shapes()
known()
if os.path.exists("fail"):
    say("cannot log in with " + os.environ["DB_PASSWORD"] + " and password='<equals>'")
    sys.exit(1)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

/// Where canaries were found.
#[derive(Default)]
struct Search {
    found: Vec<String>,
}

impl Search {
    fn bytes(&mut self, place: &str, bytes: &[u8]) {
        for (name, canary) in canaries() {
            let windows = bytes.windows(canary.len()).filter(|window| *window == canary.as_bytes()).count();
            if windows > 0 {
                let at = bytes.windows(canary.len()).position(|window| window == canary.as_bytes()).unwrap();
                let around = &bytes[at.saturating_sub(60)..(at + canary.len() + 10).min(bytes.len())];
                self.found.push(format!("`{name}` in {place}, {windows} times: …{}…", String::from_utf8_lossy(around)));
            }
        }
    }

    fn output(&mut self, place: &str, output: &Output) {
        self.bytes(&format!("the standard output of {place}"), &output.stdout);
        self.bytes(&format!("the standard error of {place}"), &output.stderr);
    }

    /// Every file below a folder but what the test wrote.
    fn folder(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.file_name().unwrap().to_str().unwrap() {
                _ if path.is_dir() => self.folder(&path),
                "experiment.yaml" | "server.py" | "wrong.yaml" => {}
                name => self.bytes(&format!("the file {name}"), &std::fs::read(&path).unwrap()),
            }
        }
    }

    fn is_clean(&self) {
        assert!(self.found.is_empty(), "{} places hold a secret:\n{}", self.found.len(), self.found.join("\n"));
    }
}

fn bench() -> Bench {
    let bench = Bench::new(&filled(EXPERIMENT));
    std::fs::write(bench.path("server.py"), filled(SERVER)).unwrap();
    bench
}

/// Runs a command that must end well and searches what it printed.
fn said(bench: &Bench, search: &mut Search, arguments: &[&str]) -> Output {
    let output = bench.run(arguments);
    let place = format!("`narrows {}`", arguments.join(" "));
    assert!(output.status.code() == Some(0), "{place}: {}{}", text(&output.stdout), text(&output.stderr));
    search.output(&place, &output);
    output
}

#[test]
fn no_command_prints_or_keeps_a_secret_of_a_run() {
    if !has_python() {
        return narrows_testing::skip("python3 is missing");
    }
    let (bench, mut search) = (bench(), Search::default());
    said(&bench, &mut search, &["check"]);
    said(&bench, &mut search, &["run", "--out", "run.narrows", "--json"]);
    let run = bench.path("run.narrows");
    assert_eq!(ask(&run, "SELECT count(*) > 0 FROM spans WHERE db_query LIKE 'ALTER USER%'"), "1");
    assert_eq!(ask(&run, "SELECT count(*) > 0 FROM logs WHERE text LIKE 'started as --token REDACTED%'"), "1");
    for kept in [
        "logs WHERE text LIKE 'dsn app:REDACTED@tcp(db:3306)/shop or scott/REDACTED@//db:1521/orcl'",
        "logs WHERE text LIKE '% password=REDACTED ok'",
        "logs WHERE severity = 'token=REDACTED'",
        "spans WHERE name = 'AUTH REDACTED'",
        "spans WHERE scope = 'of token=REDACTED'",
        "spans WHERE db_namespace = 'jdbc:x://h/d?password=REDACTED'",
        "spans WHERE attributes LIKE '%\"-pREDACTED\"%' AND attributes LIKE '%token=REDACTED%'",
        "metrics WHERE name = 'calls.password=REDACTED'",
    ] {
        assert_eq!(ask(&run, &format!("SELECT count(*) > 0 FROM {kept}")), "1", "{kept}");
    }
    let cut = &canary("env")[..8];
    assert_eq!(
        ask(&run, &format!("SELECT count(*) FROM logs WHERE text LIKE '%{cut}%'")),
        "0",
        "a line was cut in a secret"
    );
    for arguments in [
        &["report", "run.narrows", "--html", "page.html", "--json", "page.json"][..],
        &["diagnose", "run.narrows"],
        &["diagnose", "run.narrows", "--json"],
        &["diff", "run.narrows:one", "run.narrows:two"],
        &["diff", "run.narrows:one", "run.narrows:two", "--json"],
        &["query", "run.narrows", "SELECT * FROM run"],
        &["query", "run.narrows", "SELECT * FROM trials", "--format", "csv"],
        &["query", "run.narrows", "SELECT * FROM services", "--format", "json"],
        &["query", "run.narrows", "SELECT text FROM logs", "--format", "csv"],
        &["query", "run.narrows", "SELECT * FROM spans", "--format", "json"],
        &["export", "run.narrows", "--format", "otlp-json", "--out", "otlp.json"],
        &["export", "run.narrows", "--format", "jaeger-json", "--out", "jaeger.json"],
        &["export", "run.narrows", "--format", "csv", "--what", "logs", "--out", "logs.csv"],
        &["export", "run.narrows", "--format", "jsonl", "--what", "requests", "--out", "requests.jsonl"],
        &["import", "otlp.json", "--out", "imported.narrows"],
    ] {
        said(&bench, &mut search, arguments);
    }
    search.folder(&bench.path(""));
    search.is_clean();
}

#[test]
fn a_failing_run_says_no_secret_and_is_resumed_from_its_experiment_file() {
    if !has_python() {
        return narrows_testing::skip("python3 is missing");
    }
    let (bench, mut search) = (bench(), Search::default());
    std::fs::write(bench.path("fail"), "").unwrap();
    let failed = bench.run(&["run", "--out", "run.narrows"]);
    assert_eq!(failed.status.code(), Some(2));
    let told = text(&failed.stderr);
    assert!(told.contains("cannot log in with REDACTED and password='REDACTED'"), "{told}");
    search.output("a failing run", &failed);
    search.folder(&bench.path(""));
    std::fs::remove_file(bench.path("fail")).unwrap();

    let resume = ["run", "--out", "run.narrows", "--resume"];
    let source = filled(EXPERIMENT);
    std::fs::remove_file(bench.path("experiment.yaml")).unwrap();
    let gone = bench.run(&resume);
    assert_eq!(gone.status.code(), Some(2));
    assert!(text(&gone.stderr).contains("--resume needs the experiment file"), "{}", text(&gone.stderr));

    std::fs::write(bench.path("experiment.yaml"), source.replace("vus: 1", "vus: 2")).unwrap();
    let other = bench.run(&resume);
    assert_eq!(other.status.code(), Some(2));
    let told = text(&other.stderr);
    let line = source.lines().position(|line| line.contains("vus: 1")).unwrap() + 1;
    assert!(told.contains(&format!("line {line} differs")) && told.contains("hint: put the old"), "{told}");

    // A password that was changed meanwhile.
    std::fs::write(bench.path("experiment.yaml"), source.replace(&canary("env"), "AnotherOne4711x")).unwrap();
    let resumed = bench.run(&resume);
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed.stderr));
    assert_eq!(ask(&bench.path("run.narrows"), "SELECT count(*) FROM logs WHERE text LIKE '%AnotherOne4711x%'"), "0");
    for output in [&gone, &other, &resumed] {
        search.output("a resumed run", output);
    }
    search.folder(&bench.path(""));
    search.is_clean();
}

#[test]
fn messages_about_mistakes_quote_no_secret() {
    let (bench, mut search) = (bench(), Search::default());
    let long = "x".repeat(50) + &canary("env");
    let wrong = filled(EXPERIMENT)
        .replace("iterations: 3", "iterations: <env>")
        .replace("vus: 1", &format!("vus: \"{long}\""))
        .replace("target: web", "target: http://joe:<user-part>@127.0.0.1:80")
        + "published: { source: \"<env-url>\" }\n";
    std::fs::write(bench.path("wrong.yaml"), filled(&wrong).replace("DB_PASSWORD: ", "OTHER_PASSWORD: ")).unwrap();
    let check = bench.run(&["check", "wrong.yaml"]);
    assert_eq!(check.status.code(), Some(1));
    assert!(text(&check.stdout).contains("found \"REDACTED\""), "{}", text(&check.stdout));
    search.output("`narrows check` on a file with mistakes", &check);
    search.output("`narrows run` on a file with mistakes", &bench.run(&["run", "wrong.yaml"]));
    search.is_clean();
}

#[test]
fn a_load_prints_and_writes_no_secret_of_its_arguments() {
    let server = crate::server::Server::plain(crate::server::hello);
    let (bench, mut search) = (Bench::new(""), Search::default());
    let url = server.url(&filled("/a?token=<query>&b=1"));
    let header = |text: &str| ["-H".to_owned(), filled(text)];
    let secrets =
        [header("Authorization: Bearer <header-authorization>"), header("X-Api-Key: <header-api-key>")].concat();
    let body = filled("{\"password\":\"<text-body>\"}");
    let secrets: Vec<&str> =
        secrets.iter().map(String::as_str).chain(["-m", "POST", "-d", &body, "-n", "5", "-c", "1"]).collect();
    let files =
        ["--csv", "a.csv", "--csv-requests", "b.csv", "--hdr", "c.hdr", "--openmetrics", "d.txt"].map(str::to_owned);
    let run = |url: &str, more: &[&str]| bench.run(&[&["load", url][..], &secrets, more].concat());
    let plain = run(&url, &files.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(plain.status.code(), Some(0), "{}", text(&plain.stderr));
    search.output("`narrows load`", &plain);
    search.output("`narrows load --json`", &run(&url, &["--json"]));
    let wrong_header = filled("X-Api-Key <header-api-key>");
    for (wrong, more) in [
        (filled("http://joe:<user-part>@127.0.0.1:1/"), vec![]),
        (filled("127.0.0.1/a?token=<query>"), vec![]),
        (url.clone(), vec!["-H", &wrong_header]),
        (url.clone(), vec!["-a", &wrong_header]),
    ] {
        let output = run(&wrong, &more);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        search.output("a refused `narrows load`", &output);
    }
    search.folder(&bench.path(""));
    search.is_clean();
}

#[test]
fn messages_about_addresses_quote_no_secret() {
    let (bench, mut search) = (Bench::new(""), Search::default());
    let [user, query] = [filled("http://joe:<user-part>@127.0.0.1:1/"), filled("127.0.0.1:1/a?token=<query>")];
    let [named, https] = [format!("web={user}"), user.replace("http:", "https:")];
    let postgres = filled("postgres://joe:<env-url>@127.0.0.1:1/hub");
    let file = filled("runs/http://joe:<user-part>@h/x.narrows");
    for arguments in [
        &["attach", "--for", "1s", "--prometheus", &user][..],
        &["attach", "--for", "1s", "--prometheus", &named],
        &["attach", "--for", "1s", "--prometheus", &query],
        &["attach", "--for", "1s", "--otlp", &user],
        &["export", "x.narrows", "--to", &user],
        &["export", "x.narrows", "--to", &https],
        &["report", &user],
        &["diagnose", &file],
        &["query", &user, "SELECT 1"],
        &["diff", &user, &https],
        &["import", &user],
        &["check", &user],
        &["run", &user],
        &["predict", &user],
        &["baseline", "check", &user],
        #[cfg(feature = "reference-systems")]
        &["orchestrations", "list", &postgres],
        #[cfg(feature = "reference-systems")]
        &["orchestrations", "nodes", &postgres],
        #[cfg(feature = "reference-systems")]
        &["orchestrations", "history", &postgres, "x"],
    ] {
        let output = bench.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
        search.output(&format!("`narrows {}`", arguments[0]), &output);
    }
    search.is_clean();
}
