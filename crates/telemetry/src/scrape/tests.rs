//! The scraper against small servers on loopback, and any bytes against the reader of pages.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;

use narrows_model::series::{LogLine, Point, SeriesKey};
use narrows_model::trace::Span;
use proptest::prelude::*;

use super::*;
use crate::Receipt;

/// Tells of every batch of points.
struct PointChannel(mpsc::SyncSender<Vec<(SeriesKey, Point)>>);

impl Store for PointChannel {
    fn spans(&self, _: Vec<Span>) -> Receipt {
        unreachable!("only points are scraped")
    }
    fn points(&self, points: Vec<(SeriesKey, Point)>) -> Receipt {
        let (tell, receipt) = tokio::sync::oneshot::channel();
        let _ = tell.send(Ok(KeptCounts { kept: points.len() as u64, ..KeptCounts::default() }));
        // The test may have seen enough.
        let _ = self.0.try_send(points);
        receipt
    }
    fn logs(&self, _: Vec<LogLine>) -> Receipt {
        unreachable!("only points are scraped")
    }
}

/// Responds to every request on every connection with the next of these, and the last one from then on.
fn server(responses: Vec<String>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let responses = Arc::new(Mutex::new(responses));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let responses = Arc::clone(&responses);
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                while stream.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                    if line.trim().is_empty() {
                        let mut responses = responses.lock().unwrap();
                        let response = if responses.len() > 1 { responses.remove(0) } else { responses[0].clone() };
                        if stream.get_mut().write_all(response.as_bytes()).is_err() {
                            return;
                        }
                    }
                    line.clear();
                }
            });
        }
    });
    address
}

fn ok(kind: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint::parse(&format!("web=http://{address}/metrics")).unwrap()
}

type Batches = mpsc::Receiver<Vec<(SeriesKey, Point)>>;

fn start(endpoints: Vec<Endpoint>) -> Result<(Scraper, Batches), Error> {
    let (tell, told) = mpsc::sync_channel(16);
    Ok((Scraper::start(endpoints, INTERVAL_MIN, Arc::new(PointChannel(tell)))?, told))
}

#[test]
fn pages_become_points_again_and_again_and_failures_are_counted() {
    let broken = "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n".to_owned();
    let first = ok("text/plain; version=0.0.4", "a 1\nb 2\nc\n");
    let last = ok("application/openmetrics-text; version=1.0.0", "a 3\n# EOF\n");
    let address = server(vec![first.clone(), first, broken, last]);
    let (scraper, told) = start(vec![endpoint(address)]).unwrap();
    let names = |points: &[(SeriesKey, Point)]| -> Vec<(String, String, f64)> {
        points.iter().map(|(key, point)| (key.service.clone(), key.name.clone(), point.value)).collect()
    };
    let of = |name: &str, value| ("web".to_owned(), name.to_owned(), value);
    assert_eq!(names(&told.recv().unwrap()), [of("a", 1.0), of("b", 2.0)]);
    assert_eq!(names(&told.recv().unwrap()), [of("a", 3.0)]);
    let stats = &scraper.stop()[0];
    assert!(stats.pages >= 2 && stats.points > stats.pages, "{stats:?}");
    assert_eq!((stats.failures, stats.malformed), (1, 1));
    assert_eq!(stats.failure.as_deref(), Some("it returned 500 Internal Server Error"));
    assert_eq!(stats.complaint.as_deref(), Some("line 3: it has no value"));
}

#[test]
fn series_of_others_on_a_page_are_left_out() {
    let page =
        ok("text/plain", "cores 2\ncpu{namespace=\"shop\"} 1\ncpu{namespace=\"other\"} 1\ncpu{namespace=\"\"} 1\n");
    let only = Some(("namespace".to_owned(), "shop".to_owned()));
    let (scraper, told) = start(vec![Endpoint { only, ..endpoint(server(vec![page.clone(), page])) }]).unwrap();
    let kept: Vec<String> = told.recv().unwrap().into_iter().map(|(key, _)| key.name).collect();
    assert_eq!(kept, ["cores", "cpu"]);
    assert_eq!(scraper.stop()[0].malformed, 0);
}

