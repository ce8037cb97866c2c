//! HTTP/1.1 over TLS and HTTP/2 against real servers on loopback: what is sent, what is counted, and what breaks.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use crate::running::{LoadRun, die_and_return, iterations, run_whole, step, template};
use crate::secure::{Authority, Goodbye, ReceivedRequest, Reply, Server, Speaks, Validity, ok, raw};
use narrows_load::{Clock, run};
use narrows_model::load::{
    Arrivals, Check, Connections, Cookies, DataSource, DataValues, ErrorKind, Extract, Iterations, LoadBatch,
    LoadModel, LoadPlan, Pick, Place, Protocol, RequestTemplate, Retry, Step, Template, Tls, Trust,
};

/// The ways to speak that are not plain HTTP/1.1.
const WAYS: [(Speaks, bool); 3] = [(Speaks::Http1, true), (Speaks::Http2, true), (Speaks::Http2, false)];

const NAME: &str = "shop.test";

fn serve(
    way: (Speaks, bool),
    respond: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
) -> (Server, LoadPlan) {
    let authority = Authority::new("own");
    let offers: &[&[u8]] = if way.0 == Speaks::Http2 { &[b"h2"] } else { &[b"http/1.1"] };
    let config = way.1.then(|| authority.server(NAME, Validity::Now, offers));
    let server = Server::start(way.0, config, respond);
    let trust = Trust::Authorities(authority.pem());
    let plan = plan(server.address, way, trust);
    (server, plan)
}

fn plan(address: SocketAddr, way: (Speaks, bool), trust: Trust) -> LoadPlan {
    let (speaks, is_secure) = way;
    let mut plan = crate::running::plan(address, iterations(1, 1), vec![step("GET", "/a?b=c")]);
    plan.protocol = if speaks == Speaks::Http2 { Protocol::Http2 } else { Protocol::Http1 };
    plan.tls = is_secure.then(|| Tls { server_name: NAME.into(), trust });
    plan
}

fn request(plan: &mut LoadPlan) -> &mut RequestTemplate {
    &mut plan.scenarios[0].flows[0].steps[0].request
}

/// The only cause of all failures, of which there are so many.
fn cause(ran: &LoadRun, count: u64) -> (ErrorKind, String) {
    assert_eq!(ran.ended().1, count, "{:?}", ran.causes());
    match ran.causes()[..] {
        [(kind, text, all)] if all == count => (kind, text.to_owned()),
        _ => panic!("{:?}", ran.causes()),
    }
}

#[test]
fn all_that_was_asked_for_is_sent_on_one_connection_each() {
    for way in WAYS {
        let (server, mut plan) = serve(way, |_| ok());
        plan.scenarios[0].model =
            LoadModel::Iterations { vus: 3, iterations: Iterations::PerVu(20), max_duration: None };
        plan.threads = 2;
        let ran = run_whole(&plan);
        assert_eq!(ran.ended(), (60, 0), "{way:?}: {:?}", ran.causes());
        let phases = &ran.outcome.phases;
        assert_eq!((phases.connect.count, phases.tls.count), (3, if way.1 { 3 } else { 0 }), "{way:?}");
        assert_eq!((phases.write.count, phases.wait.count, phases.read.count), (60, 60, 60));
        assert_eq!((ran.outcome.totals.sent, ran.outcome.totals.lateness.count()), (60, 60));
        assert_eq!((ran.outcome.statuses[&200], ran.outcome.body_bytes), (60, 300));
        assert!(ran.outcome.totals.bytes > 300);
        let asked = server.asked();
        let connections: BTreeSet<usize> = asked.iter().map(|asked| asked.connection).collect();
        assert_eq!((asked.len(), connections.len()), (60, 3));
        for sample in &ran.samples {
            assert!(sample.intended_ns <= sample.sent_ns && sample.sent_ns <= sample.done_ns, "{sample:?}");
        }
    }
}

