//! Microsoft's client for Rust against the store whose address is the first argument, every response checked; after
//! the argument "load", under load.

mod load;

use std::collections::BTreeMap;
use std::error::Error;
use std::num::NonZeroU32;

use azure_data_cosmos::clients::{ContainerClient, DatabaseClient};
use azure_data_cosmos::models::{ContainerProperties, PatchInstructions, PatchOperation, ThroughputProperties};
use azure_data_cosmos::options::{
    BatchOptions, ContentResponseOnWrite, CreateContainerOptions, ItemWriteOptions, MaxItemCountHint, OperationOptions,
    OperationOptionsBuilder, PatchItemOptions, Precondition, QueryOptions,
};
use azure_data_cosmos::{AccountReference, CosmosClient, FeedScope, Query, RoutingStrategy, TransactionalBatch};
use futures::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const KEY: &str = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const COUNT: i64 = 120;

fn owner(n: i64) -> String {
    format!("o{}", n % 20)
}

fn item(n: i64) -> Value {
    let group = ["a", "b", "c"][n as usize % 3];
    json!({ "id": n.to_string(), "owner": owner(n), "n": n, "half": n as f64 / 2.0, "group": group, "tags": vec!["x"; n as usize % 3] })
}

/// Its write takes more than the 400 request units of a second.
fn large(n: i64) -> Value {
    let mut large = item(n);
    large["filling"] = "x".repeat(70_000).into();
    large
}

fn everything() -> Vec<i64> {
    (0..COUNT).collect()
}

fn sorted(mut numbers: Vec<i64>) -> Vec<i64> {
    numbers.sort_unstable();
    numbers
}

/// The status of a request that must fail.
fn refused<T>(result: azure_data_cosmos::Result<T>) -> u16 {
    let error = result.err().expect("done, expected a refusal");
    u16::from(error.status().status_code())
}

/// Options that ask for the document that was written.
fn with_content() -> OperationOptions {
    OperationOptionsBuilder::new().with_content_response_on_write(ContentResponseOnWrite::Enabled).build()
}

async fn create(database: &DatabaseClient, id: &'static str, throughput: u64) -> Result<ContainerClient> {
    let options = CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(throughput));
    database.create_container(ContainerProperties::new(id, "/owner".into()), Some(options)).await?;
    Ok(database.container_client(id, None).await?)
}

async fn fill(items: &ContainerClient) -> Result<()> {
    for n in 0..COUNT {
        items.create_item(owner(n), &n.to_string(), &item(n), None).await?;
    }
    Ok(())
}

async fn documents(items: &ContainerClient) -> Result<()> {
    assert_eq!(refused(items.create_item("o1", "1", &item(1), None).await), 409);
    let read: Value = items.read_item("o1", "1", None).await?.into_model()?;
    assert_eq!((&read["n"], &read["half"], &read["tags"]), (&json!(1), &json!(0.5), &json!(["x"])));
    assert_eq!(refused(items.read_item("o2", "1", None).await), 404);

    let options = || Some(ItemWriteOptions::default().with_operation_options(with_content()));
    let created = items.upsert_item("o1", "new", &json!({ "id": "new", "owner": "o1" }), options()).await?;
    assert_eq!(u16::from(created.status().status_code()), 201);
    let replaced = items.upsert_item("o1", "new", &json!({ "id": "new", "owner": "o1", "n": 7 }), options()).await?;
    assert_eq!(u16::from(replaced.status().status_code()), 200);
    assert_eq!(replaced.into_model::<Value>()?["n"], 7);

    let patch = PatchInstructions::new()
        .with_operation(PatchOperation::set("/m", json!(1)))
        .with_operation(PatchOperation::increment("/n", 5));
    let options = PatchItemOptions::default().with_operation_options(with_content());
    let patched: Value = items.patch_item("o1", "new", patch, Some(options)).await?.into_model()?;
    assert_eq!((&patched["n"], &patched["m"]), (&json!(12), &json!(1)));
    items.delete_item("o1", "new", None).await?;
    assert_eq!(refused(items.read_item("o1", "new", None).await), 404);
    Ok(())
}

async fn a_change_that_somebody_else_has_overtaken(items: &ContainerClient) -> Result<()> {
    let read = items.read_item("o2", "2", None).await?;
    let etag = read.headers().etag().expect("an etag").clone();
    items.replace_item("o2", "2", &item(2), None).await?;
    let options = ItemWriteOptions::default().with_precondition(Precondition::IfMatch(etag));
    assert_eq!(refused(items.replace_item("o2", "2", &item(2), Some(options)).await), 412);
    Ok(())
}

async fn batches(items: &ContainerClient) -> Result<()> {
    let fresh = json!({ "id": "b", "owner": "o1" });
    let statuses = async |batch| -> Result<Vec<u16>> {
        let options = BatchOptions::default().with_operation_options(with_content());
        let response = items.execute_transactional_batch(batch, Some(options)).await?.into_model()?;
        Ok(response.results().iter().map(|result| result.status_code()).collect())
    };
    let batch = TransactionalBatch::new("o1").create_item(&fresh)?.read_item("1", None).delete_item("b", None);
    assert_eq!(statuses(batch).await?, [201, 200, 204]);
    let failing = TransactionalBatch::new("o1").create_item(&fresh)?.create_item(item(1))?;
    assert_eq!(statuses(failing).await?, [424, 409]);
    assert_eq!(refused(items.read_item("o1", "b", None).await), 404);
    Ok(())
}

