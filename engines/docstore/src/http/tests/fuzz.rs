//! Headers, queries and continuations that are cut, spliced and damaged: every one gets a response, and none of them ends the
//! store.
//!
//! A fixed number of cases from a fixed seed. `NARROWS_FUZZ_CASES=1000000 cargo test -p narrows-docstore fuzz` tries more; a
//! failure names its case. The file of a store is damaged in `damage`.

use narrows_testing::Chance;

use super::containers::{by_owner, with_container};
use super::splits::{THINGS, create};
use super::*;

const CASES: u64 = 3_000;
const SEED: u64 = 7;

const NAMES: [&str; 23] = [
    "x-ms-documentdb-partitionkey",
    "x-ms-documentdb-partitionkeyrangeid",
    "x-ms-documentdb-isquery",
    "x-ms-documentdb-query-enablecrosspartition",
    "x-ms-documentdb-query-parallelizecrosspartitionquery",
    "x-ms-cosmos-is-query-plan-request",
    "x-ms-cosmos-supported-query-features",
    "x-ms-cosmos-is-batch-request",
    "x-ms-cosmos-batch-atomic",
    "x-ms-cosmos-offer-autopilot-settings",
    "x-ms-documentdb-is-upsert",
    "x-ms-offer-throughput",
    "x-ms-max-item-count",
    "x-ms-continuation",
    "x-ms-start-epk",
    "x-ms-end-epk",
    "x-ms-consistency-level",
    "x-ms-cosmos-supported-serialization-formats",
    "x-ms-session-token",
    "a-im",
    "if-match",
    "if-none-match",
    "if-modified-since",
];

const VALUES: [&str; 28] = [
    "[\"o1\"]",
    "[]",
    "[{}]",
    "[1e400]",
    "[\"o1\",\"o2\"]",
    "0",
    "1",
    "-1",
    "18446744073709551616",
    "true",
    "True",
    "false",
    "1.0.3.1.2",
    "1.0.18446744073709551615.4294967295.18446744073709551615",
    "2.0.3fffffffffffffffffffffffffffffff.1.2",
    "2.3fffffffffffffffffffffffffffffff",
    "3.0.3.1.2.W1sxXV0",
    "05C1",
    "FF",
    "{\"maxThroughput\": 4000}",
    "Session",
    "CosmosBinary",
    "0:-1#3",
    "Incremental Feed",
    "*",
    "\"3\"",
    "Tue, 01 Sep 2026 08:00:00 GMT",
    "Aggregate, OrderBy, GroupBy",
];

const BODIES: [&str; 12] = [
    r#"{"query":"SELECT * FROM c WHERE c.n BETWEEN 1 AND 2 AND c.owner IN ('o1', @p) ORDER BY c.n DESC","parameters":[{"name":"@p","value":"o2"}]}"#,
    r#"{"query":"SELECT DISTINCT TOP 3 VALUE {'a': c.n ?? 1, 'b': [c.id]} FROM c JOIN t IN c.tags WHERE NOT EXISTS(SELECT VALUE 1 FROM u IN c.users)"}"#,
    r#"{"query":"SELECT c.owner, COUNT(1) AS n, AVG(c.n) FROM c WHERE c.id LIKE 'a!%%' ESCAPE '!' GROUP BY c.owner OFFSET 1 LIMIT 2"}"#,
    r#"{"query":"SELECT VALUE REGEXMATCH(c.id, '(a+)+$') ? REPLICATE(c.id, 9) : ARRAY(SELECT VALUE x FROM x IN c.tags) FROM c"}"#,
    r#"{"query":"SELECT VALUE -(-c.n) << 65 | ~c.n FROM c WHERE c[\"n\"] % 0 = 1 || 'x'"}"#,
    r#"{"id":"1","owner":"o1","n":9007199254740993,"tags":["é","\u0000"],"ttl":-1}"#,
    r#"[{"op":"add","path":"/tags/-","value":1},{"op":"incr","path":"/n","value":1.5},{"op":"move","from":"/a","path":"/b"}]"#,
    r#"{"condition":"from c where c.n = 1","operations":[{"op":"remove","path":"/n"}]}"#,
    r#"[{"operationType":"Create","resourceBody":{"id":"2","owner":"o1"}},{"operationType":"Delete","id":"1","partitionKey":"[\"o1\"]"}]"#,
    r#"{"id":"c","partitionKey":{"paths":["/a/\"b/c\"","/d"],"kind":"MultiHash","version":2},"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/e"]}]}}"#,
    r#"{"offerVersion":"V2","content":{"offerThroughput":800}}"#,
    "",
];

