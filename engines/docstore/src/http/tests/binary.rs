//! Documents in binary JSON, as Microsoft's client for Rust sends them and wants them back.

use super::containers::{by_owner, with_container};
use super::splits::THINGS;
use super::*;

const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", "[\"o1\"]");
const FORMATS: &str = "x-ms-cosmos-supported-serialization-formats";

#[test]
fn a_document_is_written_and_read_in_binary_json() {
    let (service, _) = with_container(&by_owner("things"), &[]);
    let body = binary_json::encoded(br#"{"owner":"o1","id":"1","n":[1.5,7]}"#).unwrap();
    let created = send(&service, Method::POST, THINGS, &[KEY, (FORMATS, "CosmosBinary")], &body);
    assert_eq!((created.status, created.header("content-type")), (201, Some("application/octet-stream")));
    let read = get(&service, &format!("{THINGS}/1"), &[KEY]);
    assert_eq!(read.json()["n"], json!([1.5, 7]));
    assert_eq!(binary_json::text(&created.body, usize::MAX).unwrap(), read.body);
    let binary = get(&service, &format!("{THINGS}/1"), &[KEY, (FORMATS, "HybridRow, cosmosbinary")]);
    assert_eq!(binary.body, created.body);

    // Text is what a client gets that reads both, and so is every failure.
    let either = get(&service, &format!("{THINGS}/1"), &[KEY, (FORMATS, "JsonText,CosmosBinary")]);
    assert_eq!((either.body, either.headers["content-type"].as_bytes()), (read.body, &b"application/json"[..]));
    let again = send(&service, Method::POST, THINGS, &[KEY, (FORMATS, "CosmosBinary")], &body);
    assert!(again.status == 409 && again.message().contains("exists already"));
}

#[test]
fn binary_json_that_cannot_be_read_changes_nothing() {
    let (service, _) = with_container(&by_owner("things"), &[]);
    let body = binary_json::encoded(br#"{"id":"1","owner":"o1"}"#).unwrap();
    let create = |headers: &[(&str, &str)], body: &[u8]| send(&service, Method::POST, THINGS, headers, body);
    let cut = create(&[KEY], &body[..body.len() - 1]);
    assert_eq!(
        (cut.status, cut.message().as_str()),
        (400, "the body is not binary JSON at byte 16, expected more bytes")
    );
    let unknown = create(&[KEY, (FORMATS, "HybridRow")], &body);
    assert!(unknown.status == 400 && unknown.message().contains("expected JsonText or CosmosBinary"));

    // 100 references make 2 MB of a string of 30 KB.
    let long =
        [&[0x80, 0xE4][..], &30_203_u32.to_le_bytes(), &[0xC1, 0x30, 0x75], &[b'a'; 30_000], &[0xC3, 6].repeat(100)];
    assert_eq!(create(&[KEY], &long.concat()).status, 413);
    assert_eq!(get(&service, &format!("{THINGS}/1"), &[KEY]).status, 404);
}