#[test]
fn an_endpoint_without_metrics_is_said_before_anything_starts() {
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endless = "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n".to_owned() + &"x".repeat(64);
    let cases = [
        (dead, "cannot connect"),
        (server(vec![ok("text/html; charset=utf-8", "<html></html>")]), "it returned text/html"),
        (server(vec![ok("text/plain", "<html></html>")]), "line 1: it has no name"),
        (server(vec!["HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n".to_owned()]), "it returned 404"),
        (server(vec!["SSH-2.0-OpenSSH_9.2\r\n\r\n".to_owned()]), "the connection broke"),
        (server(vec![endless]), "larger than"),
    ];
    for (address, expected) in cases {
        let error = start(vec![endpoint(address)]).err().unwrap().to_string();
        assert!(error.contains(expected) && error.contains(&address.to_string()), "{expected}: {error}");
    }
}

#[test]
fn bounds_are_said() {
    let address = server(vec![ok("text/plain", "a 1\n")]);
    let many = vec![endpoint(address); ENDPOINTS_MAX + 1];
    assert!(matches!(start(many), Err(Error::TooManyEndpoints(_))));
    let (tell, _told) = mpsc::sync_channel(1);
    let often = Scraper::start(vec![endpoint(address)], Duration::from_millis(10), Arc::new(PointChannel(tell)));
    assert!(matches!(often, Err(Error::IntervalTooShort(_))));
}

#[test]
fn an_endpoint_may_have_a_name() {
    let parsed = |text| Endpoint::parse(text).map(|endpoint| (endpoint.service, endpoint.url.to_string()));
    let cases = [
        ("http://127.0.0.1:9100/metrics", "127.0.0.1:9100", "http://127.0.0.1:9100/metrics"),
        ("web=http://127.0.0.1:9100/metrics", "web", "http://127.0.0.1:9100/metrics"),
        ("http://127.0.0.1:9100/probe?target=a", "127.0.0.1:9100", "http://127.0.0.1:9100/probe?target=a"),
        ("a=http://b/?c=d", "a", "http://b/?c=d"),
    ];
    for (text, service, url) in cases {
        assert_eq!(parsed(text), Ok((service.to_owned(), url.to_owned())), "{text}");
    }
    assert!(parsed("web=").is_err() && parsed("=http://a/").is_err() && parsed("web").is_err());
}

const VALID: &str = "# HELP a_seconds Time.\n# TYPE a_seconds histogram\n# UNIT a_seconds seconds\n\
    a_seconds_bucket{le=\"0.1\",path=\"/\\\"x\\\"\"} 3 1395066363000\na_seconds_sum 1.5\na_seconds_count 3\n\
    {\"b.c\",d=\"e\"} 2 1520879607.789 # {t=\"x\"} 0.6\n# EOF\n";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_damage_to_a_page_costs_lines_and_nothing_else(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3usize), 0..8),
        openmetrics in any::<bool>(),
    ) {
        let mut bytes = VALID.as_bytes().to_vec();
        for (index, byte, how) in cuts {
            if bytes.is_empty() {
                break;
            }
            let at = index.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at),
            }
        }
        let format = if openmetrics { page::Format::OpenMetrics } else { page::Format::Text };
        let page = page::read(&bytes, format, "web", 1);
        let lines = bytes.split(|byte| *byte == b'\n').count();
        prop_assert!(page.points.len() + page.malformed as usize <= lines);
        prop_assert_eq!(page.complaint.is_some(), page.malformed > 0);
        prop_assert!(page.points.iter().all(|(key, point)| point.value.is_finite() && !key.name.is_empty()));
    }
}
