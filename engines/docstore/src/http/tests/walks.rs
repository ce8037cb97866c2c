//! Queries over all ranges that the store itself takes from one range to the next.

use super::containers::{by_owner, post, with_container};
use super::splits::{THINGS, create, ids, raise};
use super::*;

const ACROSS: (&str, &str) = ("x-ms-documentdb-query-enablecrosspartition", "True");

/// A container of 30 documents, one for each owner, on three ranges.
fn filled() -> Service {
    let (service, _) = with_container(&by_owner("things"), &[("x-ms-offer-throughput", "30000")]);
    for number in 0..30 {
        let owner = format!("o{number}");
        let document = json!({ "id": number.to_string(), "owner": owner, "tags": [1, 2, 3] });
        let key = json!([owner]).to_string();
        assert_eq!(post(&service, THINGS, &[("x-ms-documentdb-partitionkey", &key)], &document).status, 201);
    }
    service
}

fn page(service: &Service, sql: &str, headers: &[(&str, &str)]) -> Reply {
    let headers = [&[("x-ms-documentdb-isquery", "true")], headers].concat();
    send(service, Method::POST, THINGS, &headers, json!({ "query": sql }).to_string().as_bytes())
}

/// The results of a query to its end, and how many pages they took; `between` runs after each page.
fn all(service: &Service, sql: &str, items: &str, between: impl Fn(usize)) -> (Vec<u32>, usize) {
    let (mut found, mut continuation, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let headers = [ACROSS, ("x-ms-max-item-count", items), ("x-ms-continuation", continuation.as_str())];
        let reply = page(service, sql, &headers);
        assert_eq!(reply.status, 200);
        found.extend(ids(&reply));
        pages += 1;
        between(pages);
        match reply.header("x-ms-continuation") {
            Some(token) => continuation = token.to_owned(),
            None => break,
        }
    }
    found.sort_unstable();
    (found, pages)
}

#[test]
fn a_query_without_merging_goes_through_all_ranges() {
    let service = filled();
    assert_eq!(all(&service, "SELECT * FROM c", "100", |_| ()), ((0..30).collect(), 3));
    assert_eq!(all(&service, "SELECT c.id FROM c", "4", |_| ()).0, (0..30).collect::<Vec<_>>());
    let joined = all(&service, "SELECT c.id FROM c JOIN tag IN c.tags", "2", |_| ()).0;
    assert_eq!(joined, (0..90).map(|row| row / 3).collect::<Vec<_>>());
}

#[test]
fn only_ranges_that_the_filter_leaves_possible_are_read() {
    let service = filled();
    let container = &service.store.containers()[1];
    let owner = |number: u32| PartitionKey(vec![Scalar::Text(format!("o{number}"))]);
    let (first, last) = (container.ranges().holding(0).id, container.ranges().iter().last().unwrap().id);
    let on = |range| (0..30).find(|&number| container.range_of(&owner(number)) == range).unwrap();
    let (low, high) = (on(first), on(last));
    let sql = format!("SELECT * FROM c WHERE c.owner IN ('o{low}', 'o{high}')");
    let mut expected = vec![low, high];
    expected.sort_unstable();
    assert_eq!(all(&service, &sql, "100", |_| ()), (expected, 2), "the range between is left out");
    let sql = format!("SELECT * FROM c WHERE c.owner = 'o{high}'");
    assert_eq!(all(&service, &sql, "100", |_| ()), (vec![high], 1));
}

#[test]
fn a_split_between_two_pages_neither_loses_nor_repeats_a_result() {
    let (service, _) = with_container(&by_owner("things"), &[("x-ms-offer-throughput", "10000")]);
    for number in 0..40 {
        assert_eq!(create(&service, number, "").status, 201);
    }
    let raise_twice = |pages| {
        // The second raise splits what is being read once more.
        if pages == 2 || pages == 4 {
            raise(&service, 20_000 * pages as u32);
        }
    };
    let (found, _) = all(&service, "SELECT * FROM c", "3", raise_twice);
    assert_eq!(found, (0..40).collect::<Vec<_>>());
    assert_eq!(service.store.containers()[1].ranges().count(), 8);
}

#[test]
fn what_needs_merging_or_is_to_be_parallel_is_left_to_the_client() {
    let service = filled();
    let refused = |sql: &str, headers: &[(&str, &str)]| {
        let reply = page(&service, sql, headers);
        assert_eq!((reply.status, reply.header("x-ms-substatus")), (400, Some("1004")), "{sql}");
        assert!(reply.json()["additionalErrorInfo"].is_string());
    };
    refused("SELECT * FROM c", &[]);
    refused("SELECT * FROM c", &[ACROSS, ("x-ms-documentdb-query-parallelizecrosspartitionquery", "true")]);
    for sql in [
        "SELECT * FROM c ORDER BY c.id",
        "SELECT DISTINCT c.id FROM c",
        "SELECT TOP 1 * FROM c",
        "SELECT * FROM c OFFSET 0 LIMIT 1",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT c.owner FROM c GROUP BY c.owner",
    ] {
        refused(sql, &[ACROSS]);
    }
    let foreign = page(&service, "SELECT * FROM c", &[ACROSS, ("x-ms-continuation", "1.0.2.3.4")]);
    assert_eq!(foreign.status, 400);
    assert!(foreign.message().contains("x-ms-continuation"), "{}", foreign.message());
}

#[test]
fn distinct_results_go_on_after_a_split_only_where_all_of_them_are() {
    let (service, _) = with_container(&by_owner("things"), &[("x-ms-offer-throughput", "10000")]);
    for number in 0..40 {
        assert_eq!(create(&service, number, "").status, 201);
    }
    let distinct = |filter: &str, headers: &[(&str, &str)]| {
        let sql = format!("SELECT DISTINCT c.id FROM c {filter} ORDER BY c.id");
        page(&service, &sql, &[&[("x-ms-max-item-count", "1")], headers].concat())
    };
    let (all, some) = ("", "WHERE c.owner IN ('o7', 'o8')");
    let [all_on_0, some_on_0] = [all, some].map(|filter| {
        let reply = distinct(filter, &[("x-ms-documentdb-partitionkeyrangeid", "0")]);
        reply.header("x-ms-continuation").unwrap().to_owned()
    });
    raise(&service, 20_000);
    let range = |owner: &str| {
        let key = PartitionKey(vec![Scalar::Text(owner.to_owned())]);
        service.store.containers()[1].range_of(&key)
    };
    let refused = |reply: Reply| {
        assert_eq!((reply.status, reply.header("x-ms-substatus")), (400, None));
        assert!(reply.message().starts_with("the partition was split since"), "{}", reply.message());
    };
    refused(distinct(all, &[("x-ms-documentdb-partitionkeyrangeid", "1"), ("x-ms-continuation", &all_on_0)]));
    refused(distinct(all, &[("x-ms-continuation", &all_on_0)]));
    let rest = distinct(some, &[("x-ms-continuation", &some_on_0)]);
    if range("o7") == range("o8") {
        assert_eq!(ids(&rest), [8]);
    } else {
        refused(rest);
    }
}
