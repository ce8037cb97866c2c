//! OTLP over HTTP/1.1.

use super::*;

#[test]
fn spans_are_accepted_plain_and_gzipped() {
    let store = FakeStore::returning(Ok(KeptCounts { kept: 3, ..KeptCounts::default() }));
    let receiver = start(Arc::clone(&store));
    for (headers, body) in [(PROTOBUF, traces(3)), (GZIPPED, gzip(&traces(3)))] {
        let response = post(&receiver, headers, &body);
        assert_eq!((response.status, response.body.len()), (200, 0));
        assert!(response.head.contains("content-type: application/x-protobuf"));
    }
    let stats = receiver.stop();
    assert_eq!(stats, ReceiverStats { batches: 2, spans: 6, ..ReceiverStats::default() });
    assert_eq!(store.spans.lock().unwrap().len(), 6);
}

#[test]
fn an_empty_request_of_each_signal_is_accepted() {
    let receiver = start(Arc::default());
    for path in ["/v1/traces", "/v1/metrics", "/v1/logs"] {
        let response = receive(send(receiver.local_addr(), &format!("POST {path}"), PROTOBUF, &[]));
        assert_eq!((response.status, response.body.len()), (200, 0), "{path}");
    }
    assert_eq!(receiver.stats().batches, 3);
}

#[test]
fn accepted_is_said_only_after_the_receipt() {
    let (reached, has_reached) = mpsc::sync_channel(1);
    let store = Arc::new(FakeStore { reached: Some(reached), ..FakeStore::default() });
    let receiver = start(Arc::clone(&store));
    let stream = send(receiver.local_addr(), "POST /v1/traces", PROTOBUF, &traces(1));
    has_reached.recv().unwrap();
    stream.set_nonblocking(true).unwrap();
    assert_eq!(stream.peek(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
    store.held_back.lock().unwrap().remove(0).send(Ok(KeptCounts { kept: 1, ..KeptCounts::default() })).unwrap();
    assert_eq!(receive(stream).status, 200);
}

#[test]
fn what_the_store_says_reaches_the_sender() {
    let receiver = start(FakeStore::returning(Err(StoreError::Busy)));
    let response = post(&receiver, PROTOBUF, &traces(1));
    assert_eq!((response.status, response.message().as_str()), (503, "the run file's queue is full"));
    assert!(response.head.contains("retry-after: 1"));
    assert_eq!(receiver.stats().unserved_requests, 1);

    let receiver = start(FakeStore::returning(Err(StoreError::Broken("disk full".to_owned()))));
    let response = post(&receiver, PROTOBUF, &traces(1));
    assert_eq!((response.status, response.message().as_str()), (500, "the run file cannot be written: disk full"));

    let receiver = start(FakeStore::returning(Ok(KeptCounts { kept: 1, over_limit: 2, ..KeptCounts::default() })));
    let response = post(&receiver, PROTOBUF, &traces(3));
    assert_eq!((response.status, response.partial()), (200, (2, "2 over the storage limit".to_owned())));
    assert_eq!(receiver.stats().refused, 2);
}

#[test]
fn malformed_spans_are_said_and_the_others_kept() {
    let receiver = start(FakeStore::returning(Ok(KeptCounts { kept: 1, ..KeptCounts::default() })));
    let (rejected, why) = post(&receiver, PROTOBUF, &request_of(vec![otlp::Span::default()])).partial();
    assert_eq!(rejected, 1);
    assert!(why.contains("trace id"), "{why}");
    assert_eq!(receiver.stats().malformed_records, 1);
}

#[test]
fn what_is_not_understood_is_refused_with_a_reason() {
    let receiver = start(FakeStore::returning(Ok(KeptCounts::default())));
    let bomb = gzip(&vec![0; body::INFLATED_BYTES_MAX + 1]);
    let cases: [(&str, &[u8], u16, &str); 6] = [
        (PROTOBUF, &[0x0a, 0xff], 400, "request: a number is cut short, at or after byte 2"),
        (GZIPPED, b"not gzip at all", 400, "body is not whole gzip: invalid gzip header"),
        (GZIPPED, &bomb, 413, "body inflates to more than 67108864 bytes"),
        (PROTOBUF, &vec![0; body::COMPRESSED_BYTES_MAX + 1], 413, "body is larger than 16777216 bytes"),
        ("content-type: text/plain\r\n", b"", 415, http::EXPECTED),
        (
            "content-type: application/x-protobuf\r\ncontent-encoding: br\r\n",
            b"",
            415,
            "content encoding \"br\" is unknown, expected gzip or none",
        ),
    ];
    for (headers, body, status, message) in cases {
        let response = post(&receiver, headers, body);
        assert_eq!((response.status, response.message().as_str()), (status, message));
    }
    assert_eq!(receiver.stats().malformed_requests, 6);
    assert_eq!(receive(send(receiver.local_addr(), "POST /v1/profiles", PROTOBUF, b"")).status, 404);
    assert_eq!(receive(send(receiver.local_addr(), "GET /v1/traces", "", b"")).status, 405);
}

#[test]
fn requests_in_flight_are_bounded() {
    let (reached, has_reached) = mpsc::sync_channel(export::IN_FLIGHT_MAX);
    let store = Arc::new(FakeStore { reached: Some(reached), ..FakeStore::default() });
    let receiver = start(Arc::clone(&store));
    let request = || send(receiver.local_addr(), "POST /v1/traces", PROTOBUF, &traces(1));
    let waiting: Vec<TcpStream> = (0..export::IN_FLIGHT_MAX).map(|_| request()).collect();
    waiting.iter().for_each(|_| has_reached.recv().unwrap());
    assert_eq!(receive(request()).status, 503);
    for sender in store.held_back.lock().unwrap().drain(..) {
        sender.send(Ok(KeptCounts::default())).unwrap();
    }
    assert!(waiting.into_iter().all(|stream| receive(stream).status == 200));
}

#[test]
fn stopping_lets_go_of_a_request_that_waits_for_the_store() {
    let (reached, has_reached) = mpsc::sync_channel(1);
    let store = Arc::new(FakeStore { reached: Some(reached), ..FakeStore::default() });
    let receiver = start(Arc::clone(&store));
    let mut waiting = send(receiver.local_addr(), "POST /v1/traces", PROTOBUF, &traces(1));
    has_reached.recv().unwrap();
    assert_eq!(receiver.stop().batches, 1);
    let mut response = Vec::new();
    // Closed or reset, as the kernel sees fit, but without a response, and not left waiting.
    let _ = waiting.read_to_end(&mut response);
    assert!(response.is_empty());
}

#[test]
fn a_taken_address_is_an_error_that_names_it() {
    let receiver = start(Arc::default());
    let error = Receiver::start(&[receiver.local_addr()], Arc::<FakeStore>::default(), Weights::new()).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen for OTLP on {}", receiver.local_addr()));
}

#[test]
fn json_requests_get_json_responses() {
    let store = FakeStore::returning(Ok(KeptCounts { kept: 1, ..KeptCounts::default() }));
    let receiver = start(Arc::clone(&store));
    let span = r#"{"traceId":"01010101010101010101010101010101","spanId":"0202020202020202","startTimeUnixNano":"1"}"#;
    let request = |span: &str| format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{span}]}}]}}]}}"#);
    let said = |response: &HttpResponse| String::from_utf8(response.body.clone()).unwrap();

    let kept = post(&receiver, JSON, request(span).as_bytes());
    assert_eq!((kept.status, said(&kept).as_str()), (200, "{}"));
    assert!(kept.head.contains("content-type: application/json"));
    let charset = "content-type: application/json; charset=utf-8\r\ncontent-encoding: gzip\r\n";
    assert_eq!(post(&receiver, charset, &gzip(request(span).as_bytes())).status, 200);
    assert_eq!(store.spans.lock().unwrap().len(), 2);

    let in_part = post(&receiver, JSON, request("{}").as_bytes());
    let expected = r#"{"partialSuccess":{"errorMessage":"1 malformed, the first: span \"\" of unknown_service: its trace id is not sixteen bytes, or all zero","rejectedSpans":"1"}}"#;
    assert_eq!((in_part.status, said(&in_part).as_str()), (200, expected));

    let refused = post(&receiver, JSON, b"{");
    assert_eq!(refused.status, 400);
    assert_eq!(said(&refused), r#"{"code":3,"message":"request: EOF while parsing an object at line 1 column 1"}"#);
    assert_eq!(receiver.stats().malformed_requests, 1);
}

