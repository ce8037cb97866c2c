//! Pages besides the REST interface.

use super::containers::{by_owner, with_container};
use super::splits::{create, raise};
use super::*;

#[test]
fn metrics_are_those_of_every_partition() {
    let (service, _) = service(Config { throughput_ru_per_second: 900, ..Config::default() });
    let key = [("x-ms-documentdb-partitionkey", r#"["o0007"]"#)];
    let charge = query(&service, BY_OWNER, &one_month("o0007"), &key).charge();
    let page = get(&service, "/metrics", &[]);
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/plain; version=0.0.4; charset=utf-8")));
    let text = String::from_utf8(page.body).unwrap();
    let values = |name: &str| -> Vec<f64> {
        let lines = text.lines().filter(|line| line.starts_with(&format!("{name}{{db_namespace=\"dronedelivery\",")));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
    };
    assert_eq!(values("db_throughput_provisioned_per_second"), [100.0; 9]);
    assert!((values("db_throughput_consumed_total").iter().sum::<f64>() - charge).abs() < 1e-9);
    assert_eq!(values("db_requests_throttled_total"), [0.0; 9]);
    assert!(values("db_documents_bytes").iter().all(|bytes| *bytes > 1_000.0));
    let comments = text.lines().filter(|line| line.starts_with("# TYPE "));
    assert_eq!(comments.count(), 4);
}

#[test]
fn a_split_partition_keeps_its_counts_and_provides_nothing() {
    let (service, _) = with_container(&by_owner("things"), &[("x-ms-offer-throughput", "10000")]);
    let charge = create(&service, 1, "").charge();
    raise(&service, 20_000);
    let text = String::from_utf8(get(&service, "/metrics", &[]).body).unwrap();
    let value = |name: &str, range: u32| {
        let start = format!("{name}{{db_namespace=\"db\",db_collection_name=\"things\",db_partition_id=\"{range}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.map(|value| value.parse::<f64>().unwrap())
    };
    let provisioned = [0, 1, 2].map(|range| value("db_throughput_provisioned_per_second", range));
    assert_eq!(provisioned, [Some(0.0), Some(10_000.0), Some(10_000.0)]);
    assert_eq!(value("db_throughput_consumed_total", 0), Some(charge));
    assert_eq!(value("db_documents_bytes", 0), Some(0.0));
    let usage = get(&service, "/_explorer/usage", &[]).json();
    assert_eq!(usage["containers"][1]["partitions"].as_array().map(Vec::len), Some(2));
}

#[test]
fn the_explorer_has_all_its_files() {
    let (service, _) = service(Config::default());
    assert_eq!(get(&service, "/_explorer", &[]).header("location"), Some("/_explorer/"));
    let page = get(&service, "/_explorer/", &[]);
    assert!(page.header("content-security-policy").is_some_and(|policy| policy.starts_with("default-src 'self'")));
    let page = String::from_utf8(page.body).unwrap();
    for file in ["explorer.css", "explorer.js"] {
        assert!(page.contains(file));
        assert_eq!(get(&service, &format!("/_explorer/{file}"), &[]).status, 200);
    }
    assert_eq!(send(&service, Method::POST, "/_explorer/", &[], b"").status, 405);
    let usage = get(&service, "/_explorer/usage", &[]).json();
    assert_eq!(usage["containers"][0]["partitions"].as_array().map(Vec::len), Some(9));
}