#[test]
fn requests_are_what_the_template_says_in_the_words_of_the_protocol() {
    for way in WAYS {
        let (server, mut plan) = serve(way, |_| ok());
        plan.data = vec![DataSource {
            name: "owner".into(),
            values: DataValues::Rows { columns: Vec::new(), rows: vec![vec!["x y".into()]], pick: Pick::Random },
        }];
        let request = request(&mut plan);
        request.method = "POST".into();
        request.path = template("/a/@0");
        request.headers = vec![
            ("X-One".into(), template("1 @0")),
            ("x-two".into(), Template::text("2")),
            ("Connection".into(), Template::text("keep-alive")),
        ];
        request.body = Some(template("{@0}"));
        assert_eq!(run_whole(&plan).ended(), (1, 0));
        let asked = &server.asked()[0];
        let uri = match way {
            (Speaks::Http1, _) => "/a/x%20y",
            (Speaks::Http2, true) => "https://test/a/x%20y",
            (Speaks::Http2, false) => "http://test/a/x%20y",
        };
        assert_eq!((asked.method.as_str(), asked.uri.as_str(), &asked.body[..]), ("POST", uri, &b"{x y}"[..]));
        let of_http1 = (way.0 == Speaks::Http1).then_some(());
        let expected = [
            ("x-one", Some("1 x y")),
            ("x-two", Some("2")),
            ("content-length", Some("5")),
            ("accept", Some("*/*")),
            ("host", of_http1.map(|()| "test")),
            ("connection", of_http1.map(|()| "keep-alive")),
        ];
        for (name, value) in expected {
            assert_eq!(asked.header(name), value, "{way:?}: {name}");
        }
    }
}

#[test]
fn one_connection_for_each_request_if_asked_for() {
    for way in WAYS {
        let (server, mut plan) = serve(way, |_| ok());
        plan.scenarios[0].model = iterations(2, 10);
        plan.connections = Connections::PerRequest;
        let ran = run_whole(&plan);
        assert_eq!((ran.ended(), ran.outcome.phases.connect.count, ran.outcome.totals.repeated), ((10, 0), 10, 0));
        assert!(server.asked().iter().all(|asked| asked.position == 0));
    }
}

#[test]
fn a_status_above_399_is_a_failure_with_a_response() {
    for way in WAYS {
        let (_server, mut plan) =
            serve(way, |asked| if asked.position % 2 == 0 { ok() } else { Reply::Response(503, Vec::new(), "") });
        plan.scenarios[0].model = iterations(1, 10);
        let ran = run_whole(&plan);
        assert_eq!((ran.ended(), ran.outcome.totals.errors.status, ran.outcome.statuses[&503]), ((5, 5), 5, 5));
        assert_eq!(ran.outcome.phases.connect.count, 1);
    }
}

#[test]
fn the_response_to_head_has_no_body() {
    let (_server, mut plan) = serve(WAYS[0], |_| ok());
    plan.scenarios[0].model = iterations(1, 3);
    request(&mut plan).method = "HEAD".into();
    let ran = run_whole(&plan);
    assert_eq!((ran.ended(), ran.outcome.body_bytes, ran.outcome.phases.connect.count), ((3, 0), 0, 1));
}

#[test]
fn handshakes_fail_for_a_reason_that_is_named() {
    let authority = Authority::new("own");
    let trusted = Trust::Authorities(authority.pem());
    let stranger = Trust::Authorities(Authority::new("stranger").pem());
    let h1: &[&[u8]] = &[b"http/1.1"];
    let cases = [
        (NAME, Validity::Now, stranger, Speaks::Http1, h1, "TLS: certificate of an unknown authority"),
        (
            "other.test",
            Validity::Now,
            trusted.clone(),
            Speaks::Http1,
            h1,
            "TLS: certificate not valid for name \"shop.test\"",
        ),
        (NAME, Validity::Over, trusted.clone(), Speaks::Http1, h1, "TLS: certificate has expired"),
        (NAME, Validity::NotYet, trusted.clone(), Speaks::Http2, &[b"h2"], "TLS: certificate is not valid yet"),
        (NAME, Validity::Now, trusted.clone(), Speaks::Http2, h1, "TLS: the server said NoApplicationProtocol"),
        (NAME, Validity::Now, trusted, Speaks::Http2, &[], "TLS: the server does not offer HTTP/2 (ALPN h2)"),
    ];
    for (name, validity, trust, speaks, offers, expected) in cases {
        let server = Server::start(speaks, Some(authority.server(name, validity, offers)), |_| ok());
        let mut plan = plan(server.address, (speaks, true), trust);
        plan.scenarios[0].model = iterations(1, 2);
        let ran = run_whole(&plan);
        assert_eq!(cause(&ran, 2), (ErrorKind::Connect, expected.into()));
        assert_eq!((ran.outcome.totals.sent, ran.outcome.phases.tls.count), (0, 0));
    }
}