#[test]
fn each_signal_names_what_it_rejected_in_json() {
    let nan = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","gauge":{"dataPoints":[{"asDouble":"NaN"}]}}]}]}]}"#;
    let receiver = start(FakeStore::returning(Ok(KeptCounts { over_limit: 1, ..KeptCounts::default() })));
    let response = receive(send(receiver.local_addr(), "POST /v1/metrics", JSON, nan.as_bytes()));
    assert!(String::from_utf8(response.body).unwrap().contains(r#""rejectedDataPoints":"1""#));
    let line = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"}}]}]}]}"#;
    let response = receive(send(receiver.local_addr(), "POST /v1/logs", JSON, line.as_bytes()));
    assert!(String::from_utf8(response.body).unwrap().contains(r#""rejectedLogRecords":"1""#));
}

#[test]
fn several_addresses_serve_the_same() {
    let any = "127.0.0.1:0".parse().unwrap();
    let receiver =
        Receiver::start(&[any, any], FakeStore::returning(Ok(KeptCounts::default())), Weights::new()).unwrap();
    let [first, second] = receiver.local_addrs() else { panic!("{:?}", receiver.local_addrs()) };
    assert_ne!(first, second);
    assert_eq!(receiver.local_addr(), *first);
    for address in [*first, *second] {
        assert_eq!(receive(send(address, "POST /v1/traces", PROTOBUF, &traces(1))).status, 200);
    }
    assert_eq!(receiver.stop().spans, 2);
}

#[test]
fn without_an_address_there_is_no_receiver() {
    let error = Receiver::start(&[], Arc::<FakeStore>::default(), Weights::new()).unwrap_err();
    assert_eq!(error.to_string(), "cannot receive OTLP: no address to listen on was given");
}
