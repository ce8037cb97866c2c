//! The client under load, against a store that may end and come back.
//!
//! Writes until standard input ends, and prints the id of each document whose write was acknowledged. Then every one of them
//! has to be there.

use std::collections::BTreeMap;
use std::io::{Read, stdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use azure_data_cosmos::FeedScope;
use azure_data_cosmos::clients::ContainerClient;
use serde_json::{Value, json};

use crate::{Result, ask, connect, create, nothing, owner};

const WRITERS: usize = 8;

pub async fn load(address: &str) -> Result<()> {
    let client = connect(address).await?;
    client.create_database("load", None).await?;
    let items = Arc::new(create(&client.database_client("load"), "items", 90_000).await?);
    let is_over = Arc::new(AtomicBool::new(false));
    let writing = |writer| tokio::spawn(write(Arc::clone(&items), writer, Arc::clone(&is_over)));
    let writers: Vec<_> = (0..WRITERS).map(writing).collect();
    tokio::task::spawn_blocking(|| stdin().read_to_end(&mut Vec::new())).await??;
    is_over.store(true, Ordering::Relaxed);
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await?);
    }
    let found: Vec<Value> = ask(&items, FeedScope::full_container(), "SELECT * FROM c", 1_000, nothing).await?;
    let kept: BTreeMap<_, _> = found.iter().map(|item| (item["id"].as_str(), item["n"].as_i64())).collect();
    for (id, n) in &acknowledged {
        assert_eq!(kept.get(&Some(id.as_str())), Some(&Some(*n)), "{id}");
    }
    Ok(())
}

async fn write(items: Arc<ContainerClient>, writer: usize, is_over: Arc<AtomicBool>) -> Vec<(String, i64)> {
    let mut acknowledged = Vec::new();
    for n in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let id = format!("{writer}-{n}");
        // A write that the client has given up on may be there or not.
        if items.upsert_item(owner(n), &id, &json!({ "id": id, "owner": owner(n), "n": n }), None).await.is_ok() {
            println!("{id}");
            acknowledged.push((id, n));
        }
    }
    acknowledged
}