#[test]
fn the_system_does_not_know_the_authority_of_a_test() {
    let server = Server::start(Speaks::Http1, Some(Authority::new("own").server(NAME, Validity::Now, &[])), |_| ok());
    let plan = plan(server.address, WAYS[0], Trust::System);
    let (out, batches) = sync_channel::<LoadBatch>(1);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || batches.into_iter().count());
        let outcome = run(&plan, Clock::new(), &AtomicBool::new(false), &out);
        drop(out);
        outcome
    });
    match outcome {
        Ok(outcome) => assert_eq!(outcome.causes[0].text, "TLS: certificate of an unknown authority"),
        // There are machines without any authority.
        Err(error) => assert!(error.to_string().starts_with("load plan: tls: trust: the system has no"), "{error}"),
    }
}

#[test]
fn whatever_a_server_shows_is_fine_if_anything_is_trusted() {
    let authority = Authority::new("own");
    for validity in [Validity::Over, Validity::Now] {
        let server = Server::start(Speaks::Http1, Some(authority.server("other.test", validity, &[])), |_| ok());
        assert_eq!(run_whole(&plan(server.address, WAYS[0], Trust::Anything)).ended(), (1, 0));
    }
}

#[test]
fn servers_that_do_not_speak_tls_are_no_connection() {
    type Act = fn(std::net::TcpStream);
    let closes: Act = |stream| drop(stream);
    let hears_and_closes: Act = |mut stream| {
        let _ = stream.read(&mut [0; 4096]);
    };
    let babbles: Act = |mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    };
    let half: Act = |mut stream| {
        // The header of a handshake record that never comes.
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(&[22, 3, 3, 0, 90, 2]);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    };
    let closed = "TLS: the server closed the connection during the handshake";
    for (act, expected) in
        [(hears_and_closes, closed), (babbles, "TLS: the server did not respond with TLS"), (half, closed)]
    {
        let plan = plan(raw(act), WAYS[0], Trust::Anything);
        assert_eq!(cause(&run_whole(&plan), 1), (ErrorKind::Connect, expected.into()));
    }
    // Whether the end or a reset is seen first depends on who is faster.
    let ran = run_whole(&plan(raw(closes), WAYS[1], Trust::Anything));
    assert_eq!((ran.ended(), ran.outcome.totals.errors.connect), ((0, 1), 1));
}

#[test]
fn a_port_without_a_server_is_refused() {
    // No other test listens at this address, whatever port it is given.
    let listener = std::net::TcpListener::bind("127.0.0.9:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for way in WAYS {
        let ran = run_whole(&plan(address, way, Trust::Anything));
        assert_eq!(cause(&ran, 1), (ErrorKind::Connect, "Connection refused (os error 111)".into()));
    }
}

#[test]
fn streams_and_connections_that_the_server_resets_are_resets() {
    let cases = [
        (Reply::Reset(h2::Reason::INTERNAL_ERROR), "HTTP/2: the server reset the stream: INTERNAL_ERROR"),
        (Reply::Reset(h2::Reason::REFUSED_STREAM), "HTTP/2: the server reset the stream: REFUSED_STREAM"),
        (Reply::Half, "HTTP/2: the server reset the stream: INTERNAL_ERROR"),
        (Reply::GoAway(h2::Reason::ENHANCE_YOUR_CALM), "the server closed the connection without a response"),
    ];
    for way in &WAYS[1..] {
        for (reply, expected) in cases.clone() {
            let (_server, mut plan) = serve(*way, move |_| reply.clone());
            plan.scenarios[0].model = iterations(2, 6);
            let ran = run_whole(&plan);
            assert_eq!(cause(&ran, 6), (ErrorKind::Reset, expected.into()));
            assert_eq!((ran.outcome.totals.sent, ran.outcome.totals.repeated), (6, 0));
        }
    }
}

