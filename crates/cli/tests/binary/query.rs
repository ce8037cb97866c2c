//! `narrows query` on a run file that is made here: SQL and KQL, formats of results, errors, and examples.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{Bench, text};
use narrows_model::run::{Environment, Run, RunState, Trial, TrialState, Validity};
use narrows_model::trace::{Span, SpanFacts, SpanKind, SpanStatus};
use narrows_query::ColumnShape;
use narrows_telemetry::Store;
use narrows_telemetry::run_file::{QueryLimits, Reader, RunFile};
use serde_json::json;

/// 2020-06-20T00:00:00Z.
pub(crate) const START_NS: i64 = 1_592_611_200_000_000_000;
const HOUR_NS: i64 = 3_600_000_000_000;
const OPERATION: &str = "GET DroneDeliveries/GetDroneUtilization";

pub(crate) fn run() -> Run {
    Run {
        id: "0123456789abcdef".into(),
        experiment: "drones".into(),
        narrows_version: "0.1.0".into(),
        started_ns: START_NS,
        ended_ns: None,
        state: RunState::Running,
        seed: 1,
        time_scale: 1.0,
        repetitions: 1,
        experiment_source: String::new(),
        environment: Environment { kernel: "Linux".into(), cpu_model: "a CPU".into(), cores: 2, memory_bytes: 1 << 30 },
    }
}

pub(crate) fn trial() -> Trial {
    Trial {
        id: 1,
        variant: "test-1".into(),
        repetition: 1,
        state: TrialState::Running,
        started_ns: Some(START_NS),
        ended_ns: None,
        parameters: Default::default(),
        validity: Validity::default(),
        error: None,
        caveats: Vec::new(),
        load_program: None,
    }
}

/// Writes traces of one request each.
struct Traces {
    number: u64,
    spans: Vec<Span>,
}

impl Traces {
    /// A request of a service and its calls to the database, so many hours after the start.
    fn add(&mut self, service: &str, name: &str, status: u16, calls: u64, hours: i64) {
        self.number += 1;
        let number = self.number;
        let start_ns = START_NS + hours * HOUR_NS + i64::try_from(number).unwrap() * 1_000_000_000;
        let given = if name.contains("Drone") { json!({ "microsoft.request.name": name }) } else { json!({}) };
        let server = Span {
            trace_id: u128::from(number).to_be_bytes(),
            span_id: (number << 8).to_be_bytes(),
            parent_id: None,
            service: service.into(),
            scope: "http".into(),
            name: name.into(),
            kind: SpanKind::Server,
            start_ns,
            end_ns: start_ns + 20_000_000 + i64::try_from(calls).unwrap() * 5_000_000,
            status: if status >= 500 { SpanStatus::Error } else { SpanStatus::Unset },
            status_message: String::new(),
            facts: SpanFacts { http_method: Some("GET".into()), http_status: Some(status), ..SpanFacts::default() },
            attributes: given.as_object().unwrap().clone(),
            weight: 1.0,
        };
        self.spans.extend((1..=calls).map(|call| call_of(&server, call)));
        self.spans.push(server);
    }
}

fn call_of(server: &Span, call: u64) -> Span {
    let start_ns = server.start_ns + i64::try_from(call).unwrap() * 5_000_000;
    Span {
        span_id: (u64::from_be_bytes(server.span_id) + call).to_be_bytes(),
        parent_id: Some(server.span_id),
        name: "query utilization".into(),
        kind: SpanKind::Client,
        start_ns,
        end_ns: start_ns + 4_000_000,
        status: SpanStatus::Unset,
        facts: SpanFacts {
            db_system: Some("azure.cosmosdb".into()),
            db_status: Some(if call == 3 { "429" } else { "200" }.into()),
            server_address: Some("127.0.0.1".into()),
            server_port: Some(8081),
            db_namespace: Some("dronedelivery".into()),
            ..SpanFacts::default()
        },
        ..server.clone()
    }
}

