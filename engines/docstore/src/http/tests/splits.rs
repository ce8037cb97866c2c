//! Partitions that split while clients are in the middle of something.

use super::containers::{by_owner, post, put, with_container};
use super::*;

pub(super) const THINGS: &str = "/dbs/db/colls/things/docs";
const RANGES: &str = "/dbs/db/colls/things/pkranges";

pub(super) fn create(service: &Service, number: u32, text: &str) -> Reply {
    let key = format!("[\"o{number}\"]");
    let document = json!({ "id": number.to_string(), "owner": format!("o{number}"), "text": text });
    post(service, THINGS, &[("x-ms-documentdb-partitionkey", &key)], &document)
}

pub(super) fn raise(service: &Service, amount: u32) {
    let offers = get(service, "/offers", &[]).json();
    let mut offer = offers["Offers"].as_array().unwrap().last().unwrap().clone();
    offer["content"]["offerThroughput"] = json!(amount);
    let address = format!("/{}", offer["_self"].as_str().unwrap());
    assert_eq!(put(service, &address, &[], &offer).status, 200);
}

pub(super) fn ids(reply: &Reply) -> Vec<u32> {
    let body = reply.json();
    let documents = body["Documents"].as_array().unwrap().iter();
    documents.map(|document| document["id"].as_str().unwrap().parse().unwrap()).collect()
}

fn ranges(service: &Service) -> Vec<(String, Value)> {
    let body = get(service, RANGES, &[]).json();
    let ranges = body["PartitionKeyRanges"].as_array().unwrap().iter();
    ranges.map(|range| (range["id"].as_str().unwrap().to_owned(), range["parents"].clone())).collect()
}

#[test]
fn a_raise_beyond_ten_thousand_splits_and_readers_go_on_where_they_were() {
    let (service, _) = with_container(&by_owner("things"), &[("x-ms-offer-throughput", "10000")]);
    for number in 0..40 {
        assert_eq!(create(&service, number, "").status, 201);
    }
    let query = |range: &str, continuation: &str| {
        let headers = [
            ("x-ms-documentdb-isquery", "true"),
            ("x-ms-documentdb-partitionkeyrangeid", range),
            ("x-ms-max-item-count", "15"),
            ("x-ms-continuation", continuation),
        ];
        post(&service, THINGS, &headers, &json!({ "query": "SELECT * FROM c" }))
    };
    let change = |range: &str, tag: &str| {
        let headers = [
            ("a-im", "Incremental Feed"),
            ("x-ms-documentdb-partitionkeyrangeid", range),
            ("x-ms-max-item-count", "15"),
            ("if-none-match", tag),
        ];
        get(&service, THINGS, &headers)
    };
    let (queried, changed) = (query("0", ""), change("0", "0"));
    let list = get(&service, THINGS, &[("x-ms-max-item-count", "15")]);
    let etag = get(&service, RANGES, &[]).header("etag").unwrap().to_owned();
    raise(&service, 20_000);

    let gone = query("0", queried.header("x-ms-continuation").unwrap());
    assert_eq!((gone.status, gone.header("x-ms-substatus")), (410, Some("1002")));
    assert_eq!(change("0", "0").status, 410);
    assert_eq!(get(&service, RANGES, &[("if-none-match", &etag)]).status, 200);
    assert_eq!(ranges(&service), [("1".to_owned(), json!(["0"])), ("2".to_owned(), json!(["0"]))]);

    let (mut by_query, mut by_change) = (ids(&queried), ids(&changed));
    for range in ["1", "2"] {
        by_query.extend(ids(&query(range, queried.header("x-ms-continuation").unwrap())));
        by_change.extend(ids(&change(range, changed.header("etag").unwrap())));
    }
    let mut by_list = ids(&list);
    let mut continuation = list.header("x-ms-continuation").map(str::to_owned);
    while let Some(token) = continuation {
        let page = get(&service, THINGS, &[("x-ms-max-item-count", "15"), ("x-ms-continuation", &token)]);
        by_list.extend(ids(&page));
        continuation = page.header("x-ms-continuation").map(str::to_owned);
    }
    for mut found in [by_query, by_change, by_list] {
        found.sort_unstable();
        assert_eq!(found, (0..40).collect::<Vec<_>>());
    }
    let read = |number: u32| {
        let key = format!("[\"o{number}\"]");
        get(&service, &format!("{THINGS}/{number}"), &[("x-ms-documentdb-partitionkey", &key)]).status
    };
    assert!((0..40).all(|number| read(number) == 200));
}

#[test]
fn text_beyond_the_limit_splits_a_partition_unless_it_has_one_key() {
    let config = Config { split_bytes: 20_000, documents_per_container: 0, ..Config::default() };
    let (service, clock) = service(config);
    post(&service, "/dbs", &[], &json!({ "id": "db" }));
    post(&service, "/dbs/db/colls", &[("x-ms-offer-throughput", "10000")], &by_owner("things"));
    for number in 0..50 {
        clock.set_ms(u64::from(number) * 1_000);
        assert_eq!(create(&service, number, &"x".repeat(1_000)).status, 201);
    }
    let split = ranges(&service);
    assert!((3..=8).contains(&split.len()), "{split:?}");
    assert!(split.iter().all(|(_, parents)| parents[0] == "0"));
    let (one_key, before) = ([("x-ms-documentdb-partitionkey", "[\"o1\"]")], split.len());
    for number in 100_u32..150 {
        clock.set_ms(u64::from(number) * 1_000);
        let document = json!({ "id": number.to_string(), "owner": "o1", "text": "x".repeat(1_000) });
        assert_eq!(post(&service, THINGS, &one_key, &document).status, 201);
    }
    let after = ranges(&service).len();
    assert!((before..=before + 3).contains(&after), "{before} {after}");
    let all: usize = ranges(&service)
        .iter()
        .map(|(id, _)| ids(&get(&service, THINGS, &[("x-ms-documentdb-partitionkeyrangeid", id)])).len())
        .sum();
    assert_eq!(all, 100);
}

#[test]
fn writers_at_once_lose_nothing_in_a_split() {
    let config = Config {
        split_bytes: 4_000,
        throughput_ru_per_second: 90_000,
        documents_per_container: 0,
        ..Config::default()
    };
    let (service, _) = service(config);
    let written: u32 = std::thread::scope(|scope| {
        let write = |thread: u32| {
            let service = &service;
            move || {
                let create = |number: u32| {
                    let document = json!({ "id": number.to_string(), "ownerId": number });
                    let key = format!("[{number}]");
                    post(service, DOCS, &[("x-ms-documentdb-partitionkey", &key)], &document).status
                };
                (0..100).filter(|number| create(thread * 100 + number) == 201).count() as u32
            }
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(write(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(written, 400);
    let container = &service.store.containers()[0];
    assert!(container.ranges().count() > 9);
    let found = (0..400).filter(|number| {
        let key = format!("[{number}]");
        get(&service, &format!("{DOCS}/{number}"), &[("x-ms-documentdb-partitionkey", &key)]).status == 200
    });
    assert_eq!(found.count(), 400);
}
