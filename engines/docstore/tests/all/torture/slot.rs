//! Documents that one client writes together, version by version, so that the documents found say which writes took effect.

use serde_json::{Value, json};

use super::client::Client;

/// Every so many-th version deletes the documents.
const DELETE_EVERY: u64 = 4;

/// One document, or two that are written as one transaction.
pub(crate) struct Slot {
    owner: String,
    ids: Vec<String>,
    /// The last version that was acknowledged.
    pub(crate) acknowledged: u64,
    /// The last version that was sent: this one, or the one after.
    pub(crate) attempted: u64,
}

impl Slot {
    pub(crate) fn new(client: u64, number: u64) -> Self {
        let id = |part| format!("{client}-{number}-{part}");
        let ids = if number.is_multiple_of(3) { vec![id("a"), id("b")] } else { vec![id("a")] };
        Self { owner: format!("o{client}-{number}"), ids, acknowledged: 0, attempted: 0 }
    }

    pub(crate) fn next(&self) -> u64 {
        self.acknowledged + 1
    }

    /// Writes a version: status and body, `None` if the server is gone.
    pub(crate) fn write(&self, client: &mut Client, version: u64, length: u64) -> Option<(u16, String)> {
        let is_delete = version.is_multiple_of(DELETE_EVERY);
        let text = "x".repeat(length as usize);
        let document = |id: &String| json!({ "id": id, "ownerId": self.owner, "version": version, "text": text });
        let key = self.key();
        if let [id] = &self.ids[..] {
            return if is_delete {
                client.send("DELETE", &format!("docs/{id}"), &key, "")
            } else {
                let headers = format!("{key}x-ms-documentdb-is-upsert: true\r\n");
                client.send("POST", "docs", &headers, &document(id).to_string())
            };
        }
        let operation = |id: &String| match is_delete {
            true => json!({ "operationType": "Delete", "id": id }),
            false => json!({ "operationType": "Upsert", "resourceBody": document(id) }),
        };
        let operations: Vec<Value> = self.ids.iter().map(operation).collect();
        let headers = format!("{key}x-ms-cosmos-is-batch-request: true\r\n");
        client.send("POST", "docs", &headers, &Value::from(operations).to_string())
    }

    /// Finds out which version the documents have, which must be the last acknowledged or the one that was under way.
    pub(crate) fn settle(&mut self, client: &mut Client) {
        let found: Vec<Option<u64>> = self.ids.iter().map(|id| self.version_of(client, id)).collect();
        let first = found[0];
        assert!(found.iter().all(|version| *version == first), "half a transaction at {:?}: {found:?}", self.ids);
        let (acknowledged, attempted) = (self.acknowledged, self.attempted);
        let settled = [attempted, acknowledged].into_iter().find(|version| left_by(*version) == first);
        let settled = settled.unwrap_or_else(|| {
            panic!("{:?} has {first:?}, acknowledged was version {acknowledged}, sent {attempted}", self.ids)
        });
        (self.acknowledged, self.attempted) = (settled, settled);
    }

    /// The ids of the documents that there are.
    pub(crate) fn present(&self) -> Vec<String> {
        if left_by(self.acknowledged).is_some() { self.ids.clone() } else { Vec::new() }
    }

    fn version_of(&self, client: &mut Client, id: &str) -> Option<u64> {
        let (status, body) = client.send("GET", &format!("docs/{id}"), &self.key(), "").unwrap();
        match status {
            404 => None,
            200 => serde_json::from_str::<Value>(&body).unwrap()["version"].as_u64(),
            other => panic!("{other} {body}"),
        }
    }

    fn key(&self) -> String {
        format!("x-ms-documentdb-partitionkey: [\"{}\"]\r\n", self.owner)
    }
}

/// Version that a document holds after this one was written.
fn left_by(version: u64) -> Option<u64> {
    (!version.is_multiple_of(DELETE_EVERY)).then_some(version)
}
