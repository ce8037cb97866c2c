//! Addresses whose senders have to show a token.

use super::over_grpc::{call, framed};
use super::*;

const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const TOKEN: &str = "a1b2-c3d4";

#[test]
fn requests_without_the_token_are_refused_and_counted() {
    let store = FakeStore::returning(Ok(KeptCounts::default()));
    let token = Token::parse(TOKEN).unwrap();
    // All addresses are listened on, and loopback reaches that too.
    let guarded = [("0.0.0.0:0".parse().unwrap(), Some(token)), ("127.0.0.1:0".parse().unwrap(), None)];
    let receiver = Receiver::start_guarded(&guarded, Arc::clone(&store) as Arc<dyn Store>, Weights::new()).unwrap();
    let at = |index: usize| SocketAddr::from(([127, 0, 0, 1], receiver.local_addrs()[index].port()));
    let over_http = |headers: &str| receive(send(at(0), "POST /v1/traces", headers, &traces(1)));
    let over_grpc = |value| call(at(0), TRACES, &[("authorization", value)], framed(0, &traces(1)));

    let expected = "expected the header `authorization: Bearer TOKEN`";
    for headers in [PROTOBUF.to_owned(), format!("{PROTOBUF}authorization: Bearer a1b2-c3d5\r\n")] {
        let response = over_http(&headers);
        assert_eq!((response.status, response.message().as_str()), (401, expected));
        assert!(response.head.contains("www-authenticate: bearer"), "{}", response.head);
    }
    assert_eq!(receive(send(at(0), "GET /", "", b"")).status, 401, "whatever the path");
    for value in ["", "Bearer a1b2", "Basic a1b2-c3d4"] {
        let response = over_grpc(value);
        assert_eq!((response.code(), response.text()), ("16", expected));
    }
    assert!(store.spans.lock().unwrap().is_empty());

    let right = format!("Bearer {TOKEN}");
    assert_eq!(over_http(&format!("{PROTOBUF}authorization: {right}\r\n")).status, 200);
    assert_eq!(over_grpc(&right).code(), "0");
    assert_eq!(receive(send(at(1), "POST /v1/traces", PROTOBUF, &traces(1))).status, 200, "an address without a token");
    let stats = receiver.stop();
    assert_eq!((stats.unauthenticated_requests, stats.batches, stats.malformed_requests), (6, 3, 0));
}
