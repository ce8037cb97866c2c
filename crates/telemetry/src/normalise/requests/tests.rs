//! Series of counters, and what is made of them.

use super::*;

const SECOND: i64 = 1_000_000_000;

/// A counter that grows by so much every 15 seconds.
fn counter(name: &str, service: &str, labels: &[(&str, &str)], growth: f64) -> Series {
    let labels = labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect();
    let key = SeriesKey { name: name.to_owned(), service: service.to_owned(), labels, ..SeriesKey::default() };
    let points = (0..4).map(|at| Point { time_ns: at * 15 * SECOND, value: growth * at as f64 });
    Series { key, points: points.collect() }
}

/// Service, callee, name and the first value of each series that is made.
fn made(series: &[Series]) -> Vec<(String, f64)> {
    let mut requests = Requests::new(known());
    series.iter().for_each(|series| requests.add(&series.key, &|| series.rates(), &|| series.points.clone()));
    let text = |series: &Series| {
        let peer = series.key.labels.get(services::PEER).map_or(String::new(), |peer| format!(">{peer}"));
        (
            format!("{}{peer} {}", series.key.service, series.key.name),
            series.points.first().map_or(f64::NAN, |one| one.value),
        )
    };
    requests.series().iter().map(text).collect()
}

#[test]
fn replicas_and_codes_are_added_up_and_failures_told_by_their_code() {
    let of = |part: &str, code, growth| {
        counter(&format!("http_request_duration_seconds_{part}"), "", &[("app", "cart"), ("code", code)], growth)
    };
    let found =
        made(&[of("count", "200", 120.0), of("count", "500", 30.0), of("sum", "200", 6.0), of("sum", "500", 9.0)]);
    let expected = [("cart service.errors", 2.0), ("cart service.latency", 0.1), ("cart service.requests", 10.0)];
    assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
fn a_mesh_names_caller_and_callee() {
    let labels = |reporter| {
        [
            ("reporter", reporter),
            ("source_workload", "web"),
            ("destination_service_name", "cart"),
            ("response_code", "200"),
        ]
    };
    let of = |part: &str, reporter, growth| {
        counter(&format!("istio_request_duration_milliseconds_{part}"), "istio", &labels(reporter), growth)
    };
    let found = made(&[
        of("count", "source", 30.0),
        of("sum", "source", 600.0),
        of("count", "destination", 30.0),
        of("sum", "destination", 300.0),
    ]);
    let expected = [
        ("cart service.errors", 0.0),
        ("cart service.latency", 0.01),
        ("cart service.requests", 2.0),
        ("web>cart service.errors", 0.0),
        ("web>cart service.latency", 0.02),
        ("web>cart service.requests", 2.0),
    ];
    assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
fn the_distribution_counts_and_not_the_counter_beside_it() {
    let found = made(&[
        counter("grpc_server_handled_total", "cart", &[("grpc_code", "Unavailable")], 15.0),
        counter("grpc_server_handling_seconds_count", "cart", &[], 30.0),
        counter("grpc_server_handling_seconds_sum", "cart", &[], 3.0),
        counter("http_requests_total", "cart", &[], 1.5),
    ]);
    let expected = [("cart service.errors", 1.0), ("cart service.latency", 0.1), ("cart service.requests", 2.0)];
    assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
fn a_pod_is_its_workload_and_sums_of_cadvisor_do_not_count() {
    let of = |container| {
        let labels = [("pod", "cart-6d4cf56db6-x7k2p"), ("container", container)];
        counter("container_cpu_usage_seconds_total", "", &labels, 7.5)
    };
    assert_eq!(made(&[of(""), of("POD"), of("server"), of("proxy")]), [("cart process.cpu.cores".to_owned(), 1.0)]);
    let names = ["cart-0", "cart-6d4cf56db6-x7k2p", "cart", "checkout-service", "redis-master-0"].map(workload);
    assert_eq!(names, ["cart", "cart", "cart", "checkout-service", "redis-master"]);
    let hosts = ["shop/cart", "cart.shop.svc.cluster.local:8080", "10.0.0.1:80", "cart:80", "db.example.com"].map(host);
    assert_eq!(hosts, ["cart", "cart", "10.0.0.1", "cart", "db.example.com"]);
}