/// Four successes of the operation with three calls each, one failure with three, and two requests of another operation
/// with five each: 25 calls, 12 of which the successes made. A month later, one more with seven.
pub(crate) fn made(bench: &Bench) -> PathBuf {
    let path = bench.path("drones.narrows");
    let file = RunFile::create(&path, &run()).unwrap();
    let recorder = file.recorder();
    recorder.put_trial(&trial()).unwrap();
    recorder.set_trial(Some(1));
    let mut traces = Traces { number: 0, spans: Vec::new() };
    (0..4).for_each(|_| traces.add("dronescheduler", OPERATION, 200, 3, 0));
    traces.add("dronescheduler", OPERATION, 503, 3, 0);
    (0..2).for_each(|_| traces.add("package", "GET /api/packages/summary", 200, 5, 0));
    traces.add("dronescheduler", OPERATION, 200, 7, 24 * 60);
    recorder.spans(traces.spans).blocking_recv().unwrap().unwrap();
    file.finish(RunState::Complete).unwrap();
    path
}

fn bench() -> Bench {
    let bench = Bench::new("");
    made(&bench);
    bench
}

/// The standard output of a query that succeeds.
fn result(bench: &Bench, arguments: &[&str]) -> String {
    let output = bench.run(&[&["query", "drones.narrows"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The standard error of a query that fails.
fn refusal(bench: &Bench, arguments: &[&str]) -> String {
    let output = bench.run(&[&["query", "drones.narrows"], arguments].concat());
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stdout));
    assert!(output.stdout.is_empty());
    text(&output.stderr)
}

const BY_NAME: &str =
    "SELECT name, count(*) AS requests, sum(success) AS fine FROM requests GROUP BY name ORDER BY 2 DESC";

#[test]
fn results_of_sql_have_four_formats() {
    let bench = bench();
    insta::assert_snapshot!(result(&bench, &[BY_NAME]), @r"
    name                                     requests  fine
    ───────────────────────────────────────────────────────
    GET DroneDeliveries/GetDroneUtilization         6     5
    GET /api/packages/summary                       2     2
    2 rows
    ");
    insta::assert_snapshot!(result(&bench, &[BY_NAME, "--format", "csv"]), @r"
    name,requests,fine
    GET DroneDeliveries/GetDroneUtilization,6,5
    GET /api/packages/summary,2,2
    ");
    insta::assert_snapshot!(result(&bench, &[BY_NAME, "--format", "json"]), @r#"
    [
      {"name": "GET DroneDeliveries/GetDroneUtilization", "requests": 6, "fine": 5},
      {"name": "GET /api/packages/summary", "requests": 2, "fine": 2}
    ]
    "#);
    insta::assert_snapshot!(result(&bench, &[BY_NAME, "--format", "markdown"]), @r"
    | name | requests | fine |
    |---|---:|---:|
    | GET DroneDeliveries/GetDroneUtilization | 6 | 5 |
    | GET /api/packages/summary | 2 | 2 |
    ");
}

#[test]
fn the_run_may_be_left_out_and_the_query_may_come_by_standard_input() {
    let bench = bench();
    std::fs::create_dir(bench.path("runs")).unwrap();
    std::fs::rename(bench.path("drones.narrows"), bench.path("runs/drones.narrows")).unwrap();
    let newest = bench.run(&["query", "SELECT count(*) FROM requests", "--format", "csv"]);
    assert_eq!(text(&newest.stdout), "count(*)\n8\n", "{}", text(&newest.stderr));
    for arguments in [["query", "drones", "-", "--format=csv"], ["query", "drones", "--kql=-", "--format=csv"]] {
        let query = if arguments[2] == "-" { "SELECT count(*) AS Count FROM requests" } else { "requests | count" };
        let mut command = bench.narrows(&arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(query.as_bytes()).unwrap();
        assert_eq!(text(&child.wait_with_output().unwrap().stdout), "Count\n8\n", "{arguments:?}");
    }
    let none = bench.run(&["query", "drones"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("error: no query given for drones\nhint: `narrows query RUN"));
}

#[test]
fn mistakes_in_sql_are_shown_where_they_are() {
    let bench = bench();
    insta::assert_snapshot!(refusal(&bench, &["SELECT name,\n  sum(duration FROM requests"]), @r#"
    error: SQL:2:16: near "FROM": syntax error
     2 |   sum(duration FROM requests
       |                ^
    "#);
    insta::assert_snapshot!(refusal(&bench, &["SELECT * FROM request"]), @r"
    error: SQL: no such table: request
    hint: among others there are requests, dependencies, exceptions, traces, customMetrics, performanceCounters, spans, metrics, logs, samples, load_seconds, load_latency, trials, windows, services, findings, call_graph, run; see docs/reference/query.md
    ");
    insta::assert_snapshot!(refusal(&bench, &["SELECT nme FROM requests"]), @r"
    error: SQL:1:8: no such column: nme
     1 | SELECT nme FROM requests
       |        ^
    hint: columns and functions are in docs/reference/query.md
    ");
    insta::assert_snapshot!(refusal(&bench, &["DELETE FROM trials"]), @"error: the query would delete from trials, expected one that only reads, such as a SELECT");
    insta::assert_snapshot!(refusal(&bench, &["SELECT 1; SELECT 2"]), @"error: the query has several statements, expected one");
    let endless = "WITH RECURSIVE t (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT max(x) FROM t";
    insta::assert_snapshot!(refusal(&bench, &[endless, "--timeout", "100ms"]), @r"
    error: the query was stopped after 100 ms
    hint: `--timeout` lets it run longer; a condition on `trial` gives it less to read
    ");
}

#[test]
fn mistakes_in_kql_are_shown_where_they_are() {
    let bench = bench();
    std::fs::write(bench.path("q.kql"), "let least = 5;\nrequests\n| where duratoin > least\n").unwrap();
    insta::assert_snapshot!(refusal(&bench, &["--kql", "q.kql"]), @r"
    error: q.kql:3:9: there is no column `duratoin`
     3 | | where duratoin > least
       |         ^
    hint: did you mean `duration`?
    ");
    std::fs::write(bench.path("q.kql"), "let least = 5;\nrequests\n| where duration > least | count\n").unwrap();
    insta::assert_snapshot!(refusal(&bench, &["--kql", "q.kql", "--let", "least=1 +"]), @r"
    error: --let least:1:4: in the value given for `least`: the end of the query stands where an expression was expected
     1 | 1 +
       |    ^
    ");
    insta::assert_snapshot!(refusal(&bench, &["--kql", "q.kql", "--let", "lest=1"]), @r"
    error: --let: no `let` of this query is called `lest`
    hint: did you mean `least`?
    ");
    insta::assert_snapshot!(refusal(&bench, &["--kql", "requests | count"]), @r"
    error: cannot read the query from requests | count: No such file or directory (os error 2)
    hint: `--kql` names a file; `--kql -` reads the query from standard input
    ");
    assert_eq!(result(&bench, &["--kql", "q.kql", "--let", "least=1000", "--format", "csv"]), "Count\n0\n");
}

/// Operators that SQL does not have, with the functions of the run file.
#[test]
fn kql_does_what_sql_cannot() {
    let bench = bench();
    let file = bench.path("q.kql");
    let series = "AppRequests | make-series sum(ItemCount) on TimeGenerated from datetime(2020-06-20) to \
                  datetime(2020-06-20 00:00:09) step 3s by AppRoleName";
    for (kql, wanted) in [
        (
            format!("{series} | project AppRoleName, sum_ItemCount | sort by AppRoleName asc"),
            "AppRoleName,sum_ItemCount\ndronescheduler,\"[2,3,0]\"\npackage,\"[0,0,2]\"\n",
        ),
        ("requests | where name hasprefix 'drone' and name hassuffix 'UTILIZATION' | count".to_owned(), "Count\n6\n"),
        (
            "requests | parse name with verb ' ' area '/' rest | summarize count() by verb, area | sort by area asc".to_owned(),
            "verb,area,count_\nGET,,2\nGET,DroneDeliveries,6\n",
        ),
        (
            "exceptions | mv-expand one = details | project kind = tostring(one.type), details[0].rawStack".to_owned(),
            "kind,details_0_rawStack\nerror,\"\"\"\"\"\"\n",
        ),
        (
            "range n from 1 to 300000 step 1 | summarize all = make_list(n) | mv-expand all to typeof(long) | summarize sum(all), count()".to_owned(),
            "sum_all,count_\n45000150000,300000\n",
        ),
        (
            "requests | sort by timestamp asc | extend fine = row_cumsum(itemCount, success != prev(success)) | summarize max(fine)".to_owned(),
            "max_fine\n4\n",
        ),
        (
            "union isfuzzy=true requests, pageViews, nowhere | summarize sum(itemCount), dcount(user_Id) by itemType".to_owned(),
            "itemType,sum_itemCount,dcount_user_Id\nrequest,8,0\n",
        ),
    ] {
        std::fs::write(&file, &kql).unwrap();
        assert_eq!(result(&bench, &["--kql", "q.kql", "--format", "csv"]), wanted, "{kql}");
    }
    std::fs::write(&file, format!("{series} | render timechart")).unwrap();
    let picture = result(&bench, &["--kql", "q.kql"]);
    assert!(picture.contains("dronescheduler") && picture.contains('└'), "{picture}");
    let too_many = "let begun = toscalar(requests | summarize min(timestamp));\n\
                    requests | make-series count() on timestamp from begun to begun + 365d step 1ms";
    std::fs::write(&file, too_many).unwrap();
    insta::assert_snapshot!(refusal(&bench, &["--kql", "q.kql"]), @"error: the query failed: line 2: the steps of `make-series`: 31536000000, expected at most 1048576");
}

#[test]
fn a_result_that_is_cut_says_so() {
    let bench = bench();
    let output = bench.run(&["query", "drones.narrows", "SELECT id FROM dependencies", "--limit", "2", "--format=csv"]);
    assert_eq!(text(&output.stdout).lines().count(), 3);
    assert_eq!(text(&output.stderr), "note: there are more than 2 rows: `--limit` sets how many are shown\n");
    assert_eq!(output.status.code(), Some(0));
    for wrong in [&["--limit", "0"], &["--timeout", "0s"], &["--timeout", "25h"], &["--format", "xml"]] {
        let output = bench.run(&[&["query", "drones.narrows", "SELECT 1"][..], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}

fn example(name: &str) -> String {
    format!("{}/../../examples/queries/{name}.kql", env!("CARGO_MANIFEST_DIR"))
}

/// The two ways to count an operation's calls give different results: the page on queries explains why.
#[test]
fn calls_per_operation_are_joined_by_trace() {
    let bench = bench();
    let asked = |name: &str| {
        let kql = example(name);
        result(&bench, &["--kql", &kql, "--let", "to_time=datetime(2020-07-01)", "--format", "csv"])
    };
    let header = "Operation,Successes,Calls,CallsPerSuccess\n";
    assert_eq!(asked("calls-over-successes"), format!("{header}{OPERATION},4,25,6.25\n"));
    assert_eq!(asked("calls-per-operation"), format!("{header}{OPERATION},4,12,3\n"));
}

#[test]
fn the_other_examples_have_results() {
    let bench = bench();
    insta::assert_snapshot!(result(&bench, &["--kql", &example("slowest-operations"), "--format", "markdown"]), @r"
    | Service | Operation | Requests | Failed | Mean | P95 |
    |---|---|---:|---:|---:|---:|
    | dronescheduler | GET DroneDeliveries/GetDroneUtilization | 6 | 1 | 38.3333333 | 55 |
    | package | GET /api/packages/summary | 2 | 0 | 45 | 45 |
    ");
    insta::assert_snapshot!(result(&bench, &["--kql", &example("where-time-goes")]), @r"
    Seconds
    dronescheduler to 127.0.0.1:8081… █████████████████████████████████████████████████████████████ 0.09
    package to 127.0.0.1:8081 | dron… ███████████████████████████▊ 0.04
    ");
    let picture = result(&bench, &["--kql", &example("throttled-over-time")]);
    assert!(picture.starts_with("Throttled\n") && picture.contains('└'), "{picture}");
    let known =
        ["calls-over-successes", "calls-per-operation", "slowest-operations", "throttled-over-time", "where-time-goes"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/queries");
    let mut found: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    let found: Vec<_> = found.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
    assert_eq!(found, known, "every example is tested here");
}

/// KQL's tables and columns are those of the run file.
#[test]
fn the_catalog_of_kql_is_that_of_the_views() {
    let bench = Bench::new("");
    let reader = Reader::open(&made(&bench)).unwrap();
    let mut faults = Vec::new();
    for table in narrows_query::tables() {
        let Some(view) = table.view else { continue };
        for ColumnShape { name, kind, stored_as } in &table.columns {
            let Some(stored_as) = stored_as else { continue };
            let sql = format!("SELECT \"{stored_as}\" FROM {view} WHERE {stored_as} IS NOT NULL LIMIT 1");
            match reader.sql(&sql, &QueryLimits::default()) {
                Err(error) => faults.push(format!("{}.{name}: {error}", table.name)),
                Ok(result) => {
                    let cell = result.rows.first().map(|row| &row[0]);
                    if cell.is_some_and(|cell| !holds(*kind, cell)) {
                        faults.push(format!("{}.{name} is {cell:?}, expected {kind:?}", table.name));
                    }
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn holds(kind: narrows_model::table::ColumnType, cell: &narrows_model::table::Cell) -> bool {
    use narrows_model::table::{Cell, ColumnType};
    match kind {
        ColumnType::Bool => matches!(cell, Cell::Integer(0 | 1)),
        ColumnType::Integer | ColumnType::Instant | ColumnType::Span => matches!(cell, Cell::Integer(_)),
        ColumnType::Real => matches!(cell, Cell::Real(_) | Cell::Integer(_)),
        ColumnType::Text | ColumnType::Json => matches!(cell, Cell::Text(_)),
        ColumnType::Any => true,
    }
}

/// The query of the case study, as it stands there. `NARROWS_SEEDS` names the folder that holds its text.
#[test]
fn the_query_of_the_case_study_runs_as_it_stands() {
    let Some(folder) = std::env::var_os("NARROWS_SEEDS") else {
        return narrows_testing::skip("NARROWS_SEEDS names no folder with the text of the case study");
    };
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("000_")));
    let study = std::fs::read_to_string(&files[0]).unwrap();
    let from = study.find("let start=").unwrap();
    let query = study[from..].split("```").next().unwrap();
    let bench = bench();
    std::fs::write(bench.path("study.kql"), query).unwrap();
    let said = result(&bench, &["--kql", "study.kql", "--format", "csv"]);
    let row = format!("{OPERATION},Azure DocumentDB,4,6");
    let header = "OperationName,DependencyName,SuccessRequests,AverageNumberOfDepCallsPerOperation";
    assert_eq!(said, format!("{header}\n{row}\n"), "25 calls of the window over 4 successes, in whole numbers");
    let shifted = result(&bench, &["--kql", "study.kql", "--format=csv", "--let", "end=datetime(2030-01-01)"]);
    assert_eq!(shifted, format!("{header}\n{OPERATION},Azure DocumentDB,5,6\n"), "32 calls over 5");
}
