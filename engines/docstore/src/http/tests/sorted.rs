//! Sorted results that go on where the last one stands, also in the parts of a range that was split.

use super::containers::{by_owner, post, with_container};
use super::restart::{again, with_things};
use super::splits::{THINGS, raise};
use super::*;

const COUNT: u32 = 60;
const TEN_THOUSAND: [(&str, &str); 1] = [("x-ms-offer-throughput", "10000")];

/// Fills the container with documents of few different values, some of which have none.
fn fill(service: &Service) {
    for number in 0..COUNT {
        let mut document =
            json!({ "id": number.to_string(), "owner": format!("o{number}"), "n": number % 4, "tags": [2, 1, 2] });
        if number % 5 > 0 {
            document["group"] = json!(["ü", "b", "a"][number as usize % 3]);
        }
        assert_eq!(write(service, &document).status, 201);
    }
}

fn write(service: &Service, document: &Value) -> Reply {
    let key = json!([document["owner"]]).to_string();
    let headers = [("x-ms-documentdb-partitionkey", key.as_str()), ("x-ms-documentdb-is-upsert", "true")];
    post(service, THINGS, &headers, document)
}

fn page(service: &Service, sql: &str, items: &str, headers: &[(&str, &str)]) -> Reply {
    let own = [("x-ms-documentdb-isquery", "true"), ("x-ms-max-item-count", items)];
    post(service, THINGS, &[&own, headers].concat(), &json!({ "query": sql }))
}

/// The results on a page, and the token of the next.
fn read(reply: &Reply) -> (Vec<Value>, Option<String>) {
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    let results = reply.json()["Documents"].as_array().unwrap().clone();
    (results, reply.header("x-ms-continuation").map(str::to_owned))
}

/// The results from `token` on; `between` runs after each page.
fn rest(
    service: &Service,
    sql: &str,
    place: &[(&str, &str)],
    mut token: String,
    between: impl Fn(usize),
) -> Vec<Value> {
    let mut found = Vec::new();
    for number in 1..1_000 {
        let headers = [place, &[("x-ms-continuation", token.as_str())]].concat();
        let (results, next) = read(&page(service, sql, "7", &headers));
        found.extend(results);
        let Some(next) = next else { return found };
        token = next;
        between(number);
    }
    panic!("{sql} does not end");
}

const QUERIES: [&str; 6] = [
    "SELECT VALUE c.id FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c ORDER BY c['group'] DESC, c.n",
    "SELECT VALUE c.id FROM c WHERE c.n > 0 ORDER BY c['group']",
    "SELECT VALUE [c.id, x] FROM c JOIN x IN c.tags ORDER BY c.n DESC",
    "SELECT TOP 31 VALUE c.id FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 5 LIMIT 30",
];

#[test]
fn a_split_in_the_middle_of_sorted_results_neither_loses_nor_repeats_one() {
    for sql in QUERIES {
        let (service, _) = with_container(&by_owner("things"), &TEN_THOUSAND);
        fill(&service);
        let expected = read(&page(&service, sql, "1000", &[])).0;
        // The second raise splits what is being read once more.
        let raise_twice = |pages: usize| {
            if pages == 1 || pages == 3 {
                raise(&service, 20_000 * pages as u32);
            }
        };
        assert_eq!(rest(&service, sql, &[], String::new(), raise_twice), expected, "{sql}");
        assert!(service.store.containers()[1].ranges().count() > 4);
    }
}

#[test]
fn sorted_results_go_on_in_each_part_of_a_split_range() {
    let sql = QUERIES[1];
    let (service, _) = with_container(&by_owner("things"), &TEN_THOUSAND);
    fill(&service);
    let expected = read(&page(&service, sql, "1000", &[])).0;
    let (mut found, token) = read(&page(&service, sql, "20", &[("x-ms-documentdb-partitionkeyrangeid", "0")]));
    let token = token.unwrap();
    raise(&service, 20_000);
    let parts = ["1", "2"].map(|range| {
        let range = [("x-ms-documentdb-partitionkeyrangeid", range)];
        rest(&service, sql, &range, token.clone(), |_| ())
    });
    for part in &parts {
        let in_order = expected.iter().filter(|id| part.contains(id));
        assert!(in_order.eq(part), "{part:?}");
    }
    found.extend(parts.concat());
    let sorted = |mut ids: Vec<Value>| {
        ids.sort_by_key(Value::to_string);
        ids
    };
    assert_eq!(sorted(found), sorted(expected));
}

