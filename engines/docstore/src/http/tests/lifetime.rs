//! The store from its start to an orderly end, with a receiver of metrics.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener as Receiver, TcpStream};
use std::thread::JoinHandle;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{Metric, NumberDataPoint, metric::Data};
use prost::Message;
use tokio::sync::oneshot;

use super::*;

const SELECT_ALL: &str = r#"{"query":"SELECT * FROM c"}"#;

fn read_request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.starts_with("post /v1/metrics ") && head.contains("content-type: application/x-protobuf"), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

/// Takes every export of the one connection an exporter makes, until it closes.
fn receive(receiver: Receiver) -> JoinHandle<Vec<ExportMetricsServiceRequest>> {
    std::thread::spawn(move || {
        let (mut stream, _) = receiver.accept().unwrap();
        let mut exports = Vec::new();
        while let Some(body) = read_request(&mut stream) {
            exports.push(ExportMetricsServiceRequest::decode(body.as_slice()).unwrap());
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        }
        exports
    })
}

/// One page of every document of a range: status and charge.
fn query_range(store: SocketAddr, range: u32) -> (u16, f64) {
    let length = SELECT_ALL.len();
    let request = format!(
        "POST {DOCS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-ms-documentdb-isquery: true\r\n\
         x-ms-documentdb-partitionkeyrangeid: {range}\r\nContent-Length: {length}\r\n\r\n{SELECT_ALL}"
    );
    let mut stream = TcpStream::connect(store).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let charge = response.lines().find_map(|line| line.strip_prefix("x-ms-request-charge: ")).unwrap();
    (response[9..12].parse().unwrap(), charge.trim().parse().unwrap())
}

fn points(export: &ExportMetricsServiceRequest, name: &str) -> (Metric, Vec<NumberDataPoint>) {
    let scope = &export.resource_metrics[0].scope_metrics[0];
    let metric = scope.metrics.iter().find(|metric| metric.name == name).unwrap().clone();
    let points = match metric.data.clone().unwrap() {
        Data::Sum(sum) => {
            assert!(sum.is_monotonic && sum.aggregation_temporality == 2, "{name} is a cumulative counter");
            sum.data_points
        }
        Data::Gauge(gauge) => gauge.data_points,
        other => panic!("{name} is {other:?}"),
    };
    (metric, points)
}

/// The value of partition `range` of the container in the store.
fn value(export: &ExportMetricsServiceRequest, name: &str, range: u32) -> f64 {
    let expected = [("db.collection.name", "utilization".to_owned()), ("db.partition.id", range.to_string())];
    let has = |point: &NumberDataPoint| {
        expected.iter().all(|(key, text)| {
            point.attributes.iter().any(|attribute| {
                attribute.key == *key && format!("{:?}", attribute.value).contains(&format!("StringValue({text:?})"))
            })
        })
    };
    let (_, points) = points(export, name);
    match points.iter().find(|point| has(point)).and_then(|point| point.value) {
        Some(Number::AsDouble(value)) => value,
        Some(Number::AsInt(value)) => value as f64,
        None => panic!("{name} has no partition {range}"),
    }
}