/// A text as it is, or cut, spliced with another or with a character changed.
fn damaged(text: &str, other: &str, chance: &mut Chance) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..chance.below(4) {
        let at = chance.below(characters.len() + 1);
        match chance.below(5) {
            0 => characters.truncate(at),
            1 => drop(characters.splice(at..at, other.chars().skip(at).take(40))),
            2 if at < characters.len() => {
                characters[at] = char::from(32 + chance.below(95) as u8);
            }
            3 => characters.insert(at, chance.pick(&['(', '[', '{', '\'', '"', '-', '.', '9', 'é'])),
            _ => {}
        }
    }
    characters.into_iter().collect()
}

/// A body as binary JSON, if it is JSON at all, with some of its bytes changed.
fn binary(body: &str, chance: &mut Chance) -> Vec<u8> {
    let mut bytes = binary_json::encoded(body.as_bytes()).unwrap_or_else(|_| vec![0x80, 0xE0]);
    for _ in 0..chance.below(4) {
        let at = 1 + chance.below(bytes.len() - 1);
        bytes[at] = chance.below(256) as u8;
    }
    bytes
}

fn cases() -> u64 {
    std::env::var("NARROWS_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES)
}

#[test]
fn fuzz_every_request_gets_a_response() {
    let (service, clock) = with_container(&by_owner("things"), &[("x-ms-offer-throughput", "30000")]);
    for number in 0..20 {
        assert_eq!(create(&service, number, "").status, 201);
    }
    let document = format!("{THINGS}/1");
    let paths = [THINGS, &document, "/dbs/db/colls", "/dbs/db/colls/things", "/dbs", "/offers"];
    let methods = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let mut chance = Chance::new(SEED);
    for case in 0..cases() {
        clock.set_ms(case * 1_000);
        let (path, method) = (chance.pick(&paths), methods[chance.below(methods.len())].clone());
        // The container has to stay, so that later cases find it.
        let method = if method == Method::DELETE && path.ends_with("things") { Method::GET } else { method };
        let mut headers = Vec::new();
        for _ in 0..chance.below(6) {
            let (value, other) = (chance.pick(&VALUES), chance.pick(&VALUES));
            let value = damaged(value, other, &mut chance);
            // Characters that HTTP does not carry never reach the store.
            let value: String = value.chars().filter(|character| (' '..='~').contains(character)).collect();
            headers.push((chance.pick(&NAMES), value.trim().to_owned()));
        }
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let (body, other) = (chance.pick(&BODIES), chance.pick(&BODIES));
        let body = damaged(body, other, &mut chance);
        let bytes = if chance.below(4) == 0 { binary(&body, &mut chance) } else { body.clone().into_bytes() };
        let reply = send(&service, method.clone(), path, &headers, &bytes);
        let expected = [200, 201, 204, 207, 304, 400, 404, 405, 409, 410, 412, 413, 429];
        assert!(
            expected.contains(&reply.status),
            "case {case}: {method} {path} {headers:?} {body}: {} {}",
            reply.status,
            String::from_utf8_lossy(&reply.body)
        );
    }
    let key = [("x-ms-documentdb-partitionkey", "[\"o2\"]")];
    clock.set_ms(cases() * 1_000 + 10_000);
    assert_eq!(get(&service, &format!("{THINGS}/2"), &key).status, 200);
}