/// The results of a query, in pages of `size`, each of which continues from the token of the one before.
async fn ask<T: DeserializeOwned + Send + 'static>(
    items: &ContainerClient,
    scope: FeedScope,
    sql: &str,
    size: u32,
    between: impl AsyncFn(usize) -> Result<()>,
) -> Result<Vec<T>> {
    let mut found = Vec::new();
    let mut token = None;
    for page in 0.. {
        let size = NonZeroU32::new(size).expect("more than 0");
        let mut options = QueryOptions::default().with_max_item_count(MaxItemCountHint::Limit(size));
        options.feed.continuation_token = token;
        let query = Query::from(sql).with_parameter("@least", 50)?;
        let mut pages = items.query_items::<T>(query, scope.clone(), Some(options)).await?.into_pages();
        let Some(results) = pages.next().await else { break };
        found.extend(results?.into_items());
        token = Some(pages.to_continuation_token()?);
        between(page).await?;
    }
    Ok(found)
}

async fn nothing(_: usize) -> Result<()> {
    Ok(())
}

async fn queries_of_one_partition(items: &ContainerClient) -> Result<()> {
    let one = || FeedScope::partition("o3");
    let all = ask(items, one(), "SELECT VALUE c.n FROM c", 4, nothing).await?;
    assert_eq!(sorted(all), [3, 23, 43, 63, 83, 103]);
    let sql = "SELECT VALUE c.n FROM c WHERE c.n > @least ORDER BY c.n DESC";
    assert_eq!(ask::<i64>(items, one(), sql, 2, nothing).await?, [103, 83, 63]);
    assert_eq!(ask::<i64>(items, one(), "SELECT VALUE COUNT(1) FROM c", 10, nothing).await?, [6]);
    Ok(())
}

async fn queries_across_partitions(items: &ContainerClient) -> Result<()> {
    let ask = async |sql: &str| ask::<i64>(items, FeedScope::full_container(), sql, 7, nothing).await;
    let reversed: Vec<i64> = everything().into_iter().rev().collect();
    assert_eq!(sorted(ask("SELECT VALUE c.n FROM c").await?), everything());
    assert_eq!(ask("SELECT VALUE c.n FROM c WHERE c.owner IN ('o1', 'o2', 'o9')").await?.len(), 18);
    assert_eq!(ask("SELECT VALUE c.n FROM c ORDER BY c.n DESC").await?, reversed);
    assert_eq!(ask("SELECT TOP 5 VALUE c.n FROM c ORDER BY c.n").await?, everything()[..5]);
    assert_eq!(ask("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 5").await?, everything()[10..15]);
    Ok(())
}

async fn a_split_in_the_middle_of_a_query(database: &DatabaseClient) -> Result<()> {
    for (id, sql) in [("split", "SELECT VALUE c.n FROM c"), ("sorted", "SELECT VALUE c.n FROM c ORDER BY c.n")] {
        let items = create(database, id, 10_000).await?;
        fill(&items).await?;
        let raise = async |page: usize| -> Result<()> {
            if page == 3 {
                items.begin_replace_throughput(ThroughputProperties::manual(40_000), None).await?.await?;
            }
            Ok(())
        };
        let found: Vec<i64> = ask(&items, FeedScope::full_container(), sql, 10, raise).await?;
        assert_eq!(if id == "sorted" { found } else { sorted(found) }, everything(), "{id}");
        queries_across_partitions(&items).await?;
    }
    Ok(())
}

async fn a_throttled_client_retries(database: &DatabaseClient) -> Result<()> {
    let items = create(database, "throttled", 400).await?;
    let mut statuses = BTreeMap::new();
    for n in 0..6 {
        let written = items.upsert_item(owner(n), &n.to_string(), &large(n), None).await?;
        for request in written.diagnostics().requests().iter() {
            *statuses.entry(u16::from(request.status().status_code())).or_insert(0) += 1;
        }
    }
    assert_eq!(statuses.get(&201), Some(&6), "{statuses:?}");
    assert!(statuses.contains_key(&429), "6 large writes went through without a 429: {statuses:?}");
    let last: Value = items.read_item("o5", "5", None).await?.into_model()?;
    assert_eq!(last["n"], 5);
    Ok(())
}

async fn connect(address: &str) -> Result<CosmosClient> {
    let account = AccountReference::with_authentication_key(address.parse()?, KEY);
    Ok(CosmosClient::builder().build(account, RoutingStrategy::PreferredRegions(Vec::new())).await?)
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let address = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["load", address] => return load::load(address).await,
        [address] => address,
        _ => return Err("expected the address, or \"load\" and the address".into()),
    };
    let client = connect(address).await?;
    client.create_database("rust", None).await?;
    let database = client.database_client("rust");
    let items = create(&database, "items", 90_000).await?;
    assert_eq!(items.read_feed_ranges(None).await?.len(), 9);
    fill(&items).await?;
    documents(&items).await?;
    a_change_that_somebody_else_has_overtaken(&items).await?;
    batches(&items).await?;
    queries_of_one_partition(&items).await?;
    queries_across_partitions(&items).await?;
    a_split_in_the_middle_of_a_query(&database).await?;
    a_throttled_client_retries(&database).await?;
    database.delete(None).await?;
    Ok(())
}