#[test]
fn the_last_export_adds_up_to_the_charges_in_the_responses() {
    let receiver = Receiver::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1/metrics", receiver.local_addr().unwrap());
    let received = receive(receiver);
    // 3 RU/s over 3 partitions: whatever the clock says, one page uses up a second.
    let config = Config {
        listen: Listen::loopback(0),
        access: Access::Anyone,
        partitions: 3,
        throughput_ru_per_second: 3,
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let responses: Vec<Vec<(u16, f64)>> = runtime.block_on(async {
        let settings = Settings { endpoint, interval: Duration::from_millis(20) };
        let server = Server::open_with(config, Some(settings)).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async { stopped.await.unwrap() };
        let serving = tokio::spawn(server.serve(shutdown));
        let ask = move || (0..3).map(|range| (0..20).map(|_| query_range(address, range)).collect()).collect();
        let responses = tokio::task::spawn_blocking(ask).await.unwrap();
        stop.send(()).unwrap();
        serving.await.unwrap().unwrap();
        responses
    });
    let exports = received.join().unwrap();
    let last = exports.last().unwrap();
    for (range, responses) in (0..).zip(&responses) {
        let charged: f64 = responses.iter().map(|(_, charge)| charge).sum();
        let refused = responses.iter().filter(|(status, _)| *status == 429).count();
        assert!((value(last, "db.throughput.consumed", range) - charged).abs() < 1e-9 && charged > 0.0);
        assert!(value(last, "db.requests.throttled", range) == refused as f64 && refused > 0);
        assert!((value(last, "db.throughput.provisioned", range) - 1.0).abs() < 1e-9);
    }
    let units = ["db.throughput.consumed", "db.throughput.provisioned", "db.requests.throttled"]
        .map(|name| (points(last, name).0.unit, points(last, name).1.len()));
    assert_eq!(
        units.map(|(unit, series)| format!("{unit} {series}")),
        ["{request_unit} 3", "{request_unit}/s 3", "{request} 3"]
    );
    assert!(format!("{:?}", last.resource_metrics[0].resource).contains("service.name"));
}

#[test]
fn more_partitions_than_the_sdk_allows_series_by_default_are_all_exported() {
    let receiver = Receiver::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1/metrics", receiver.local_addr().unwrap());
    let received = receive(receiver);
    let containers = ["utilization", "b", "c"].map(str::to_owned).to_vec();
    let base = Config { partitions: 1_000, throughput_ru_per_second: 2_000, ..Config::default() };
    let store = Arc::new(
        Store::open(&Config { containers, documents_per_container: 0, ..base }, StoredDocument::default()).unwrap(),
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let settings = Settings { endpoint, interval: Duration::from_secs(3_600) };
    let export = Export::start(&settings, &store).unwrap();
    runtime.block_on(export.finish());
    let exports = received.join().unwrap();
    assert_eq!(points(&exports[0], "db.throughput.provisioned").1.len(), 3_000);
    assert_eq!(value(&exports[0], "db.throughput.provisioned", 999), 2.0);
}

#[test]
fn an_endpoint_that_does_not_respond_keeps_nothing_from_being_served_or_ended() {
    // Connections are taken by the kernel and never read from.
    let deaf = Receiver::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1/metrics", deaf.local_addr().unwrap());
    let config =
        Config { listen: Listen::loopback(0), access: Access::Anyone, documents_per_container: 0, ..Config::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let settings = Settings { endpoint, interval: Duration::from_millis(1) };
        let server = Server::open_with(config, Some(settings)).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve(async { stopped.await.unwrap() }));
        let response = tokio::task::spawn_blocking(move || query_range(address, 0)).await.unwrap();
        assert_eq!(response, (200, 3.2));
        stop.send(()).unwrap();
        serving.await.unwrap().unwrap();
    });
}

#[test]
fn an_endpoint_that_is_no_address_is_an_error_with_its_value() {
    let config =
        Config { listen: Listen::loopback(0), access: Access::Anyone, documents_per_container: 0, ..Config::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(async {
        let settings = Settings { endpoint: "no address".to_owned(), interval: Duration::from_secs(1) };
        Server::open_with(config, Some(settings)).await.map(drop).unwrap_err()
    });
    let expected = "cannot export metrics to \"no address\", expected the http:// address of an OTLP receiver";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_request_that_never_ends_does_not_keep_the_store_from_ending() {
    let config =
        Config { listen: Listen::loopback(0), access: Access::Anyone, documents_per_container: 0, ..Config::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut stream = runtime.block_on(async {
        let server = Server::open_with(config, None).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve(async { stopped.await.unwrap() }));
        let open_request = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            let rest = "HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n";
            stream.write_all(format!("POST {DOCS} {rest}").as_bytes()).unwrap();
            // The store requests the body once it handles the request.
            let mut asked = [0; 25];
            stream.read_exact(&mut asked).unwrap();
            assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
            stream
        });
        let stream = open_request.await.unwrap();
        stop.send(()).unwrap();
        serving.await.unwrap().unwrap();
        stream
    });
    drop(runtime);
    // Had the store waited for the body, it would have responded with 408.
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response);
    assert_eq!(String::from_utf8(response).unwrap(), "");
}