#[test]
fn cut_responses_and_responses_that_are_not_http_are_distinguished() {
    let within = "the server closed the connection during a response";
    let cases = [
        (Reply::Half, ErrorKind::Reset, within),
        (Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Le"), ErrorKind::Reset, within),
        (Reply::Close, ErrorKind::Reset, "the server closed the connection without a response"),
        (
            Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
            ErrorKind::Protocol,
            "its head is not HTTP/1: invalid content-length parsed",
        ),
        (
            Reply::Raw(b"220 mail.test ESMTP\r\n\r\n"),
            ErrorKind::Protocol,
            "its head is not HTTP/1: invalid HTTP version parsed",
        ),
        (
            Reply::Raw(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
            ErrorKind::Protocol,
            "it switches protocols unexpectedly",
        ),
    ];
    for (reply, kind, expected) in cases {
        let (_server, plan) = serve(WAYS[0], move |_| reply.clone());
        assert_eq!(cause(&run_whole(&plan), 1), (kind, expected.into()));
    }
}

#[test]
fn a_server_without_http2_breaks_the_protocol() {
    let server = Server::start(Speaks::Http1, None, |_| ok());
    let ran = run_whole(&plan(server.address, WAYS[2], Trust::Anything));
    assert_eq!(cause(&ran, 1), (ErrorKind::Protocol, "it speaks HTTP/1, expected HTTP/2".into()));
}

#[test]
fn a_get_whose_kept_connection_breaks_is_sent_once_more() {
    for way in WAYS {
        // Every second request of a connection finds it closed.
        let (server, mut plan) = serve(way, |asked| if asked.position == 1 { Reply::Close } else { ok() });
        plan.scenarios[0].model = iterations(1, 5);
        let ran = run_whole(&plan);
        assert_eq!(ran.ended(), (5, 0), "{way:?}: {:?}", ran.causes());
        assert_eq!((ran.outcome.totals.repeated, ran.outcome.phases.connect.count), (4, 5));
        assert_eq!((ran.outcome.totals.sent, server.asked().len()), (5, 9));
    }
}

#[test]
fn a_post_that_the_server_received_is_never_sent_twice_and_with_retry_never_nothing_is() {
    for way in WAYS {
        for (method, retry) in [("POST", Retry::Idempotent), ("GET", Retry::Never)] {
            let (server, mut plan) = serve(way, |asked| if asked.position == 1 { Reply::Close } else { ok() });
            plan.scenarios[0].model = iterations(1, 6);
            plan.retry = retry;
            request(&mut plan).method = method.into();
            let ran = run_whole(&plan);
            assert_eq!(ran.ended(), (3, 3), "{way:?} {method}: {:?}", ran.causes());
            assert_eq!((ran.outcome.totals.errors.reset, ran.outcome.totals.repeated), (3, 0));
            assert_eq!((ran.outcome.totals.sent, server.asked().len()), (6, 6));
        }
    }
}

#[test]
fn a_refused_stream_on_a_kept_connection_is_sent_once_more_whatever_the_method() {
    let turned_away = Reply::Reset(h2::Reason::REFUSED_STREAM);
    let (_server, mut plan) = serve(WAYS[1], move |asked| if asked.position == 1 { turned_away.clone() } else { ok() });
    plan.scenarios[0].model = iterations(1, 3);
    request(&mut plan).method = "POST".into();
    let ran = run_whole(&plan);
    assert_eq!((ran.ended(), ran.outcome.totals.repeated), ((3, 0), 2));
}

#[test]
fn a_server_that_says_goodbye_in_good_order_costs_no_request() {
    for way in &WAYS[1..] {
        let (server, mut plan) = serve(*way, |asked| if asked.position == 2 { Reply::LastResponse } else { ok() });
        plan.scenarios[0].model = iterations(2, 30);
        let ran = run_whole(&plan);
        assert_eq!(ran.ended(), (30, 0), "{:?}", ran.causes());
        assert!(server.asked().iter().all(|asked| asked.position <= 2));
    }
}

#[test]
fn no_response_in_time_is_a_timeout_and_the_connection_is_not_used_again() {
    std::thread::scope(|scope| {
        for way in WAYS {
            scope.spawn(move || time_out(way));
        }
    });
}

fn time_out(way: (Speaks, bool)) {
    let (server, mut plan) = serve(way, |asked| if asked.path() == "slow" { Reply::Silence } else { ok() });
    // Long enough for the first step on a busy machine.
    plan.timeout = Duration::from_secs(2);
    plan.scenarios[0].model = iterations(1, 2);
    plan.scenarios[0].flows[0].steps = vec![step("GET", "/x"), step("GET", "/slow")];
    let ran = run_whole(&plan);
    assert_eq!(ran.ended(), (2, 2));
    assert_eq!(cause(&ran, 2), (ErrorKind::Timeout, "no complete response in time".into()));
    let connections: BTreeSet<usize> = server.asked().iter().map(|asked| asked.connection).collect();
    assert_eq!((connections.len(), ran.outcome.totals.sent), (2, 4));
}

#[test]
fn a_handshake_that_takes_too_long_is_a_timeout() {
    let mut plan =
        plan(raw(|mut stream| drop(std::io::copy(&mut stream, &mut std::io::sink()))), WAYS[0], Trust::Anything);
    plan.timeout = Duration::from_millis(100);
    let ran = run_whole(&plan);
    assert_eq!(cause(&ran, 1), (ErrorKind::Timeout, "no complete response in time".into()));
    assert_eq!(ran.outcome.totals.sent, 0);
}

#[test]
fn a_target_that_dies_is_counted_as_refusing_and_used_again_when_it_returns() {
    let authority = Authority::new("own");
    let config = authority.server(NAME, Validity::Now, &[b"h2", b"http/1.1"]);
    for way in WAYS {
        let tls = || way.1.then(|| config.clone());
        let mut server = Some(Server::start(way.0, tls(), |_| ok()));
        let address = server.as_ref().unwrap().address;
        let mut plan = plan(address, way, Trust::Authorities(authority.pem()));
        die_and_return(&mut plan, |exists| {
            drop(server.take());
            server = exists.then(|| Server::start_at(address, way.0, tls(), |_| ok()));
        });
    }
}

#[test]
fn connections_end_in_good_order() {
    let (server, mut plan) = serve(WAYS[0], |_| ok());
    for connections in [Connections::KeepAlive, Connections::PerRequest] {
        plan.connections = connections;
        plan.scenarios[0].model = iterations(3, 3);
        assert_eq!(run_whole(&plan).ended(), (3, 0));
        assert_eq!([(); 3].map(|()| server.goodbye()), [Goodbye::InGoodOrder; 3]);
    }
}

#[test]
fn a_host_that_is_none_is_a_mistake_in_the_plan() {
    let mut plan = plan(([127, 0, 0, 1], 9).into(), WAYS[2], Trust::Anything);
    request(&mut plan).host = "a b".into();
    let (out, _batches) = sync_channel::<LoadBatch>(1);
    let error = run(&plan, Clock::new(), &AtomicBool::new(false), &out).unwrap_err();
    let expected = "load plan: scenario a: host: \"a b\", expected a name or an address, and a port if any";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_wish_to_stop_leaves_responses_behind() {
    for way in WAYS {
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let asked_for = stop.clone();
        let (_server, mut plan) = serve(way, move |_| {
            asked_for.store(true, Ordering::Relaxed);
            Reply::Silence
        });
        plan.scenarios[0].model = LoadModel::ConstantVus { vus: 2, duration: Duration::from_secs(3_600) };
        let (out, batches) = sync_channel::<LoadBatch>(1);
        let outcome = std::thread::scope(|scope| {
            scope.spawn(move || batches.into_iter().count());
            let outcome = run(&plan, Clock::new(), &stop, &out);
            drop(out);
            outcome.unwrap()
        });
        assert_eq!((outcome.totals.cut, outcome.totals.errors.total()), (2, 0));
    }
}

#[test]
fn a_response_with_many_headers_is_a_response() {
    for way in WAYS {
        let (_server, mut plan) = serve(way, |_| {
            let headers = (0..950).map(|at| ("X-A", if at == 949 { "last" } else { "1" }));
            Reply::Response(200, headers.collect(), "hello")
        });
        let last = Check::Header { name: "x-a".into(), value: Some("last".into()) };
        plan.scenarios[0].flows[0].steps[0].checks = vec![last];
        let ran = run_whole(&plan);
        assert_eq!(ran.ended(), (1, 0), "{way:?}: {:?}", ran.causes());
    }
}

#[test]
fn a_session_keeps_secure_cookies_and_what_it_extracts() {
    for way in WAYS {
        let (server, mut plan) = serve(way, |asked| match asked.path() {
            "login" => Reply::Response(
                200,
                vec![("Set-Cookie", "id=7; Secure; HttpOnly"), ("X-Next", "n1")],
                "{\"token\":\"t9\"}",
            ),
            "old/n1" => Reply::Response(302, vec![("Location", "/new")], "gone"),
            _ => Reply::Response(200, Vec::new(), "found it"),
        });
        plan.scenarios[0].cookies = Cookies::PerIteration;
        let extract = |variable, from| Extract { variable, name: format!("v{variable}"), from };
        let login = Step {
            extract: vec![extract(0, Place::Json("/token".into())), extract(1, Place::Header("x-next".into()))],
            ..step("GET", "/login")
        };
        let mut list = Step { redirects_max: 3, ..step("GET", "/old/$1") };
        list.name = "list".into();
        list.checks = vec![Check::BodyContains("found".into()), Check::Status(vec![(200, 200)])];
        list.request.headers.push(("Authorization".into(), template("Bearer $0")));
        plan.scenarios[0].flows[0].steps = vec![login, list];
        plan.scenarios[0].model = iterations(2, 6);
        let ran = run_whole(&plan);
        assert_eq!((ran.ended(), ran.outcome.totals.sent), ((12, 0), 12), "{way:?}: {:?}", ran.causes());
        let asked = server.asked();
        assert_eq!((asked.len(), ran.outcome.phases.connect.count), (18, 2));
        for asked in asked.iter().filter(|asked| asked.path() != "login") {
            // A cookie that is for TLS only is not kept without it.
            assert_eq!(asked.header("cookie"), way.1.then_some("id=7"), "{way:?}");
            assert_eq!(asked.header("authorization"), Some("Bearer t9"));
        }
    }
}

#[test]
fn a_check_that_does_not_hold_fails_the_step() {
    let (_server, mut plan) = serve(WAYS[1], |_| ok());
    plan.scenarios[0].flows[0].steps[0].checks = vec![Check::BodyContains("goodbye".into())];
    assert_eq!(cause(&run_whole(&plan), 1).0, ErrorKind::Check);
}

#[test]
fn users_connect_from_the_addresses_of_the_plan() {
    for way in WAYS {
        let (server, mut plan) = serve(way, |_| ok());
        let addresses: Vec<IpAddr> = (2..5).map(|last| IpAddr::from([127, 0, 0, last])).collect();
        plan.client_addresses = addresses.clone();
        plan.scenarios[0].model =
            LoadModel::Iterations { vus: 6, iterations: Iterations::PerVu(2), max_duration: None };
        plan.threads = 2;
        let ran = run_whole(&plan);
        assert_eq!((ran.ended(), ran.outcome.client_addresses), ((12, 0), 3));
        for address in addresses {
            assert_eq!(server.asked().iter().filter(|asked| asked.peer == address).count(), 4, "{address}");
        }
    }
}

#[test]
fn every_arrival_of_an_open_model_begins_or_is_dropped() {
    for way in WAYS {
        let (server, mut plan) = serve(way, |_| ok());
        plan.threads = 2;
        let duration = Duration::from_millis(500);
        plan.scenarios[0].model =
            LoadModel::ConstantArrivalRate { rate: 200.0, duration, vus_max: 8, arrivals: Arrivals::Uniform };
        let ran = run_whole(&plan);
        let arrivals = ran.outcome.arrivals.unwrap();
        assert_eq!(arrivals.due, 100);
        assert_eq!((ran.ended().0 + arrivals.dropped, ran.ended().1), (100, 0), "{:?}", ran.causes());
        assert_eq!(server.asked().len() as u64, ran.ended().0);
    }
}