#[test]
fn sorted_results_go_on_after_a_restart_and_a_split() {
    let dir = tempfile::tempdir().unwrap();
    let (service, _) = with_things(dir.path(), &by_owner("things"), &TEN_THOUSAND);
    fill(&service);
    let sql = QUERIES[1];
    let expected = read(&page(&service, sql, "1000", &[])).0;
    let (mut found, token) = read(&page(&service, sql, "20", &[]));
    let service = again(service, dir.path(), 1);
    let (more, token) = read(&page(&service, sql, "20", &[("x-ms-continuation", &token.unwrap())]));
    found.extend(more);
    raise(&service, 40_000);
    let service = again(service, dir.path(), 2);
    found.extend(rest(&service, sql, &[], token.unwrap(), |_| ()));
    assert_eq!(found, expected);
}

#[test]
fn a_document_that_changes_between_two_pages_is_given_where_its_values_put_it() {
    let (service, _) = with_container(&by_owner("things"), &TEN_THOUSAND);
    fill(&service);
    let sql = "SELECT VALUE c.id FROM c WHERE c.n < 2 ORDER BY c.n";
    let (found, token) = read(&page(&service, sql, "10", &[]));
    assert_eq!(found, [0, 4, 8, 12, 16, 20, 24, 28, 32, 36].map(|id: u32| json!(id.to_string())));
    // One that was given, the one it stood at, and one to come change in what is no value of the order.
    for id in [8, 36, 40] {
        let document = json!({ "id": id.to_string(), "owner": format!("o{id}"), "n": 0, "more": "x" });
        assert_eq!(write(&service, &document).status, 200);
    }
    let (found, _) = read(&page(&service, sql, "4", &[("x-ms-continuation", &token.unwrap())]));
    assert_eq!(found, [40, 44, 48, 52].map(|id: u32| json!(id.to_string())));
}

#[test]
fn a_continuation_that_says_less_or_something_else_is_refused() {
    let (service, _) = with_container(&by_owner("things"), &TEN_THOUSAND);
    for number in 0..4 {
        let text = "x".repeat(5_000);
        let document =
            json!({ "id": number.to_string(), "owner": format!("o{number}"), "text": format!("{text}{number}") });
        assert_eq!(write(&service, &document).status, 201);
    }
    let token = |sql: &str| read(&page(&service, sql, "1", &[])).1.unwrap();
    let go_on = |sql: &str, token: &str| page(&service, sql, "1", &[("x-ms-continuation", token)]);
    let [by_id, by_text] = ["SELECT VALUE c.id FROM c ORDER BY c.id", "SELECT VALUE c.id FROM c ORDER BY c.text"];
    let (short, long) = (token(by_id), token(by_text));
    assert!(long.len() < 100, "{long}");
    assert_eq!(read(&go_on(by_text, &long)).0, [json!("1")]);
    // Of another query: with more values, with none.
    for (sql, token) in [
        ("SELECT VALUE c.id FROM c ORDER BY c.id, c.n", short.clone()),
        ("SELECT VALUE c.id FROM c", short.clone()),
        (by_id, short[..short.len() - 1].to_owned()),
        (by_id, format!("{short}x")),
    ] {
        let refused = go_on(sql, &token);
        assert!(refused.status == 400 && refused.message().contains("x-ms-continuation"), "{sql} {token}");
    }
    raise(&service, 20_000);
    let refused = go_on(by_text, &long);
    assert!(refused.status == 400 && refused.message().starts_with("the partition was split since"));
    assert_eq!(read(&go_on(by_id, &short)).0, [json!("1")]);
}
