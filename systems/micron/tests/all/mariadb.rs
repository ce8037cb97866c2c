//! The service over a real MariaDB server (Debian package mariadb-server). `NARROWS_TEST_SKIP_MARIADB=1` leaves it out;
//! what is not installed is skipped too.

use std::time::Duration;

use crate::server::{Instance, Mariadb};
use axum::body::Bytes;
use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Builder;
use narrows_micron::Queries;
use narrows_serving::client::Client;
use serde_json::{Value, json};

/// Clients that transfer at the same time, half of them in each direction.
const CLIENTS: u32 = 8;
/// So many transfers of one client meet others; one deadlock comes after some tens of them.
const TRANSFERS_MAX: u32 = 2_000;
const LONG: Duration = Duration::from_secs(3_600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_real_server() {
    let Some(mut server) = Mariadb::start().await else { return };
    both_ways_give_the_same_page(&server).await;
    keys_and_names_find_their_rows(&server).await;
    a_rename_counts_at_its_owner(&server).await;
    a_kept_page_is_older_than_what_was_written(&server).await;
    what_cannot_be_done_is_reported(&server).await;
    opposite_transfers_deadlock_unless_they_are_begun_again(&server).await;
    nothing_acknowledged_is_lost_in_a_crash(&mut server).await;
}

fn client() -> Client {
    Client::new(Duration::from_secs(600), 1)
}

async fn get(url: &str) -> (u16, Value) {
    let response = client().send(Request::get(url).body(Bytes::new()).unwrap()).await.unwrap();
    (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
}

async fn transfer(client: &Client, instance: &Instance, body: Value) -> (u16, Value) {
    write(client, Request::post(instance.url("/transfers")), body).await
}

async fn write(client: &Client, request: Builder, body: Value) -> (u16, Value) {
    let request = request.header(CONTENT_TYPE, "application/json").body(body.to_string().into()).unwrap();
    let response = client.send(request).await.unwrap();
    (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
}

async fn both_ways_give_the_same_page(server: &Mariadb) {
    let mut pages = Vec::new();
    for queries in [Queries::NPlusOne, Queries::Joined] {
        let instance = Instance::start(&server.url(), queries, 0, Duration::ZERO).await;
        let (status, page) = get(&instance.url("/owners?page=2&size=3")).await;
        assert_eq!(status, 200);
        let (status, after_the_last) = get(&instance.url("/owners?page=401&size=10")).await;
        assert_eq!((status, &after_the_last["owners"]), (200, &json!([])));
        pages.push(page);
    }
    assert_eq!(pages[0], pages[1]);
    let owners = pages[0]["owners"].as_array().unwrap();
    let counts: Vec<(u64, usize)> =
        owners.iter().map(|owner| (owner["id"].as_u64().unwrap(), owner["items"].as_array().unwrap().len())).collect();
    assert_eq!(counts, [(4, 10), (5, 10), (6, 10)]);
    let item = json!({ "id": 31, "name": "item-000031", "quantity": 1_000_000 });
    assert_eq!(owners[0]["items"][0], item);
}

/// Numbers of the rows in a list of a response.
fn ids(response: &Value, list: &str) -> Vec<u64> {
    response[list].as_array().unwrap().iter().map(|row| row["id"].as_u64().unwrap()).collect()
}

async fn keys_and_names_find_their_rows(server: &Mariadb) {
    let instance = Instance::start(&server.url(), Queries::Joined, 0, Duration::ZERO).await;
    let (_, owner) = get(&instance.url("/owners/7")).await;
    assert_eq!((&owner["name"], &owner["region"]), (&json!("owner-00007"), &json!("west")));
    assert_eq!(ids(&owner, "items"), (61..=70).collect::<Vec<_>>());
    let (_, first) = get(&instance.url("/items?kind=kind-1&region=north&size=2")).await;
    assert_eq!((ids(&first, "items"), &first["items"][0]["owner"]["name"]), (vec![37, 74], &json!("owner-00004")));
    let (_, second) = get(&instance.url("/items?kind=kind-1&region=north&size=2&page=2")).await;
    assert_eq!(ids(&second, "items")[0], 111);
    let (_, found) = get(&instance.url("/search?name=owner-0012")).await;
    assert_eq!(ids(&found, "owners"), (120..=129).collect::<Vec<_>>());
    let (_, found) = get(&instance.url("/search?name=%25-00120")).await;
    assert_eq!(ids(&found, "owners"), Vec::<u64>::new());
}

async fn a_rename_counts_at_its_owner(server: &Mariadb) {
    let instance = Instance::start(&server.url(), Queries::Joined, 0, Duration::ZERO).await;
    let client = client();
    let rename = async |item: u32, name: &str| {
        write(&client, Request::put(instance.url(&format!("/items/{item}"))), json!({ "name": name })).await
    };
    assert_eq!(rename(75, "bolt").await, (200, json!({ "id": 75, "owner": 8, "retries": 0 })));
    let (_, owner) = get(&instance.url("/owners/8")).await;
    assert_eq!((&owner["revision"], &owner["items"][4]["name"]), (&json!(1), &json!("bolt")));
    assert_eq!((rename(999_999, "bolt").await.0, rename(75, "").await.0), (404, 400));
}

async fn a_kept_page_is_older_than_what_was_written(server: &Mariadb) {
    let client = client();
    for (ttl, expected) in [(LONG, 1_000_000), (Duration::ZERO, 999_995)] {
        let instance = Instance::start(&server.url(), Queries::Joined, 0, ttl).await;
        let page = instance.url("/owners?page=1000&size=4");
        get(&page).await;
        let (from, to) = if ttl.is_zero() { (39_962, 39_963) } else { (39_961, 39_963) };
        let (status, done) = transfer(&client, &instance, json!({ "from": from, "to": to, "amount": 5 })).await;
        assert_eq!((status, &done["from_quantity"], &done["retries"]), (201, &json!(999_995), &json!(0)));
        let (_, listing) = get(&page).await;
        let items = listing["owners"][0]["items"].as_array().unwrap();
        let item = items.iter().find(|item| item["id"] == from).unwrap();
        assert_eq!(item["quantity"], expected);
    }
}

async fn what_cannot_be_done_is_reported(server: &Mariadb) {
    let instance = Instance::start(&server.url(), Queries::Joined, 5, Duration::ZERO).await;
    let client = client();
    for (body, status) in [
        (json!({ "from": 1, "to": 999_999, "amount": 1 }), 404),
        (json!({ "from": 1, "to": 1, "amount": 1 }), 400),
        (json!({ "from": 1, "to": 2, "amount": 0 }), 400),
        (json!({ "from": 1, "to": 2, "amount": 1_001 }), 400),
        (json!({ "from": 1, "to": 2 }), 400),
        (json!("x"), 400),
    ] {
        let (found, problem) = transfer(&client, &instance, body.clone()).await;
        assert_eq!((found, &problem["status"]), (status, &json!(status)), "{body}");
    }
    for path in ["/owners?page=0", "/owners?size=101", "/owners?page=x", "/owners/x", "/items?kind=a", "/search"] {
        assert_eq!(get(&instance.url(path)).await.0, 400, "{path}");
    }
    assert_eq!(get(&instance.url("/owners/4001")).await.0, 404);
    assert_proven(&instance, 0).await;
    let nobody = Instance::start("mysql://root@127.0.0.1:1/micron", Queries::Joined, 5, Duration::ZERO).await;
    let (status, problem) = get(&nobody.url("/owners")).await;
    assert_eq!((status, &problem["reason"]), (503, &json!("unavailable")));
    assert_eq!(get(&nobody.url("/ledger")).await.0, 503);
}

async fn opposite_transfers_deadlock_unless_they_are_begun_again(server: &Mariadb) {
    let bare = Instance::start(&server.url(), Queries::Joined, 0, Duration::ZERO).await;
    let reasons = all_transfer(&bare, TRANSFERS_MAX, Until::Failure).await;
    assert!(reasons.failed.iter().any(|reason| reason == "deadlock"), "{:?}", reasons.failed);
    assert_proven(&bare, reasons.done).await;

    let patient = Instance::start(&server.url(), Queries::Joined, 100, Duration::ZERO).await;
    let reasons = all_transfer(&patient, 40, Until::TheEnd).await;
    assert_eq!((reasons.done, reasons.failed), (u64::from(CLIENTS) * 40, Vec::new()));
    assert_proven(&patient, u64::from(CLIENTS) * 40).await;
}

async fn nothing_acknowledged_is_lost_in_a_crash(server: &mut Mariadb) {
    let instance = Instance::start(&server.url(), Queries::Joined, 100, Duration::ZERO).await;
    let transferring = all_transfer(&instance, TRANSFERS_MAX, Until::Failure);
    let crash = async {
        loop {
            let (_, ledger) = get(&instance.url("/ledger")).await;
            if ledger["acknowledged"]["writes"].as_u64() >= Some(20) {
                break;
            }
        }
        server.crash_and_restart().await;
    };
    let (outcome, ()) = tokio::join!(transferring, crash);
    assert!(outcome.failed.iter().all(|reason| reason == "unavailable" || reason == "unknown"), "{:?}", outcome.failed);
    assert!(!outcome.failed.is_empty() && outcome.done >= 20);
    // Connections of before the crash are found out with the first question.
    let _ = get(&instance.url("/ledger")).await;
    assert_proven(&instance, outcome.done).await;
}

/// Asserts that the instance acknowledged so many, and that the database has them.
async fn assert_proven(instance: &Instance, acknowledged: u64) {
    let (status, ledger) = get(&instance.url("/ledger")).await;
    assert_eq!((status, &ledger["matches"]), (200, &json!(true)), "{ledger}");
    assert_eq!(ledger["acknowledged"]["writes"], acknowledged, "{ledger}");
}

#[derive(Debug, Default)]
struct Outcome {
    done: u64,
    /// The reasons of failures.
    failed: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Until {
    Failure,
    TheEnd,
}

/// Transfers between two items from all clients at once, each up to `most` times.
async fn all_transfer(instance: &Instance, most: u32, until: Until) -> Outcome {
    let failed = std::sync::atomic::AtomicBool::new(false);
    let one = async |number: u32| {
        let (client, mut outcome) = (client(), Outcome::default());
        let (from, to) = if number.is_multiple_of(2) { (101, 102) } else { (102, 101) };
        for _ in 0..most {
            let (status, response) = transfer(&client, instance, json!({ "from": from, "to": to, "amount": 1 })).await;
            if status == 201 {
                outcome.done += 1;
            } else {
                outcome.failed.push(response["reason"].as_str().unwrap_or("none").to_owned());
                failed.store(true, std::sync::atomic::Ordering::SeqCst);
            }
            if until == Until::Failure && failed.load(std::sync::atomic::Ordering::SeqCst) {
                break;
            }
        }
        outcome
    };
    let (a, b, c, d, e, f, g, h) = tokio::join!(one(0), one(1), one(2), one(3), one(4), one(5), one(6), one(7));
    [a, b, c, d, e, f, g, h].into_iter().fold(Outcome::default(), |mut all, mut one| {
        all.done += one.done;
        all.failed.append(&mut one.failed);
        all
    })
}
