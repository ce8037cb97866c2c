//! `narrows load` against servers on loopback: what it sends, what it prints, and how it ends.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Bench, text};
use crate::server::{Server, hello, http2, response};
use serde_json::Value;

/// Runs `narrows load` with these arguments, the first of them the URL.
fn load(bench: &Bench, url: &str, arguments: &str) -> Output {
    let words = ["load", url].into_iter().chain(arguments.split_whitespace());
    bench.run(&words.collect::<Vec<_>>())
}

fn said(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

fn exits(output: &Output, code: i32) -> String {
    let said = said(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// The number that follows a word of the summary.
fn number(said: &str, word: &str) -> usize {
    let rest = said.split_once(word).unwrap_or_else(|| panic!("no {word} in {said}")).1;
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

#[test]
fn an_open_load_begins_exactly_as_many_requests_as_asked_for() {
    /// Loads that are tried: a machine that stands still drops requests that it cannot begin.
    const LOADS_MAX: usize = 5;
    let (bench, mut left) = (Bench::new(""), LOADS_MAX);
    loop {
        let server = Server::plain(hello);
        let output = load(&bench, &server.url("/"), "--rate 400 -n 120 -c 5 --max-connections 20");
        let said = exits(&output, 0);
        assert!(said.contains("400/s in all, evenly spaced, for 300 ms, over at most 20 connections"), "{said}");
        assert!(said.contains("; -c is of no effect with --rate"), "{said}");
        assert_eq!(number(&said, "Due:"), 120, "{said}");
        left -= 1;
        let dropped = number(&said, "Dropped:");
        assert_eq!(server.asked().len(), 120 - dropped, "{said}");
        if dropped == 0 || left == 0 {
            return assert_eq!(said.contains(" never began"), dropped > 0, "{said}");
        }
    }
}

#[test]
fn arrivals_at_random_are_sent_for_the_time() {
    let (bench, server) = (Bench::new(""), Server::plain(hello));
    let said = exits(&load(&bench, &server.url("/"), "--rate 200/s -z 1s --arrivals poisson"), 0);
    assert!(said.contains("at random, for 1.00 s, over at most 1,000 connections"), "{said}");
    let due = number(&said, "Due:");
    assert!((100..300).contains(&due), "{due} of about 200, whose standard deviation is 14");
    assert_eq!(server.asked().len(), due - number(&said, "Dropped:"), "{said}");
}

#[test]
fn the_warm_up_is_sent_and_does_not_count() {
    let (bench, server) = (Bench::new(""), Server::plain(hello));
    let output = load(&bench, &server.url("/"), "-c 2 -n 40 -q 20 --warmup 1s --json");
    exits(&output, 0);
    let counted = json(&output)["requests"][0]["succeeded"].as_u64().unwrap();
    // A request under way at the end of the warm-up may get its response after it.
    assert!((40..=42).contains(&counted), "{counted}");
    assert!(server.asked().len() as u64 > counted, "{} requests", server.asked().len());
}

#[test]
fn redirects_are_followed_unless_told_otherwise() {
    let bench = Bench::new("");
    let server = Server::plain(|asked| match asked.path() {
        "/old" => response("302 Found", "Location: /new\r\n", ""),
        "/loop" => response("302 Found", "Location: /loop\r\n", ""),
        _ => response("200 OK", "", "hello"),
    });
    let followed = exits(&load(&bench, &server.url("/old"), "-n 4 -c 2"), 0);
    assert!(followed.contains("[200] 4 responses"), "{followed}");
    assert_eq!(server.asked().iter().filter(|asked| asked.path() == "/new").count(), 4);
    let left = exits(&load(&bench, &server.url("/old"), "-n 4 -c 2 -disable-redirects"), 0);
    assert!(left.contains("[302]"), "{left}");
    let endless = exits(&load(&bench, &server.url("/loop"), "-n 2 -c 1"), 1);
    assert!(endless.contains("more than 10 redirects"), "{endless}");
}

#[test]
fn gzip_is_asked_for_unless_told_otherwise() {
    let (bench, server) = (Bench::new(""), Server::plain(hello));
    exits(&load(&bench, &server.url("/packed"), "-n 1 -c 1"), 0);
    exits(&load(&bench, &server.url("/plain"), "-n 1 -c 1 -disable-compression"), 0);
    let asks = |path: &str| {
        let asked = server.asked().into_iter().find(|asked| asked.path() == path).unwrap();
        asked.headers.contains(&"accept-encoding: gzip".to_owned())
    };
    assert!(asks("/packed") && !asks("/plain"));
}

#[test]
fn connections_come_from_the_addresses_that_are_given() {
    let (bench, server) = (Bench::new(""), Server::plain(hello));
    let said =
        exits(&load(&bench, &server.url("/"), "-n 80 -c 4 -q 20 --from-address 127.0.0.7,127.0.0.9-127.0.0.10"), 0);
    let from: BTreeSet<IpAddr> = server.asked().iter().map(|asked| asked.from).collect();
    let expected = [7, 9, 10].map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)));
    assert_eq!(from, BTreeSet::from(expected));
    assert!(said.contains("3 addresses"), "{said}");
}

#[test]
fn the_exit_code_is_what_was_asked_for() {
    let bench = Bench::new("");
    let server = Server::plain(|asked| match asked.path() {
        "/missing" => response("404 Not Found", "", "no"),
        _ => response("200 OK", "", "hello"),
    });
    let cases = [
        ("/", vec!["--objective", "p95 < 1h", "--objective", "error_rate == 0"], 0, "kept     p95 < 1h: "),
        ("/", vec!["--objective", "rate >= 1000000000/s"], 1, "MISSED   rate >= 1000000000/s: "),
        ("/", vec!["--check-status", "201,204-299"], 1, "[200] 10 responses"),
        ("/missing", vec![], 1, "[404]"),
        ("/missing", vec!["--check-status", "404"], 0, "[404]"),
        ("/missing", vec!["--objective", "p95 < 1h"], 1, "UNKNOWN  p95 < 1h: nothing measured"),
    ];
    for (path, arguments, code, expected) in cases {
        let url = server.url(path);
        let words: Vec<&str> = ["load", &url, "-n", "10", "-c", "2"].into_iter().chain(arguments.clone()).collect();
        let said = exits(&bench.run(&words), code);
        assert!(said.contains("Validity: ") && said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn requests_that_are_sent_again_are_counted_and_a_post_is_not_among_them() {
    let bench = Bench::new("");
    let cases = [
        ("-m GET", 0, (6, 5, 0, 11)),
        ("-m PUT", 0, (6, 5, 0, 11)),
        ("-m POST -d order=1", 0, (3, 0, 3, 6)),
        ("-m GET --retry never", 0, (3, 0, 3, 6)),
    ];
    for (arguments, code, expected) in cases {
        let received = AtomicUsize::new(0);
        // The server receives every other request and closes its connection without a response.
        let server = Server::plain(move |_| match received.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => response("200 OK", "", "hello"),
            _ => String::new(),
        });
        let output = load(&bench, &server.url("/"), &format!("-n 6 -c 1 {arguments} --json"));
        exits(&output, code);
        let told = json(&output);
        let count =
            |pointer: &str| told.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}"));
        let counts = (
            count("/requests/0/succeeded"),
            count("/requests/0/repeated"),
            count("/requests/0/errors/reset"),
            server.asked().len(),
        );
        assert_eq!(counts, expected, "{arguments}: {told:#}");
        assert_eq!((count("/repeated"), count("/requests/0/sent")), (expected.1, 6));
    }
    let once = AtomicUsize::new(0);
    let server = Server::plain(move |_| match once.fetch_add(1, Ordering::Relaxed) {
        1 => String::new(),
        _ => response("200 OK", "", "hello"),
    });
    let said = exits(&load(&bench, &server.url("/"), "-n 3 -c 1"), 0);
    assert!(said.contains("  Repeated:     1 (sent again, because a kept connection broke"), "{said}");
}

#[test]
fn responses_are_waited_for_as_long_as_the_drain_says() {
    let bench = Bench::new("");
    let server = Server::plain(|_| {
        std::thread::sleep(Duration::from_millis(1_500));
        response("200 OK", "", "late")
    });
    let said = exits(&load(&bench, &server.url("/"), "-z 100ms -c 1"), 0);
    assert!(said.contains("[200] 1 responses"), "{said}");
    let said = exits(&load(&bench, &server.url("/"), "-z 100ms -c 1 --drain 10ms"), 1);
    assert!(said.contains("no complete response by the end of the drain"), "{said}");
}

#[test]
fn a_lost_objective_ends_the_load_if_asked_for() {
    let bench = Bench::new("");
    let server = Server::plain(|_| response("500 Oh", "", ""));
    let words = ["load", &server.url("/"), "-z", "10m", "-c", "1", "-q", "100"];
    let goals = ["--objective", "error_rate == 0", "--abort"];
    let said = exits(&bench.run(&[&words[..], &goals].concat()), 1);
    assert!(said.contains("`error_rate == 0` can no longer be met"), "{said}");
    assert!(said.contains("MISSED   error_rate == 0: 100 %"), "{said}");
    let output = bench.run(&[&words[..], &goals, &["--json"]].concat());
    exits(&output, 1);
    let told = json(&output);
    assert_eq!(told["stopped"], "`error_rate == 0` can no longer be met", "{told:#}");
    assert_eq!((&told["objectives"][0]["kept"], &told["validity"]["verdict"]), (&"no".into(), &"valid".into()));
}

#[test]
fn invalid_numbers_fail_only_if_asked_for() {
    let bench = Bench::new("");
    // The load wants 1,000 requests per second from one connection, which can carry 50.
    let server = Server::plain(|_| {
        std::thread::sleep(Duration::from_millis(20));
        response("200 OK", "", "late")
    });
    let arguments = "--rate 1000 -z 1s --max-connections 1";
    let said = exits(&load(&bench, &server.url("/"), arguments), 0);
    assert!(said.contains("Validity: INVALID."), "{said}");
    exits(&load(&bench, &server.url("/"), &format!("{arguments} --strict")), 1);
}

#[test]
fn what_the_generator_measured_of_itself_is_in_the_json() {
    let bench = Bench::new("");
    let server = Server::plain(|_| {
        std::thread::sleep(Duration::from_millis(20));
        response("200 OK", "", "late")
    });
    let overload = "--rate 1000 -z 1s --max-connections 2 --from-address 127.0.0.7,127.0.0.9 --json";
    let output = load(&bench, &server.url("/"), overload);
    exits(&output, 0);
    let told = json(&output);
    assert_eq!(told["validity"]["verdict"], "invalid", "{told:#}");
    assert!(told["validity"]["reasons"][0].as_str().unwrap().contains("never began"), "{told:#}");
    let number = |pointer: &str| told.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}"));
    let (due, dropped) = (number("/arrivals/due"), number("/arrivals/dropped"));
    assert_eq!(due, 1_000.0);
    assert!(dropped > 0.0 && number("/arrivals/late") > 0.0, "{told:#}");
    assert!(number("/arrivals/achieved_per_second") < number("/arrivals/offered_per_second"), "{told:#}");
    assert_eq!(number("/client_addresses"), 2.0);
    assert!(number("/generator/lateness/p99_ns") >= number("/generator/lateness/p50_ns"), "{told:#}");
    assert!(number("/generator/lateness/max_ns") > 0.0 && number("/requests/0/lateness/max_ns") > 0.0, "{told:#}");
    let threads = told["generator"]["threads"].as_array().unwrap();
    let cpu: f64 = threads.iter().map(|thread| thread["cpu_seconds"].as_f64().unwrap()).sum();
    assert!(cpu > 0.0 && (cpu - number("/generator/cpu_seconds")).abs() < 1e-9, "{told:#}");
    assert!((0.0..=1.0).contains(&number("/generator/busiest_thread")), "{told:#}");
    exits(&load(&bench, &server.url("/"), &format!("{overload} --strict")), 1);
}

#[test]
fn results_go_to_files_and_agree() {
    let (bench, server) = (Bench::new(""), Server::plain(hello));
    let files = "--csv s.csv --csv-requests r.csv --hdr h.txt --openmetrics o.txt --json";
    let output = load(&bench, &server.url("/"), &format!("-n 300 -c 3 {files}"));
    exits(&output, 0);
    let told = json(&output);
    assert_eq!(told["requests"][0]["succeeded"], 300);
    assert_eq!(told["statuses"]["200"], 300);
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
    let seconds = read("s.csv");
    let column = seconds.lines().next().unwrap().split(',').position(|name| name == "succeeded").unwrap();
    let cell = |line: &str| line.split(',').nth(column).unwrap().parse::<u64>().unwrap();
    assert_eq!(seconds.lines().skip(1).map(cell).sum::<u64>(), 300);
    assert!(seconds.lines().skip(1).all(|line| !line.contains("succeeded")), "one header: {seconds}");
    let requests = read("r.csv");
    assert!((2..=301).contains(&requests.lines().count()), "{requests}");
    assert!(read("h.txt").contains("Tag=load,"), "{}", read("h.txt"));
    assert!(read("o.txt").contains("result=\"success\"} 300\n"), "{}", read("o.txt"));
    assert!(read("o.txt").ends_with("# EOF\n"), "{}", read("o.txt"));
}

#[test]
fn a_file_that_cannot_be_written_is_reported_before_anything_is_sent() {
    let (bench, server) = (Bench::new(""), Server::plain(hello));
    for flag in ["--csv", "--csv-requests", "--hdr", "--openmetrics"] {
        let said = exits(&load(&bench, &server.url("/"), &format!("-n 1 -c 1 {flag} no/such/folder")), 2);
        assert!(said.contains("error: cannot write no/such/folder: "), "{said}");
    }
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn certificates_are_verified_as_told() {
    let (bench, server) = (Bench::new(""), Server::secure(hello));
    std::fs::write(bench.path("own.pem"), &server.pem).unwrap();
    let url = format!("https://localhost:{}/", server.address.port());
    let strange = exits(&load(&bench, &url, "-n 4 -c 2 --cacert other.pem"), 2);
    assert!(strange.contains("error: cannot read the authorities from other.pem: "), "{strange}");
    for trust in ["--cacert own.pem", "-k"] {
        let said = exits(&load(&bench, &url, &format!("-n 4 -c 2 {trust}")), 0);
        assert!(said.contains("[200]"), "{said}");
    }
    std::fs::write(bench.path("other.pem"), Server::secure(hello).pem).unwrap();
    let refused = exits(&load(&bench, &url, "-n 4 -c 2 --cacert other.pem"), 1);
    assert!(refused.contains("TLS: certificate"), "{refused}");
    std::fs::write(bench.path("none.pem"), "nothing").unwrap();
    let none = exits(&load(&bench, &url, "-n 4 -c 2 --cacert none.pem"), 2);
    assert!(none.contains("it has no certificate"), "{none}");
}

#[test]
fn http2_is_spoken_by_prior_knowledge() {
    let bench = Bench::new("");
    for flag in ["--http2", "-h2"] {
        let said = exits(&load(&bench, &format!("http://{}/", http2()), &format!("-n 20 -c 2 {flag}")), 0);
        assert!(said.contains("[200]"), "{said}");
    }
}

#[test]
fn servers_that_speak_something_else_are_counted_as_what_they_are() {
    let (bench, server) = (Bench::new(""), Server::plain(hello));
    let port = server.address.port();
    let said = exits(&load(&bench, &format!("https://127.0.0.1:{port}/"), "-n 2 -c 1 -t 5 -k"), 1);
    assert!(said.contains("Error distribution:\n  [2] "), "{said}");
    let secure = Server::secure(hello).address;
    let said = exits(&load(&bench, &format!("http://{secure}/"), "-n 2 -c 1 -t 5"), 1);
    assert!(said.contains("Error distribution:"), "{said}");
}

#[test]
fn a_name_without_an_address_is_one_error() {
    let said = exits(&load(&Bench::new(""), "http://a..b/", "-n 1 -c 1"), 2);
    assert!(said.starts_with("error: cannot find the address of `a..b`: "), "{said}");
}

#[test]
fn flags_that_exclude_each_other_are_refused() {
    let bench = Bench::new("");
    for arguments in ["--rate 5 -q 5", "--rate 0", "--arrivals poisson", "--abort", "-k --cacert a", "--objective fast"]
    {
        exits(&load(&bench, "http://127.0.0.1:1/", arguments), 2);
    }
}
