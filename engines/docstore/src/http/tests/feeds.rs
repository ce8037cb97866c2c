//! Lists of documents and the change feed.

use super::containers::{by_owner, delete, post, with_container};
use super::*;

const THINGS: &str = "/dbs/db/colls/things/docs";

fn key(owner: &str) -> String {
    format!("[\"{owner}\"]")
}

fn create(service: &Service, id: &str, owner: &str) -> Reply {
    let document = json!({ "id": id, "owner": owner });
    let reply = post(
        service,
        THINGS,
        &[("x-ms-documentdb-partitionkey", &key(owner)), ("x-ms-documentdb-is-upsert", "true")],
        &document,
    );
    assert!(reply.status < 300);
    reply
}

fn ids(reply: &Reply) -> Vec<String> {
    let body = reply.json();
    body["Documents"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_list_walks_through_every_range_and_each_document_once() {
    let (service, _) = with_container(&by_owner("things"), &[("x-ms-offer-throughput", "30000")]);
    for number in 0..50 {
        create(&service, &number.to_string(), &format!("o{number}"));
    }
    let (mut found, mut continuation) = (Vec::new(), None::<String>);
    loop {
        let mut headers = vec![("x-ms-max-item-count", "7")];
        headers.extend(continuation.as_deref().map(|token| ("x-ms-continuation", token)));
        let page = get(&service, THINGS, &headers);
        found.extend(ids(&page));
        continuation = page.header("x-ms-continuation").map(str::to_owned);
        if continuation.is_none() {
            break;
        }
    }
    found.sort_by_key(|id| id.parse::<u32>().unwrap());
    assert_eq!(found, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
    let of_one = get(&service, THINGS, &[("x-ms-documentdb-partitionkey", &key("o7"))]);
    assert_eq!(ids(&of_one), ["7"]);
    assert_eq!(get(&service, THINGS, &[("x-ms-continuation", "elsewhere")]).status, 400);
}

#[test]
fn the_change_feed_gives_each_document_at_its_last_change() {
    let (service, clock) = with_container(&by_owner("things"), &[]);
    for id in ["1", "2", "3"] {
        create(&service, id, "o1");
    }
    clock.set_ms(5_000);
    create(&service, "1", "o1");
    let place = [("a-im", "Incremental Feed"), ("x-ms-documentdb-partitionkeyrangeid", "0")];
    let read = |more: &[(&str, &str)]| get(&service, THINGS, &[&place, more].concat());
    let first = read(&[("x-ms-max-item-count", "2")]);
    assert_eq!(ids(&first), ["2", "3"]);
    let tag = first.header("etag").unwrap().to_owned();
    let second = read(&[("if-none-match", &tag)]);
    assert_eq!(ids(&second), ["1"]);
    let end = second.header("etag").unwrap().to_owned();
    let none = read(&[("if-none-match", &end)]);
    assert_eq!((none.status, none.body.len(), none.header("etag")), (304, 0, Some(end.as_str())));

    let now = read(&[("if-none-match", "*")]);
    assert_eq!((now.status, now.header("etag")), (304, Some(end.as_str())));
    create(&service, "4", "o2");
    delete(&service, &format!("{THINGS}/3"), &[("x-ms-documentdb-partitionkey", &key("o1"))]);
    assert_eq!(ids(&read(&[("if-none-match", &end)])), ["4"]);
    let of_one = [("a-im", "Incremental Feed"), ("x-ms-documentdb-partitionkey", "[\"o1\"]")];
    assert_eq!(ids(&get(&service, THINGS, &of_one)), ["2", "1"]);
}

#[test]
fn the_change_feed_begins_at_a_time() {
    let (service, clock) = with_container(&by_owner("things"), &[]);
    let at = |reply: &Reply| reply.json()["_ts"].as_i64().unwrap();
    create(&service, "1", "o1");
    clock.set_ms(100_000);
    let later = at(&create(&service, "2", "o1"));
    let date = jiff::Timestamp::from_second(later).unwrap().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let place = [
        ("a-im", "Incremental feed"),
        ("x-ms-documentdb-partitionkeyrangeid", "0"),
        ("if-modified-since", date.as_str()),
    ];
    assert_eq!(ids(&get(&service, THINGS, &place)), ["2"]);
    let bad = [("a-im", "Incremental feed"), ("if-modified-since", "today")];
    assert_eq!(get(&service, THINGS, &bad).status, 400);
    assert_eq!(get(&service, THINGS, &[("a-im", "Full-Fidelity Feed")]).status, 400);
}

#[test]
fn a_span_of_effective_keys_limits_what_is_read() {
    let (service, _) = with_container(&by_owner("things"), &[]);
    for owner in ["o0", "o0001"] {
        create(&service, owner, owner);
    }
    let read = |min, max| {
        let place = [("x-ms-documentdb-partitionkeyrangeid", "0"), ("x-ms-start-epk", min), ("x-ms-end-epk", max)];
        let listed = ids(&get(&service, THINGS, &place));
        let changed = get(&service, THINGS, &[&place[..], &[("a-im", "Incremental Feed")]].concat());
        assert_eq!(changed.status == 304, listed.is_empty());
        listed
    };
    // o0 is at 2429…, o0001 at 0E34….
    assert_eq!(read("", "FF"), ["o0", "o0001"]);
    assert_eq!(read("", "20"), ["o0001"]);
    assert_eq!(read("20", "24"), [""; 0]);
    assert_eq!(read("242959869BD724625B1318F7470F8A55", "FF"), ["o0"]);
}
