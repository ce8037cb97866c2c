//! Iterations of several steps against a real server on loopback: the next request repeats what one response contains.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::running::{iterations, plan, run_whole, step, template};
use crate::server::{ReceivedRequest, Reply, Server, ok};
use narrows_load::{Clock, run};
use narrows_model::load::{
    Check, Connections, Cookies, DataSource, DataValues, ErrorKind, Extract, Iterations, LoadModel, Pick, Place, Step,
};

fn response(status: u16, headers: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Keep(format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{headers}\r\n{body}").into_bytes())
}

fn path(asked: &ReceivedRequest) -> &str {
    asked.line.split(' ').nth(1).unwrap()
}

fn paths(server: &Server) -> Vec<String> {
    server.asked().iter().map(|asked| path(asked).to_owned()).collect()
}

fn extract(variable: usize, from: Place) -> Extract {
    Extract { variable, name: format!("v{variable}"), from }
}

fn failure(
    steps: Vec<Step>,
    respond: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
) -> (ErrorKind, String) {
    let server = Server::start(respond);
    let ran = run_whole(&plan(server.address, iterations(1, 2), steps));
    assert_eq!(ran.ended().1, 2, "{:?}", ran.causes());
    match ran.causes()[..] {
        [(kind, text, 2)] => (kind, text.to_owned()),
        [] => (ErrorKind::Status, String::new()),
        _ => panic!("{:?}", ran.causes()),
    }
}

#[test]
fn steps_follow_one_another_on_one_connection_each_with_its_own_row() {
    let server = Server::start(|_| response(200, "", "hello"));
    let model = LoadModel::Iterations { vus: 3, iterations: Iterations::PerVu(10), max_duration: None };
    let mut plan = plan(server.address, model, vec![step("GET", "/1"), step("GET", "/2"), step("GET", "/3")]);
    plan.threads = 2;
    let ran = run_whole(&plan);
    assert_eq!(ran.ended(), (90, 0));
    let mut rows = BTreeMap::new();
    ran.seconds.iter().for_each(|s| *rows.entry(s.request.clone()).or_insert(0) += s.succeeded);
    assert_eq!(rows.into_iter().collect::<Vec<_>>(), [("/1".into(), 30), ("/2".into(), 30), ("/3".into(), 30)]);
    let phases = &ran.outcome.phases;
    assert_eq!((phases.connect.count, phases.write.count, phases.wait.count, phases.read.count), (3, 90, 90, 90));
    for asked in server.asked() {
        assert_eq!(path(&asked), ["/1", "/2", "/3"][asked.position % 3]);
    }
}

#[test]
fn a_pause_follows_a_step_and_the_next_is_due_at_its_end() {
    let server = Server::start(|_| response(200, "", ""));
    let mut plan = plan(server.address, iterations(1, 3), vec![step("GET", "/1"), step("GET", "/2")]);
    plan.scenarios[0].flows[0].steps[0].think_time = Some(Duration::from_millis(20).into());
    plan.scenarios[0].think_time = Duration::from_millis(50).into();
    let ran = run_whole(&plan);
    let mut samples = ran.samples.clone();
    samples.sort_by_key(|sample| sample.intended_ns);
    assert_eq!(samples.len(), 6);
    for (index, two) in samples.windows(2).enumerate() {
        let pause_ms = if index % 2 == 0 { 20 } else { 50 };
        assert_eq!(two[1].intended_ns - two[0].done_ns, pause_ms * 1_000_000, "after step {index}");
    }
    assert_eq!(ran.outcome.phases.connect.count, 1);
}

#[test]
fn a_step_that_fails_ends_its_iteration() {
    let server = Server::start(|asked| response(if path(asked) == "/2" { 500 } else { 200 }, "", ""));
    let steps = vec![step("GET", "/1"), step("GET", "/2"), step("GET", "/3")];
    let ran = run_whole(&plan(server.address, iterations(1, 5), steps));
    assert_eq!((ran.ended(), ran.outcome.totals.errors.status), ((5, 5), 5));
    assert_eq!(paths(&server), ["/1", "/2"].repeat(5));
}

#[test]
fn no_further_step_begins_when_the_time_is_up() {
    let server = Server::start(|_| response(200, "", ""));
    let model = LoadModel::ConstantVus { vus: 1, duration: Duration::from_millis(500) };
    let mut plan = plan(server.address, model, vec![step("GET", "/1"), step("GET", "/2")]);
    plan.scenarios[0].think_time = Duration::from_secs(3_600).into();
    assert_eq!(run_whole(&plan).ended(), (1, 0));
    assert_eq!(paths(&server), ["/1"]);
}

#[test]
fn a_row_is_drawn_once_and_kept_for_all_steps() {
    let server = Server::start(|_| response(200, "", ""));
    let mut plan =
        plan(server.address, iterations(1, 6), vec![step("GET", "/a/@0"), step("GET", "/b/@1"), step("GET", "/")]);
    let rows = (0..4).map(|i| vec![format!("x{i}"), format!("y{i}")]).collect();
    let values = DataValues::Rows { columns: vec!["x".into(), "y".into()], rows, pick: Pick::Sequential };
    plan.data = vec![DataSource { name: "owner".into(), values }];
    run_whole(&plan);
    let expected: Vec<String> =
        [0, 1, 2, 3, 0, 1].iter().flat_map(|i| [format!("/a/x{i}"), format!("/b/y{i}"), "/".into()]).collect();
    assert_eq!(paths(&server), expected);
}

/// Runs a load that only the end of its rows ends, and checks that each row was taken once.
fn run_once(model: LoadModel, think_time: Duration) {
    let server = Server::start(|_| response(200, "", ""));
    let mut plan = plan(server.address, model, vec![step("GET", "/a/@0"), step("GET", "/b/@0")]);
    plan.threads = 2;
    plan.scenarios[0].think_time = think_time.into();
    let rows = (0..50).map(|i| vec![i.to_string()]).collect();
    let values = DataValues::Rows { columns: Vec::new(), rows, pick: Pick::Once };
    plan.data = vec![DataSource { name: "owner".into(), values }];
    assert_eq!(run_whole(&plan).ended(), (100, 0));
    let mut paths = paths(&server);
    let mut expected: Vec<String> = (0..50).flat_map(|i| [format!("/a/{i}"), format!("/b/{i}")]).collect();
    paths.sort();
    expected.sort();
    assert_eq!(paths, expected);
}

#[test]
fn rows_to_be_taken_once_end_the_scenario_when_the_last_iteration_is_over() {
    let duration = Duration::from_secs(3_600);
    run_once(LoadModel::ConstantVus { vus: 4, duration }, Duration::ZERO);
    run_once(LoadModel::ConstantVus { vus: 4, duration }, Duration::from_millis(3));
    let arrivals = narrows_model::load::Arrivals::Uniform;
    run_once(LoadModel::ConstantArrivalRate { rate: 500.0, duration, vus_max: 20, arrivals }, Duration::from_millis(3));
}

#[test]
fn what_is_extracted_is_repeated_in_path_header_and_body_until_the_iteration_is_over() {
    let server = Server::start(|asked| match path(asked) {
        "/login/" => response(200, "X-Token: t k\r\n", "{\"user\":{\"id\":\"a/b\"}} <input value=\"q&r\">"),
        "/json" => response(200, "", "{\"user\":{\"id\":\"a/b\"}}"),
        _ => response(200, "", ""),
    });
    // The first step shows that nothing of the iteration before is left.
    let mut login = step("GET", "/login/$0$1$2");
    login.extract =
        vec![extract(0, Place::Header("x-token".into())), extract(1, Place::Regex("value=\"([^\"]*)\"".into()))];
    let mut json = step("GET", "/json");
    json.extract = vec![extract(2, Place::Json("/user/id".into()))];
    let mut last = step("POST", "/of/$2/$0");
    last.request.headers.push(("X-Token".into(), template("<$0$1>")));
    last.request.body = Some(template("[$0|$1|$2]"));
    let ran = run_whole(&plan(server.address, iterations(1, 3), vec![login, json, last]));
    assert_eq!(ran.ended(), (9, 0), "{:?}", ran.causes());
    for iteration in server.asked().chunks(3) {
        assert_eq!([path(&iteration[0]), path(&iteration[2])], ["/login/", "/of/a%2Fb/t%20k"]);
        assert_eq!(iteration[2].header("x-token"), Some("<t kq&r>"));
        assert_eq!(iteration[2].body, b"[t k|q&r|a/b]");
    }
}

#[test]
fn failed_checks_and_missing_values_fail_the_step_with_their_words() {
    let mut checked = step("GET", "/1");
    checked.checks = vec![Check::BodyContains("x".into())];
    let words = "check failed: body does not contain \"x\"";
    assert_eq!(failure(vec![checked.clone()], |_| response(200, "", "y")), (ErrorKind::Check, words.into()));
    assert_eq!(failure(vec![checked], |_| response(500, "", "x")), (ErrorKind::Status, String::new()));
    let mut extracted = step("GET", "/1");
    extracted.extract = vec![extract(0, Place::Header("x-token".into()))];
    let words = "no value for v0: header x-token is missing";
    assert_eq!(failure(vec![extracted], |_| response(200, "", "")), (ErrorKind::Check, words.into()));
}

#[test]
fn a_check_of_the_status_says_alone_which_are_allowed() {
    let mut checked = step("GET", "/1");
    checked.checks = vec![Check::BodyContains("x".into()), Check::Status(vec![(404, 404)])];
    assert_eq!(failure(vec![checked.clone()], |_| response(200, "", "")), (ErrorKind::Status, String::new()));
    let server = Server::start(|_| response(404, "", "x"));
    let ran = run_whole(&plan(server.address, iterations(1, 3), vec![checked]));
    assert_eq!((ran.ended(), ran.outcome.statuses[&404]), ((3, 0), 3));
}

#[test]
fn a_body_too_long_to_look_at_fails_the_check_and_one_that_is_not_looked_at_may_be_longer() {
    let body = "x".repeat((1 << 20) + 1);
    let mut checked = step("GET", "/1");
    checked.checks = vec![Check::BodyContains("x".into())];
    let long = body.clone();
    let failed = failure(vec![checked], move |_| response(200, "", &long));
    assert_eq!(failed, (ErrorKind::Check, "check failed: body is longer than 1 MiB".into()));
    let server = Server::start(move |_| response(200, "X-A: b\r\n", &body));
    let mut of_header = step("GET", "/1");
    of_header.checks = vec![Check::Header { name: "x-a".into(), value: Some("b".into()) }];
    assert_eq!(run_whole(&plan(server.address, iterations(1, 2), vec![of_header])).ended(), (2, 0));
}

/// The cookies that two users sent, each in two iterations of two steps.
fn cookies_sent(cookies: Cookies) -> Vec<Vec<Option<String>>> {
    let server = Server::start(|asked| match path(asked) {
        "/1" => response(
            200,
            &format!("Set-Cookie: id={}; Path=/\r\nSet-Cookie: far=1; Path=/other\r\n", asked.connection),
            "",
        ),
        _ => response(200, "", ""),
    });
    let model = LoadModel::Iterations { vus: 2, iterations: Iterations::PerVu(2), max_duration: None };
    let mut plan = plan(server.address, model, vec![step("GET", "/1"), step("GET", "/2")]);
    plan.scenarios[0].cookies = cookies;
    assert_eq!(run_whole(&plan).ended(), (8, 0));
    let of_connection = |connection: usize| {
        let asked = server.asked().into_iter().filter(move |asked| asked.connection == connection);
        asked.map(|asked| asked.header("cookie").map(String::from)).collect()
    };
    (0..2).map(of_connection).collect()
}

#[test]
fn cookies_are_sent_back_within_the_iteration_or_by_the_user_or_not() {
    let own = |user: usize| Some(format!("id={user}"));
    let expected =
        |each: fn(Option<String>) -> Vec<Option<String>>| (0..2).map(|user| each(own(user))).collect::<Vec<_>>();
    assert_eq!(cookies_sent(Cookies::Ignored), expected(|_| vec![None; 4]));
    assert_eq!(cookies_sent(Cookies::PerIteration), expected(|id| vec![None, id.clone(), None, id]));
    assert_eq!(cookies_sent(Cookies::PerUser), expected(|id| vec![None, id.clone(), id.clone(), id]));
}

#[test]
fn a_given_cookie_stands_before_the_others_in_one_header() {
    let server = Server::start(|_| response(200, "Set-Cookie: a=1\r\nSet-Cookie: s=1; Secure\r\n", ""));
    let mut plan = plan(server.address, iterations(1, 2), vec![step("GET", "/")]);
    plan.scenarios[0].flows[0].steps[0].request.headers.push(("cookie".into(), template("mine=0")));
    plan.scenarios[0].cookies = Cookies::PerUser;
    run_whole(&plan);
    let sent: Vec<String> = server.asked().iter().map(|asked| asked.header("cookie").unwrap().to_owned()).collect();
    assert_eq!(sent, ["mine=0", "mine=0; a=1"]);
}

#[test]
fn redirects_are_followed_within_one_request() {
    let server = Server::start(|asked| match path(asked) {
        "/1" => response(302, "Location: /a/2\r\nSet-Cookie: c=1; Path=/\r\n", "moved"),
        "/a/2" => response(307, "Location: 3?q\r\n", ""),
        "/a/3?q" => response(308, "Location: http://test/4\r\n", ""),
        _ => response(200, "", "here"),
    });
    let mut post = step("POST", "/1");
    post.redirects_max = 3;
    post.request.body = Some(template("data"));
    post.request.headers = vec![("Content-Type".into(), template("a/b")), ("X-Own".into(), template("kept"))];
    post.checks = vec![Check::BodyContains("here".into())];
    for connections in [Connections::KeepAlive, Connections::PerRequest] {
        let mut plan = plan(server.address, iterations(1, 1), vec![post.clone()]);
        plan.scenarios[0].cookies = Cookies::PerIteration;
        plan.connections = connections;
        let before = server.asked().len();
        let ran = run_whole(&plan);
        assert_eq!((ran.ended(), ran.outcome.totals.sent), ((1, 0), 1), "{:?}", ran.causes());
        let asked = server.asked().split_off(before);
        let lines: Vec<&str> = asked.iter().map(|asked| asked.line.as_str()).collect();
        assert_eq!(lines, ["POST /1 HTTP/1.1", "GET /a/2 HTTP/1.1", "GET /a/3?q HTTP/1.1", "GET /4 HTTP/1.1"]);
        assert!(asked.iter().all(|asked| asked.header("x-own") == Some("kept")));
        assert!(asked[1..].iter().all(|asked| asked.body.is_empty() && asked.header("content-type").is_none()));
        assert!(asked[1..].iter().all(|asked| asked.header("cookie") == Some("c=1")));
        let used = asked.iter().map(|asked| asked.connection).collect::<std::collections::BTreeSet<_>>().len();
        assert_eq!(used, if connections == Connections::KeepAlive { 1 } else { 4 });
        assert_eq!((ran.outcome.statuses.len(), ran.outcome.statuses[&200], ran.outcome.body_bytes), (1, 1, 9));
        assert!(ran.outcome.totals.bytes > 200, "the bytes of all four responses: {}", ran.outcome.totals.bytes);
        assert_eq!(ran.outcome.phases.write.count, 1);
    }
}

#[test]
fn a_redirect_that_keeps_the_method_repeats_the_body() {
    let server = Server::start(|asked| match path(asked) {
        "/1" => response(307, "Location: /2\r\n", ""),
        _ => response(200, "", ""),
    });
    let mut put = step("PUT", "/1");
    put.redirects_max = 1;
    put.request.body = Some(template("data"));
    assert_eq!(run_whole(&plan(server.address, iterations(2, 4), vec![put])).ended(), (4, 0));
    assert!(server.asked().iter().all(|asked| asked.line.starts_with("PUT ") && asked.body == b"data"));
}

#[test]
fn redirects_end_at_their_limit_and_at_another_host_and_are_successes_where_none_is_followed() {
    let mut step = step("GET", "/1");
    step.redirects_max = 2;
    let loops = failure(vec![step.clone()], |_| response(302, "Location: /1\r\n", ""));
    assert_eq!(loops, (ErrorKind::Protocol, "more than 2 redirects".into()));
    let away = failure(vec![step.clone()], |_| response(302, "Location: http://other:1/\r\n", ""));
    assert_eq!(away, (ErrorKind::Protocol, "redirect to another host other:1".into()));
    step.redirects_max = 0;
    let server = Server::start(|_| response(302, "Location: /1\r\n", ""));
    assert_eq!(run_whole(&plan(server.address, iterations(1, 2), vec![step])).ended(), (2, 0));
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn causes_that_differ_each_time_are_bounded() {
    let server = Server::start(|asked| response(302, &format!("Location: http://h{}/\r\n", asked.position), ""));
    let mut step = step("GET", "/1");
    step.redirects_max = 1;
    let ran = run_whole(&plan(server.address, iterations(1, 150), vec![step]));
    assert_eq!((ran.ended(), ran.causes().len()), ((0, 150), 101));
    assert_eq!(ran.causes()[0], (ErrorKind::Protocol, "other", 50));
}

#[test]
fn every_request_of_an_iteration_has_a_trace_of_its_own_and_all_of_a_redirect_have_one() {
    let server = Server::start(|asked| match path(asked) {
        "/1" => response(301, "Location: /2\r\n", ""),
        _ => response(200, "", ""),
    });
    let mut first = step("GET", "/1");
    first.redirects_max = 1;
    let mut plan = plan(server.address, iterations(1, 1), vec![first, step("GET", "/3")]);
    plan.tracing = Some(narrows_model::load::Tracing { sample: 1.0, tag: [1; 4] });
    run_whole(&plan);
    let traces: Vec<String> = server.asked().iter().map(|a| a.header("traceparent").unwrap().to_owned()).collect();
    assert!(traces[0] == traces[1] && traces[1] != traces[2], "{traces:?}");
}

#[test]
fn mistakes_in_checks_and_extraction_name_their_step() {
    let server = Server::start(|_| Reply::Keep(ok("")));
    let mut bad = step("GET", "/2");
    bad.extract = vec![extract(0, Place::Regex("(".into()))];
    let plan = plan(server.address, iterations(1, 1), vec![step("GET", "/1"), bad]);
    let (out, _batches) = std::sync::mpsc::sync_channel(1);
    let error = run(&plan, Clock::new(), &std::sync::atomic::AtomicBool::new(false), &out).unwrap_err().to_string();
    let begins = "load plan: scenario a, request /2: extract v0: \"(\" is not a pattern: ";
    assert!(error.starts_with(begins), "{error}");
    assert!(server.asked().is_empty());
}
